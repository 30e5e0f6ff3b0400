"""The event loop of the blocking interface. It runs on one daemon thread of the process while there is a connection.

The loop is stored under the process id. A child process made by ``fork``, such as a Spark worker, has no copy of the
thread. Therefore the child starts a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading

from pyjmsack.io.forks import shared_lock

__all__ = ["LoopThread", "acquire"]


class LoopThread:
    """An event loop that runs on its own thread, with a count of its users."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.users = 0
        self._thread = threading.Thread(target=self._run, name="pyjmsack-io", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system refuses new threads
            self.loop.close()
            raise

    @property
    def ident(self) -> int | None:
        """The identifier of the loop's thread."""
        return self._thread.ident

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):  # for example, a task that still opens a stream
                task.cancel()
                self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def release(self) -> None:
        """Remember that one user has left. After the last user, stop the thread and wait for its end (S123)."""
        with _lock:
            self.users -= 1
            if self.users > 0 or self.pid != os.getpid():
                return
            _threads.pop(self.pid, None)
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.get_ident() != self._thread.ident:
            self._thread.join()


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
