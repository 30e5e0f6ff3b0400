"""What goes over the line in STOMP, and what happens when the broker refuses, stalls or is lost."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from peer_faces import Face, Told
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, drop, ignore, refuse, start

from pyjmsack import (
    AckMode,
    ConnectionLostException,
    InvalidClientIDException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    Queue,
    Topic,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)

QUEUE = Queue("q")
TRANSACTED, INDIVIDUAL = AckMode.SESSION_TRANSACTED, AckMode.INDIVIDUAL_ACKNOWLEDGE
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


# -- connection -------------------------------------------------------------------------------------------------


def test_the_login_offers_both_versions_and_heart_beats_that_are_never_zero(face: Face) -> None:
    """Artemis drops a client that is silent for a minute, and only beats keep a receiver talking."""
    peer = start(face)
    face.connect(peer, username="u", password="p:w", client_id="c")
    (frame,) = peer.wait("CONNECT")
    assert frame.headers == {
        "accept-version": "1.1,1.2",
        "host": "127.0.0.1",
        "heart-beat": "10000,10000",
        "client-id": "c",
        "login": "u",
        "passcode": "p:w",
    }


def test_traced_bytes_are_all_there_but_the_password(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """A.1 ``transport.traceBytes``."""
    caplog.set_level(logging.DEBUG, "pyjmsack")
    peer = start(face)
    session = face.session(peer, "transport.traceBytes=true", username="me", password="s3cr3t")
    session.create_producer(QUEUE).send("hello")
    assert b"hello".hex() in caplog.text
    assert b"\npasscode:***\n".hex() in caplog.text
    assert b"s3cr3t".hex() not in caplog.text


@pytest.mark.parametrize(
    ("options", "destination", "header", "value"),
    [
        ((), "q?consumer.exclusive=true", "activemq.exclusive", "true"),
        (("jms.exclusiveConsumer=true",), "q", "activemq.exclusive", "true"),
        (("jms.exclusiveConsumer=true",), "q?consumer.exclusive=false", "activemq.exclusive", None),
        (("jms.exclusiveConsumer=true",), "topic://t", "activemq.exclusive", None),
        ((), "topic://t?consumer.retroactive=true", "activemq.retroactive", "true"),
        (("jms.useRetroactiveConsumer=true",), "topic://t", "activemq.retroactive", "true"),
        (("jms.useRetroactiveConsumer=true",), "topic://t?consumer.retroactive=false", "activemq.retroactive", None),
        (("jms.useRetroactiveConsumer=true",), "q", "activemq.retroactive", None),
        ((), "topic://t?consumer.maximumPendingMessageLimit=5", "activemq.maximumPendingMessageLimit", "5"),
        (
            ("jms.prefetchPolicy.maximumPendingMessageLimit=7",),
            "topic://t",
            "activemq.maximumPendingMessageLimit",
            "7",
        ),
        (("jms.prefetchPolicy.maximumPendingMessageLimit=7",), "q", "activemq.maximumPendingMessageLimit", None),
    ],
)
def test_options_of_consumers_are_headers_for_classic(
    face: Face, options: tuple[str, ...], destination: str, header: str, value: str | None
) -> None:
    """A.2, A.4: of the destination, else of the connection; each where it has a meaning."""
    peer = start(face, CLASSIC)
    name = destination.removeprefix("topic://")
    face.session(peer, *options).create_consumer(Queue(name) if name == destination else Topic(name))
    assert peer.wait("SUBSCRIBE")[0].headers.get(header) == value


def test_a_limit_that_the_broker_does_not_know_is_left_out_with_a_warning(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    """A.4 ``consumer.maximumPendingMessageLimit``: nothing is dropped then, so nothing is lost."""
    peer = start(face, ARTEMIS)
    face.session(peer).create_consumer(Topic("t?consumer.maximumPendingMessageLimit=5"))
    assert "activemq.maximumPendingMessageLimit" not in peer.wait("SUBSCRIBE")[0].headers
    assert "no effect at this broker" in caplog.text


def test_a_silent_client_sends_heart_beats(face: Face) -> None:
    peer = start(face, heart_beat="0,20")
    face.connect(peer, "stomp.heartBeat=20")
    peer.wait_beats(3)


def test_a_silent_broker_is_given_up(face: Face) -> None:
    """S128."""
    lost = Told()
    connection = face.connect(start(face, heart_beat="20,0"), "stomp.heartBeat=20")
    connection.exception_listener = lost
    assert isinstance(lost.first(), ConnectionLostException)


@EITHER
def test_a_slow_consumer_whose_connection_the_broker_ends_is_told_why(face: Face, server: str) -> None:
    """S60, S128: STOMP has no frame that closes one consumer, only ERROR."""
    peer = start(face, server)
    connection = face.connect(peer)
    connection.exception_listener = lost = Told()
    consumer = connection.create_session().create_consumer(QUEUE)
    receiving = face.background(consumer.receive)
    peer.wait("SUBSCRIBE")
    peer.send("ERROR", message="slow consumer")
    assert isinstance(lost.first(), ConnectionLostException)
    assert "slow consumer" in str(lost.first())
    with pytest.raises(ConnectionLostException, match="slow consumer"):
        receiving.result(10)


@pytest.mark.parametrize(
    ("server", "header"), [(ARTEMIS, "durable-subscription-name"), (CLASSIC, "activemq.subscriptionName")]
)
def test_a_durable_subscription_is_the_client_id_and_a_name_in_the_broker_s_own_header(
    face: Face, server: str, header: str
) -> None:
    """S146: on SUBSCRIBE, and on the UNSUBSCRIBE that deletes it; the one that only ends a consumer has no name."""
    peer = start(face, server)
    session = face.session(peer, client_id="me")
    session.create_durable_consumer(Topic("news"), "daily").close()
    session.unsubscribe("daily")
    assert peer.wait("CONNECT")[0].headers["client-id"] == "me"
    (subscribe,) = peer.wait("SUBSCRIBE")
    ended, deleted = peer.wait("UNSUBSCRIBE", 2)
    assert [frame.headers.get(header) for frame in (subscribe, ended, deleted)] == ["daily", None, "daily"]


@EITHER
def test_a_durable_subscription_without_a_client_id_is_refused_before_a_frame(face: Face, server: str) -> None:
    """S146: Classic would make one that nobody can resume."""
    peer = start(face, server)
    session = face.session(peer)
    with pytest.raises(JMSException):
        session.create_durable_consumer(Topic("news"), "daily")
    with pytest.raises(UnsupportedFeatureException):
        session.create_shared_consumer(Topic("news"), "daily")
    assert peer.all("SUBSCRIBE") == []


REFUSALS = {
    "Security Error occurred: User name [u] or password is invalid": JMSSecurityException,
    "Broker: b - Client: c already connected from x: InvalidClientIDException": InvalidClientIDException,
    "something else": JMSException,
}


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refused_login_keeps_its_kind(face: Face, message: str) -> None:
    """S129."""
    with pytest.raises(JMSException) as raised:
        face.connect(start(face, rule=refuse("CONNECT", message)), username="u", password="secret")
    assert type(raised.value) is REFUSALS[message]
    assert "secret" not in str(raised.value)


def test_a_line_break_in_the_login_cannot_make_headers(face: Face) -> None:
    with pytest.raises(JMSSecurityException, match="passcode") as raised:
        face.connect(start(face), username="u", password="secret\nadmin:true")
    assert "secret" not in str(raised.value)


def test_another_version_than_offered_is_refused(face: Face) -> None:
    with pytest.raises(ConnectionLostException, match=r"1\.0"):
        face.connect(start(face, version="1.0"))


def test_what_is_not_stomp_ends_the_connection(face: Face) -> None:
    def rule(peer: StompPeer, frame: Received) -> bool:
        peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n\0")
        return True

    with pytest.raises(ConnectionLostException, match="STOMP"):
        face.connect(start(face, rule=rule))


def test_close_says_goodbye_and_waits_for_the_receipt(face: Face) -> None:
    """S123."""
    peer = start(face)
    face.connect(peer).close()
    assert peer.log()[-1] == "DISCONNECT"


# -- sending ----------------------------------------------------------------------------------------------------


def test_a_send_names_the_kind_of_its_destination_to_artemis_and_asks_for_a_receipt(face: Face) -> None:
    """Without it the broker confirms the message and drops it."""
    peer = start(face)
    session = face.session(peer)
    session.create_producer(QUEUE).send("a")
    session.create_producer(Topic("t")).send("b")
    kinds = [(f.headers["destination"], f.headers["destination-type"], f.body) for f in peer.all("SEND")]
    assert kinds == [("q", "ANYCAST", b"a"), ("t", "MULTICAST", b"b")]
    assert all(frame.headers["persistent"] == "true" and "receipt" in frame.headers for frame in peer.all("SEND"))


def test_text_goes_without_a_length_and_bytes_with_one(face: Face) -> None:
    """S167: that is how brokers tell them apart."""
    peer = start(face, CLASSIC)
    session = face.session(peer)
    producer = session.create_producer(QUEUE)
    for body in ("text", b"bytes", "n\0l"):
        producer.send(body)
    lengths = [(f.headers["destination"], f.headers.get("content-length"), f.headers.get("amq-msg-type"))
               for f in peer.all("SEND")]  # fmt: skip
    assert lengths == [("/queue/q", None, None), ("/queue/q", "5", None), ("/queue/q", "3", "text")]


def test_a_lost_connection_fails_every_send_without_a_receipt(face: Face) -> None:
    """S128: whether the broker has them is unknown."""
    peer = start(face, rule=ignore("SEND"))
    producer = face.session(peer).create_producer(QUEUE)
    futures = [producer.send_async(str(number)) for number in range(3)]
    peer.wait("SEND", 3)
    peer.drop()
    for future in futures:
        with pytest.raises(ConnectionLostException):
            future.result(timeout=10)


def test_a_refused_send_of_a_burst_is_found_by_repeating_each_by_itself(face: Face) -> None:
    """S91, S129: a burst shares a receipt, so an ERROR need not name its frame; it must not come again for ever."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command != "SEND" or frame.body != b"refused":
            return False
        peer.error(frame, "no")
        return True

    peer = start(face, rule=rule)
    producer = face.failover(peer).create_session().create_producer(QUEUE)
    futures = {body: producer.send_async(body) for body in ("a", "b", "refused", "c", "d")}
    for body, future in futures.items():
        if body != "refused":
            future.result(timeout=10)
    with pytest.raises(JMSException, match="no"):
        futures["refused"].result(timeout=10)


