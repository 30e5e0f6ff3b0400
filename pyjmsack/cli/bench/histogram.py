"""Counts durations in buckets, each of which ends 2 % above its start. So a histogram of any number of durations needs
only the memory of some hundred numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

__all__ = ["Histogram"]

_SHORTEST = 1e-6
_LONGEST = 86_400.0
_BUCKETS_PER_E = 50
"""The number of buckets between a duration and e times this duration. With 50 buckets, each one ends 2 % above its
start."""


class Histogram:
    """Counts durations in seconds. Each thread has a histogram of its own. The histograms are merged at the end."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.longest = 0.0
        """The longest duration in seconds. This number is exact, unlike the percentiles."""

    def add(self, seconds: float) -> None:
        """Count a duration. Less than a microsecond counts as a microsecond, and more than a day counts as a day."""
        clipped = min(max(seconds, _SHORTEST), _LONGEST)
        self._buckets[math.floor(math.log(clipped / _SHORTEST) * _BUCKETS_PER_E)] += 1
        self.longest = max(self.longest, seconds)

    def merge(self, other: Histogram) -> None:
        """Add all durations of another histogram to this one."""
        self._buckets.update(other._buckets)
        self.longest = max(self.longest, other.longest)

    @property
    def count(self) -> int:
        """The number of counted durations."""
        return self._buckets.total()

    def percentile(self, share: float) -> float | None:
        """Return the smallest duration in seconds that is not exceeded by ``share`` (0 to 1) of all durations.

        The result is exact to 2 %. Return ``None`` if nothing was counted.
        """
        wanted, passed = share * self.count, 0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if passed >= wanted:
                return min(_end(bucket), self.longest)
        return None

    def bars(self, number: int) -> Iterator[tuple[float, int]]:
        """Yield at most ``number`` bars for a chart. Each bar is a pair: its upper end in seconds, and the number of
        durations in the bar. All bars are equally wide on a logarithmic scale.
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
