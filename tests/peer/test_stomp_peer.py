"""What goes over the line in STOMP, and what happens when the broker refuses, stalls or is lost."""

from __future__ import annotations

from typing import Any

import pytest
from peer_faces import Face, SyncFace, Told
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, drop, ignore, refuse, start

from pyjmsack import (
    AckMode,
    ConnectionLostException,
    InvalidSelectorException,
    JMSException,
    Queue,
    ResourceAllocationException,
    Topic,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)

QUEUE = Queue("q")
TRANSACTED, INDIVIDUAL = AckMode.SESSION_TRANSACTED, AckMode.INDIVIDUAL_ACKNOWLEDGE
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


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
            future.result(timeout=60)


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
            future.result(timeout=60)
    with pytest.raises(JMSException, match="no"):
        futures["refused"].result(timeout=60)


def test_a_delayed_send_is_not_repeated_at_a_broker_that_would_deliver_it_at_once(face: Face) -> None:
    """S91, S119, S157: what that broker refuses at first it refuses after a failover."""
    artemis, classic = start(face, rule=drop("SEND")), start(face, CLASSIC)
    producer = face.failover(artemis, classic).create_session().create_producer(QUEUE)
    with pytest.raises(UnsupportedFeatureException, match="delivery delay"):
        producer.send("later", delivery_delay=60)
    producer.send("at once")
    assert [frame.body for frame in classic.all("SEND")] == [b"at once"]


def test_on_classic_every_send_asks_for_a_receipt(face: Face) -> None:
    """An ERROR leaves the connection open there: only its name tells which message the broker did not take."""
    peer = start(face, CLASSIC)
    producer = face.session(peer).create_producer(QUEUE)
    for future in [producer.send_async(str(number)) for number in range(20)]:
        future.result(timeout=60)
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
    assert [consumer.receive(timeout=60).text for _ in range(2)] == ["a", "b"]
    peer.wait("ACK", 2)
    assert peer.log("ACK") == ["ACK s1,0", "ACK s1,1"]
    assert not peer.queue


@pytest.mark.option("jms.validateSelector", "stomp")
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
    """S53: messages that the caller holds fill the window, so another subscription is opened."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":  # a window of one message
            number = str(len(peer.all("SUBSCRIBE")) - 1)
            if number in peer.queue:
                peer.deliver(frame.headers["id"], number, peer.queue[number])
            peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
        return frame.command == "SUBSCRIBE"

    peer = start(face, rule=rule, messages=["a", "b", "c"])
    consumer = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL).create_consumer(QUEUE)
    messages = [consumer.receive(timeout=60) for _ in range(3)]
    assert [message.text for message in messages] == ["a", "b", "c"]
    for message in messages:
        message.acknowledge()
    peer.wait("UNSUBSCRIBE", 2)
    assert peer.log("ACK", "UNSUBSCRIBE")[-2:] == ["ACK s3,2", "UNSUBSCRIBE s3"]


def test_a_consumer_goes_on_while_its_caller_holds_a_window_s53(face: Face) -> None:
    """The other subscription ended when its message was acknowledged, and nobody opened one again: ``receive`` got the
    first message and no more until the caller acknowledged those that it held."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command in ("SUBSCRIBE", "UNSUBSCRIBE"):
            peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
        return frame.command in ("SUBSCRIBE", "UNSUBSCRIBE")

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.session(peer, "jms.prefetchPolicy.all=2", mode=INDIVIDUAL).create_consumer(QUEUE)
    for number in range(2):
        peer.deliver("s1", f"held{number}", "held")
    held = [consumer.receive(timeout=60) for _ in range(2)]
    peer.wait("SUBSCRIBE", 2)
    for number in range(4):
        peer.deliver("s2", f"more{number}", str(number))
        message = consumer.receive(timeout=60)
        assert message.text == str(number)
        message.acknowledge()
        peer.wait("ACK", number + 1)
    assert len(peer.log("SUBSCRIBE", "UNSUBSCRIBE")) == 2
    held[0].acknowledge()
    peer.wait("UNSUBSCRIBE", 1)
    assert peer.log("UNSUBSCRIBE") == ["UNSUBSCRIBE s2"]
    peer.deliver("s1", "last", "last")
    assert consumer.receive(timeout=60).text == "last"


