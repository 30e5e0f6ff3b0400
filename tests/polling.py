"""Waiting for what no event tells of: the one place where tests look again and again."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone

__all__ = ["eventually", "expired", "wait_until"]

PATIENCE = 60.0
"""Seconds after which it counts as never. Nothing takes that long when it works."""
PAUSE = 0.005


def wait_until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Block until a condition holds.

    Raises:
        AssertionError: it did not within ``patience`` seconds; the text has the condition's source.
    """
    for pause in _pauses(condition, patience):
        time.sleep(pause)


async def eventually(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """As :func:`wait_until`, in asyncio."""
    for pause in _pauses(condition, patience):
        await asyncio.sleep(pause)


def expired(expiration: datetime | None) -> bool:
    """Whether the clock is past a message's expiration, by more than the broker may round."""
    assert expiration is not None, "a message without a time to live never expires"
    return datetime.now(timezone.utc) > expiration + timedelta(milliseconds=10)


def _pauses(condition: Callable[[], object], patience: float) -> Iterator[float]:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {inspect.getsource(condition).strip()}"
        yield PAUSE
