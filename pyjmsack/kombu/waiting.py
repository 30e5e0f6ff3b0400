"""Lets a program and the thread of an event loop wait for each other, with threads or with gevent.

gevent replaces the threads, sockets and locks of Python. A thread of Python is then a greenlet, and many greenlets
share one thread of the system, whose hub decides which greenlet runs. An event loop needs a thread of the system for
itself, so this module makes such a thread, and gevent makes a second hub for it. A greenlet that calls the event loop
waits for a watcher, an object by which its own hub learns of the result. The other greenlets run meanwhile. A watcher
is the only part of gevent that another thread of the system may use.
"""

# gevent is not in the extra celery, and is imported only where a program has imported it
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import asyncio
import sys
import threading
from _thread import allocate_lock
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, Protocol

from pyjmsack import UnsupportedFeatureException

__all__ = ["Answer", "Way", "way"]

Run = Callable[[asyncio.AbstractEventLoop], None]


class Gate(Protocol):
    """A flag that the loop sets once, and for which another thread waits."""

    def open(self) -> None:
        """Set the flag. Any thread may call this method."""
        ...

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds for the flag. Return whether the flag is set."""
        ...

    def close(self) -> None:
        """Free what the flag needs of the system."""
        ...


class Way(Protocol):
    """Starts the thread of one event loop, and lets other threads wait for the results of this loop."""

    def start(self, run: Run) -> asyncio.AbstractEventLoop:
        """Start a thread, run a new event loop on it, and return the loop."""
        ...

    def gate(self) -> Gate:
        """Return a new flag for which the caller can wait."""
        ...

    def join(self, timeout: float) -> None:
        """Wait until the thread of the loop has ended. A call on this thread itself does nothing."""
        ...


def way() -> Way:
    """Return the way that fits this process: greenlets if gevent has replaced its threads, otherwise threads.

    Raises:
        UnsupportedFeatureException: eventlet has replaced the threads or the sockets of this process.
    """
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and any(map(eventlet.is_monkey_patched, ("thread", "socket"))):
        raise UnsupportedFeatureException(
            "the pool eventlet of Celery does not work with pyjmsack, because eventlet has replaced the threads of this"
            " process, and each connection needs a thread; use -P gevent or -P threads"
        )
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and any(map(gevent.is_module_patched, ("threading", "socket"))):
        return _Greenlets()
    return _Threads()


class _Threads:
    """Runs the event loop on a thread of Python, and lets other threads wait for its results."""

    def start(self, run: Run) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=run, args=(loop,), name="pyjmsack-kombu", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system refuses new threads
            loop.close()
            raise
        return loop

    def gate(self) -> Gate:
        return _Latch()

    def join(self, timeout: float) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)


class _Latch:
    """A flag that the loop sets once, and for which a thread waits. Only the waiting thread takes the lock. A signal
    handler that raises may leave a ``threading.Condition`` locked for ever, and the loop must not wait for it.
    """

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()

    def open(self) -> None:
        with suppress(RuntimeError):  # the flag is set already
            self._lock.release()

    def wait(self, timeout: float | None) -> bool:
        return self._lock.acquire(True, -1 if timeout is None else min(timeout, threading.TIMEOUT_MAX))

    def close(self) -> None:
        pass


class _Greenlets:
    """Runs the event loop on a thread of the system, and lets greenlets of gevent wait for its results."""

    def __init__(self) -> None:
        self._ident: object = None
        self._over = False
        self._last: _Gate | None = None

    def start(self, run: Run) -> asyncio.AbstractEventLoop:
        from gevent.monkey import get_original

        made: list[asyncio.AbstractEventLoop | BaseException] = []
        gate = _Gate()

        def main() -> None:
            self._ident = get_original("_thread", "get_ident")()
            try:
                loop = asyncio.new_event_loop()  # made on its own thread, because the loop takes the hub of this thread
            except BaseException as error:  # such as too many open files
                made.append(error)
                gate.open()
                return
            made.append(loop)
            gate.open()
            try:
                run(loop)
            finally:
                self._end()

        try:
            get_original("_thread", "start_new_thread")(main, ())
            gate.wait(None)
        finally:
            gate.close()
        if isinstance(made[0], BaseException):
            raise made[0]
        return made[0]

    def _end(self) -> None:
        """Destroy the hub of this thread, and wake the greenlet that waits in :meth:`join`."""
        import gevent

        gevent.get_hub().destroy(destroy_loop=True)
        self._over = True  # before _last is read, because join() writes _last before it reads _over
        if self._last is not None:
            self._last.open()

    def gate(self) -> Gate:
        return _Gate()

    def join(self, timeout: float) -> None:
        from gevent.monkey import get_original

        if timeout <= 0 or self._ident == get_original("_thread", "get_ident")():
            return
        self._last = _Gate()
        if not self._over:
            self._last.wait(timeout)
        self._last.close()


class _Gate:
    """A flag that a thread of the system sets once. A greenlet waits for it, and other greenlets run meanwhile."""

    def __init__(self) -> None:
        import gevent
        from gevent.event import Event

        self._opened = Event()
        self._watcher = gevent.get_hub().loop.async_()
        self._watcher.start(self._opened.set)

    def open(self) -> None:
        """Set the flag. Any thread may call this method."""
        with suppress(Exception):  # no greenlet waits any more, which gevent reports by many errors
            self._watcher.send()

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds for the flag. Return whether the flag is set."""
        return bool(self._opened.wait(timeout))

    def close(self) -> None:
        """Free the watcher, which is the object of gevent that wakes the greenlet when the flag is set."""
        self._watcher.stop()
        self._watcher.close()


class Answer:
    """The result of a coroutine on a loop, for which another thread or greenlet waits.

    Args:
        coroutine: the coroutine. :meth:`start` starts it.
        loop: the loop.
        gate: a new flag for which the caller can wait.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, gate: Gate) -> None:
        self._coroutine, self._loop, self._gate = coroutine, loop, gate
        self._task: asyncio.Task[Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = CancelledError()
        self._cancelled = False

    def start(self) -> None:
        """Start the coroutine on the loop."""
        try:
            self._loop.call_soon_threadsafe(self._begin)
        except RuntimeError:
            if not self._loop.is_closed():  # the error of a signal handler
                raise
            self._gate.open()

    def _begin(self) -> None:
        if self._cancelled:
            self._coroutine.close()
            return
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            self._error = task.exception()
            self._value = task.result() if self._error is None else None
        # the task is freed on this thread, because asyncio then calls a function whose errors Python ignores, also the
        # error of a signal handler of the caller
        self._task = None
        self._gate.open()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result.

        Raises:
            CancelledError: the coroutine, or the loop, has ended.
            TimeoutError: the time is over.
        """
        try:
            if not self._gate.wait(timeout):
                raise TimeoutError(f"the call to the broker took more than {timeout} s")
        finally:
            self._gate.close()
        self._coroutine.close()  # if the loop has ended without it
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error  # its traceback has this frame, which would keep the error alive

    def cancel(self) -> None:
        """End the coroutine, and the wait. A signal handler may have ended :meth:`start` at any step."""
        self._cancelled = True
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)
        self._gate.open()

    def _cancel(self) -> None:
        if self._task is None:
            self._coroutine.close()
        else:
            self._task.cancel()