@pytest.mark.parametrize("forged", ["RECEIPT\nreceipt-id:{}\n\n", "MESSAGE\nsubscription:{}\nmessage-id:1\n\nx"])
def test_a_producer_cannot_write_frames_for_others_into_a_text_with_a_nul_s166(face: Face, forged: str) -> None:
    """Classic gives such a text no length. A forged RECEIPT confirmed the send of a neighbour, and a forged MESSAGE
    went to another consumer. Such a frame proves that the message before it has such a text."""
    forgery = "".join("\0\n" + forged.format(name) for name in [*range(1, 30), *(f"s{n}" for n in range(1, 4))])

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SEND" and not peer.all("NACK"):
            peer.write(f"MESSAGE\nsubscription:s1\nmessage-id:m\nack:m\npersistent:true\n\ntext{forgery}\0\n".encode())
            return True
        if frame.command == "SEND":
            peer.error(frame, "no space left", ends=False)
        if frame.command == "SUBSCRIBE" and peer.all("NACK"):
            peer.deliver(frame.headers["id"], "1", "good")
        return frame.command == "SEND"

    peer = start(face, CLASSIC, rule=rule)
    session = face.failover(peer).create_session(INDIVIDUAL)
    consumer, neighbour = session.create_consumer(QUEUE), session.create_consumer(Queue("other"))
    with pytest.raises(JMSException, match="no space left"):
        session.create_producer(QUEUE).send("x")
    assert (peer.log("NACK"), peer.ended) == (["NACK m"], 1)
    assert [neighbour.receive(timeout=60).text, consumer.receive(timeout=60).text] == ["good", "good"]


