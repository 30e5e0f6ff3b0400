"""Stops at SIGINT and SIGTERM between two steps of the work.

A handler that raises an exception would interrupt any instruction, also in the middle of an acknowledgement. So this
handler sets a flag and wakes the waiting code, and the command reads the flag between two messages. The second signal
ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType

from pyjmsack.cli.errors import Stopped

__all__ = ["Stop", "stop_on_signals", "termination_as_interrupt"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A request to stop, for which code can wait together with files. Handlers and threads may set it."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self.requested = False
        self.signal: int | None = None

    def request(self, signum: int | None = None) -> None:
        """Request a stop as soon as possible."""
        self.requested = True
        self.signal = signum or self.signal
        self.wake()

    def wake(self) -> None:
        """Make :meth:`wait` return, but do not request a stop."""
        # a full pipe wakes the waiting code already; if the pipe is closed, no code waits
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._writer, b"\0")

    def wait(self, timeout: float | None = None, *, readable: int | None = None) -> bool:
        """Wait until a stop, a wake or a readable file descriptor comes.

        Returns:
            Whether the descriptor is readable.
        """
        watched = [self._reader] if readable is None else [self._reader, readable]
        ready, _, _ = select.select(watched, [], [], timeout)
        if self._reader in ready and not self.requested:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)
        return readable in ready

    def fileno(self) -> int:
        """A descriptor for ``poll`` and ``select``, readable from the moment a stop is requested."""
        return self._reader

    def check(self) -> None:
        """Raise an error if a signal stopped the command.

        Raises:
            Stopped: a signal requested the stop.
        """
        if (stopped := self.stopped()) is not None:
            raise stopped

    def stopped(self) -> Stopped | None:
        """Return the error to raise if a signal stopped the command, else ``None``."""
        return None if self.signal is None else Stopped(self.signal)

    def close(self) -> None:
        """Close the file descriptors of this object."""
        os.close(self._reader)
        os.close(self._writer)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Yield a :class:`Stop` that SIGINT and SIGTERM set. The second signal ends the process."""
    stop = Stop()

    def on_signal(signum: int, _: FrameType | None) -> None:
        if stop.signal is not None:
            os._exit(128 + signum)
        stop.request(signum)

    previous = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        stop.close()


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise ``KeyboardInterrupt`` as Ctrl-C does, so that both run the same ``finally`` clauses."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