def test_on_classic_every_send_asks_for_a_receipt(face: Face) -> None:
    """An ERROR leaves the connection open there: only its name tells which message the broker did not take."""
    peer = start(face, CLASSIC)
    producer = face.session(peer).create_producer(QUEUE)
    for future in [producer.send_async(str(number)) for number in range(20)]:
        future.result(timeout=10)
    assert all("receipt" in frame.headers for frame in peer.all("SEND"))


def test_on_classic_a_refused_send_fails_alone(face: Face) -> None:
    """S129: an ERROR names its frame, and the connection stays."""
    peer = start(face, CLASSIC, rule=refuse("SEND", "no", ends=False, after=1))
    producer = face.session(peer).create_producer(QUEUE)
    producer.send("a")
    with pytest.raises(JMSException, match="no"):
        producer.send("b")
    producer.close()
    assert len(peer.all("CONNECT")) == 1


def test_a_stalled_broker_does_not_hold_a_send_beyond_its_time_out(face: Face) -> None:
    """S66."""
    peer = start(face, rule=ignore("SEND"))
    with pytest.raises(JMSException, match=r"jms\.sendTimeout"):
        face.session(peer, "jms.sendTimeout=50").create_producer(QUEUE).send("a")


# -- receiving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "prefetch", "window"),
    [
        (ARTEMIS, 1000, ("consumer-window-size", "4096000")),
        (ARTEMIS, 1, ("consumer-window-size", "0")),
        (ARTEMIS, 0, ("consumer-window-size", "0")),
        (CLASSIC, 1000, ("activemq.prefetchSize", "1000")),
        (CLASSIC, 0, ("activemq.prefetchSize", "1")),
    ],
)
def test_the_window_is_in_the_units_of_the_broker(
    face: Face, server: str, prefetch: int, window: tuple[str, str]
) -> None:
    """S52: Classic never delivers with 0, and Artemis counts bytes."""
    peer = start(face, server)
    face.session(peer, f"jms.prefetchPolicy.all={prefetch}").create_consumer(QUEUE)
    (frame,) = peer.all("SUBSCRIBE")
    assert frame.headers["ack"] == "client-individual"
    assert (window[0], frame.headers[window[0]]) == window