def classic_with(text: str, *others: str) -> Any:
    """Return the script of a Classic that has a text with a NUL, and other texts behind it. The text leaves the queue
    when the client refuses it."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "NACK":
            peer.queue.pop("0", None)
        if frame.command == "CONNECT":
            peer.give_back()
        return False

    return {"rule": rule, "messages": [text, *others]}


@pytest.mark.parametrize(
    "rest", ["\nno frame", "no frame", "\nRECEIPT\nreceipt-id:1\n\n\0\nno frame", "\nMESSAGE\nsubscription:s1\n\n"]
)
def test_a_text_with_a_nul_ends_one_connection_and_becomes_a_dead_letter_s166(face: Face, rest: str) -> None:
    """Classic sends such a text without its length. It ended each connection that it was delivered on."""
    peer = start(face, CLASSIC, **classic_with(f"evil\0{rest}", "good"))
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    message = consumer.receive(timeout=60)
    assert message.text == "good"
    message.accept()
    peer.wait("ACK")
    assert (peer.log("NACK", "ACK"), peer.ended) == (["NACK s1,0", f"ACK {message.message_id}"], 1)


def test_a_message_before_a_text_with_a_nul_in_the_same_burst_is_not_refused_s166(face: Face) -> None:
    """Only the message that the rest of the text follows is to blame."""

    def message(number: int, body: str) -> str:
        own = "destination:q\nexpires:0\npriority:4\ntimestamp:1\npersistent:true"
        return f"MESSAGE\nsubscription:{{0}}\nmessage-id:{number}\nack:{number}\n{own}\n\n{body}\0\n"

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE" and not peer.all("NACK"):
            peer.answer(frame)
            texts = message(1, "innocent") + message(2, "evil\0no frame\n\n") + message(3, "innocent")
            peer.write(texts.replace("{0}", f"{peer.secret}{frame.headers['id']}").encode())
            return True
        return False

    peer = start(face, CLASSIC, rule=rule)
    face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    peer.wait("SUBSCRIBE", 2)
    assert peer.log("NACK") == ["NACK 2"]


@pytest.mark.parametrize(
    "forged",
    [
        "x:y\nack:1\nz:v\nack:2",
        "x\n\ny:v\nack:2",
        "x:y\nmessage-id:1\nz:v\nack:2",
        "x:y\nsubscription:z\nz:v\nack:2",
        "x:y\nsubscription:z\n" + "x:y\n" * 1001 + "ack:2",
        "x:y\nsubscription:z\nl:" + "y" * 70_000 + "\nack:2",
        "x:y\nsubscription:z\nl:" + "y" * 1_500_000 + "\nack:2",
    ],
    ids=["ack", "empty-line", "message-id", "subscription", "many-lines", "long-line", "large-head"],
)
def test_a_name_with_line_feeds_costs_its_message_alone_s118_s166(face: Face, forged: str) -> None:
    """Classic does not escape the names of properties. No other message is acknowledged or refused."""

    def message(number: int, lines: str) -> str:
        own = f"subscription:{{0}}\nmessage-id:{number}\npriority:4\ntimestamp:1\npersistent:true"
        return f"MESSAGE\n{lines}\n{own}\n\nbody {number}\0\n"

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            texts = message(1, "ack:1") + message(2, forged) + message(3, "ack:3")
            peer.write(texts.replace("{0}", f"{peer.secret}{frame.headers['id']}").encode())
            return True
        return frame.command == "ACK"

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    first, second = consumer.receive(timeout=60), consumer.receive(timeout=60)
    assert [first.text, second.text] == ["body 1", "body 3"]
    second.accept()
    peer.wait("ACK")
    assert (peer.log("NACK", "ACK"), peer.ended) == (["ACK 3"], 0)


def test_a_message_with_a_line_that_has_no_colon_is_not_copied_and_waits_s118_s166(face: Face) -> None:
    """The copy of a message that is not persistent ended each connection, because Classic refuses such a line."""

    def message(number: int, line: str) -> str:
        own = f"subscription:{{0}}\nmessage-id:{number}\npriority:4\ntimestamp:1\npersistent:false\nack:{number}"
        return f"MESSAGE\n{line}\n{own}\n\nbody {number}\0\n"

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            texts = message(1, "x:y") + message(2, "x\ny:v") + message(3, "x:y")
            peer.write(texts.replace("{0}", f"{peer.secret}{frame.headers['id']}").encode())
        return frame.command in ("SUBSCRIBE", "ACK")

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    for text in ("body 1", "body 3"):
        got = consumer.receive(timeout=60)
        assert got.text == text
        got.accept()
    peer.wait("ACK", 2)
    assert (peer.log("NACK", "ACK", "SEND"), peer.ended) == (["ACK 1", "ACK 3"], 0)


@pytest.mark.parametrize("together", [True, False])
def test_a_name_with_a_nul_closes_its_consumer_and_refuses_no_other_message_s166(face: Face, together: bool) -> None:
    """Such a name cuts the header lines of its message in two, and the second part is no frame."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            own = f"subscription:{peer.secret}{frame.headers['id']}\nmessage-id:{{0}}\ntimestamp:1\npersistent:true"
            innocent = f"MESSAGE\nack:1\n{own}\n\ninnocent\0\n"
            torn = f"MESSAGE\nexpires:0\nx\n\n\0y:v\nack:2\n{own}\n\nevil\0\n"
            parts = [innocent.format(1), torn.format(2)]
            for part in ["".join(parts)] if together else parts:
                peer.write(part.encode())
            return True
        return False

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    error: BaseException | None = None
    while error is None:
        try:
            assert consumer.receive(timeout=60).text == "innocent"
        except ResourceAllocationException as closed:
            error = closed
    assert peer.log("NACK", "ACK") == []


