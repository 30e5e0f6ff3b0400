"""Locks that outlive a fork."""

from __future__ import annotations

import os
import threading

import pytest

from pyjmsack.io import guard_file, thread
from pyjmsack.io.forks import shared_lock
from pyjmsack.sync import _guard


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("lock", [shared_lock(), thread._lock, guard_file._opening, _guard._replacing])
def test_a_lock_that_another_thread_holds_at_the_fork_is_free_in_the_child(lock: threading.RLock) -> None:
    """Otherwise the first send, or the first connection, of the child would wait for ever."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.acquire(blocking=False) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        over.set()
        holder.join(60)


def test_a_handler_in_the_thread_that_holds_a_lock_gets_it_too() -> None:
    lock = shared_lock()
    with lock, lock:
        pass
