"""The idle time-outs of both sides (AMQP 1.0 2.4.5), without a clock."""

from __future__ import annotations

from typing import Final

from pyjmsack.providers.amqp.engine.frames import EMPTY_FRAME

__all__ = ["LEAST_INTERVAL", "IdleTimes"]

LEAST_INTERVAL: Final = 0.05
"""Seconds: no time-out that a peer announces makes us write more often than that."""


class IdleTimes:
    """Counts bytes, and looks at the counters whenever it is told the time.

    The engine has no clock when bytes arrive. So a byte counts as read at the next look at the time. Silence is found
    late by a quarter of the time-out at most, and never early.

    Args:
        timeout: seconds of silence after which the peer counts as dead, or ``None``.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout or 0.0
        self.read = 0
        """Bytes so far."""
        self.written = 0
        """Bytes so far."""
        self._heard = 0
        self._heard_at: float | None = None
        self._looked_at = 0.0
        self._write_every: float | None = None
        self._said = 0
        self._write_at: float | None = None

    @property
    def announced_ms(self) -> int | None:
        """What to announce in the Open: half of the time-out."""
        return max(1, int(self.timeout * 500)) if self.timeout else None

    def peer_announced(self, milliseconds: int | None) -> None:
        """The peer's Open is here. A frame goes out in each third of its time-out, so that none is two thirds late."""
        if milliseconds:
            self._write_every = max(LEAST_INTERVAL, milliseconds / 3000)

    def silent(self, now: float) -> bool:
        """Whether the peer has been silent for too long; not if we did not look for so long ourselves, as a process
        that was stopped: what it sent may wait in the socket."""
        if not self.timeout:
            return False
        stopped = now - self._looked_at > self.timeout
        self._looked_at = now
        if self._heard_at is None or self.read != self._heard or stopped:
            self._heard, self._heard_at = self.read, now
            return False
        return now - self._heard_at >= self.timeout

    def must_write(self, now: float, *, waiting: bool) -> bool:
        """Whether a frame has to go out now; not if some wait to be written anyway."""
        if self._write_every is None:
            return False
        if self._write_at is not None and now < self._write_at:
            return False
        due = self._write_at is not None and self.written == self._said and not waiting
        self._said = self.written + (len(EMPTY_FRAME) if due else 0)  # that frame is no reason to be silent next time
        self._write_at = now + self._write_every
        return due

    def deadline(self, now: float) -> float | None:
        """Return when to look again."""
        times = [] if self._write_at is None else [self._write_at]
        if self.timeout:
            times.append(now + self.timeout / 4)
        return min(times, default=None)
