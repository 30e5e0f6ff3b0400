"""The way in which the parts of an app wait. Each part is a generator that yields steps, and each face runs the steps
differently.

A step is a callable without arguments. The blocking face calls the step. The asyncio face calls the step, and awaits
the result if the result can be awaited. The generator gets the result or the exception. Therefore
``message = yield consumer.receive`` works in both faces, because their methods have the same names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

__all__ = ["Away", "Event", "Face", "Limit", "Step", "Steps", "Task"]

T = TypeVar("T")
Step = Callable[[], Any]
Away = Callable[[Callable[[], Any]], Step]
Steps = Generator[Step, Any, T]


class Event(Protocol):
    """A flag for which code can wait, like ``threading.Event``."""

    def set(self) -> None:
        """Raise the flag. In the blocking face any thread may call this method. In the asyncio face only the thread of
        the loop may call this method.
        """
        ...

    def clear(self) -> None:
        """Lower the flag."""
        ...

    def is_set(self) -> bool:
        """Whether the flag is raised."""
        ...

    def wait(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait for the flag, at most ``timeout`` seconds. Return whether the flag is raised. The call is a step."""
        ...


class Task(Protocol):
    """Steps that run beside other steps."""

    def join(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait until the task ends, at most ``timeout`` seconds. Return whether the task ended in time. The call is a
        step.
        """
        ...

    def abandon(self) -> None:
        """Cancel the task if the face can cancel tasks, because no code waits for the task any longer."""
        ...


class Limit(Protocol):
    """Lets a number of callers work at a time. Each call is known by an object of its own."""

    def take(self, caller: object) -> Any:
        """Wait for a free place. The call is a step."""
        ...

    @property
    def leave(self) -> Callable[[object, None], object]:
        """``leave(caller, None)`` gives the place back. A caller that has no place, or still waits for one, may call
        it too. Call :meth:`wake` afterwards."""
        ...

    def wake(self) -> None:
        """Let the next caller begin, after a caller has left."""
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
        """Run steps to their end. Return the result of the steps, or in asyncio a coroutine that returns the result."""
        ...

    def limit(self, count: int) -> Limit:
        """Return what lets ``count`` callers work at a time."""
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

    def away(self, name: str) -> Away:
        """Return a function that makes a step of a function which takes long and does not wait.

        Args:
            name: the name of the thread, if the face uses one. The steps of the returned function share this thread.
        """
        ...

    def ends(self, error: BaseException) -> bool:
        """Return whether this error ends the thread or the task of the worker. Then the worker must end too."""
        ...

    def here(self) -> object:
        """Return the id of the thread that a session belongs to while its listener runs. In asyncio, return
        ``None``.
        """
        ...
