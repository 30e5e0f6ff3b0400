"""The log lines of the I/O thread: a handler that waits delays itself only (S127)."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from polling import wait_until

from pyjmsack.io import lines
from pyjmsack.io.thread import LoopThread, acquire
from pyjmsack.loggers import get_logger

PATIENCE = 60.0
LOG = get_logger("pyjmsack.test_lines")


class Waiting(logging.Handler):
    """A handler that waits at each line until the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.records: list[logging.LogRecord] = []
        self.threads: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.entered.set()
        self.gate.wait(PATIENCE)
        self.threads.add(threading.current_thread().name)
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        """The lines that were written."""
        return [record.getMessage() for record in self.records]


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopThread]:
    monkeypatch.setattr("pyjmsack.io.thread._threads", {})  # another test may have left a connection with its thread
    thread = acquire()
    yield thread
    thread.release()
    assert not thread._thread.is_alive()


@pytest.fixture
def handler() -> Iterator[Waiting]:
    handler = Waiting()
    LOG.logger.addHandler(handler)
    yield handler
    handler.gate.set()
    LOG.logger.removeHandler(handler)


def call(thread: LoopThread, *calls: Any) -> None:
    """Make calls on the loop, and wait until the last one has returned."""
    done = threading.Event()
    for each in calls:
        thread.loop.call_soon_threadsafe(*each)
    thread.loop.call_soon_threadsafe(done.set)
    assert done.wait(PATIENCE)


def test_the_io_thread_goes_on_while_a_handler_waits_s127(thread: LoopThread, handler: Waiting) -> None:
    """A mail server that did not answer stopped all connections of the process."""
    call(thread, *[(LOG.warning, "line %d", number) for number in range(20)])
    assert handler.entered.wait(PATIENCE)
    assert handler.texts == []  # the loop has made all calls, and the first line still waits
    handler.gate.set()
    wait_until(lambda: len(handler.texts) == 20)
    assert handler.texts == [f"line {number}" for number in range(20)]


def test_a_line_is_written_before_the_loop_goes_on_if_no_handler_waits(thread: LoopThread, handler: Waiting) -> None:
    """So the lines of all threads are in the order of the events."""
    handler.gate.set()
    found: list[list[str]] = []

    def event(number: int) -> None:
        LOG.warning("line %d", number)
        found.append(handler.texts)

    call(thread, *[(event, number) for number in range(50)])
    assert found == [[f"line {number}" for number in range(count + 1)] for count in range(50)]


def test_a_record_names_the_thread_and_the_line_that_made_it(thread: LoopThread, handler: Waiting) -> None:
    handler.gate.set()
    call(thread, (lambda: LOG.warning("one"),))
    call(thread, (lambda: LOG.exception("two"),))
    LOG.warning("three")
    found = [(record.threadName, record.filename, record.funcName) for record in handler.records]
    own = threading.current_thread().name
    assert [each[0] for each in found] == ["pyjmsack-io", "pyjmsack-io", own]
    assert {each[1] for each in found} == {"test_lines.py"}
    assert found[2][2] == "test_a_record_names_the_thread_and_the_line_that_made_it"
    assert handler.threads == {"pyjmsack-log", own}


def test_a_level_that_is_off_makes_no_thread_and_no_record(thread: LoopThread, handler: Waiting) -> None:
    handler.gate.set()
    LOG.logger.setLevel(logging.ERROR)
    try:
        call(thread, (LOG.warning, "not written"))
        assert handler.records == []
        assert not [each for each in threading.enumerate() if each.name == "pyjmsack-log"]
    finally:
        LOG.logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_of_a_handler_costs_its_line_only_s127(
    thread: LoopThread, handler: Waiting, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler.gate.set()
    monkeypatch.setattr(logging, "raiseExceptions", False)
    emit = handler.emit

    def failing(record: logging.LogRecord) -> None:
        if record.getMessage() == "bad":
            raise kind("refused")
        emit(record)

    monkeypatch.setattr(handler, "emit", failing)
    call(thread, (LOG.warning, "good"), (LOG.warning, "bad"), (LOG.warning, "better"))
    assert handler.texts == ["good", "better"]


def test_the_lines_that_wait_have_a_limit_and_the_log_tells_how_many_were_dropped(
    thread: LoopThread, handler: Waiting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lines, "_MOST_LINES", 5)
    call(thread, *[(LOG.warning, "line %d", number) for number in range(20)])
    handler.gate.set()
    wait_until(lambda: "dropped" in caplog.text)
    call(thread, (LOG.warning, "last"))
    assert handler.texts == [*(f"line {number}" for number in range(6)), "last"]
    assert "14 lines of the log were dropped" in caplog.text


def test_long_lines_that_wait_have_a_limit_of_their_characters(
    thread: LoopThread, handler: Waiting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With ``traceBytes`` a line has two characters for each byte of a frame."""
    monkeypatch.setattr(lines, "_MOST_CHARACTERS", 100)
    texts = ["a" * 500, "b", "c" * 99, "d" * 100]
    call(thread, (LOG.warning, "%s", texts[0]))  # longer than all that may wait, but the only line
    call(thread, *[(LOG.warning, "%s", text) for text in texts[1:]])
    handler.gate.set()
    wait_until(lambda: "dropped" in caplog.text)
    assert "3 lines of the log were dropped" in caplog.text
    call(thread, *[(LOG.warning, "%s", text) for text in texts[1:]])
    assert handler.texts == texts


def test_the_io_thread_writes_itself_if_the_system_refuses_threads(
    thread: LoopThread, handler: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler.gate.set()

    def refused(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("pyjmsack.io.lines.threading.Thread.start", refused)
        call(thread, (LOG.warning, "one"))
    call(thread, (LOG.warning, "two"))
    assert handler.texts == ["one", "two"]
    assert handler.threads == {"pyjmsack-io", "pyjmsack-log"}


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_a_forked_child_writes_its_own_lines(thread: LoopThread, handler: Waiting) -> None:
    """A thread of the child may have the number that the I/O thread has in the parent."""
    handler.gate.set()
    found: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:  # on the thread with the number of the I/O thread
            LOG.warning("in the child")
            os._exit(0 if "in the child" in handler.texts and handler.threads == {"pyjmsack-io"} else 1)
        found.append(os.waitpid(child, 0)[1])

    call(thread, (fork,))
    assert found == [0]
