"""One cause that ends connection after connection costs the messages around it no delivery each time (S101, S166).

Artemis counts a delivery for all that it sent ahead on a lost connection, and makes a dead letter at the tenth.
"""

from __future__ import annotations

from peer_faces import Face
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, start

from pyjmsack import Queue

AHEAD = 4
"""How many messages the queue sends ahead; twice as many must be acknowledged before the window opens again."""
BODIES = [f"message {number:02}" for number in range(3 * AHEAD)]
WHOLE = "4096000"


class EndsConnections:
    """A rule: the first subscriptions get messages ahead, and then their connection is lost. Later ones get a message
    for each acknowledgement."""

    def __init__(self, losses: int) -> None:
        self._losses = losses
        self._left = [*BODIES]

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        if frame.command == "ACK" and not self._losses:
            del self._left[0]
            self._deliver(peer, 1)
        if frame.command != "SUBSCRIBE":
            return False
        self._id = frame.headers["id"]
        peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
        if self._losses:
            self._losses -= 1
            self._deliver(peer, AHEAD)
            peer.drop()
        else:
            self._deliver(peer, 1)
        return True

    def _deliver(self, peer: StompPeer, count: int) -> None:
        for body in self._left[:count]:
            peer.deliver(self._id, body[-2:], body)


def windows(peer: StompPeer) -> list[str | None]:
    return [frame.headers.get("consumer-window-size") for frame in peer.all("SUBSCRIBE")]


def consumed(face: Face, losses: int, destination: str = "q", server: str = ARTEMIS) -> StompPeer:
    """Receive everything, after so many lost connections; nothing is handed out before."""
    peer = start(face, server, EndsConnections(losses))
    options = "failover.reconnectDelay=0&failover.duplicateGuard=none"
    connection = face.failover(peer.url, options=options, start=False)
    consumer = connection.create_session().create_consumer(Queue(destination))
    peer.wait("SUBSCRIBE", losses + 1)
    connection.start()
    for body in BODIES:
        assert consumer.receive(timeout=60).text == body
    return peer


def test_from_the_third_loss_on_one_message_at_a_time_is_sent_ahead(face: Face) -> None:
    """So one message is counted with each further loss, and not the whole window. Later the window is whole again."""
    peer = consumed(face, 3)
    assert windows(peer) == [WHOLE] * 3 + ["0", WHOLE]
    log = peer.log("SUBSCRIBE", "UNSUBSCRIBE")
    assert log[-2].startswith("UNSUBSCRIBE"), "the broker has the next message back before the new subscription"


def test_two_losses_in_a_row_do_not_slow_a_consumer_down(face: Face) -> None:
    assert windows(consumed(face, 2)) == [WHOLE] * 3


def test_where_a_loss_counts_nothing_the_window_stays(face: Face) -> None:
    """ActiveMQ Classic has no limit of deliveries."""
    peer = consumed(face, 4, server=CLASSIC)
    assert [frame.headers["activemq.prefetchSize"] for frame in peer.all("SUBSCRIBE")] == ["1000"] * 5


def test_a_consumer_that_gets_one_message_at_a_time_anyway_stays_as_it_is(face: Face) -> None:
    assert windows(consumed(face, 4, "q?consumer.prefetchSize=1")) == ["0"] * 5
