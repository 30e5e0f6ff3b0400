"""Limits how many messages a channel of kombu holds. The limit is the prefetch count, which Celery may change at any
time."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

__all__ = ["BUFFER", "Asker", "Window"]

BUFFER: Final = 100
"""The largest number of messages that wait for kombu if no prefetch count limits them."""


class Asker(Protocol):
    """A lane (a consumer), which asks the broker for messages."""

    @property
    def asked(self) -> int:
        """The number of messages that the lanes of its source have asked for and have not got yet."""
        ...


class Window:
    """Limits how many messages one channel holds. Only the loop may use this object, except for :attr:`taken`.

    A message takes one place from its arrival until its outcome. A message that was requested from the broker takes a
    place even before it arrives.

    Args:
        limit: the prefetch count; 0 means no limit.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.held = 0
        """The number of messages that arrived and have no outcome."""
        self.asked = 0
        """The number of messages that all lanes have asked for and have not got yet."""
        self.arrived = 0
        """The number of messages that have arrived so far. Only the loop writes it."""
        self.taken = 0
        """The number of messages that kombu has got so far. Only the thread that drains the events writes it."""
        self.blocked = False
        """Whether a lane waits for room. The loop sets this before it reads the counts, and the other thread reads this
        after it changed a count. So the other thread overlooks no lane that waits."""
        self._waiting: list[asyncio.Future[None]] = []

    def has_room(self, asker: Asker | None) -> bool:
        """Return whether a lane may ask the broker for one more message.

        A source that has asked for nothing yet may ask, even if other sources have asked and got no message yet.
        Without this rule an empty queue, which sends no message, could keep a queue with messages waiting for ever.

        Args:
            asker: the lane. ``None`` means that the lane has its message already. Then only the messages count that the
                channel holds, because the messages that other lanes asked for may never come.
        """
        if self.limit == 0:
            return self.arrived - self.taken < BUFFER
        return self.held + (self.asked if asker is not None and asker.asked else 0) < self.limit

    async def room(self, asker: Asker | None) -> None:
        """Wait until ``asker`` may ask the broker for one more message; see :meth:`has_room` for ``None``."""
        while not self._look(asker):
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _look(self, asker: Asker | None) -> bool:
        self.blocked = True
        found = self.has_room(asker)
        self.blocked = not found or bool(self._waiting)
        return found

    def change(self, limit: int) -> None:
        """Set a new prefetch count, and let all lanes that wait for room check again."""
        self.limit = limit
        self.wake()

    def take(self) -> None:
        """Count a message that a program got with ``basic_get``."""
        self.held += 1

    def wake(self) -> None:
        """Let all lanes that wait for room check again."""
        waiting, self._waiting = self._waiting, []
        self.blocked = False
        for one in waiting:
            if not one.done():  # the lane of this waiter may have been cancelled
                one.set_result(None)
