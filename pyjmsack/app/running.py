"""The listeners of an app that take messages now. Each listener can be started and stopped alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from pyjmsack.app.container import Container
from pyjmsack.app.link import Link
from pyjmsack.app.listener import Listener
from pyjmsack.app.steps import Face, Steps, Task
from pyjmsack.errors import IllegalStateException

__all__ = ["TRIED", "Running"]

TRIED: Final = 60.0
"""Seconds that a start waits for the first attempts."""
_AT_WORK: Final = "the listener did not finish in time, and is still at work: start it later"


class Running:
    """The listeners of an app that were started, with the container of each.

    Args:
        face: the face of the app.
        make: makes the container of a listener.
    """

    def __init__(self, face: Face, make: Callable[[Listener], Container]) -> None:
        self._face = face
        self._make = make
        self._containers: dict[str, Container] = {}
        """The last container of each listener. A container stays in the table after its end, because its counts are
        still needed.
        """
        self._tasks: dict[str, Task] = {}
        """The tasks of the containers that have not ended."""
        self._open = False
        self._lock = face.lock()
        """Protects the two tables. Code that holds the lock must not wait."""

    def launch(self, listeners: Iterable[Listener]) -> list[Link]:
        """Forget an earlier run of the app, start these listeners, and return the :class:`Link` of each listener."""
        with self._lock:
            self._containers, self._tasks, self._open = {}, {}, True
            return [self._spawn(listener) for listener in listeners]

    def _spawn(self, listener: Listener) -> Link:
        before = self._containers.get(listener.name)
        container = self._containers[listener.name] = self._make(listener)
        if before is not None:
            container.counted(before.counts())
        self._tasks[listener.name] = self._face.spawn(container.link.run(), f"pyjmsack-app-{listener.name}")
        return container.link

    def runs(self, listener: Listener) -> bool:
        """Return whether a listener was started and not stopped."""
        return listener.name in self._tasks and not self._containers[listener.name].link.stopping

    def start(self, listener: Listener, patience: float) -> Steps[None]:
        """Start one listener, and wait for its first attempt to connect. If the listener runs already, nothing changes.

        Args:
            listener: the listener.
            patience: seconds to wait for an earlier stop of the listener that is not complete yet.

        Raises:
            IllegalStateException: the app is not running, or the listener is still at work after a stop.
        """
        if listener.name in self._tasks and not self.runs(listener) and not (yield from self.stop(listener, patience)):
            raise IllegalStateException(f"listener {listener.name!r}: {_AT_WORK}")
        with self._lock:
            if not self._open:
                raise IllegalStateException(f"listener {listener.name!r}: the app is not running; start the app first")
            if listener.name in self._tasks:
                return
            before = self._containers.get(listener.name)
            if before is not None and before.at_work:  # a new worker could get the same message
                raise IllegalStateException(f"listener {listener.name!r}: {_AT_WORK}")
            link = self._spawn(listener)
        yield partial(link.tried.wait, TRIED)

    def stop(self, listener: Listener, patience: float) -> Steps[bool]:
        """Let one listener finish, and close its connection. Return whether the listener ended in time."""
        with self._lock:
            task, container = self._tasks.get(listener.name), self._containers.get(listener.name)
            if task is None or container is None:
                return True
            container.link.stop()
        end = time.monotonic() + patience
        if not (yield partial(task.join, max(0.0, end - time.monotonic()))):
            return False
        with self._lock:
            if self._tasks.get(listener.name) is task:
                del self._tasks[listener.name]
        return not container.left_behind

    def tell(self, listener: Listener) -> None:
        """Ask one listener to stop, and do not wait for its end."""
        with self._lock:
            if listener.name in self._tasks:
                self._containers[listener.name].link.stop()

    def close(self) -> list[tuple[Container, Task]]:
        """Let no listener start any more, and ask all listeners to stop. Return the containers and tasks that have not
        ended yet.
        """
        with self._lock:
            self._open = False
            found = [(self._containers[name], task) for name, task in self._tasks.items()]
            containers = [*self._containers.values()]
        for container in containers:  # Ctrl-C in a start may have kept a task out of the table
            container.link.stop()
        return found

    def forget(self) -> None:
        """Remember that all tasks have ended."""
        with self._lock:
            self._tasks = {}

    # -- the state of the listeners -----------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether each listener that was started and not stopped takes messages."""
        return all(
            container.ready or container.link.stopping
            for name, container in [*self._containers.items()]
            if name in self._tasks
        )

    def health(self, listeners: Iterable[Listener]) -> dict[str, Any]:
        """Return the state of each listener. A listener that does not run although the app runs, for
        example after its ``stop()``, has the state ``"stopped"``.
        """
        found: dict[str, Any] = {}
        for listener in listeners:
            container = self._containers.get(listener.name)
            if container is not None and (listener.name in self._tasks or not self._open):
                found[listener.name] = container.health()
            elif self._open:
                found[listener.name] = {"state": "stopped", "workers": 0, "busy": 0}
        return found

    def stats(self) -> dict[str, dict[str, int]]:
        """Return the counts of each listener that was started."""
        return {name: dict(vars(container.counts())) for name, container in [*self._containers.items()]}
