"""How the core waits without knowing how its caller waits.

A step generator yields ``(completion, timeout)`` and is sent ``True`` when the completion is done, ``False`` when the
time ran out first. ``yield from`` composes them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from pyjmsack.errors import JMSException, RequestTimedOutException
from pyjmsack.spi.completion import Completion

__all__ = ["Deadline", "Steps", "give_up", "request"]

T = TypeVar("T")
Wait = tuple[Completion[Any], "float | None"]
Steps = Generator[Wait, bool, T]


class Deadline:
    """A point of monotonic time shared by the steps of one operation; ``None`` seconds means never."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else monotonic() + seconds

    def remaining(self) -> float | None:
        """Return seconds left, never negative, or ``None``."""
        return None if self._at is None else max(0.0, self._at - monotonic())

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self._at is not None and monotonic() >= self._at


def request(completion: Completion[T], timeout: float | None, what: str, option: str) -> Steps[T]:
    """Wait for the answer to a request.

    Raises:
        RequestTimedOutException: none came in ``timeout`` seconds; the text names ``option``.
        JMSException: the request failed.
    """
    if not completion.done and not (yield completion, timeout) and not completion.done:
        raise RequestTimedOutException(f"{what}: no answer within {option} ({timeout:g} s)")
    return completion.result()


def give_up(steps: Steps[None]) -> None:
    """Start steps for a caller who is gone, and break them off where they would wait: they clean up."""
    with suppress(StopIteration, JMSException):
        next(steps)
    steps.close()
