"""The thread that writes the log lines of an I/O thread.

A handler of the program's logging may wait, for a mail server or for a pipe that nobody reads. If a handler waited on
the I/O thread, all connections would wait.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Final

from pyjmsack.loggers import get_logger

__all__ = ["LogLines"]

log = get_logger("pyjmsack.io")
_MOST_LINES: Final = 1_000
"""The largest number of lines that wait for the handlers. Further lines are dropped."""
_MOST_CHARACTERS: Final = 8_388_608
"""The largest number of characters of all lines that wait. A line that would be the only one may be longer."""
_USUAL: Final = 0.01
"""The seconds in which a line is usually written. They do not count as waiting."""
_PATIENCE: Final = 0.3
"""The largest number of seconds that the I/O thread waits for the handlers at a time."""
_SHARE: Final = 0.05
"""The largest share of its time that the I/O thread waits for slow handlers."""


class LogLines:
    """Writes the lines of one I/O thread in their order, on a thread that starts with the first line.

    The I/O thread waits until its line is written, so that the lines of all threads are in order. If the handlers are
    slow, the I/O thread goes on, and its lines wait. All methods are called on the I/O thread.
    """

    def __init__(self) -> None:
        self._lines: SimpleQueue[tuple[Callable[[], None], int, threading.Event] | None] = SimpleQueue()
        self._taken = 0
        """The characters of all lines so far. Only the I/O thread writes this number."""
        self._written = 0
        """The characters of all lines that are written. Only the thread of the lines writes this number."""
        self._thread: threading.Thread | None = None
        self._patience = _PATIENCE
        self._seen = time.monotonic()
        self._dropped = 0

    def write(self, line: Callable[[], None], length: int) -> None:
        """Let the thread call ``line``, which writes a line of ``length`` characters and raises nothing. If the system
        refuses new threads, call ``line`` here.
        """
        waiting = self._taken - self._written
        if self._lines.qsize() >= _MOST_LINES or (waiting and waiting + length > _MOST_CHARACTERS):
            self._dropped += 1
            return
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="pyjmsack-log", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system refuses new threads
                line()
                return
            self._thread = thread
        written = threading.Event()
        self._taken += length
        self._lines.put((partial(contextvars.copy_context().run, line), length, written))
        self._wait(written.wait)

    def close(self) -> None:
        """End the thread when it has written the lines that wait. Wait for its end as long as for a line."""
        if self._thread is not None:
            self._lines.put(None)
            self._wait(self._thread.join)

    def _wait(self, wait: Callable[[float], object]) -> None:
        begun = time.monotonic()
        self._patience = min(_PATIENCE, self._patience + (begun - self._seen) * _SHARE)
        if self._patience > 0:
            wait(self._patience)
        self._seen = time.monotonic()
        self._patience -= max(0.0, self._seen - begun - _USUAL)

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        told = 0
        while (taken := self._lines.get()) is not None:
            line, length, written = taken
            line()
            self._written += length
            written.set()
            if (dropped := self._dropped - told) > 0:
                told += dropped
                log.warning("%d lines of the log were dropped, because the handlers of the logging are slow", dropped)
