"""Notices that a loop is being shut down, so that no listener starts after the end of the program (S127)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Protocol

__all__ = ["Ending", "destroyed"]


class Started(Protocol):
    """Something that runs calls in a task."""

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that runs calls now. ``None`` if no call runs."""
        ...

    def give_up(self) -> None:
        """Let nobody wait for calls that never run."""
        ...


class Ending:
    """Knows whether the running loop is being shut down.

    ``asyncio.run`` cancels the tasks that it finds after the main task has ended, closes all open asynchronous
    generators, waits for the threads of its executor, and closes the loop. It looks for tasks only once, so a task that
    starts later would be destroyed in the middle of a listener. An asynchronous generator is the only thing of a loop
    that is told of the end. So this object keeps one open.
    """

    def __init__(self) -> None:
        self.over = False
        """Whether no task may be started any more."""
        self._started: weakref.WeakSet[Started] = weakref.WeakSet()
        self._watch: AsyncGenerator[None, None] | None = None
        if getattr(asyncio.get_running_loop(), "_asyncgens_shutdown_called", False):
            return  # a program that opens a connection after that would get a warning for the generator
        self._watch = _watch(weakref.ref(self))
        with suppress(StopIteration):  # no task is needed, because the generator awaits nothing before its ``yield``
            self._watch.__anext__().__await__().__next__()

    def add(self, started: Started) -> None:
        """Let the task of this object be cancelled when the loop is shut down."""
        self._started.add(started)

    async def end(self) -> None:
        """Start no more tasks, and cancel the running ones, as ``asyncio.run`` cancels those that it found."""
        self.over = True
        started = [*self._started]
        tasks = []
        for one in started:
            if one.task is None:
                one.give_up()
            else:
                one.task.cancel()
                tasks.append(one.task)
        if tasks:
            await asyncio.wait(tasks)

    def close(self) -> None:
        """Watch the loop no more, because the connection is closed."""
        if not self.over and self._watch is not None:
            self._started.clear()
            with suppress(StopIteration):
                self._watch.aclose().__await__().__next__()

    def __del__(self) -> None:
        """Close the generator here, because the loop would start a task for this."""
        self.close()


async def _watch(ending: weakref.ref[Ending]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        target = ending()
        if target is not None and target._started:
            await target.end()


def destroyed(error: BaseException | None, loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the coroutine that caught this error is being destroyed, because its loop has ended. Then it can
    neither wait nor tell the broker anything."""
    return isinstance(error, GeneratorExit) and asyncio._get_running_loop() is not loop
