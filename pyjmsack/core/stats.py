"""Numbers: the counts of a consumer, and time-outs as callers give them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["ConsumerStats", "seconds"]

LONGEST = 1_000_000_000
"""Seconds, 31 years: well below what locks and event loops take."""


def seconds(timeout: float | timedelta | None) -> float | None:
    """Return a time-out in seconds.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, not a number (NaN), or more than the clocks of the system can count. In Java such
            values mean different things in different clients.
    """
    if timeout is None:
        return None
    value = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"timeout: expected seconds as a number, a timedelta, or None, not {type(timeout).__name__}")
    if not 0 <= value <= LONGEST:
        shown = repr(timeout) if isinstance(value, float) or abs(value) < 10**18 else "of more than 18 digits"
        raise ValueError(f"timeout {shown}: expected seconds from 0 to {LONGEST:,}, or None to wait for ever")
    return value


@dataclass(frozen=True)
class ConsumerStats:
    """Counts of messages of one consumer, since it was created unless said otherwise (S57)."""

    buffered: int
    """Prefetched and not yet handed out, now."""
    delivered: int
    """Handed to the caller, redeliveries included."""
    unacknowledged: int
    """Handed out and not acknowledged yet, now."""
    acknowledged: int
    """Accepted by the caller or for it; in a transaction, before its commit."""
    redelivered: int
    """Handed out with a redelivery count above 0."""
    duplicates_skipped: int
    """Acknowledged without being handed out, as already processed (S105)."""
    expired: int
    """Not handed out, as their time to live was over; the broker expires them, or dead-letters them (S156, S190)."""
    poisoned: int
    """Given up here: they came back too often, could not be decoded, or were rejected; the broker dead-letters or drops
    them, or gives them to others (S111, S118, S166, S190)."""
    stale: int
    """Acknowledged too late, when the connection that delivered them was lost: nothing was sent (S95)."""
