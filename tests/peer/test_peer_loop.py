"""What the code of a program can do to the I/O thread of the blocking face, and what its connections make of it (S127,
S128)."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from failover_support import Events
from peer import unanswered
from peer_faces import PATIENCE, Face, SyncFace
from polling import wait_until

from pyjmsack import ConnectionLostException, Queue
from pyjmsack.io import thread as io_thread

Q = Queue("q")


class _End(BaseException):
    """An error of a program that is no ``Exception``, as ``pytest.fail`` raises."""


class _Raises(logging.Handler):
    """A log handler that raises for each record."""

    def __init__(self, kind: type[BaseException]) -> None:
        super().__init__()
        self._kind = kind
        self.records = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.records += 1
        raise self._kind("mistake")


@pytest.fixture(params=[RuntimeError, _End, SystemExit, KeyboardInterrupt])
def handler(request: pytest.FixtureRequest) -> Iterator[_Raises]:
    """A handler of the program that raises this error."""
    log = logging.getLogger("pyjmsack")
    handler = _Raises(request.param)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


def test_a_log_handler_that_raises_does_not_end_the_search_for_a_broker_s127(face: Face, handler: _Raises) -> None:
    """After one cut the connection was never looked for again, and nobody was told."""
    peer, neighbour = face.peer(), face.peer()
    producer = face.failover(peer, options="failover.initialReconnectDelay=1").create_session().create_producer(Q)
    other = face.session(neighbour).create_producer(Q)
    producer.send("a")
    peer.drop()
    producer.send("b")
    other.send("c")
    assert handler.records
    assert len(peer.all("open")) == 2


def test_no_connection_waits_for_a_log_handler_that_waits_s127(
    sync: SyncFace, caplog: pytest.LogCaptureFixture
) -> None:
    """A mail server that did not answer stopped all connections of the process, at each line."""
    peer, neighbour = sync.peer(), sync.peer()
    producer = sync.failover(peer, options="failover.initialReconnectDelay=1").create_session().create_producer(Q)
    other = sync.session(neighbour).create_producer(Q)
    producer.send("a")
    entered, gate = threading.Event(), threading.Event()

    def wait(record: logging.LogRecord) -> bool:
        entered.set()
        return gate.wait(PATIENCE)

    caplog.set_level(logging.INFO, "pyjmsack")
    caplog.handler.addFilter(wait)
    try:
        peer.drop()
        assert entered.wait(PATIENCE)
        other.send("c")
        producer.send("b")
        assert len(peer.all("open")) == 2
        assert caplog.records == []  # the handler waits for the gate, and nobody for the handler
    finally:
        gate.set()
        caplog.handler.removeFilter(wait)
    wait_until(lambda: len(caplog.records) >= 2)


def test_a_record_factory_that_raises_does_not_end_the_search_for_a_broker_s127(
    face: Face, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The factory reads the request of a web framework, and there is none on the I/O thread."""
    caplog.set_level(logging.INFO, "pyjmsack")
    peer = face.peer()
    producer = face.failover(peer, options="failover.initialReconnectDelay=1").create_session().create_producer(Q)
    raised: list[str] = []

    def factory(*arguments: Any, **named: Any) -> logging.LogRecord:
        raised.append("")
        raise RuntimeError("working outside of request context")

    monkeypatch.setattr(logging, "_logRecordFactory", factory)
    peer.drop()
    producer.send("b")
    assert raised
    assert len(peer.all("open")) == 2


@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
def test_a_loop_that_ends_by_itself_loses_its_connections_and_no_caller_waits_s128(
    sync: SyncFace, failover: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program has closed the file descriptors of the loop. Calls raised ``RuntimeError``, or waited for ever, and no
    connection could be made."""
    monkeypatch.setattr(io_thread, "_threads", {})  # connections of other tests have a loop that lives on
    peer = sync.peer(on_transfer=unanswered)
    connection = sync.failover(peer) if failover else sync.connect(peer)
    events = Events(connection)
    receiving = sync.background(connection.create_session().create_consumer(Q).receive)
    producer = connection.create_session().create_producer(Q)
    sending = sync.background(producer.send, "a")
    peer.wait_transfers(1)
    [loop_thread] = io_thread._threads.values()

    selector = loop_thread.loop._selector  # type: ignore[attr-defined]

    def broken(*arguments: object) -> None:
        del selector.select  # it breaks once, so that the sockets can be closed
        raise OSError(errno.EBADF, "bad file descriptor")

    selector.select = broken
    loop_thread.loop.call_soon_threadsafe(int)
    for waiting in (receiving, sending):
        with pytest.raises(ConnectionLostException, match="the I/O thread has ended"):
            waiting.result(PATIENCE)
    with pytest.raises(ConnectionLostException, match="the I/O thread has ended"):
        connection.create_session()
    events.wait("established", "failure")
    connection.close()
    sync.session(sync.peer()).create_producer(Q).send("b")