def test_without_acknowledgement_artemis_is_told_of_each_message_as_it_arrives(face: Face) -> None:
    """S36, trap 5, trap 11: ``ack:auto`` would take along what it could not convert, and stall behind a window."""
    peer = start(face, messages=["a", "b"])
    consumer = face.session(peer, mode=AckMode.NO_ACKNOWLEDGE).create_consumer(QUEUE)
    (frame,) = peer.all("SUBSCRIBE")
    assert frame.headers["ack"] == "client-individual"
    assert [consumer.receive(timeout=10).text for _ in range(2)] == ["a", "b"]
    peer.wait("ACK", 2)
    assert peer.log("ACK") == ["ACK s1,0", "ACK s1,1"]
    assert not peer.queue


@pytest.mark.parametrize(
    ("text", "kind"), [("AMQ229020: Invalid filter", InvalidSelectorException), ("x", JMSException)]
)
def test_a_refused_subscription_keeps_its_kind_though_artemis_names_no_frame(
    face: Face, text: str, kind: type[JMSException]
) -> None:
    """S129."""
    session = face.session(start(face, rule=refuse("SUBSCRIBE", text, named=False)), "jms.validateSelector=false")
    with pytest.raises(JMSException) as raised:
        session.create_consumer(QUEUE, "a = = b")
    assert type(raised.value) is kind


