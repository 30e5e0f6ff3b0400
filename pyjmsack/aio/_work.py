"""Notices that calls which need not wait keep the loop for long, so that they let it have a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from pyjmsack.core.steps import Steps

__all__ = ["Work"]

T = TypeVar("T")
_AT_ONCE = 0.1
"""Seconds of work on messages after which the loop has a turn. 1,000 usual messages take less."""


class Work:
    """Counts the seconds that the calls of one connection spend on messages in one turn of the loop.

    Only this work counts, and not the time of the program between the calls. A program may poll by
    ``asyncio.timeout(0)`` around ``receive()``, and a call that lets the loop have a turn then gets no message. So no
    call does so before very large or refused messages took long.
    """

    __slots__ = ("_loop", "_noted", "_seconds", "_turn")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = 0
        """The number of turns that the loop told of."""
        self._noted = False
        """Whether the loop will say that it had a turn."""
        self._seconds = 0.0

    @property
    def too_long(self) -> bool:
        """Whether the next call must let the loop have a turn, before it takes a message."""
        return self._seconds >= _AT_ONCE

    async def run(self, run: Callable[[Steps[T]], Awaitable[T]], steps: Steps[T]) -> T:
        """Run the steps of a call by ``run``, behind a turn of the loop if the work before took long."""
        if self.too_long:  # before a message is taken, so that a cancellation loses none
            await asyncio.sleep(0)
        began = self.begin()
        try:
            return await run(steps)
        finally:
            self.end(began)

    def begin(self) -> tuple[int, float]:
        """Begin a call. Return the turn and the time for :meth:`end`."""
        if not self._noted and asyncio.get_running_loop() is self._loop:  # otherwise the call itself raises an error
            self._loop.call_soon(self._turned)
            self._noted = True
        return self._turn, monotonic()

    def end(self, began: tuple[int, float]) -> None:
        """End a call. It does not count if the loop had a turn meanwhile."""
        turn, time = began
        if self._noted and turn == self._turn:
            self._seconds += monotonic() - time

    def _turned(self) -> None:
        self._turn += 1
        self._noted, self._seconds = False, 0.0
