"""Lets the core wait without knowing how its caller waits.

A step generator yields ``(completion, timeout)``. The face then waits, and sends ``True`` into the generator when the
completion is done, or ``False`` if the time runs out first. ``yield from`` composes generators. There are two ways to
wait for the broker: :func:`answered` waits for the answer to a request, and :func:`ended` waits for a close.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from pyjmsack.errors import JMSException, RequestTimedOutException
from pyjmsack.loggers import get_logger
from pyjmsack.spi.completion import Completion

__all__ = ["TURN", "Deadline", "Steps", "answered", "ended", "give_up", "together", "turn"]

log = get_logger("pyjmsack")
T = TypeVar("T")
Wait = tuple[Completion[Any], "float | None"]
Steps = Generator[Wait, bool, T]
TURN = 0.01
"""Seconds for which calls that need not wait go on. Then, in asyncio, the loop has a turn, because other tasks wait."""


class Deadline:
    """The moment at which one operation must be over. All steps of the operation share this object.

    Args:
        seconds: the time from now; ``None`` means no limit.
        option: the name of the option that sets this time, for error texts.
    """

    __slots__ = ("_at", "_option", "_seconds")

    def __init__(self, seconds: float | None, option: str = "") -> None:
        self._at = None if seconds is None else monotonic() + seconds
        self._seconds = seconds
        self._option = option

    def remaining(self) -> float | None:
        """Return the seconds that are left, never negative; ``None`` without a limit."""
        return None if self._at is None else max(0.0, self._at - monotonic())

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return self._at is not None and monotonic() >= self._at

    def extended(self, seconds: float) -> Deadline:
        """Return a deadline this many seconds later. Two calls return the same moment."""
        later = Deadline(self._seconds, self._option)
        later._at = None if self._at is None else self._at + seconds
        return later

    def __str__(self) -> str:
        return f"{self._option} ({self._seconds or 0:g} s)"


def turn() -> Steps[None]:
    """Let the loop have a turn in asyncio. A thread goes on at once. Call this while no message is on its way to the
    caller, because a cancellation may come meanwhile."""
    yield Completion(), 0


def answered(
    done: Completion[T], deadline: Deadline, what: str, *, undo: Callable[[], object] | None = None
) -> Steps[T]:
    """Wait for the answer to a request.

    Args:
        done: the completion of the answer.
        deadline: the end of the wait.
        what: the request in words, for the error.
        undo: called if the caller does not get the answer and the request may still succeed.

    Raises:
        RequestTimedOutException: no answer came in time. The text names the option of the deadline.
        JMSException: the request failed.
    """
    try:
        if not done.done and not (yield done, deadline.remaining()) and not done.done:
            raise RequestTimedOutException(f"{what}: no answer within {deadline}")
        return done.result()
    except BaseException:
        if undo is not None and done.error is None:
            undo()
        raise


def ended(done: Completion[None], deadline: Deadline, what: str) -> Steps[None]:
    """Wait until an object is closed. A failed close, or a broker that never answers, is not an error (S123)."""
    yield done, deadline.remaining()
    if not done.done:
        log.warning("%s: no answer within jms.closeTimeout; the client does not wait longer", what)
    elif done.error is not None:
        log.debug("%s: %s", what, done.error)


def together(all_steps: Iterable[Steps[None]], deadline: Deadline) -> Steps[None]:
    """Run several step generators at the same time, until ``deadline``. All of them send their requests before the
    first one waits. If one generator raises an error, the other generators are closed, and clean up.

    A wait that has no limit of its own gets no limit from the deadline either. Such a wait is short, because only the
    loop has to do something, and the steps after the wait rely on it being done.
    """
    under_way = [*all_steps]
    try:
        waits = [(steps, wait) for steps in under_way if (wait := _advance(steps, None)) is not None]
        while waits:
            current, waits = waits, []
            for steps, (completion, timeout) in current:
                left = deadline.remaining()
                limit = left if timeout is not None and left is not None and left < timeout else timeout
                in_time = completion.done or (yield completion, limit) or completion.done
                wait = _advance(steps, in_time)
                if wait is not None:
                    waits.append((steps, wait))
    finally:
        for steps in under_way:
            steps.close()


def _advance(steps: Steps[None], in_time: bool | None) -> Wait | None:
    """Run the steps until they wait. Return ``None`` when they are done."""
    try:
        return next(steps) if in_time is None else steps.send(in_time)
    except StopIteration:
        return None


def give_up(steps: Steps[None]) -> None:
    """Run the steps of a caller that gave up. Close the steps at their first wait. The steps then clean up."""
    with suppress(StopIteration, JMSException):
        next(steps)
    steps.close()