def test_a_held_window_does_not_stall_a_queue(face: Face) -> None:
    """S53: what the caller holds must not keep the next message away; the broker counts it, so a lane is opened."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":  # a window of one message
            number = str(len(peer.all("SUBSCRIBE")) - 1)
            if number in peer.queue:
                peer.deliver(frame.headers["id"], number, peer.queue[number])
            peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
        return frame.command == "SUBSCRIBE"

    peer = start(face, rule=rule, messages=["a", "b", "c"])
    consumer = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL).create_consumer(QUEUE)
    messages = [consumer.receive(timeout=10) for _ in range(3)]
    assert [message.text for message in messages] == ["a", "b", "c"]
    for message in messages:
        message.acknowledge()
    peer.wait("UNSUBSCRIBE", 2)
    assert peer.log("ACK", "UNSUBSCRIBE")[-2:] == ["ACK s3,2", "UNSUBSCRIBE s3"]


def test_what_is_released_comes_again_without_a_frame(face: Face) -> None:
    """S82, S118: STOMP has no verb for it."""
    peer = start(face, messages=["a", "b", "c"])
    consumer = face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE)
    first, second = consumer.receive(timeout=10), consumer.receive(timeout=10)
    second.release()
    first.modify()
    again = [consumer.receive(timeout=10) for _ in range(3)]
    assert sorted((message.text, message.delivery_count) for message in again) == [("a", 2), ("b", 1), ("c", 1)]
    assert peer.log("ACK", "NACK", "UNSUBSCRIBE") == []


# -- reject -----------------------------------------------------------------------------------------------------


def test_artemis_never_gets_a_nack_but_a_copy_before_the_ack(face: Face) -> None:
    """S118, trap 1: there a NACK is an ACK, and the message is gone."""
    peer = start(face, messages=["bad"])
    face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=10).reject()
    peer.wait("ACK")
    (copy,) = peer.all("SEND")
    assert peer.log("SEND", "ACK", "NACK") == ["SEND DLQ", "ACK s1,0"]
    assert (copy.body, copy.headers["destination-type"], copy.headers["persistent"]) == (b"bad", "ANYCAST", "true")
    assert copy.headers["_AMQ_ORIG_ADDRESS"] == "q"
    assert copy.headers["_AMQ_DUPL_ID"] == "q-0"


@pytest.mark.parametrize("rule", [drop("SEND"), refuse("SEND", "full")], ids=["lost", "refused"])
def test_a_copy_that_is_not_confirmed_leaves_the_original_at_the_broker(face: Face, rule: Any) -> None:
    """S118: a message is never acknowledged before its copy is safe."""
    peer = start(face, rule=rule, messages=["bad"])
    lost = Told()
    connection = face.connect(peer)
    connection.exception_listener = lost
    connection.create_session(INDIVIDUAL).create_consumer(QUEUE).receive(timeout=10).reject()
    lost.first()
    assert peer.log("ACK", "NACK") == []
    assert peer.queue == {"0": "bad"}


def test_classic_gets_a_nack_for_a_persistent_message(face: Face) -> None:
    """S118."""
    peer = start(face, CLASSIC, messages=["bad"])
    face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=10).reject()
    peer.wait("NACK")
    assert peer.log("SEND", "ACK", "NACK") == ["NACK s1,0"]
    assert "transaction" not in peer.all("NACK")[0].headers


def test_an_outcome_that_stomp_does_not_have_is_refused(face: Face) -> None:
    """S118, S119."""
    peer = start(face, messages=["a"])
    message = face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=10)
    with pytest.raises(UnsupportedFeatureException):
        message.modify(undeliverable_here=True)
    message.accept()
    peer.wait("ACK")


# -- transactions -----------------------------------------------------------------------------------------------


def work(face: Face, peer: StompPeer, *options: str) -> Any:
    """Receive one message and send one, in a transaction."""
    session = face.session(peer, *options, mode=TRANSACTED)
    assert session.create_consumer(QUEUE).receive(timeout=10).text == "a"
    session.create_producer(Queue("out")).send("b")
    return session


def test_artemis_gets_the_acks_after_the_commit_is_confirmed(face: Face) -> None:
    """S88, trap 3: an ACK in a transaction would be applied at once there."""
    peer = start(face, messages=["a"])
    work(face, peer).commit()
    sequence = ["BEGIN", "SEND", "COMMIT", "ACK"]
    assert [frame.command for frame in peer.frames if frame.command in sequence] == sequence
    (ack,) = peer.all("ACK")
    assert "transaction" not in ack.headers
    assert "receipt" in ack.headers, "the last one tells that all are applied"


def test_classic_gets_the_acks_inside_the_transaction(face: Face) -> None:
    """S89."""
    peer = start(face, CLASSIC, messages=["a"])
    work(face, peer).commit()
    begun, ack, send, commit = (peer.all(command)[0] for command in ("BEGIN", "ACK", "SEND", "COMMIT"))
    assert {frame.headers["transaction"] for frame in (begun, ack, send, commit)} == {begun.headers["transaction"]}


@EITHER
def test_a_transaction_without_work_sends_nothing(face: Face, server: str) -> None:
    """S76, S85."""
    peer = start(face, server)
    session = face.session(peer, mode=TRANSACTED)
    session.commit()
    session.rollback()
    assert peer.log("BEGIN", "COMMIT", "ABORT") == []


@EITHER
def test_a_transaction_id_is_never_used_again(face: Face, server: str) -> None:
    """Trap 4: Artemis confirms and drops what is sent to an unknown transaction."""
    peer = start(face, server)
    session = face.session(peer, mode=TRANSACTED)
    producer = session.create_producer(QUEUE)
    for end in (session.commit, session.rollback, session.commit):
        producer.send("a")
        end()
    ids = [frame.headers["transaction"] for frame in peer.all("BEGIN")]
    assert len(set(ids)) == 3
    assert [frame.headers["transaction"] for frame in peer.all("SEND")] == ids


@EITHER
def test_after_a_rollback_messages_come_again_counted_from_the_client(face: Face, server: str) -> None:
    """S80, S89: the broker does not redeliver to a live subscription, and its ack ids are valid again."""
    peer = start(face, server, messages=["a", "b"])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    for count in (1, 2):
        messages = [consumer.receive(timeout=10) for _ in range(2)]
        assert [(message.text, message.delivery_count) for message in messages] == [("a", count), ("b", count)]
        session.rollback()
    assert [consumer.receive(timeout=10).delivery_count for _ in range(2)] == [3, 3]
    if server == ARTEMIS:
        assert peer.log("ACK") == [], "it would have applied them"
    session.commit()


@EITHER
def test_a_connection_lost_in_a_commit_leaves_it_in_doubt(face: Face, server: str) -> None:
    """S94: nobody can tell whether it happened."""
    session = work(face, start(face, server, rule=drop("COMMIT"), messages=["a"]))
    with pytest.raises(TransactionRolledBackException, match="unknown") as raised:
        session.commit()
    assert len(raised.value.sent) == 1


def test_on_classic_a_refused_commit_delivers_again(face: Face) -> None:
    """S79."""
    peer = start(face, CLASSIC, rule=refuse("COMMIT", "no", ends=False), messages=["a"])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    consumer.receive(timeout=10)
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert consumer.receive(timeout=10).delivery_count == 2


def test_strict_refuses_a_transacted_session_that_is_not_atomic(face: Face) -> None:
    """S88."""
    with pytest.raises(UnsupportedFeatureException, match="strict"):
        face.session(start(face), "strict=true", mode=TRANSACTED)
    assert face.session(start(face, CLASSIC), "strict=true", mode=TRANSACTED).transaction_guarantee == "atomic"


# -- ends -------------------------------------------------------------------------------------------------------


def test_a_closed_consumer_gives_back_what_nobody_saw_and_keeps_what_can_be_acknowledged(face: Face) -> None:
    """S29: its subscription stays until the caller has acknowledged, for an ACK after UNSUBSCRIBE is an error."""
    peer = start(face, messages=["a", "b"])
    session = face.session(peer, mode=INDIVIDUAL)
    consumer = session.create_consumer(QUEUE)
    message = consumer.receive(timeout=10)
    consumer.close()
    assert peer.log("UNSUBSCRIBE") == []
    message.acknowledge()
    peer.wait("UNSUBSCRIBE")
    assert peer.log("ACK", "UNSUBSCRIBE") == ["ACK s1,0", "UNSUBSCRIBE s1"]
    session.close()
    assert peer.queue == {"1": "b"}


def test_a_browser_on_classic_ends_where_the_broker_says_so(face: Face) -> None:
    """S134."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            assert frame.headers["browser"] == "true"
            peer.answer(frame)
            peer.send("MESSAGE", subscription=frame.headers["id"], browser="end")
        return frame.command == "SUBSCRIBE"

    session = face.session(start(face, CLASSIC, rule=rule, messages=["a", "b"]))
    assert [message.text for message in session.create_browser(QUEUE)] == ["a", "b"]


