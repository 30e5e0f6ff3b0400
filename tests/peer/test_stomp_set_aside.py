"""Messages that a STOMP consumer can neither hand out nor remove fill its window. They must not stall the others in
silence (S166)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from peer_faces import Face
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, start

from pyjmsack import AckMode, JMSException, Queue, Topic
from pyjmsack.spi import aside

INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE
BIG = "B" * 3000
FOREIGN = "foreign"
FULL = r"neither hand out nor remove 1 message, and its window \(prefetch 1\) has no room for others"
ALLOWS_ONE = "this broker allows this consumer only one subscription"


class Window:
    """A rule: each subscription holds at most ``size`` messages that nobody has acknowledged. The message ``FOREIGN``
    has an id that its AMQP sender chose. An ACK for it ends the connection."""

    def __init__(self, size: int, *bodies: str, subscriptions: int = 10) -> None:
        self._size, self._left, self._most = size, [*bodies], subscriptions
        self._free: dict[str, int] = {}

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        name = frame.headers.get("id", "")
        if frame.command == "SUBSCRIBE":
            if len(self._free) == self._most:
                peer.error(frame, "AMQ339016 Error creating subscription", ends=False)
                return True
            self._free[name] = self._size
        elif frame.command == "ACK":
            if FOREIGN in name:
                peer.drop()
                return True
            self._free[name.partition(",")[0]] += 1
        elif frame.command == "UNSUBSCRIBE":
            del self._free[name]
        for lane in self._free:
            while self._left and self._free[lane]:
                self._free[lane] -= 1
                self._deliver(peer, lane, self._left.pop(0))
        return False

    def _deliver(self, peer: StompPeer, lane: str, body: str) -> None:
        foreign = body.startswith(FOREIGN)
        key = body if foreign else f"{lane},{len(self._left)}"
        head = f"subscription:{lane}\nmessage-id:{key}\nack:{key}\ndestination:q\npriority:4"
        native = "\nJMS_AMQP_NATIVE:true" if foreign else ""
        peer.write(f"MESSAGE\n{head}{native}\n\n{body}\0".encode())


def consume(face: Face, peer: StompPeer, source: str, prefetch: int = 1, mode: AckMode = INDIVIDUAL) -> tuple[Any, Any]:
    """Return a session and its consumer."""
    options = f"jms.prefetchPolicy.all={prefetch}&stomp.maxFrameSize=2000&jms.clientID=c"
    session = face.session(peer, options, mode=mode)
    if source == "durable":
        return session, session.create_durable_consumer(Topic("t"), "s")
    if source == "topic":
        return session, session.create_consumer(Topic("t"))
    return session, session.create_consumer(Queue("q?consumer.exclusive=true" if source == "exclusive" else "q"))


def ends(session: Any, consumer: Any, peer: StompPeer, match: str) -> None:
    """Check that the consumer ends with an error, that its message goes back, and that the connection stays."""
    with pytest.raises(JMSException, match=match):
        consumer.receive(timeout=60)
    session.create_producer(Queue("other")).send("the connection stays")
    consumer.close()
    assert peer.log("ACK", "NACK") == []
    assert peer.log("UNSUBSCRIBE") == ["UNSUBSCRIBE s1"]
    assert len(peer.all("CONNECT")) == 1


@pytest.mark.parametrize("mode", [INDIVIDUAL, AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
@pytest.mark.parametrize("poison", [BIG, FOREIGN], ids=["big", "foreign"])
@pytest.mark.parametrize("source", ["durable", "exclusive"])
def test_a_consumer_whose_only_window_is_full_of_messages_aside_ends_with_an_error_s166(
    face: Face, caplog: pytest.LogCaptureFixture, source: str, poison: str, mode: AckMode
) -> None:
    """It waited for ever, and the log told a caller who held nothing to acknowledge (S56)."""
    peer = start(face, CLASSIC, Window(1, poison, "good"))
    ends(*consume(face, peer, source, mode=mode), peer, f"{FULL}.*{ALLOWS_ONE}.*Close the consumer, so that")
    assert "S56" not in caplog.text


def test_a_consumer_whose_second_subscription_is_refused_ends_with_an_error_s166(face: Face) -> None:
    """The first subscription is full of a message that nobody can acknowledge."""
    peer = start(face, CLASSIC, Window(1, BIG, "good", subscriptions=1))
    ends(*consume(face, peer, "queue"), peer, f"{FULL}.*AMQ339016")


def test_a_window_that_the_caller_can_empty_ends_nothing_s166(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """The caller holds a part of the window, and gets the next message when it acknowledges."""
    peer = start(face, CLASSIC, Window(2, BIG, "a", "b"))
    _, consumer = consume(face, peer, "durable", prefetch=2)
    with caplog.at_level(logging.WARNING, "pyjmsack.stomp"):
        first = consumer.receive(timeout=60)
        face.until(lambda: "S56" in caplog.text)
    assert "(2), of which 1 was set aside (S166)," in caplog.text
    first.acknowledge()
    assert (first.text, consumer.receive(timeout=60).text) == ("a", "b")


def test_a_topic_gets_no_ack_for_an_id_that_the_broker_cannot_take_s166(face: Face) -> None:
    """The client acknowledged it to make room, and the broker ended the connection with all its consumers."""
    peer = start(face, CLASSIC, Window(1, FOREIGN, "good"))
    match = f"{FULL}.*a topic has only one.*the topic does not keep"
    ends(*consume(face, peer, "topic"), peer, match)


def test_on_a_topic_a_message_that_cannot_be_moved_leaves_its_room_to_others_s166(
    face: Face, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic does not keep it, so nobody would ever get it again, and no number of them ends the consumer."""
    monkeypatch.setattr(aside, "MOST_ASIDE", 2)
    peer = start(face, CLASSIC, Window(1, BIG, BIG, BIG, "good"))
    _, consumer = consume(face, peer, "topic")
    assert consumer.receive(timeout=60).text == "good"
    assert caplog.text.count("is dropped, because a topic keeps no message") == 3


@pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])
def test_the_log_says_that_groups_may_stall_behind_messages_aside_s191(
    face: Face, caplog: pytest.LogCaptureFixture, server: str
) -> None:
    """A broker keeps a group at the subscription that has no room. Other messages come over another subscription."""
    peer = start(face, server, Window(1, BIG, "good"))
    _, consumer = consume(face, peer, "queue")
    assert consumer.receive(timeout=60).text == "good"
    assert "messages of q that can neither be handed out nor removed fill a window of its consumer" in caplog.text


def test_a_requestor_ends_with_an_error_that_its_caller_can_follow_s166(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A requestor has no consumer that its caller could close. Another requestor has another queue for replies."""
    monkeypatch.setattr(aside, "MOST_ASIDE", 3)
    peer = start(face, CLASSIC, Window(10, *[f"{FOREIGN}{number}" for number in range(3)]))
    session = face.session(peer)
    requestor = session.create_requestor(Queue("service"))
    with pytest.raises(JMSException, match=r"remove 3 messages.*Close the requestor.*create another"):
        requestor.request("a", timeout=60)
    requestor.close()
    assert session.create_requestor(Queue("service")).reply_to != requestor.reply_to
