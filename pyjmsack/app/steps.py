"""How the parts of an app wait. Each part is a generator that yields steps, and each face runs the steps in its way.

A step is a callable without arguments. The blocking face calls it. The asyncio face calls it, and awaits the result if
the result can be awaited. The generator gets the result, or the exception. So ``message = yield consumer.receive``
works in both faces, because both faces have the same names of methods.
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
    """A flag for which code can wait: ``threading.Event``, or its counterpart in asyncio."""

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
        """Cancel the task if the face can do that, because no code waits for the task any longer."""
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
        """Run steps to their end. Return their result, or, in asyncio, a coroutine that returns it."""
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
        """Return a lock that protects the tables of an app. Code that holds the lock must not wait."""
        ...

    def spawn(self, steps: Steps[None], name: str) -> Task:
        """Run steps beside other steps, in a new thread or in a new task."""
        ...

    def ends(self, error: BaseException) -> bool:
        """Return whether this error ends the thread or the task of the worker. Then the worker must end too."""
        ...

    def here(self) -> object:
        """Return what a session belongs to while its listener runs: the id of the thread, or ``None`` in asyncio."""
        ...
