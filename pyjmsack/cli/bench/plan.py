"""The plan of a run: its number of messages, its time and its rate. The threads of all clients share the plan."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

__all__ = ["Plan", "Turns"]

_LOOK = 0.2
"""The number of seconds between two checks of the clock, while a client waits for a free turn."""


@dataclass(frozen=True)
class Plan:
    """The options of a run, such as the number of messages, their size and the number of clients."""

    clients: int
    size: int
    """The number of bytes of each body."""
    count: int | None
    seconds: float | None
    rate: float | None
    """The number of messages a second, for all clients together. ``None`` means as fast as possible."""
    persistent: bool = True


class Turns:
    """Gives each message its turn, until all messages had their turns, the time is over, or the run ends.

    With a rate, each turn is due at a moment. A client that takes a turn late measures from this moment, so that the
    measured time includes the delay. Otherwise a broker that stood still for a second would look fast, because nothing
    was sent in this second.
    """

    def __init__(self, count: int | None, seconds: float | None, rate: float | None) -> None:
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._count = count
        self._gap = 1 / rate if rate else 0.0
        self._seconds = seconds
        self._given = 0
        self._kept = 0
        self._began = time.monotonic()

    def begin(self) -> None:
        """Start the clock. Call this method once, before the first turn."""
        self._began = time.monotonic()

    def end(self) -> None:
        """Give no more turns, and wake the callers that wait for a turn."""
        self._ended.set()

    @property
    def ended(self) -> bool:
        """Whether :meth:`end` was called."""
        return self._ended.is_set()

    @property
    def over(self) -> bool:
        """Whether nobody gets a turn any more."""
        return self.time_over or (self._count is not None and self._given >= self._count)

    @property
    def time_over(self) -> bool:
        """Whether the time is over, or :meth:`end` was called. The number of turns that are left does not matter."""
        return self.ended or self._late(time.monotonic())

    def next(self, *, keep: bool = False) -> float | None:
        """Wait for the next turn. Return the moment at which this turn was due, in seconds of the monotonic clock.
        Return ``None`` if there are no more turns.

        Args:
            keep: whether the caller will call :meth:`settle`, to report whether it used the turn. A turn that was not
                used goes to another caller with ``keep``. Therefore a caller with ``keep`` waits after the last turn
                was taken, until all other callers have reported.
        """
        with self._changed:
            while keep and self._kept and self.over and not self.time_over:
                self._changed.wait(_LOOK)
            if self.over:
                return None
            number = self._given
            self._given += 1
            self._kept += keep
        if not self._gap:
            return time.monotonic()
        moment = self._began + number * self._gap
        if self._late(moment):
            return None
        if (left := moment - time.monotonic()) > 0:
            self._ended.wait(left)
        return None if self.ended else moment

    def settle(self, *, used: bool) -> None:
        """End a turn that was taken with ``keep``. If the caller did not use the turn, another caller gets the turn."""
        with self._changed:
            self._kept -= 1
            self._given -= not used
            self._changed.notify_all()

    def _late(self, moment: float) -> bool:
        return self._seconds is not None and moment - self._began >= self._seconds
