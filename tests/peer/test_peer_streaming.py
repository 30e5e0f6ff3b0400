"""Bodies that are read while they are sent: what else leaves meanwhile, and what ends them in the middle (S168)."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from peer import PATIENCE, Peer
from peer_faces import Face, Told

from pyjmsack import (
    BodyConsumedException,
    JMSException,
    MessageFormatException,
    Queue,
    SendTimedOutException,
)

Q = Queue("q")
PIECE = 1 << 18
BODY = bytes(range(256)) * 4096  # four pieces


@pytest.fixture
def _takes_pieces(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--amqp-engine") == "proton":
        pytest.skip("the engine of proton takes a body as a whole (docs/large-bodies.md)")


in_pieces = pytest.mark.usefixtures("_takes_pieces")


class Held:
    """Pieces of a body, of which all but the first wait until the test lets them go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go_on = threading.Event()
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield BODY[:PIECE]
        yield BODY[PIECE : 2 * PIECE]
        assert self.go_on.wait(PATIENCE)
        if self._error is not None:
            raise self._error
        yield BODY[2 * PIECE :]


class HeldFile(io.BytesIO):
    """The same as a file that can be read again; the second time nothing waits."""

    def __init__(self) -> None:
        super().__init__(BODY)
        self.go_on = threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() == 2 * PIECE:
            assert self.go_on.wait(PATIENCE)
        return super().read(size)


def in_the_middle(face: Face, peer: Peer, session: Any, data: Any, **how: Any) -> Future[None]:
    """Send a body and wait until a part of it has left."""
    length = len(BODY) if isinstance(data, Held) else None
    sending: Future[None] = session.create_producer(Q).send_async(
        session.create_bytes_message(data, length=length), **how
    )
    peer.wait(lambda: [frame for frame in peer.all("transfer") if frame["more"]], "a part of the body")
    return sending


def aborted(peer: Peer) -> list[Any]:
    return [frame for frame in peer.all("transfer") if frame["aborted"]]


@pytest.mark.parametrize("kind", ["path", "file", "iterable", "pipe"])
def test_a_body_arrives_whole_from_wherever_it_comes_s168(face: Face, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"skipped" + BODY if kind == "file" else BODY)
    peer = face.peer()
    session = face.session(peer)
    with path.open("rb") as file:
        if kind == "file":
            file.seek(len(b"skipped"))
        data: Any = {"path": path, "file": file, "iterable": [BODY[:3], b"", BODY[3:]], "pipe": Pipe(BODY)}[kind]
        length = len(BODY) if kind in ("iterable", "pipe") else None
        message = session.create_bytes_message(data, length=length)
        message.properties["n"] = 1
        assert message.body_length == len(BODY)
        session.create_producer(Q).send(message)
    (transfer,) = peer.wait_transfers(1)
    assert bytes(transfer.body) == BODY
    assert transfer.message.properties == {"n": 1}
    assert len(peer.all("transfer")) >= len(BODY) // PIECE


