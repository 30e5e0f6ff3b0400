"""A broker's directory, and the process that works in it. No second broker can use the directory meanwhile."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.locks import FileLock
from pyjmsack.broker.process import BrokerProcess

__all__ = ["Workspace"]


class Workspace:
    """The directory of a broker, and the process that works in it.

    Args:
        kept: a directory that stays; ``None`` makes a temporary one.
        stop_timeout: seconds to wait for the end of the broker, before it is killed.
    """

    def __init__(self, kept: Path | None, stop_timeout: float) -> None:
        self._temporary = kept is None
        self._stop_timeout = stop_timeout
        self._owner = os.getpid()
        if kept is None:
            self.directory = Path(tempfile.mkdtemp(prefix="pyjmsack-broker-")).resolve()
        else:
            kept.mkdir(parents=True, exist_ok=True)
            self.directory = kept
        self.process = BrokerProcess(self.directory if self._temporary else None)
        self._lock = FileLock(self.directory / "pyjmsack.lock")

    def claim(self) -> None:
        """Reserve the directory until :meth:`terminate`, :meth:`kill` or :meth:`close`. Otherwise a second broker in
        the same directory would wait for ever.

        Raises:
            BrokerError: another broker works in this directory.
        """
        if not self._lock.acquire(wait=False):
            raise BrokerError(
                f"{self.directory} is in use by another embedded broker; "
                "stop that broker first, or give another data_dir."
            )

    def terminate(self) -> None:
        """End the broker in an orderly way, and keep the directory."""
        self.process.terminate(self._stop_timeout)
        self._lock.release()

    def kill(self) -> None:
        """Kill the broker, and keep the directory."""
        self.process.kill()
        self._lock.release()

    def close(self) -> None:
        """End the broker. Remove the directory if it is a temporary one."""
        if os.getpid() != self._owner:
            return  # a forked child of the owner must not end the broker
        self.terminate()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)
