"""The idle time-outs of both sides (AMQP 1.0 2.4.5), without a clock."""

from __future__ import annotations

from typing import Final

from pyjmsack.providers.amqp.engine.frames import EMPTY_FRAME

__all__ = ["LEAST_INTERVAL", "IdleTimes"]

LEAST_INTERVAL: Final = 0.05
"""The shortest time in seconds between two empty frames, even if the peer announces a shorter time-out."""


class IdleTimes:
    """Counts bytes, and compares the counters whenever the caller tells the time.

    The engine has no clock when bytes arrive. Therefore a byte counts as read at the moment when the caller tells the
    time again. The engine never reports a silent peer too early. It reports a silent peer too late by at most a quarter
    of the time-out.

    Args:
        timeout: seconds without bytes of the peer after which the connection counts as lost. ``None`` means no limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout or 0.0
        self.read = 0
        """The number of bytes that were read so far."""
        self.written = 0
        """The number of bytes that were written so far."""
        self._heard = 0
        self._heard_at: float | None = None
        self._looked_at = 0.0
        self._write_every: float | None = None
        self._said = 0
        self._write_at: float | None = None

    @property
    def announced_ms(self) -> int | None:
        """The time-out for our Open frame in milliseconds, which is half of the time-out that this client applies.
        ``None`` means no time-out."""
        return max(1, int(self.timeout * 500)) if self.timeout else None

    def peer_announced(self, milliseconds: int | None) -> None:
        """Remember the time-out in the peer's Open frame. From now on this client sends at least one frame in each
        third of this time."""
        if milliseconds:
            self._write_every = max(LEAST_INTERVAL, milliseconds / 3000)

    def silent(self, now: float) -> bool:
        """Return True if the peer has sent nothing for too long.

        If this method was not called for longer than the time-out, the result is False. In this case the process itself
        was stopped, and bytes of the peer may wait in the socket.
        """
        if not self.timeout:
            return False
        stopped = now - self._looked_at > self.timeout
        self._looked_at = now
        if self._heard_at is None or self.read != self._heard or stopped:
            self._heard, self._heard_at = self.read, now
            return False
        return now - self._heard_at >= self.timeout

    def must_write(self, now: float, *, waiting: bool) -> bool:
        """Return True if an empty frame has to be sent now. If other frames wait to be written, no empty frame is
        needed."""
        if self._write_every is None:
            return False
        if self._write_at is not None and now < self._write_at:
            return False
        due = self._write_at is not None and self.written == self._said and not waiting
        self._said = self.written + (len(EMPTY_FRAME) if due else 0)  # the empty frame does not count as other output
        self._write_at = now + self._write_every
        return due

    def deadline(self, now: float) -> float | None:
        """Return the time of the next check. ``None`` means that no check is needed."""
        times = [] if self._write_at is None else [self._write_at]
        if self.timeout:
            times.append(now + self.timeout / 4)
        return min(times, default=None)
