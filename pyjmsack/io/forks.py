"""Makes locks that also work in a child process made by ``fork``, and calls functions at the beginning of such a
process and at the end of one of ``multiprocessing``. Makes the locks of objects that no child process uses, too.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["at_end_of_child", "own_lock", "shared_lock", "when_forked"]

_at_end: set[tuple[int, Callable[[], object]]] = set()
"""The functions for the end of a process, each with the number of this process."""


def when_forked(call: Callable[[], object]) -> None:
    """Call ``call`` in each child process made by ``fork``, before the child goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def at_end_of_child(call: Callable[[], object]) -> None:
    """Call ``call`` at the end of this process, if it is a child process of ``multiprocessing``, as those of
    ``ProcessPoolExecutor`` are. Such a process ends without the functions of ``atexit``, unless it was spawned. A
    second call with the same function has no effect.
    """
    process = sys.modules.get("multiprocessing.process")
    key = (os.getpid(), call)
    if process is not None and process.parent_process() is not None and key not in _at_end:
        _at_end.add(key)
        from multiprocessing.util import Finalize  # most programs do not need this module

        Finalize(None, call, exitpriority=-100)  # after the functions of the program


def shared_lock() -> AbstractContextManager[Any]:
    """Return a new lock for a module.

    In a child process made by ``fork`` the lock is free, even if a thread of the parent held the lock at the moment of
    the fork. This thread does not exist in the child, so nobody could release the lock there. The lock is reentrant: a
    signal handler gets the lock even if its thread holds the lock already.
    """
    lock = threading.RLock()
    when_forked(lock._at_fork_reinit)  # type: ignore[attr-defined]  # as the standard library does
    return lock


def own_lock() -> AbstractContextManager[Any]:
    """Return a new lock for an object of a connection, which no child process uses. The lock is reentrant."""
    return threading.RLock()
