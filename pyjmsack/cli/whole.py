"""Tells whether a browser has shown all messages of a queue. ActiveMQ Classic may show the first 400 only."""

from __future__ import annotations

from itertools import islice

from pyjmsack import Connection, Queue
from pyjmsack.cli.errors import Failure

__all__ = ["Whole"]

_CLASSIC_SHOWS = 400
"""The most messages that ActiveMQ Classic shows a browser, unless ``maxBrowsePageSize`` is changed."""


class Whole:
    """Checks that a look into a queue can have shown every message. Make it before the look.

    ActiveMQ Classic applies the selector of a browser to the first messages of the queue only. A browser that shows few
    messages, or none, then says nothing about the rest. So the messages of the queue are counted without the selector.
    They are counted before the look, because a queue that others empty could be short afterwards.

    Args:
        connection: an open and started connection.
        queue: the name of the queue.
        chosen: whether a selector or another condition leaves out messages.
    """

    def __init__(self, connection: Connection, queue: str, *, chosen: bool) -> None:
        self._queue = queue
        self._classic = connection.metadata.broker.startswith("classic")
        self._there = _shown(connection, queue) if chosen and self._classic else 0

    def check(self, seen: int) -> None:
        """Check the look.

        Args:
            seen: how many messages the look has shown.

        Raises:
            Failure: the queue has so many messages that the look may not have shown all.
        """
        if (doubt := self.doubt(seen)) is not None:
            raise Failure(doubt)

    def doubt(self, seen: int) -> str | None:
        """Return the reason why the look may not have shown all messages, or ``None`` if it has.

        Args:
            seen: how many messages the look has shown.
        """
        if not self._classic or max(seen, self._there) < _CLASSIC_SHOWS:
            return None
        limit = f"{_CLASSIC_SHOWS} messages of {self._queue} at most (maxBrowsePageSize)"
        every = "`export --take`, `move` and `dlq retry` see every message"
        if self._there:
            found = f"ActiveMQ Classic looks for them among the first {limit}: the {seen:,} that were found"
        else:
            found = f"ActiveMQ Classic shows a browser {limit}: these {seen:,}"
        return f"{found} may not be all; {every}"


def _shown(connection: Connection, queue: str) -> int:
    with connection.create_session() as session, session.create_browser(Queue(queue)) as browser:
        return sum(1 for _ in islice(browser, _CLASSIC_SHOWS))
