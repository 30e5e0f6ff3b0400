"""How the parts of an app wait. They are generators that yield calls, and each face makes these calls in its own way.

A step is a callable without arguments. The blocking face calls it. The asyncio face calls it, and awaits the result if
the result can be awaited. The generator gets the result, or the exception. So ``message = yield consumer.receive`` is
the same text in both faces, because their classes have the same names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

__all__ = ["Event", "Face", "Limit", "Step", "Steps", "Task"]

T = TypeVar("T")
Step = Callable[[], Any]
Steps = Generator[Step, Any, T]


class Event(Protocol):
    """A flag that can be waited for: ``threading.Event``, or the same for asyncio."""

    def set(self) -> None:
        """Raise the flag. In the blocking face any thread may call this, in the asyncio face only the loop."""
        ...

    def clear(self) -> None:
        """Lower the flag."""
        ...

    def is_set(self) -> bool:
        """Whether the flag is raised."""
        ...

    def wait(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait for the flag, at most ``timeout`` seconds. Return whether it is raised. This is a step."""
        ...


class Task(Protocol):
    """Steps that run beside other steps."""

    def join(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait until the task ends, at most ``timeout`` seconds. Return whether it ended in time. This is a step."""
        ...

    def abandon(self) -> None:
        """Cancel the task, if the face can do that, because nobody waits for it any longer."""
        ...


class Limit(Protocol):
    """A semaphore."""

    def acquire(self) -> Any:
        """Wait for a place. This is a step."""
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
        """Run steps to their end. Return their result, or a coroutine that returns it."""
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

    def lock(self) -> AbstractContextManager[Any]:
        """Return a lock for changes of tables. Nothing may wait while it is held."""
        ...

    def spawn(self, steps: Steps[None], name: str) -> Task:
        """Run steps beside other steps, in a thread or in a task."""
        ...

    def ends(self, error: BaseException) -> bool:
        """Return whether the worker that caught this error must end, because its own task is cancelled."""
        ...

    def here(self) -> object:
        """Return the place that a session belongs to while its listener runs: the thread, or ``None`` in asyncio."""
        ...
