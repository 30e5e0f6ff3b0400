"""How the core waits without knowing how its caller waits.

A step generator yields ``(completion, timeout)`` and is sent ``True`` when the completion is done, ``False`` when the
time ran out first. ``yield from`` composes them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from pyjmsack.errors import JMSException, RequestTimedOutException
from pyjmsack.spi.completion import Completion

__all__ = ["Deadline", "Steps", "give_up", "request", "together"]

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


def together(all_steps: Iterable[Steps[None]], deadline: Deadline) -> Steps[None]:
    """Take several at a time, so that the broker is asked by all before anybody waits; for no longer than ``deadline``.

    One that raises ends all: the others are broken off, and clean up.
    """
    under_way = [*all_steps]
    try:
        waits = [(steps, wait) for steps in under_way if (wait := _advance(steps, None)) is not None]
        while waits:
            current, waits = waits, []
            for steps, (completion, timeout) in current:
                left = deadline.remaining()
                limit = left if timeout is None or (left is not None and left < timeout) else timeout
                in_time = completion.done or (yield completion, limit) or completion.done
                wait = _advance(steps, in_time)
                if wait is not None:
                    waits.append((steps, wait))
    finally:
        for steps in under_way:
            steps.close()


def _advance(steps: Steps[None], in_time: bool | None) -> Wait | None:
    """Go on until they wait; ``None`` when they are over."""
    try:
        return next(steps) if in_time is None else steps.send(in_time)
    except StopIteration:
        return None


def give_up(steps: Steps[None]) -> None:
    """Start steps for a caller who is gone, and break them off where they would wait: they clean up."""
    with suppress(StopIteration, JMSException):
        next(steps)
    steps.close()