def test_bytes_arrive_as_bytes_and_a_nul_does_not_end_them(face: Face) -> None:
    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            head = f"MESSAGE\nsubscription:{frame.headers['id']}\ncontent-length:3\nmessage-id:1,1\nack:1,1\n\n"
            peer.write(head.encode() + b"a\0b\0")
        return frame.command == "SUBSCRIBE"

    message = face.session(start(face, rule=rule)).create_consumer(QUEUE).receive(timeout=10)
    assert message.data == b"a\0b"


@pytest.mark.parametrize("end", ["close", "rollback"])
def test_what_was_prefetched_is_given_back_once(face: Face, end: str) -> None:
    """S31, S83: local redelivery puts messages back into the buffer from which they are being taken."""
    peer = start(face, messages=[str(number) for number in range(500)])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(timeout=10).text == "0"
    face.until(lambda: consumer.stats.buffered == 499)
    getattr(session, end)()
    if end == "rollback":
        again = [consumer.receive(timeout=10).text for _ in range(500)]
        assert again == [*peer.queue.values()]
    assert len(peer.queue) == 500


def test_a_body_that_came_over_amqp_is_read_as_what_it_is(face: Face) -> None:
    """ActiveMQ Classic passes it on as it came, all sections."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            body = b"\x00\x53\x77\xa1\x05hello"
            length = f"content-length:{len(body)}"
            head = f"subscription:{frame.headers['id']}\nmessage-id:1\nack:1\nJMS_AMQP_NATIVE:true\n{length}"
            peer.write(f"MESSAGE\n{head}\n\n".encode() + body + b"\0")
        return frame.command == "SUBSCRIBE"

    message = face.session(start(face, CLASSIC, rule=rule)).create_consumer(QUEUE).receive(timeout=10)
    assert message.text == "hello"


@pytest.mark.parametrize("when", ["created", "restored"])
def test_what_arrives_before_its_consumer_is_confirmed_and_is_lost_with_it_is_not_handed_out(
    face: Face, when: str
) -> None:
    """S101, S103: brokers deliver at once; the message comes again, and only that delivery counts."""
    messages, cuts = {"0": "m"}, iter([True])

    def cut_behind_the_first(peer: StompPeer, frame: Received) -> bool:
        if frame.command != "SUBSCRIBE" or not peer.queue or not next(cuts, False):
            return False
        peer.deliver(frame.headers["id"], *next(iter(messages.items())))
        peer.give_back()
        peer.drop()
        return True

    peer = start(face, CLASSIC, cut_behind_the_first)
    if when == "created":
        peer.queue.update(messages)
    session = face.failover(peer.url, options="failover.reconnectDelay=0").create_session(2)
    consumer = session.create_consumer(QUEUE)
    if when == "restored":
        peer.queue.update(messages)
        peer.drop()
    received = consumer.receive(5)
    assert received.text == "m"
    assert consumer.receive(0.2) is None
    received.acknowledge()
    peer.wait("ACK")
    assert peer.queue == {}
