"""Messages that the broker has taken from the queue, and whose credit the answer to a drain took away (S36)."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, text
from peer_faces import Face
from peer_frames import transfer
from test_peer_credit import answer, credits, prefetch, wait_limit

from pyjmsack import AckMode

engines = pytest.mark.parametrize("engine", ["amqp.engine=python", "amqp.engine=proton"])


def write(peer: Peer, *frames: bytes) -> None:
    """Let the peer write these frames at once."""
    peer.do(lambda: peer.connections[0].write_raw(b"".join(frames)))


def settled(number: int, body: str) -> bytes:
    return transfer(number, text(body), settled=True)


def presettled(face: Face, peer: Peer, *options: str) -> Any:
    """Return a consumer without acknowledgements, which has credit for five messages."""
    consumer = face.session(peer, *options, mode=AckMode.NO_ACKNOWLEDGE).create_consumer(prefetch(5))
    wait_limit(peer, 5, drain=False)
    return consumer


@engines
def test_settled_messages_that_come_after_the_answer_to_the_drain_are_handed_out_s36(face: Face, engine: str) -> None:
    """Artemis answers before the first frame of a large message. It sends the message when it gets credit again."""
    peer = face.peer(silent={"drain"})
    consumer = presettled(face, peer, engine)
    draining = face.background(consumer.drain, 60)
    wait_limit(peer, 5, drain=True)
    write(peer, settled(0, "sent"), answer(5))
    wait_limit(peer, 6, drain=True)
    write(peer, settled(1, "owed"))
    wait_limit(peer, 9, drain=True)  # the first drain gave four back, and one of these has come
    write(peer, settled(2, "behind"))
    face.until(lambda: consumer.stats.buffered == 3)
    write(peer, answer(9))
    for limit in range(10, 13):  # three times nothing
        wait_limit(peer, limit, drain=True)
        write(peer, answer(limit))
    assert draining.result(60) is True
    assert [consumer.receive(60).text for _ in range(3)] == ["sent", "owed", "behind"]
    assert consumer.receive(60) is None


@engines
def test_a_broker_that_does_not_answer_any_more_takes_no_message_that_has_come_s36(face: Face, engine: str) -> None:
    peer = face.peer(silent={"drain"})
    consumer = presettled(face, peer, engine, "amqp.drainTimeout=300")
    draining = face.background(consumer.drain)
    wait_limit(peer, 5, drain=True)
    write(peer, settled(0, "sent"), answer(5))
    wait_limit(peer, 6, drain=True)
    assert draining.result(60) is False
    assert consumer.receive(60).text == "sent"
    assert consumer.receive(60) is None


@engines
def test_classic_is_asked_for_no_message_behind_a_drain_s36(face: Face, engine: str) -> None:
    """More credit makes it take more messages that it then does not send."""
    peer = face.peer(silent={"drain"})
    consumer = presettled(face, peer, engine, "broker=classic-6")
    draining = face.background(consumer.drain, 60)
    wait_limit(peer, 5, drain=True)
    write(peer, settled(0, "sent"), answer(5))
    assert draining.result(60) is True
    assert consumer.receive(60).text == "sent"
    assert max(count + credit for count, credit, _ in credits(peer)) == 5


@engines
def test_a_consumer_that_is_closed_asks_for_no_settled_messages_s36(face: Face, engine: str) -> None:
    """Nobody would take them, and a credit could take one more message from the queue."""
    peer = face.peer(silent={"drain"})
    consumer = presettled(face, peer, engine)
    closing = face.background(consumer.close)
    wait_limit(peer, 5, drain=True)
    write(peer, answer(5))
    closing.result(60)
    assert max(count + credit for count, credit, _ in credits(peer)) == 5


@engines
def test_a_rollback_waits_for_one_drain_s83(face: Face, engine: str) -> None:
    """What the broker owes then goes back to the queue, so another round trip would only cost time."""
    peer = face.peer(messages=[text("one")], silent={"drain"})
    session = face.session(peer, engine, mode=AckMode.SESSION_TRANSACTED)
    consumer = session.create_consumer(prefetch(5))
    consumer.receive(60)
    rolling = face.background(session.rollback)
    wait_limit(peer, 5, drain=True)
    write(peer, answer(5, 1))
    rolling.result(60)
    wait_limit(peer, 10, drain=False)
    assert max(count + credit for count, credit, drains in credits(peer) if drains) == 5
