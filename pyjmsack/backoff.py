"""Computes how long a service waits before it opens a connection of an ``App`` again, or starts a process of
``pyjmsack run`` again.

The waits of ``failover:`` URLs are in ``providers/failover/search.py``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

__all__ = ["Backoff"]

_FIRST: Final = 1.0
_LONGEST: Final = 30.0
_CALM: Final = 60.0


class Backoff:
    """Computes the wait after a failure. The waits grow from 1 to 30 seconds, each twice as long as the wait before.

    Each wait is shortened at random, by at most a quarter. After a minute without a failure the waits begin with 1
    second again.

    Args:
        clock: returns the present moment in seconds; a test may replace it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wait = _FIRST
        self._last = -_CALM

    def after_failure(self) -> float:
        """Remember a failure, and return the seconds to wait before the next try."""
        now = self._clock()
        if now - self._last > _CALM + self._wait:
            self._wait = _FIRST
        self._last = now
        wait, self._wait = self._wait, min(self._wait * 2, _LONGEST)
        return wait * random.uniform(0.75, 1.0)  # noqa: S311 - spreads the clients, no secret
