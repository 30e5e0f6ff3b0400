"""A queue that lets a consumer subscribe once: the consumer goes on with its first subscription (S53, S56)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from peer_faces import Face
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, start

from pyjmsack import AckMode, Queue

QUEUE = Queue("q")
REFUSAL = "AMQ339016 Error creating subscription s2"


class OneConsumer:
    """A rule: the queue takes one subscription for each connection, and sends a message when the last one is
    acknowledged."""

    def __init__(self, *, ends: bool) -> None:
        self._ends = ends
        self._left = ["a", "b", "c"]
        self._subscribed = False
        self._answers_sends = True

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        if frame.command == "CONNECT":
            self._subscribed, self._answers_sends = False, True
        elif frame.command == "SEND":
            return not self._answers_sends
        elif frame.command == "SUBSCRIBE" and self._subscribed:
            peer.error(frame, REFUSAL, named=not self._ends, ends=self._ends)
            return True
        elif frame.command == "SUBSCRIBE":
            self._subscribed = True
            self._id = frame.headers["id"]
            peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
            self._deliver(peer)
            return True
        elif frame.command == "ACK":
            del self._left[0]
            self._deliver(peer)
            return True
        return False

    def hold_sends(self) -> None:
        """Answer no send before the connection is lost."""
        self._answers_sends = False

    def _deliver(self, peer: StompPeer) -> None:
        peer.deliver(self._id, self._left[0], self._left[0])


def consume(connection: Any) -> Any:
    return connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE).create_consumer(QUEUE)


def goes_on(consumer: Any, peer: StompPeer, subscriptions: int) -> None:
    """Hold a message, and then get the next one by acknowledging the first."""
    first = consumer.receive(timeout=60)
    assert first.text == "a"
    assert consumer.receive(timeout=0.1) is None
    first.acknowledge()
    assert consumer.receive(timeout=60).text == "b"
    assert len(peer.all("SUBSCRIBE")) == subscriptions


def test_where_the_connection_stays_the_consumer_goes_on(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    peer = start(face, CLASSIC, OneConsumer(ends=False))
    with caplog.at_level(logging.WARNING, "pyjmsack.stomp"):
        goes_on(consume(face.connect(peer, "jms.prefetchPolicy.all=1")), peer, 2)
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "pyjmsack.stomp"]
    assert "AMQ339016" in warning
    assert "(S56)" in warning


@pytest.mark.parametrize("sends", [False, True], ids=["alone", "beside sends"])
def test_where_the_refusal_ends_the_connection_the_consumer_does_not_ask_again(face: Face, sends: bool) -> None:
    """Each refusal would interrupt all consumers of the connection, again and again. While sends are on their way, the
    ERROR of Artemis may be about any request."""
    queue = OneConsumer(ends=True)
    peer = start(face, ARTEMIS, queue)
    connection = face.failover(peer.url, options="jms.prefetchPolicy.all=1&failover.reconnectDelay=0")
    consumer = consume(connection)
    assert consumer.receive(timeout=60).text == "a"
    if sends:
        queue.hold_sends()
        producer = connection.create_session().create_producer(Queue("other"))
        for _ in range(2):
            producer.send_async("sent")
        peer.wait("SEND", 2)
    goes_on(consumer, peer, 3)  # the message came again, because the connection was lost


def test_a_new_connection_does_not_ask_again(face: Face) -> None:
    """A program without failover that connects again after the loss would lose each connection."""
    peer = start(face, ARTEMIS, OneConsumer(ends=True))
    lost = face.connect(peer, "jms.prefetchPolicy.all=1")
    consumer = consume(lost)
    assert consumer.receive(timeout=60).text == "a"
    with pytest.raises(Exception, match="AMQ339016"):
        consumer.receive(timeout=60)
    goes_on(consume(face.connect(peer, "jms.prefetchPolicy.all=1")), peer, 3)
