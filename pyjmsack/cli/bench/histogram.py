"""Counts times in buckets that are 2 % wide, so that any number of times needs the memory of some hundred numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

__all__ = ["Histogram"]

_SHORTEST = 1e-6
_LONGEST = 86_400.0
_BUCKETS_PER_E = 50
"""The number of buckets from a time to e times this time, so that each bucket ends 2 % above its start."""


class Histogram:
    """Counts times, in seconds. One thread adds to it. When threads are done, their histograms are merged."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.longest = 0.0
        """The longest time. It is exact, unlike the percentiles."""

    def add(self, seconds: float) -> None:
        """Count a time. A time under a microsecond counts as a microsecond, and a time over a day as a day."""
        clipped = min(max(seconds, _SHORTEST), _LONGEST)
        self._buckets[math.floor(math.log(clipped / _SHORTEST) * _BUCKETS_PER_E)] += 1
        self.longest = max(self.longest, seconds)

    def merge(self, other: Histogram) -> None:
        """Add the times of another histogram."""
        self._buckets.update(other._buckets)
        self.longest = max(self.longest, other.longest)

    @property
    def count(self) -> int:
        """The number of measured times."""
        return self._buckets.total()

    def percentile(self, share: float) -> float | None:
        """Return the number of seconds that a share (0 to 1) of the times does not exceed, exact to 2 %. Return
        ``None`` if there are no times.
        """
        wanted, passed = share * self.count, 0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if passed >= wanted:
                return min(_end(bucket), self.longest)
        return None

    def bars(self, number: int) -> Iterator[tuple[float, int]]:
        """Yield at most ``number`` bars, each as the end of its bucket in seconds, and the count. All bars are equally
        wide on a logarithmic scale.
        """
        if not self._buckets:
            return
        first, last = min(self._buckets), max(self._buckets)
        width = max(1, math.ceil((last - first + 1) / number))
        for start in range(first, last + 1, width):
            inside = range(start, start + width)
            yield min(_end(inside[-1]), self.longest), sum(self._buckets[bucket] for bucket in inside)


def _end(bucket: int) -> float:
    return _SHORTEST * math.exp((bucket + 1) / _BUCKETS_PER_E)
