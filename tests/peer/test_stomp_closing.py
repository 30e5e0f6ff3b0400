"""A session that is closed while another thread, or task, is in a call of it (S84, S125), and a broker that is given up
while it does not read (S91)."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from peer_faces import Face
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, ignore, start

from pyjmsack import AckMode, IllegalStateException, Queue, TransactionRolledBackException

QUEUE = Queue("q")
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


def work(face: Face, peer: StompPeer) -> tuple[Any, Any]:
    """Receive one message and send one, in a transaction. Return its session, and another session."""
    connection = face.connect(peer)
    session = connection.create_session(AckMode.SESSION_TRANSACTED)
    assert session.create_consumer(QUEUE).receive(timeout=60).text == "a"
    session.create_producer(Queue("out")).send("b")
    return session, connection.create_session()


def answer(peer: StompPeer, command: str) -> None:
    """Send the receipt that the peer held back."""
    (frame,) = peer.all(command)
    peer.send("RECEIPT", receipt_id=frame.headers["receipt"])


@EITHER
def test_a_commit_that_a_close_has_overtaken_fails_because_its_work_is_rolled_back(face: Face, server: str) -> None:
    """S84: the commit waits for the answer to a send, and meanwhile the session rolls back."""
    peer = start(face, server, rule=ignore("SEND"), messages=["a"])
    session, _ = work(face, peer)
    commit = face.background(session.commit)
    peer.wait("SEND")
    session.close()
    assert len(peer.wait("ABORT")) == 1
    answer(peer, "SEND")
    with pytest.raises(TransactionRolledBackException, match="closed") as raised:
        commit.result(timeout=60)
    assert not raised.value.in_doubt
    assert peer.log("COMMIT") == []


@EITHER
def test_a_close_waits_for_the_acks_of_a_commit_under_way(face: Face, server: str) -> None:
    """S84, S88: Artemis gets the ACKs after the commit, and refuses them after the end of their subscription."""

    peer = start(face, server, rule=ignore("COMMIT"), messages=["a"])
    session, other = work(face, peer)
    commit = face.background(session.commit)
    peer.wait("COMMIT")
    close = face.background(session.close)
    producer = other.create_producer(Queue("else"))
    for number in range(20):  # meanwhile the close comes as far as it can
        producer.send(str(number))
    assert peer.log("UNSUBSCRIBE") == []
    answer(peer, "COMMIT")
    commit.result(timeout=60)
    close.result(timeout=60)
    ends = [frame.command for frame in peer.frames if frame.command in ("ACK", "UNSUBSCRIBE")]
    assert ends == ["ACK", "UNSUBSCRIBE"]


@EITHER
def test_a_consumer_that_is_created_while_its_session_is_closed_takes_no_messages(face: Face, server: str) -> None:
    """S125: the broker would deliver the queue to a consumer that nobody has."""
    peer = start(face, server, rule=ignore("SUBSCRIBE"), messages=["a"])
    session = face.session(peer)
    creation = face.background(session.create_consumer, QUEUE)
    peer.wait("SUBSCRIBE")
    session.close()
    answer(peer, "SUBSCRIBE")
    with pytest.raises(IllegalStateException, match="closed while"):
        creation.result(timeout=60)
    (subscribed,), (unsubscribed,) = peer.all("SUBSCRIBE"), peer.wait("UNSUBSCRIBE")
    assert unsubscribed.headers["id"] == subscribed.headers["id"]


def test_sends_that_are_repeated_at_another_broker_do_not_go_to_the_silent_one_too(face: Face) -> None:
    """S91: the broker froze while the client had 20 MB for it, and goes on when the client has given it up."""
    awake = Event()

    def freeze(peer: StompPeer, frame: Received) -> bool:
        return frame.command == "SEND" and awake.wait(60)

    frozen, other = start(face, rule=freeze, heart_beat="300,0"), start(face, heart_beat="0,0")
    connection = face.failover(f"{frozen.url}?stomp.heartBeat=300", other.url)
    producer = connection.create_session().create_producer(QUEUE)
    sends = [producer.send_async(b"x" * 1_000_000) for _ in range(20)]
    for send in sends:
        send.result(60)
    awake.set()
    frozen.wait_end()
    assert len(other.all("SEND")) == 20
    assert len(frozen.all("SEND")) < 10  # as many as the buffers of the system hold
