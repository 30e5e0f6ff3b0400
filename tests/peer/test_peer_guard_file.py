"""The guard's file is locked or broken (S105): acknowledgements wait for it, and nothing else does."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from failover_support import interruptible
from peer import Peer, text
from peer_faces import Face, Told

from pyjmsack import JMSException, Queue

Q = Queue("q?consumer.prefetchSize=10")
OTHER = Queue("other")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file, as another process may."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def remembering(path: Path, *more: str) -> str:
    return "&".join((f"failover.duplicateGuard=sqlite:{path}", *more))


def accepted(peer: Peer) -> int:
    """Count what the client acknowledged."""
    return sum(
        1 + (frame["last"] or frame["first"]) - frame["first"] for frame in peer.all("disposition") if frame["role"]
    )


def consume(consumer: Any, *texts: str) -> None:
    assert [consumer.receive(60).text for _ in texts] == [*texts]


@pytest.mark.parametrize("mode", [1, 2, 101], ids=["auto", "client", "individual"])
def test_a_locked_file_delays_acknowledgements_and_nothing_else(face: Face, tmp_path: Path, mode: int) -> None:
    """Other messages of the consumer, sends, sessions and connections go on; when it is free all is acknowledged."""
    path = tmp_path / "ids"
    peer = face.peer(messages=[text(str(number), id=f"ID:{number}") for number in range(3)])
    connection = face.failover(peer, options=remembering(path))
    session = connection.create_session(mode)
    consumer = session.create_consumer(Q)
    with locked(path):
        for number in range(3):
            message = consumer.receive(60)
            assert message.text == str(number)
            if mode != 1:
                message.acknowledge()
        connection.create_session(mode).create_producer(OTHER).send("sent")
        neighbour = face.peer(messages=[text("next", id="ID:1")])
        consume(face.session(neighbour).create_consumer(Q), "next")
        neighbour.wait(lambda: accepted(neighbour) == 1)
        assert accepted(peer) == 0
    peer.wait(lambda: accepted(peer) == 3)


def test_acknowledgements_whose_time_has_come_wait_as_well(face: Face, tmp_path: Path) -> None:
    """S41: the timer of ``jms.optimizeAcknowledge`` runs on the loop."""
    path = tmp_path / "ids"
    peer = face.peer(messages=[text("m", id="ID:1")])
    batched = "jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=10"
    connection = face.failover(peer, options=remembering(path, batched))
    consumer = connection.create_session().create_consumer(Q)
    with locked(path):
        consume(consumer, "m")
        face.until(lambda: consumer.stats.unacknowledged == 0)
        connection.create_session().create_producer(OTHER).send("sent")
        assert accepted(peer) == 0
    peer.wait(lambda: accepted(peer) == 1)


def test_what_was_processed_before_a_restart_is_skipped(face: Face, tmp_path: Path) -> None:
    """S105: and it does not hide what is behind it, for a caller who does not wait either."""
    path = tmp_path / "ids"
    first, second = text("1", id="ID:1"), text("2", id="ID:2")
    peer = face.peer(messages=[first])
    before = face.failover(peer, options=remembering(path))
    consume(before.create_session().create_consumer(Q), "1")
    before.close()
    peer = face.peer(messages=[first, first, second])
    consumer = face.failover(peer, options=remembering(path)).create_session().create_consumer(Q)
    assert [consumer.receive(0).text, consumer.receive(0)] == ["2", None]
    assert consumer.stats.duplicates_skipped == 2
    peer.wait(lambda: accepted(peer) == 3)


def test_a_listener_gets_what_was_not_processed_before(face: Face, tmp_path: Path) -> None:
    """S105: messages come to it when the file has told of them."""
    path = tmp_path / "ids"
    peer = face.peer(messages=[text("1", id="ID:1"), text("2", id="ID:2"), text("nameless")])
    consumer = face.failover(peer, options=remembering(path)).create_session().create_consumer(Q)
    heard = Told()
    consumer.message_listener = heard
    assert [call[0].text for call in heard.wait(3)] == ["1", "2", "nameless"]
    peer.wait(lambda: accepted(peer) == 3)


def test_a_committed_message_is_remembered_when_commit_returns(face: Face, tmp_path: Path) -> None:
    """S105, S75."""
    path = tmp_path / "ids"
    peer = face.peer(messages=[text("1", id="ID:1")])
    session = face.failover(peer, options=remembering(path)).create_session(0)
    consume(session.create_consumer(Q), "1")
    session.commit()
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("SELECT count(*) FROM processed").fetchone() == (1,)


def test_a_session_that_is_closed_has_its_acknowledgements_sent_first(face: Face, tmp_path: Path) -> None:
    """S29: a link that ends before them would return their messages."""
    path = tmp_path / "ids"
    peer = face.peer(messages=[text(str(number), id=f"ID:{number}") for number in range(3)])
    session = face.failover(peer, options=remembering(path)).create_session()
    consume(session.create_consumer(Q), "0", "1", "2")
    session.close()
    assert accepted(peer) == 3


def test_a_file_that_cannot_be_used_refuses_the_session(face: Face, tmp_path: Path) -> None:
    """The text names it."""
    connection = face.failover(face.peer(), options=remembering(tmp_path / "no" / "such"))
    with pytest.raises(JMSException, match=r"failover\.duplicateGuard=sqlite:.*such: unable to open"):
        connection.create_session()


def test_a_broken_file_is_told_and_does_not_keep_the_connection_from_coming_back(
    face: Face, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S105, S109: acknowledgements that wait for others count as processed when the connection is lost."""
    path = tmp_path / "ids"
    batched = remembering(path, "jms.optimizeAcknowledge=true")
    _, connection, outage = interruptible(face, messages=[text("m", id="ID:1")], options=batched)
    session = connection.create_session()
    consume(session.create_consumer(Q), "m")
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE processed")
    caplog.set_level(logging.ERROR, "pyjmsack")
    outage.begin()
    outage.end()
    session.create_producer(Q).send("x")
    face.until(lambda: f"failover.duplicateGuard=sqlite:{path}: no such table" in caplog.text)