def test_a_text_with_an_error_frame_in_it_becomes_a_dead_letter_at_its_third_delivery_s166(face: Face) -> None:
    """An ERROR frame may come from the broker itself, so one end behind a message proves nothing."""
    peer = start(face, CLASSIC, **classic_with("evil\0\nERROR\nmessage:forged\n\n", "good"))
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    while consumer.receive(timeout=60).text != "good":
        pass
    assert (peer.log("NACK"), peer.ended) == (["NACK s1,0"], 3)


def test_an_error_that_comes_later_than_a_message_refuses_it_at_its_tenth_delivery_s166(face: Face) -> None:
    """The broker may end connection after connection while the caller holds the message. But many line ends may stand
    between a NUL and an ERROR frame in the same text."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            peer.deliver(frame.headers["id"], "0", "innocent")
        return frame.command == "SUBSCRIBE"

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.failover(peer).create_session(INDIVIDUAL).create_consumer(QUEUE)
    for ended in range(1, 11):
        assert consumer.receive(timeout=60).text == "innocent"
        assert peer.log("NACK") == []
        peer.send("ERROR", message="the connection ends")
        face.until(lambda ended=ended: peer.ended == ended)
    assert peer.log("NACK") == ["NACK s1,0"]


def test_a_text_with_a_nul_that_is_not_persistent_closes_its_consumer_alone_s166(face: Face) -> None:
    """Classic would discard it after a NACK, and a program that uses AMQP can receive it."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE" and frame.headers["destination"] == "/queue/q":
            peer.answer(frame)
            name = frame.headers["id"]
            peer.write(f"MESSAGE\nsubscription:{name}\nmessage-id:m\nack:m\n\nevil\0\nno frame\n\n".encode())
            return True
        if frame.command == "SUBSCRIBE" and peer.ended >= 3:
            peer.deliver(frame.headers["id"], "1", "good")
        return False

    peer = start(face, CLASSIC, rule=rule)
    session = face.failover(peer).create_session(INDIVIDUAL)
    neighbour = session.create_consumer(Queue("other"))
    consumer = session.create_consumer(QUEUE)
    with pytest.raises(ResourceAllocationException, match="a NUL"):
        consumer.receive(timeout=60)
    assert neighbour.receive(timeout=60).text == "good"
    assert peer.log("NACK") == []


def test_a_consumer_of_classic_goes_on_where_the_broker_would_pause_s52(face: Face) -> None:
    """Classic sends 200 messages that nobody has acknowledged, and the next ones after 30 seconds, whatever the window
    is. Another subscription gets them at once."""
    peer = start(face, CLASSIC)
    consumer = face.session(peer, "jms.prefetchPolicy.all=1000", mode=INDIVIDUAL).create_consumer(QUEUE)
    for number in range(200):
        peer.deliver("s1", f"held{number}", "held")
    held = [consumer.receive(timeout=60) for _ in range(199)]
    assert len(peer.all("SUBSCRIBE")) == 1, "the caller does not hold 200 yet"
    held.append(consumer.receive(timeout=60))
    peer.wait("SUBSCRIBE", 2)
    for message in held:
        message.acknowledge()
    peer.wait("ACK", 200)


def test_what_is_released_comes_again_without_a_frame(face: Face) -> None:
    """S82, S118: STOMP has no verb for it."""
    peer = start(face, messages=["a", "b", "c"])
    consumer = face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE)
    first, second = consumer.receive(timeout=60), consumer.receive(timeout=60)
    second.release()
    first.modify()
    again = [consumer.receive(timeout=60) for _ in range(3)]
    assert sorted((message.text, message.delivery_count) for message in again) == [("a", 2), ("b", 1), ("c", 1)]
    assert peer.log("ACK", "NACK", "UNSUBSCRIBE") == []


# -- reject -----------------------------------------------------------------------------------------------------


