"""ActiveMQ Classic forgets at a COMMIT which messages it delivered, if their ACKs wait in a transaction (S89)."""

from __future__ import annotations

from typing import Any

import pytest
from peer_faces import Face
from stomp_peer import CLASSIC, Received, StompPeer, start

from pyjmsack import AckMode, Queue, Topic, TransactionRolledBackException

QUEUE = Queue("q")
TRANSACTED = AckMode.SESSION_TRANSACTED


class Forgetful:
    """A rule: forget at each COMMIT what was acknowledged, as Classic does, and refuse a second ACK."""

    def __init__(self, refused: int = 0) -> None:
        self._refused = refused
        self._acked: set[str] = set()
        self._forgotten: set[str] = set()

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        if frame.command == "ACK" and frame.headers["id"] in self._forgotten:
            peer.error(frame, f"Unexpected ACK received for message-id {frame.headers['id']}", ends=False)
            return True
        if frame.command == "ACK":
            self._acked.add(frame.headers["id"])
        elif frame.command == "COMMIT":
            self._forgotten |= self._acked
        elif frame.command == "ABORT":
            self._acked.clear()
        if frame.command == "COMMIT" and len(peer.all("COMMIT")) <= self._refused:
            peer.error(frame, "no", ends=False)
            return True
        return False


def take(consumer: Any, count: int) -> list[tuple[str, int]]:
    """Receive so many messages, and return their texts and delivery counts."""
    messages = [consumer.receive(timeout=60) for _ in range(count)]
    return [(message.text, message.delivery_count) for message in messages]


@pytest.mark.parametrize("durable", [False, True], ids=["queue", "durable"])
def test_a_large_transaction_that_is_rolled_back_after_another_commit_comes_by_another_subscription(
    face: Face, durable: bool
) -> None:
    """S80, S89: the second ACKs ended the connection, with all its sessions."""
    texts = [str(number) for number in range(150)]
    peer = start(face, CLASSIC, rule=Forgetful(), messages=texts)
    connection = face.connect(peer, client_id="c") if durable else face.connect(peer)
    session, other = [connection.create_session(TRANSACTED) for _ in range(2)]
    consumer = session.create_durable_consumer(Topic("t"), "s") if durable else session.create_consumer(QUEUE)
    assert take(consumer, 120) == [(text, 1) for text in texts[:120]]
    other.create_producer(Queue("out")).send("x")
    other.commit()
    session.rollback()
    assert take(consumer, 150) == [(text, 2 if number < 120 else 1) for number, text in enumerate(texts)]
    session.commit()
    first, second = [frame.headers["id"] for frame in peer.all("SUBSCRIBE")]
    assert [frame.headers["id"] for frame in peer.all("UNSUBSCRIBE")] == [first]
    assert [frame.headers["id"] for frame in peer.all("ACK")[100:]] == [f"{second},{number}" for number in range(150)]


def test_after_a_refused_commit_the_messages_come_by_another_subscription(face: Face) -> None:
    """S79, S89: the broker forgets the messages although it refuses the COMMIT."""
    peer = start(face, CLASSIC, rule=Forgetful(refused=1), messages=["a"])
    session = face.session(peer, mode=TRANSACTED)
    consumer = session.create_consumer(QUEUE)
    assert take(consumer, 1) == [("a", 1)]
    with pytest.raises(TransactionRolledBackException, match="refused the commit"):
        session.commit()
    assert take(consumer, 1) == [("a", 2)]
    session.commit()
    assert len(peer.all("SUBSCRIBE")) == 2


def test_a_consumer_that_is_closed_before_the_rollback_opens_no_other_subscription(face: Face) -> None:
    """S84, S89: it would take messages that nobody reads."""
    peer = start(face, CLASSIC, rule=Forgetful(), messages=[str(number) for number in range(100)])
    connection = face.connect(peer)
    session, other = [connection.create_session(TRANSACTED) for _ in range(2)]
    consumer = session.create_consumer(QUEUE)
    take(consumer, 100)
    peer.wait("ACK", 100)
    consumer.close()
    other.create_producer(Queue("out")).send("x")
    other.commit()
    session.rollback()
    peer.wait("UNSUBSCRIBE")
    session.close()
    connection.close()
    assert len(peer.all("SUBSCRIBE")) == len(peer.all("UNSUBSCRIBE")) == 1
