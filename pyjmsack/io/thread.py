"""The event loop of the blocking interface. It runs on one daemon thread of the process while there is a connection.

The loop is stored under the process id. A child process made by ``fork``, such as a Spark worker, has no copy of the
thread. Therefore the child starts a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyjmsack.errors import ConnectionLostException
from pyjmsack.io.forks import shared_lock
from pyjmsack.io.lines import LogLines
from pyjmsack.loggers import divert, get_logger

__all__ = ["LoopThread", "acquire"]

log = get_logger("pyjmsack.io")
Tell = Callable[[ConnectionLostException], None]
_LAST_TURNS = 3
"""The number of turns that a broken loop still makes, if it can. An aborted socket is closed in the next turn, and a
cancelled task needs two turns."""


class LoopThread:
    """An event loop that runs on its own thread, with a count of its users."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_report)
        self.users = 0
        self.ended = False
        """Whether the loop runs nothing more."""
        self._stopping = False
        self._when_lost: list[weakref.WeakMethod[Tell]] = []
        self._thread = threading.Thread(target=self._run, name="pyjmsack-io", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system refuses new threads
            self.loop.close()
            raise

    def runs_here(self) -> bool:
        """Whether the caller is on the thread of the loop. After the end of that thread, the system may give its number
        to another thread."""
        return not self.ended and threading.get_ident() == self._thread.ident

    def _run(self) -> None:
        lines = LogLines()
        divert(lines.write)
        try:
            self._run_loop()
        finally:
            divert(None)
            lines.close()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            error = self._run_on()
            if error is not None:
                self._lose(error)
                self._close_sockets()
                return
            for task in asyncio.all_tasks(self.loop):  # for example, a task that still opens a stream
                task.cancel()
                self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.ended = True
            with suppress(OSError):  # the program has closed the file descriptors of the loop
                self.loop.close()

    def _close_sockets(self) -> None:
        """Close the sockets of the connections that are lost with the loop, if the loop can still do it."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        with suppress(Exception):
            for _ in range(_LAST_TURNS):
                self.loop.call_soon(self.loop.stop)
                self.loop.run_forever()

    def _run_on(self) -> BaseException | None:
        """Run the loop until the last user has left. Return the error if the loop cannot go on.

        asyncio lets ``SystemExit`` and ``KeyboardInterrupt`` of a callback end the loop (S127). Only code of a program
        raises them here, such as a hook for warnings. On this thread they do not end the program, but they would end
        all its connections. So the loop goes on with the next callback. After any other error the loop itself is
        broken, for example because the program has closed its file descriptors.
        """
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                log.error("code of the program raised on the I/O thread, which goes on", exc_info=error)
                if self._stopping:
                    return None
            except BaseException as error:
                return error
            else:
                return None

    def _lose(self, error: BaseException) -> None:
        """Tell all connections that the loop has ended, and let the next connection start another loop."""
        text = f"the I/O thread has ended ({type(error).__name__}: {error}); make a new connection"
        lost = ConnectionLostException(text)
        lost.__cause__ = error
        with _lock:
            self.ended = True
            if _threads.get(self.pid) is self:
                del _threads[self.pid]
            told, self._when_lost = self._when_lost, []
        for reference in told:
            tell = reference()
            try:
                if tell is not None:
                    tell(lost)
            except BaseException as another:  # the other connections must be told
                log.error("a connection could not be told that the I/O thread has ended", exc_info=another)
        log.error("%s", text, exc_info=error)

    def when_lost(self, tell: Tell) -> None:
        """Call ``tell``, a method, on the loop's thread if the loop ends although it has users. Its object is not kept
        alive.

        Raises:
            ConnectionLostException: the loop has ended already.
        """
        with _lock:
            if self.ended:
                raise ConnectionLostException("the I/O thread has ended; make a new connection")
            self._when_lost.append(weakref.WeakMethod(tell))

    def release(self) -> None:
        """Remember that one user has left. After the last user, stop the thread and wait for its end (S123)."""
        with _lock:
            self._when_lost = [tell for tell in self._when_lost if tell() is not None]
            self.users -= 1
            if self.users > 0 or self.pid != os.getpid():
                return
            self._stopping = True
            if _threads.get(self.pid) is self:
                del _threads[self.pid]
        with suppress(RuntimeError):  # the loop has ended before
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.get_ident() != self._thread.ident:
            self._thread.join()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of a callback. The logger of asyncio would raise the errors of the program's logging."""
    log.error("%s", context.get("message"), exc_info=context.get("exception"))


_threads: dict[int, LoopThread] = {}
_lock = shared_lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.clear)


def acquire() -> LoopThread:
    """Return the loop thread of this process, and start it if there is none. The caller must call ``release`` later."""
    pid = os.getpid()
    with _lock:
        while True:
            thread = _threads.get(pid) or _threads.setdefault(pid, LoopThread())
            thread.users += 1
            # if the thread is another one now, a signal handler in this thread has closed the last connection meanwhile
            if _threads.get(pid) is thread:
                return thread