def test_artemis_never_gets_a_nack_but_a_copy_before_the_ack(face: Face) -> None:
    """S118, trap 1: there a NACK is an ACK, and the message is gone."""
    peer = start(face, messages=["bad"])
    face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=60).reject()
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
    connection.create_session(INDIVIDUAL).create_consumer(QUEUE).receive(timeout=60).reject()
    lost.first()
    assert peer.log("ACK", "NACK") == []
    assert peer.queue == {"0": "bad"}


def test_classic_gets_a_nack_for_a_persistent_message(face: Face) -> None:
    """S118."""
    peer = start(face, CLASSIC, messages=["bad"])
    face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=60).reject()
    peer.wait("NACK")
    assert peer.log("SEND", "ACK", "NACK") == ["NACK s1,0"]
    assert "transaction" not in peer.all("NACK")[0].headers


def test_an_outcome_that_stomp_does_not_have_is_refused(face: Face) -> None:
    """S118, S119."""
    peer = start(face, messages=["a"])
    message = face.session(peer, mode=INDIVIDUAL).create_consumer(QUEUE).receive(timeout=60)
    with pytest.raises(UnsupportedFeatureException):
        message.modify(undeliverable_here=True)
    message.accept()
    peer.wait("ACK")


# -- transactions -----------------------------------------------------------------------------------------------


def work(face: Face, peer: StompPeer, *options: str) -> Any:
    """Receive one message and send one, in a transaction."""
    session = face.session(peer, *options, mode=TRANSACTED)
    assert session.create_consumer(QUEUE).receive(timeout=60).text == "a"
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


def test_classic_gets_the_acks_of_a_large_transaction_by_the_hundred(face: Face) -> None:
    """S89: it stops delivering after 400 messages without an ACK, so a transaction of 500 never got all of them."""
    peer = start(face, CLASSIC, messages=[str(number) for number in range(250)])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    for _ in range(250):
        assert consumer.receive(60) is not None
    peer.wait("ACK", 200)
    session.commit()
    commands = [frame.command for frame in peer.frames if frame.command in ("BEGIN", "ACK", "COMMIT")]
    assert commands == ["BEGIN", *["ACK"] * 250, "COMMIT"]


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
        messages = [consumer.receive(timeout=60) for _ in range(2)]
        assert [(message.text, message.delivery_count) for message in messages] == [("a", count), ("b", count)]
        session.rollback()
    assert [consumer.receive(timeout=60).delivery_count for _ in range(2)] == [3, 3]
    if server == ARTEMIS:
        assert peer.log("ACK") == [], "it would have applied them"
    session.commit()


@EITHER
def test_a_connection_lost_in_a_commit_leaves_it_in_doubt(face: Face, server: str) -> None:
    """S94: nobody can tell whether it happened."""
    session = work(face, start(face, server, rule=drop("COMMIT"), messages=["a"]))
    with pytest.raises(TransactionRolledBackException, match="nobody knows whether the commit took effect") as raised:
        session.commit()
    assert len(raised.value.sent) == 1


def test_on_classic_a_refused_commit_delivers_again(face: Face) -> None:
    """S79."""
    peer = start(face, CLASSIC, rule=refuse("COMMIT", "no", ends=False), messages=["a"])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    consumer.receive(timeout=60)
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert consumer.receive(timeout=60).delivery_count == 2


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
    message = consumer.receive(timeout=60)
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


