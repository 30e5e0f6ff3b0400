"""Notices that calls which need not wait keep the loop for long, so that they let it have a turn."""

from __future__ import annotations

import asyncio
from time import monotonic

__all__ = ["Work"]

_AT_ONCE = 0.1
"""Seconds of work on messages after which the loop has a turn. 1,000 usual messages take less."""


class Work:
    """Counts the seconds that the calls of one connection spend on messages in one turn of the loop.

    Only this work counts, and not the time of the program between the calls. A program may poll by
    ``asyncio.timeout(0)`` around ``receive()``, and a call that lets the loop have a turn then gets no message. So no
    call does so before very large or refused messages took long.
    """

    __slots__ = ("_loop", "_noted", "_seconds")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._noted = False
        """Whether the loop will say that it had a turn."""
        self._seconds = 0.0

    @property
    def too_long(self) -> bool:
        """Whether the next call must let the loop have a turn, before it takes a message."""
        return self._seconds >= _AT_ONCE

    def begin(self) -> float:
        """Begin a call. Return the time for :meth:`end`."""
        if not self._noted:
            self._noted = True
            self._loop.call_soon(self._turned)
        return monotonic()

    def end(self, began: float) -> None:
        """End a call. It does not count if the loop had a turn meanwhile."""
        if self._noted:
            self._seconds += monotonic() - began

    def _turned(self) -> None:
        self._noted, self._seconds = False, 0.0
