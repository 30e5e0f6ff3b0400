"""The counts of a consumer, and time limits as callers give them."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from pyjmsack.types import AckType, PossiblyMillisecondsWarning

__all__ = ["ConsumerStats", "Counts", "seconds", "warn_of_milliseconds"]

LONGEST = 1_000_000_000
"""The longest time limit in seconds, about 31 years. Locks and event loops can wait even longer."""


_LIKE_MILLISECONDS = 1000


def seconds(timeout: float | timedelta | None) -> float | None:
    """Return a time limit in seconds.

    Args:
        timeout: seconds, a ``timedelta``, or ``None`` for no limit.

    Raises:
        TypeError: ``timeout`` is none of these.
        ValueError: ``timeout`` is negative, NaN or above 1,000,000,000 seconds. Such values are refused, because they
            mean different things in different Java clients.
    """
    if timeout is None:
        return None
    value = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"timeout: expected seconds as a number, a timedelta, or None, not {type(timeout).__name__}")
    if not 0 <= value <= LONGEST:
        shown = repr(timeout) if isinstance(value, float) or abs(value) < 10**18 else "of more than 18 digits"
        raise ValueError(f"timeout {shown}: expected seconds from 0 to {LONGEST:,}, or None to wait for ever")
    if value >= _LIKE_MILLISECONDS and isinstance(timeout, int):
        warn_of_milliseconds("a time-out", timeout)
    return value


def warn_of_milliseconds(what: str, value: int) -> None:
    """Warn the caller of this library, once for each line of the caller's code, that a time is in seconds."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pyjmsack":
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{what} of {value} is in seconds ({timedelta(seconds=value)}), but in Java it would be in milliseconds; write"
        f" {value / 1000:.15g} if {value} ms were meant, or give a timedelta",
        PossiblyMillisecondsWarning,
        stacklevel=level,
    )


@dataclass(frozen=True)
class ConsumerStats:
    """The numbers of messages of one consumer (S57). A number counts from the creation of the consumer, except
    ``buffered`` and ``unacknowledged``, which are the present numbers."""

    buffered: int
    """The messages that are prefetched now and not yet handed out."""
    delivered: int
    """The messages that were handed out. A redelivery counts again."""
    unacknowledged: int
    """The messages that the caller holds now and that are not acknowledged yet."""
    acknowledged: int
    """The messages that the caller acknowledged, or that were acknowledged automatically. In a transaction, messages
    count before the commit."""
    redelivered: int
    """The messages that were handed out with a redelivery count above 0."""
    duplicates_skipped: int
    """The messages that were acknowledged and not handed out, because they were processed before (S105)."""
    expired: int
    """The messages that were not handed out, because their time to live was over. The broker expires these messages or
    makes them dead letters (S156, S190)."""
    poisoned: int
    """The messages that this consumer gave up, because they were delivered too often, could not be decoded, or were
    rejected. The broker makes these messages dead letters, drops them, or delivers them to other consumers (S111, S118,
    S166, S190)."""
    stale: int
    """The messages that the caller acknowledged too late. No acknowledgement was sent, because the connection that
    delivered them was lost (S95)."""


class Counts:
    """The counters of one consumer."""

    __slots__ = ("acknowledged", "acknowledged_late", "delivered", "ended", "redelivered", "refused", "skipped", "torn")

    def __init__(self) -> None:
        self.delivered = self.redelivered = 0
        self.acknowledged = self.acknowledged_late = 0
        self.skipped = 0
        """The messages that were acknowledged without being handed out, because they were processed before."""
        self.refused = 0
        """The messages that were refused for ever. This consumer does not get these messages again."""
        self.torn = 0
        self.ended: Counter[AckType] = Counter()
        """The number of messages that ended without being accepted, for each kind of acknowledgement, which tells the
        reason (S190)."""

    @property
    def gone(self) -> int:
        """The number of messages that arrived and that this consumer never hands out."""
        return self.skipped + self.refused

    def stats(self, *, buffered: int, unacknowledged: int) -> ConsumerStats:
        """Return the counts now."""
        return ConsumerStats(
            buffered=buffered,
            delivered=self.delivered,
            unacknowledged=unacknowledged,
            acknowledged=self.acknowledged,
            redelivered=self.redelivered,
            duplicates_skipped=self.skipped,
            expired=self.ended[AckType.EXPIRED],
            poisoned=self.ended[AckType.POISON],
            stale=self.acknowledged_late,
        )
