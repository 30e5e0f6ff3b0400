"""Functions that an app runs at regular times: ``@app.every(seconds)``."""

from __future__ import annotations

import inspect
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from pyjmsack.app.joining import CURRENT, Joined, Recorder
from pyjmsack.app.listener import is_coroutine_function
from pyjmsack.app.steps import Event, Face, Steps, Task
from pyjmsack.loggers import get_logger

__all__ = ["Schedule", "Schedules", "check_times"]

log = get_logger("pyjmsack.app")
_LEAST: Final = 0.01
_MOST: Final = 31 * 86_400.0


def check_times(seconds: object, delay: object) -> None:
    """Check the times of a schedule.

    Raises:
        TypeError: a time is not a number.
        ValueError: a time is out of its range.
    """
    for name, value, least in (("seconds", seconds, _LEAST), ("delay", delay, 0.0)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"every: {name} is {value!r}; expected a number of seconds, as in @app.every(30)")
        if not least <= value <= _MOST:
            raise ValueError(f"every: {name} is {value!r}; expected {least:g} to {_MOST:,.0f} seconds (31 days)")


class Schedule:
    """A function that the app runs at regular intervals. ``app.schedules`` has the schedules of an app by name.

    Args:
        name: the name in ``app.schedules`` and in the log.
        function: the function.
        seconds: the time from the start of one run to the start of the next run.
        delay: seconds from the start of the app to the first run.
        face: the face of the app.
        app: the app that this schedule belongs to.

    Raises:
        TypeError: the function cannot be run by this app.
    """

    def __init__(
        self, name: str, function: Callable[[], Any], seconds: float, delay: float, face: Face, app: object
    ) -> None:
        self.name = name
        self.function = function
        self.seconds = seconds
        self.delay = delay
        self._face = face
        self._app = app
        self._free: deque[None] = deque([None])
        """Has one entry while no run is at work. A run takes the entry before it begins, and puts it back at its end.
        Only one run can take the entry, because ``pop`` is atomic."""
        self._check()

    def begin_anew(self) -> None:
        """Forget a run that is at work in the parent process."""
        self._free = deque([None])

    def __repr__(self) -> str:
        return f"<schedule {self.name!r} every {self.seconds:g} s>"

    def _check(self) -> None:
        if is_coroutine_function(self.function) and not self._face.coroutines:
            raise TypeError(f"schedule {self.name!r}: a coroutine function needs pyjmsack.aio.App")
        try:
            inspect.signature(self.function).bind()
        except ValueError:  # the arguments of a function in C cannot be read
            return
        except TypeError as error:
            raise TypeError(f"schedule {self.name!r}: expected a function without arguments: {error}") from error

    def call(self, *, sent: list[tuple[str, Any]] | None = None) -> Any:
        """Run the function once in a test, without a broker. In ``pyjmsack.aio`` the call is awaited.

        Args:
            sent: a list that gets ``(name of the destination, message)`` for each send of the function. Nothing is
                sent.

        Returns:
            The result of the function. An error of the function is raised as it is.
        """
        joined = Joined(self._app, Recorder([] if sent is None else sent), self._face.here())
        return self._face.run(self._called(joined))

    def _called(self, joined: Joined) -> Steps[Any]:
        token = CURRENT.set(joined)
        try:
            return (yield self.function)
        finally:
            joined.over = joined.done = True
            CURRENT.reset(token)

    # -- while the app runs -------------------------------------------------------------------------------------

    def steps(self, over: Event) -> Steps[None]:
        """Run the function at its times until ``over`` is set."""
        due = time.monotonic() + self.delay
        while True:
            yield partial(over.wait, max(0.0, due - time.monotonic()))
            if over.is_set():
                return
            if due > time.monotonic():  # a wait may end a little before its time
                continue
            yield from self._once()
            late = time.monotonic() - due
            due += self.seconds * max(1, math.ceil(late / self.seconds))  # runs that were due meanwhile are left out

    def _once(self) -> Steps[None]:
        try:
            self._free.pop()
        except IndexError:
            log.warning("schedule %r: a run before the last stop is still at work, so this run is left out", self.name)
            return
        try:
            # a run joins no transaction, and must not wait for a stop of the app, because the stop waits for the run
            yield from self._called(Joined(self._app, Recorder([]), self._face.here(), over=True))
        except BaseException as error:  # a ``sys.exit()`` in the function does not end the service
            if self._face.ends(error):
                raise
            log.exception("schedule %r failed", self.name)
        finally:
            self._free.append(None)


class Schedules:
    """The schedules of an app that run now.

    Args:
        face: the face of the app.
    """

    def __init__(self, face: Face) -> None:
        self._face = face
        self._over: Event | None = None
        self._tasks: list[tuple[Schedule, Task]] = []

    def launch(self, schedules: Iterable[Schedule]) -> None:
        """Start these schedules."""
        over = self._over = self._face.event()
        self._tasks = [
            (each, self._face.spawn(each.steps(over), f"pyjmsack-app-every-{each.name}")) for each in schedules
        ]

    def close(self) -> None:
        """Start no further run. A run at work goes on."""
        if self._over is not None:
            self._over.set()

    def join(self, patience: float) -> Steps[bool]:
        """Wait for the runs at work, at most ``patience`` seconds. Return whether all runs ended in time."""
        end = time.monotonic() + patience
        in_time = True
        for schedule, task in self._tasks:
            if not (yield partial(task.join, max(0.0, end - time.monotonic()))):
                log.error("schedule %r did not finish in %g s", schedule.name, patience)
                task.abandon()
                in_time = False
        self._tasks = []
        return in_time
