"""How many messages a channel of kombu may have: its prefetch, which Celery changes while it works."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

__all__ = ["BUFFER", "Asker", "Window"]

BUFFER: Final = 100
"""Messages that may wait for kombu where no prefetch count limits them."""


class Asker(Protocol):
    """Somebody who asks the broker for messages."""

    asked: int
    """Messages that it has asked for and not got."""


class Window:
    """The room for messages of one channel; it belongs to the loop, except for :attr:`taken`.

    A message has a place from its arrival until kombu has acknowledged it. A place is also asked for: the broker was
    asked for a message that has not come yet.

    Args:
        limit: the prefetch count, 0 for no limit.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.held = 0
        """Messages that came and have no outcome."""
        self.asked = 0
        """Messages that the broker was asked for."""
        self.arrived = 0
        """Messages that came so far; the loop alone writes it."""
        self.taken = 0
        """Messages that kombu has got so far; the thread that drains the events alone writes it."""
        self.blocked = False
        """Whether somebody waits for room: written before the look at the counts, read after they changed."""
        self._waiting: list[asyncio.Future[None]] = []

    def has_room(self, asker: Asker) -> bool:
        """Whether a source may ask the broker for one more message.

        A source that has asked for nothing need not count what the others have asked for: else a queue could wait for
        ever for its turn behind one that stays empty.
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
        """Let those who wait look again."""
        waiting, self._waiting = self._waiting, []
        self.blocked = False
        for one in waiting:
            if not one.done():  # its lane may have been cancelled
                one.set_result(None)
