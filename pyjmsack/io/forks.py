"""Locks for modules, which also work in a child process made by ``fork``."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["shared_lock"]


def shared_lock() -> AbstractContextManager[Any]:
    """Return a new lock for a module.

    In a child process made by ``fork`` the lock is free. Otherwise a thread could hold the lock at the moment of the
    fork, and this thread does not exist in the child. The lock is reentrant: a signal handler gets the lock even if its
    thread holds the lock already.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]  # as in the standard library
    return lock