class Pipe(io.RawIOBase):
    """A file that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return self._data.read(size)


@in_pieces
def test_other_producers_of_the_session_send_while_a_large_body_waits_for_its_source(face: Face) -> None:
    """S168: a large body is no harm to its neighbours."""
    peer, data = face.peer(), Held()
    session = face.session(peer)
    sending = in_the_middle(face, peer, session, data)
    session.create_producer(Queue("other")).send("meanwhile")
    assert not sending.done()
    data.go_on.set()
    sending.result(PATIENCE)
    meanwhile, large = peer.wait_transfers(2)
    assert (meanwhile.body, bytes(large.body)) == ("meanwhile", BODY)


def test_messages_of_one_producer_keep_their_order_around_a_large_body(face: Face) -> None:
    """S70, S168: nothing leaves on a link in the middle of a message."""
    peer, data = face.peer(), Held()
    session = face.session(peer)
    producer = session.create_producer(Q)
    futures = [producer.send_async("first"), producer.send_async(session.create_bytes_message(data, length=len(BODY)))]
    futures += [producer.send_async("last"), producer.send_async(session.create_bytes_message(io.BytesIO(BODY)))]
    data.go_on.set()
    for future in futures:
        future.result(PATIENCE)
    assert [len(transfer.body) for transfer in peer.transfers] == [5, len(BODY), 4, len(BODY)]


def test_a_large_body_fits_small_frames(face: Face) -> None:
    """S168: AMQP 1.0 2.4.1."""
    peer = face.peer(max_frame_size=4096)
    session = face.session(peer)
    session.create_producer(Q).send(session.create_bytes_message(io.BytesIO(BODY[: 2 * PIECE])))
    assert bytes(peer.wait_transfers(1)[0].body) == BODY[: 2 * PIECE]


@in_pieces
def test_a_body_that_cannot_be_read_to_its_end_is_taken_back_and_the_producer_works_on(face: Face) -> None:
    """S168: the broker forgets what it has of it (AMQP 1.0 2.6.14); the error of the source is the cause."""
    failure = ValueError("no more")
    peer, data = face.peer(), Held(failure)
    session = face.session(peer)
    sending = in_the_middle(face, peer, session, data)
    data.go_on.set()
    with pytest.raises(JMSException, match="ValueError: no more") as caught:
        sending.result(PATIENCE)
    causes = (caught.value.__cause__, getattr(caught.value.__cause__, "__cause__", None))
    assert failure in causes
    session.create_producer(Q).send("next")
    assert [transfer.body for transfer in peer.wait_transfers(1)] == ["next"]
    assert len(aborted(peer)) == 1


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([BODY], "ended too early: 1 bytes are missing"),
        ([BODY, b"xy"], r"gave more bytes than its length of [\d,]+"),
        (["text"], "expected pieces of bytes, not str"),
    ],
)
def test_an_iterable_that_breaks_its_promise_is_not_sent(face: Face, pieces: list[Any], words: str) -> None:
    """S168: not one byte less or more than was said."""
    peer = face.peer()
    session = face.session(peer)
    with pytest.raises(MessageFormatException, match=words):
        session.create_producer(Q).send(session.create_bytes_message(iter(pieces), length=len(BODY) + 1))
    face.barrier(peer, session)
    assert peer.transfers == []


def test_an_iterable_is_sent_once(face: Face) -> None:
    """S168: the second send says why it cannot."""
    peer = face.peer()
    session = face.session(peer)
    message = session.create_bytes_message(iter([b"x"]), length=1)
    producer = session.create_producer(Q)
    producer.send(message)
    with pytest.raises(BodyConsumedException, match="only once"):
        producer.send(message)
    producer.send("next")
    assert [transfer.body for transfer in peer.wait_transfers(2)] == [b"x", "next"]


@in_pieces
def test_a_send_that_times_out_in_the_middle_is_taken_back(face: Face) -> None:
    """S66, S168: so it never reaches a consumer."""
    peer, data = face.peer(), Held()
    session = face.session(peer, "jms.sendTimeout=1000")
    with pytest.raises(SendTimedOutException, match="the message was not sent"):
        session.create_producer(Q).send(session.create_bytes_message(data, length=len(BODY)))
    data.go_on.set()
    peer.wait(lambda: aborted(peer), "the end of the message")
    assert peer.transfers == []


@in_pieces
def test_a_rollback_takes_back_a_body_in_its_middle(face: Face) -> None:
    """S75, S168: the next transaction is not its."""
    peer, data = face.peer(), Held()
    session = face.session(peer, mode=0)
    sending = in_the_middle(face, peer, session, data)
    session.rollback()
    with pytest.raises(JMSException, match="rolled back"):
        sending.result(PATIENCE)
    data.go_on.set()
    session.create_producer(Q).send("next")
    session.commit()
    assert [transfer.body for transfer in peer.transfers] == ["next"]
    assert len(aborted(peer)) == 1


def test_a_body_over_the_limit_of_the_broker_is_refused_before_it_is_read(face: Face) -> None:
    """S168: AMQP 1.0 2.7.3."""
    peer, data = face.peer(max_message_size=len(BODY)), Held()
    session = face.session(peer)
    with pytest.raises(JMSException, match="max-message-size"):
        session.create_producer(Q).send(session.create_bytes_message(data, length=len(BODY)))
    assert peer.transfers == []


@in_pieces
def test_a_body_from_a_file_is_sent_again_after_a_failover_in_its_middle(face: Face) -> None:
    """S91, S168."""
    first, second, data = face.peer(), face.peer(), HeldFile()
    session = face.failover(first, second).create_session()
    sending = in_the_middle(face, first, session, data)
    first.stop_listening()
    first.drop()
    data.go_on.set()
    sending.result(PATIENCE)
    assert [bytes(transfer.body) for transfer in second.transfers] == [BODY]
    assert first.transfers == []


@in_pieces
def test_a_body_from_an_iterator_is_not_sent_again_after_a_failover(face: Face) -> None:
    """S91, S168: and the error says so; the producer works on."""
    first, second, data = face.peer(), face.peer(), Held()
    session = face.failover(first, second).create_session()
    sending = in_the_middle(face, first, session, data)
    first.stop_listening()
    first.drop()
    with pytest.raises(BodyConsumedException, match="may have been stored"):
        sending.result(PATIENCE)
    data.go_on.set()
    session.create_producer(Q).send("next")
    assert [transfer.body for transfer in second.transfers] == ["next"]


@in_pieces
def test_sends_behind_a_large_body_are_repeated_after_a_failover_because_they_never_left(face: Face) -> None:
    """S91, S168: also one with a body from an iterator, which nobody has read, and one with a completion listener."""
    first, second, data, told = face.peer(), face.peer(), Held(), Told()
    session = face.failover(first, second).create_session()
    producer = session.create_producer(Q)
    large = producer.send_async(session.create_bytes_message(data, length=len(BODY)))
    first.wait(lambda: [frame for frame in first.all("transfer") if frame["more"]], "a part of the body")
    sending = [producer.send_async(session.create_bytes_message(iter([b"iterator"]), length=8))]
    producer.send("listener", completion_listener=told)
    sending.append(producer.send_async("last"))
    face.barrier(first, session)
    first.stop_listening()
    first.drop()
    with pytest.raises(BodyConsumedException):
        large.result(PATIENCE)
    data.go_on.set()
    for future in sending:
        future.result(PATIENCE)
    assert [call[:2] for call in told.wait(1)] == [("completed", "listener")]
    bodies = [transfer.body for transfer in second.wait_transfers(3)]
    assert bodies == [b"iterator", "listener", "last"]
    assert first.transfers == []


@in_pieces
def test_a_connection_without_failover_that_is_lost_in_the_middle_fails_the_send(face: Face) -> None:
    """S128, S168."""
    peer, data = face.peer(), Held()
    sending = in_the_middle(face, peer, face.session(peer), data)
    peer.drop()
    with pytest.raises(JMSException, match=r"lost|closed"):
        sending.result(PATIENCE)
    data.go_on.set()
