"""How the parts of an app wait: generators that yield calls, which each face makes in its own way.

A step is a callable without arguments. The blocking face calls it. The asyncio face calls it, and awaits the result if
that can be awaited. The generator gets the result, or the exception. So ``message = yield consumer.receive`` is the
same text in both faces, because their classes have the same names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol, TypeVar

__all__ = ["Event", "Face", "Limit", "Step", "Steps", "Task"]

T = TypeVar("T")
Step = Callable[[], Any]
Steps = Generator[Step, Any, T]


class Event(Protocol):
    """A flag that can be waited for; ``threading.Event``, or its twin over asyncio."""

    def set(self) -> None:
        """Raise the flag. Any thread of the blocking face, the loop of the asyncio face."""
        ...

    def clear(self) -> None:
        """Lower the flag."""
        ...

    def is_set(self) -> bool:
        """Whether the flag is raised."""
        ...

    def wait(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """A step: wait for the flag, at most ``timeout`` seconds; returns whether it is raised."""
        ...


class Task(Protocol):
    """Steps that run beside the others."""

    def join(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """A step: wait until the task ends, at most ``timeout`` seconds; returns whether it ended in time."""
        ...

    def abandon(self) -> None:
        """Cancel the task where the face can do that, because nobody waits for it any longer."""
        ...


class Limit(Protocol):
    """A semaphore."""

    def acquire(self) -> Any:
        """A step: wait for a place."""
        ...

    def release(self) -> None:
        """Give the place back."""
        ...


class Face(Protocol):
    """The methods of a face that the parts of an app call."""

    @property
    def coroutines(self) -> bool:
        """Whether a listener may be a coroutine function."""
        ...

    @property
    def session(self) -> type:
        """The class of a session, for annotations."""
        ...

    def run(self, steps: Steps[Any]) -> Any:
        """Run steps to their end: return their result, or a coroutine of it."""
        ...

    def limit(self, count: int) -> Limit:
        """Return a semaphore."""
        ...

    def factory(self, url: str, **how: Any) -> Any:
        """Return the connection factory of the face."""
        ...

    def event(self) -> Event:
        """Return a flag."""
        ...

    def spawn(self, steps: Steps[None], name: str) -> Task:
        """Run steps beside the others: in a thread, or in a task."""
        ...

    def ends(self, error: BaseException) -> bool:
        """Whether the worker that caught this must end: its own task is cancelled."""
        ...

    def here(self) -> object:
        """Return what runs now: a session may be used from there, as long as the listener runs."""
        ...
