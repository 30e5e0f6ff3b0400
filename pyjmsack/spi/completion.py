"""A one-shot result that the loop writes once and one caller waits for.

It has no lock. The loop side publishes the result and then looks for callbacks; the waiting side adds its callback and
then looks for the result. Each bytecode is atomic and ordered, so at least one side sees the other; ``list.pop`` is
atomic, so a callback runs once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pyjmsack.errors import JMSException

__all__ = ["Completion"]

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
        """Publish a value. Later results are ignored, so that a time-out and an answer may race."""
        if not self.done:
            self._value = value
            self.done = True
            self._run_callbacks()

    def fail(self, error: BaseException) -> None:
        """Publish an error. Ignore it if there is a result already."""
        if not self.done:
            self._error = error
            self.done = True
            self._run_callbacks()

    def settle(self, error: BaseException | None) -> None:
        """Complete with an error, or with success if there is none. ``Outbound.done`` is called so."""
        if error is None:
            self.succeed()
        else:
            self.fail(error)

    def add_callback(self, callback: Callable[[Completion[T]], Any]) -> None:
        """Run ``callback(self)`` when the result comes, on the thread that publishes it. If there is a result already,
        run it now."""
        self._callbacks.append(callback)
        if self.done:
            self._run_callbacks()

    @property
    def error(self) -> BaseException | None:
        """The error, or ``None`` while pending and after success."""
        return self._error

    def result(self) -> T:
        """Return the value, or raise the error. Each caller gets an exception of its own."""
        error = self._error
        if error is None:
            return self._value  # type: ignore[return-value]  # done: the value is there, and T may itself be None
        if isinstance(error, JMSException):
            raise error.fresh()
        raise error

    def _run_callbacks(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:  # the other side took it
                return
            callback(self)
