"""What goes over the line in STOMP while a connection is opened, and who is refused."""

from __future__ import annotations

import logging

import pytest
from peer_faces import Face, Told
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, refuse, start

from pyjmsack import (
    ConnectionLostException,
    InvalidClientIDException,
    JMSException,
    JMSSecurityException,
    Queue,
    Topic,
    UnsupportedFeatureException,
)

QUEUE = Queue("q")
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


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


@pytest.mark.option("stomp.version", "stomp")
@pytest.mark.option("stomp.vhost", "stomp")
@pytest.mark.option("jms.clientID", "stomp")
@pytest.mark.option("jms.clientIDPrefix", "stomp")
@pytest.mark.parametrize(
    ("option", "header", "value"),
    [
        ("stomp.version=1.1", "accept-version", "1.1"),
        ("stomp.vhost=shop", "host", "shop"),
        ("jms.clientID=till", "client-id", "till"),
        ("jms.clientIDPrefix=till-", "client-id", "till-"),
    ],
)
def test_the_login_says_what_the_url_says(face: Face, option: str, header: str, value: str) -> None:
    """A generated client id begins with the prefix."""
    peer = start(face)
    face.connect(peer, option)
    (frame,) = peer.wait("CONNECT")
    assert frame.headers[header].startswith(value)
    assert len(frame.headers[header]) == len(value) or option.startswith("jms.clientIDPrefix")


@pytest.mark.option("jms.queuePrefix", "stomp")
@pytest.mark.option("jms.topicPrefix", "stomp")
@EITHER
def test_prefixes_of_the_url_are_put_before_names(face: Face, server: str) -> None:
    peer = start(face, server)
    session = face.session(peer, "jms.queuePrefix=q.", "jms.topicPrefix=t.")
    session.create_producer(QUEUE).send("x")
    session.create_producer(Topic("t")).send("x")
    assert [frame.headers["destination"].rpartition("/")[2] for frame in peer.wait("SEND", 2)] == ["q.q", "t.t"]


@pytest.mark.option("stomp.traceFrames", "stomp")
@pytest.mark.option("trace", "stomp")
@pytest.mark.parametrize("option", ["stomp.traceFrames=true", "trace=true"])
def test_traced_frames_are_all_there_but_the_password(
    face: Face, caplog: pytest.LogCaptureFixture, option: str
) -> None:
    caplog.set_level(logging.DEBUG, "pyjmsack")
    face.session(start(face), option, username="me", password="s3cr3t").create_producer(QUEUE).send("hello")
    assert "SEND" in caplog.text
    assert "s3cr3t" not in caplog.text


@pytest.mark.option("transport.traceBytes", "stomp")
def test_traced_bytes_are_all_there_but_the_password(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """A.1 ``transport.traceBytes``."""
    caplog.set_level(logging.DEBUG, "pyjmsack")
    peer = start(face)
    session = face.session(peer, "transport.traceBytes=true", username="me", password="s3cr3t")
    session.create_producer(QUEUE).send("hello")
    assert b"hello".hex() in caplog.text
    assert b"\npasscode:***\n".hex() in caplog.text
    assert b"s3cr3t".hex() not in caplog.text


@pytest.mark.option("consumer.maximumPendingMessageLimit", "stomp")
@pytest.mark.option("jms.exclusiveConsumer", "stomp")
@pytest.mark.option("jms.prefetchPolicy.maximumPendingMessageLimit", "stomp")
@pytest.mark.option("jms.useRetroactiveConsumer", "stomp")
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


@pytest.mark.option("stomp.heartBeat", "stomp")
def test_a_silent_client_sends_heart_beats(face: Face) -> None:
    peer = start(face, heart_beat="0,20")
    face.connect(peer, "stomp.heartBeat=20")
    peer.wait_beats(3)


def test_a_broker_that_wants_heart_beats_more_often_gets_them(face: Face) -> None:
    """S128: Artemis with a short ``connectionTtlMax`` drops a client that keeps to its own interval."""
    peer = start(face, heart_beat="0,60")
    face.connect(peer)
    peer.wait_beats(20)


def test_a_silent_broker_is_given_up(face: Face) -> None:
    """S128."""
    lost = Told()
    connection = face.connect(start(face, heart_beat="300,0"), "stomp.heartBeat=300")
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
        receiving.result(60)


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

    with pytest.raises(ConnectionLostException, match=r"stomp://\S+ speaks HTTP, not STOMP: "):
        face.connect(start(face, rule=rule))


def test_close_says_goodbye_and_waits_for_the_receipt(face: Face) -> None:
    """S123."""
    peer = start(face)
    face.connect(peer).close()
    assert peer.log()[-1] == "DISCONNECT"
