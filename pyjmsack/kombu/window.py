"""The number of messages that a channel of kombu may have: its prefetch, which Celery changes while it works."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

__all__ = ["BUFFER", "Asker", "Window"]

BUFFER: Final = 100
"""The most messages that wait for kombu if no prefetch count limits them."""


class Asker(Protocol):
    """A consumer that asks the broker for messages."""

    asked: int
    """The number of messages that it has asked for and not got."""


class Window:
    """The room for messages of one channel. It belongs to the loop, except for :attr:`taken`.

    A message has a place from its arrival until kombu has acknowledged it. A message that the broker was asked for, and
    that has not come yet, has a place, too.

    Args:
        limit: the prefetch count; 0 = no limit.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.held = 0
        """The number of messages that came and have no outcome."""
        self.asked = 0
        """The number of messages that the broker was asked for."""
        self.arrived = 0
        """The number of messages that came so far. Only the loop writes it."""
        self.taken = 0
        """The number of messages that kombu has got so far. Only the thread that drains the events writes it."""
        self.blocked = False
        """Whether a caller waits for room. This is written before the look at the counts, and read after the counts
        changed."""
        self._waiting: list[asyncio.Future[None]] = []

    def has_room(self, asker: Asker) -> bool:
        """Return whether a source may ask the broker for one more message.

        A source that has asked for nothing need not count the messages that other sources have asked for. Otherwise a
        queue could wait for ever behind a queue that stays empty.
        """
        if self.limit == 0:
            return self.arrived - self.taken < BUFFER
        return self.held + (self.asked if asker.asked else 0) < self.limit

    async def room(self, asker: Asker) -> None:
        """Wait until there is room."""
        while not self._look(asker):
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _look(self, asker: Asker) -> bool:
        self.blocked = True
        found = self.has_room(asker)
        self.blocked = not found or bool(self._waiting)
        return found

    def change(self, limit: int) -> None:
        """Set the prefetch count."""
        self.limit = limit
        self.wake()

    def take(self) -> None:
        """Note a message that kombu has asked for, and got, outside of a consumer."""
        self.held += 1

    def wake(self) -> None:
        """Let the waiting askers look again."""
        waiting, self._waiting = self._waiting, []
        self.blocked = False
        for one in waiting:
            if not one.done():  # the lane of this waiter may have been cancelled
                one.set_result(None)
