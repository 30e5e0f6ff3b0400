"""The private loop of the blocking face: one daemon thread a process, while there is a connection.

Keyed by process id: a child made by ``fork`` has no copy of the thread, so it starts its own (Spark workers fork).
"""

from __future__ import annotations

import asyncio
import os
import threading

__all__ = ["LoopThread", "acquire"]


class LoopThread:
    """A running event loop on a thread of its own, counted by its users."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.users = 0
        self._thread = threading.Thread(target=self._run, name="pyjmsack-io", daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """Identity of the loop's thread."""
        return self._thread.ident

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):  # a stream that was still being opened
                task.cancel()
                self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def release(self) -> None:
        """One user less; the last one stops the thread and waits for it (S123)."""
        with _lock:
            self.users -= 1
            if self.users > 0 or self.pid != os.getpid():
                return
            _threads.pop(self.pid, None)
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.get_ident() != self._thread.ident:
            self._thread.join()


_threads: dict[int, LoopThread] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    """A child starts with a new lock, because another thread of the parent may have held the old one at the fork."""
    global _lock
    _lock = threading.Lock()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def acquire() -> LoopThread:
    """Return this process's loop thread, started if there is none; pair it with ``release``."""
    with _lock:
        thread = _threads.get(os.getpid())
        if thread is None:
            thread = _threads[os.getpid()] = LoopThread()
        thread.users += 1
        return thread