@pytest.mark.parametrize("browses", [True, False], ids=["browser", "consumer"])
def test_properties_with_the_names_of_headers_neither_end_a_browser_nor_expire_a_message(
    face: Face, browses: bool
) -> None:
    """S134, S156: Classic writes the properties of an AMQP sender into the lines of headers."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            lines = "destination:/queue/q", "expires:64", "priority:4", "timestamp:1795840602566", "browser:end"
            ids = f"subscription:{frame.headers['id']}", "message-id:1,1", "ack:1,1"
            peer.write("\n".join(("MESSAGE", *lines, *ids, "", "a\0")).encode())
            if browses:
                peer.send("MESSAGE", subscription=frame.headers["id"], browser="end")
        return frame.command == "SUBSCRIBE"

    session = face.session(start(face, CLASSIC, rule=rule))
    if browses:
        assert [message.text for message in session.create_browser(QUEUE)] == ["a"]
        return
    message = session.create_consumer(QUEUE).receive(timeout=60)
    assert (message.text, message.expiration) == ("a", None)


def test_bytes_arrive_as_bytes_and_a_nul_does_not_end_them(face: Face) -> None:
    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            head = f"MESSAGE\nsubscription:{frame.headers['id']}\ncontent-length:3\nmessage-id:1,1\nack:1,1\n\n"
            peer.write(head.encode() + b"a\0b\0")
        return frame.command == "SUBSCRIBE"

    message = face.session(start(face, rule=rule)).create_consumer(QUEUE).receive(timeout=60)
    assert message.data == b"a\0b"


@pytest.mark.parametrize("end", ["close", "rollback"])
def test_what_was_prefetched_is_given_back_once(face: Face, end: str) -> None:
    """S31, S83: local redelivery puts messages back into the buffer from which they are being taken."""
    peer = start(face, messages=[str(number) for number in range(500)])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(timeout=60).text == "0"
    face.until(lambda: consumer.stats.buffered == 499)
    getattr(session, end)()
    if end == "rollback":
        again = [consumer.receive(timeout=60).text for _ in range(500)]
        assert again == [*peer.queue.values()]
    assert len(peer.queue) == 500


OWN_ID = r"ID\cvm-36829-1795397688531-3\c7\c1\c0\c1"
"""As ActiveMQ Classic makes them."""


@pytest.mark.parametrize("chosen", [r"ID\cabc\c1\c2-0", r"ID\cabc\c1\c1\c5", r"ID\c5", "plain", ""])
def test_a_message_with_an_id_that_its_amqp_sender_chose_harms_itself_alone(
    face: Face, chosen: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S166: Classic ends the connection of a client that acknowledges such a message, and with failover it did so
    again and again. The message stays in the queue."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            name = frame.headers["id"]
            for number, message_id in enumerate((chosen, OWN_ID)):
                native = f"message-id:{message_id}\nack:{number}\nJMS_AMQP_NATIVE:true\ncontent-length:10"
                peer.write(f"MESSAGE\nsubscription:{name}\n{native}\n\n".encode() + b"\x00\x53\x77\xa1\x05hello\0")
            peer.deliver(name, "2", "behind it")
        return frame.command == "SUBSCRIBE"

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.session(peer).create_consumer(QUEUE)
    assert [consumer.receive(timeout=60).text, consumer.receive(timeout=60).text] == ["hello", "behind it"]
    consumer.close()
    assert peer.log("ACK", "NACK", "SEND") == ["ACK 1", "ACK s1,2"]
    assert "an id that its sender chose" in caplog.text


TOO_LARGE = 2**63
NOT_READABLE = [
    r"ID\cplain",
    r"ID\c",
    r"ID\c1\c2-0",
    r"ID\cAMQP_ULONG\c99",
    r"ID\cvm-1-2-3\c1\c1\c1x",
    rf"ID\ca\c1\c1\c{TOO_LARGE}",
    rf"ID\ca\c{-TOO_LARGE - 1}\c1\c1",
    r"ID\ca\c99999999999999999999\c1\c1",
    r"ID\ca\\c1\c1\c1",
]
"""Ids that an OpenWire client chose as a text, and that Classic cannot read back from an ACK."""
READABLE = [
    OWN_ID,
    r"ID\cvm-43105-1796055764446-1\c1\c1\c1\c1",
    r"ID\cvm-33717-1796055763941-3\c1\c0\c0\c3",
    r"ID\cvm-33717-1796055763941-6\c2\c-1\c1\c3",
    r"ID\c\c\c1-43105-1796055764446-25\c1\c1\c1\c1",
    r"foo-43105-1796055764446-5\c1\c1\c1\c1",
    r"höst 😀\cb\\-43105-1796055764446-7\c1\c1\c1\c1",
    r"x\\\c1\c1\c77",
    r"\c1\c1\c77",
    rf"a\c{TOO_LARGE - 1}\c{-TOO_LARGE}\c{TOO_LARGE - 1}",
    r"a\nb\rc\c1\c1\c80",
]
"""Ids of messages that real brokers (5.18.3, 6.3.1) sent over STOMP, and whose ACK they took."""


@pytest.mark.parametrize("chosen", NOT_READABLE)
def test_a_message_with_an_id_that_its_openwire_sender_chose_harms_itself_alone_s166(
    face: Face, chosen: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The ACK ended the connection, with failover again and again. Now the message stays in the queue."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            name = frame.headers["id"]
            for number, message_id in enumerate((chosen, *READABLE)):
                peer.write(f"MESSAGE\nsubscription:{name}\nmessage-id:{message_id}\nack:{number}\n\nhello\0".encode())
        return frame.command == "SUBSCRIBE"

    peer = start(face, CLASSIC, rule=rule)
    consumer = face.session(peer).create_consumer(QUEUE)
    assert [consumer.receive(timeout=60).text for _ in READABLE] == ["hello"] * len(READABLE)
    consumer.close()
    assert peer.log("ACK", "NACK", "SEND") == [f"ACK {number}" for number in range(1, len(READABLE) + 1)]
    assert "an id that its sender chose" in caplog.text


@pytest.mark.parametrize("server", [ARTEMIS, CLASSIC])
def test_a_message_that_is_rejected_out_of_the_dead_letter_queue_stays_there(face: Face, server: str) -> None:
    """S118: it came again at once, as a copy of itself, without end."""
    peer = start(face, server, messages=["a", "b"])
    queue = Queue("DLQ" if server is ARTEMIS else "ActiveMQ.DLQ")
    consumer = face.session(peer, mode=AckMode.INDIVIDUAL_ACKNOWLEDGE).create_consumer(queue)
    consumer.receive(timeout=60).reject()
    consumer.receive(timeout=60).acknowledge()
    consumer.close()
    assert peer.log("ACK", "NACK", "SEND", "UNSUBSCRIBE") == ["ACK s1,1", "UNSUBSCRIBE s1"]


def test_a_body_that_came_over_amqp_is_read_as_what_it_is(face: Face) -> None:
    """ActiveMQ Classic passes it on as it came, all sections."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            body = b"\x00\x53\x77\xa1\x05hello"
            length = f"content-length:{len(body)}"
            head = f"subscription:{frame.headers['id']}\nmessage-id:{OWN_ID}\nack:1\nJMS_AMQP_NATIVE:true\n{length}"
            peer.write(f"MESSAGE\n{head}\n\n".encode() + body + b"\0")
        return frame.command == "SUBSCRIBE"

    message = face.session(start(face, CLASSIC, rule=rule)).create_consumer(QUEUE).receive(timeout=60)
    assert message.text == "hello"


def test_a_content_length_that_is_too_high_delays_the_messages_behind_it_for_a_moment_only(sync: SyncFace) -> None:
    """S166: a producer's property of that name, which Classic copies into the frame of a text, would swallow them."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            peer.send(
                "MESSAGE", b"lie", subscription=frame.headers["id"], content_length="90000000", message_id="1", ack="1"
            )
            peer.deliver(frame.headers["id"], "2", "behind it")
        return frame.command == "SUBSCRIBE"

    peer = start(sync, CLASSIC, rule=rule)
    assert sync.session(peer).create_consumer(QUEUE).receive(timeout=60).text == "behind it"
    assert [frame.body for frame in peer.wait("SEND")] == [b"lie"], "its copy for the dead-letter queue"


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
    received = consumer.receive(60)
    assert received.text == "m"
    assert consumer.receive(0.2) is None
    received.acknowledge()
    peer.wait("ACK")
    assert peer.queue == {}
