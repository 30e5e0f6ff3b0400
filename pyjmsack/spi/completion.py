"""The result of a request. The loop sets the result once, and one caller waits for it.

A completion has no lock. The loop sets the result first, and then runs the callbacks that it finds. The waiting side
adds its callback first, and then checks for the result. Each bytecode is atomic, and their order is kept, so at least
one side sees what the other side did. A callback runs once only, because ``list.pop`` is atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pyjmsack.errors import JMSException

__all__ = ["Completion", "all_answered"]

T = TypeVar("T")


class Completion(Generic[T]):
    """The result of one request to a provider."""

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Completion[T]], Any]] = []

    def succeed(self, value: T | None = None) -> None:
        """Set a value as the result. Later results are ignored, because a time-out and an answer may come together."""
        if not self.done:
            self._value = value
            self.done = True
            self._run_callbacks()

    def fail(self, error: BaseException) -> None:
        """Set an error as the result. The error is ignored if there is a result already."""
        if not self.done:
            self._error = error
            self.done = True
            self._run_callbacks()

    def settle(self, error: BaseException | None) -> None:
        """Succeed if ``error`` is ``None``, and fail with ``error`` otherwise."""
        if error is None:
            self.succeed()
        else:
            self.fail(error)

    def add_callback(self, callback: Callable[[Completion[T]], Any]) -> None:
        """Run ``callback(self)`` when the result comes, on the thread that sets it.

        If there is a result already, run the callback now.
        """
        self._callbacks.append(callback)
        if self.done:
            self._run_callbacks()

    @property
    def error(self) -> BaseException | None:
        """The error of the request. ``None`` if the request succeeded or has no result yet."""
        return self._error

    def result(self) -> T:
        """Return the value, or raise the error. Each call raises a new copy of a JMS exception."""
        error = self._error
        if error is None:
            return self._value  # type: ignore[return-value]  # the value was set, and may be None for some T
        if isinstance(error, JMSException):
            raise error.fresh()
        raise error

    def _run_callbacks(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:  # another thread took the last callback
                return
            callback(self)


def all_answered(asked: Sequence[Completion[T]], *, or_refused: bool = False) -> Completion[None]:
    """Return a completion that succeeds when the last answer comes or, with ``or_refused``, when the first refusal
    comes. So a caller waits once for many requests.
    """
    complete: Completion[None] = Completion()
    left = len(asked)

    def count(answered: Completion[T]) -> None:
        nonlocal left
        left -= 1
        if not complete.done and (left == 0 or (or_refused and answered.error is not None)):
            complete.succeed()

    if not asked:
        complete.succeed()
    for answered in asked:
        answered.add_callback(count)
    return complete
