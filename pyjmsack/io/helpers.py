"""Threads for work that may wait long, such as work on files and lookups of host names, so that no loop waits.

The executor of a loop must not do such work. Its few threads would serve everything: if the name server did not answer,
lookups would occupy all these threads, and then no connection could write a file or compute a digest. Therefore each
connection has its own helper threads, with separate threads for each kind of work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from pyjmsack.loggers import get_logger

__all__ = ["MOST_DIGESTS", "Helpers"]

log = get_logger("pyjmsack.io")

MOST_DIGESTS = 2
"""The largest number of threads with which one connection computes digests of large messages."""
_AGAIN = 0.1
"""Seconds until the next try after the system refused to start a thread."""
T = TypeVar("T")


class Helpers:
    """The helper threads of one connection for one kind of work. All methods are called on the loop.

    A thread starts for one piece of work and ends after this work, and therefore nobody has to stop a thread. A child
    process made by ``fork`` has its own loops, and therefore its own helpers.

    Args:
        name: the name of the threads.
        most: the largest number of threads. Further work waits in line.
        daemon: whether the process may end before the work is done.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, most: int, *, daemon: bool = True) -> None:
        self._loop = loop
        self._name = name
        self._most = most
        self._daemon = daemon
        self._waiting: dict[asyncio.Future[Any], Callable[[], Any]] = {}
        self._busy = 0
        """The number of threads that run now."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def free(self) -> bool:
        """True if a thread is free, so that the next work would start at once."""
        return self._busy < self._most and not self._waiting

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Let a thread run ``work``, and return a future of the result. If the future is cancelled before the work has
        begun, the work is dropped. If the work raises ``StopIteration``, the future raises ``RuntimeError``.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting[future] = work
        future.add_done_callback(self._forget)
        self._begin()
        return future

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Let a thread run ``work``. Then call ``then`` on the loop, also if ``work`` raised. Its error is logged."""

        def ended(future: asyncio.Future[None]) -> None:
            error = None if future.cancelled() else future.exception()
            then()
            if error is not None:  # otherwise asyncio would log the error whenever the garbage collection comes
                log.error("work on a thread %s failed", self._name, exc_info=error)

        self.run(work).add_done_callback(ended)

    def _forget(self, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(future, None)

    def _begin(self) -> None:
        """Start threads for the work that waits, up to the largest number of threads."""
        self._timer = None
        while self._waiting and self._busy < self._most:
            future, work = next(iter(self._waiting.items()))
            if not future.done():  # otherwise it was cancelled just now
                thread = threading.Thread(target=self._do, args=(future, work), name=self._name, daemon=self._daemon)
                try:
                    thread.start()
                except RuntimeError:  # the system refuses new threads: try again after a while, and when a thread ends
                    if self._timer is None:
                        self._timer = self._loop.call_later(_AGAIN, self._begin)
                    return
                self._busy += 1
            self._forget(future)

    def _end(self, future: asyncio.Future[T], result: T, error: BaseException | None) -> None:
        self._busy -= 1
        self._begin()
        if not future.done():
            if error is None:
                future.set_result(result)
            elif isinstance(error, StopIteration):  # a future of asyncio refuses it, and would never be done
                wrapped = RuntimeError(f"the work on a thread {self._name} raised StopIteration")
                wrapped.__cause__ = error
                future.set_exception(wrapped)
            else:
                future.set_exception(error)

    # -- the threads --------------------------------------------------------------------------------------------

    def _do(self, future: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        try:
            result = work()
        except BaseException as error:  # the loop has to know that this thread ends, whatever the work raised
            self._tell(future, None, error)
        else:
            self._tell(future, result, None)

    def _tell(self, future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(self._end, future, result, error)
