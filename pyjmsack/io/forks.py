"""Makes locks that also work in a child process made by ``fork``, and calls functions at the beginning of such a
process. Makes the locks of objects that no child process uses, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["own_lock", "shared_lock", "when_forked"]


def when_forked(call: Callable[[], object]) -> None:
    """Call ``call`` in each child process made by ``fork``, before the child goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


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
