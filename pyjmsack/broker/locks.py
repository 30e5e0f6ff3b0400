"""Locks between processes. The kernel releases a lock when the process that holds it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """An exclusive ``flock`` on a file that has no other use.

    The file is never removed, because another process may already have opened it to wait for the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, *, wait: bool) -> bool:
        """Take the lock. With ``wait=False`` return ``False`` at once if another holder has the lock. A second call on
        the same object has no effect.

        Raises:
            OSError: the file cannot be opened, or its file system does not support locks.
        """
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock. If this object does not hold the lock, do nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
