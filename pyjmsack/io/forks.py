"""Locks for modules, which also work in a child process made by ``fork``."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["shared_lock"]


def shared_lock() -> AbstractContextManager[Any]:
    """Return a new lock for a module.

    It is free in a child process made by ``fork``, because another thread may hold it at the fork, and that thread does
    not exist in the child. A signal handler in a thread that holds the lock gets it, too.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]  # as the standard library does
    return lock
