"""Tells whether a browser has shown all messages of a queue. ActiveMQ Classic may show the first 400 only."""

from __future__ import annotations

from itertools import islice

from pyjmsack import Connection, Queue
from pyjmsack.cli.errors import Failure

__all__ = ["Whole"]

_CLASSIC_SHOWS = 400
"""The largest number of messages that ActiveMQ Classic shows a browser, unless ``maxBrowsePageSize`` is changed."""


class Whole:
    """Checks whether a browser may have missed messages of a queue. Make this object before the browser.

    ActiveMQ Classic applies the selector of a browser to the first messages of the queue only. A browser that shows few
    messages, or none, then says nothing about the rest. So the messages of the queue are counted without the selector.
    The messages are counted before the browser looks, because a queue that other consumers empty could be short
    afterwards.

    Args:
        connection: an open and started connection.
        queue: the name of the queue.
        selected: whether the look has a selector.
        messages: the number of messages that the queue has according to the broker, or ``None`` if nobody knows it.
    """

    def __init__(self, connection: Connection, queue: str, *, selected: bool, messages: int | None) -> None:
        self._queue = queue
        self._messages = messages
        self._classic = connection.metadata.broker.startswith("classic")
        self._there = _shown(connection, queue) if selected and self._classic else None

    def check(self, shown: int) -> None:
        """Raise an error if the browser may not have shown all messages.

        Args:
            shown: how many messages the browser has shown.

        Raises:
            Failure: the queue has so many messages that the browser may not have shown all.
        """
        if (doubt := self.doubt(shown)) is not None:
            raise Failure(doubt)

    def doubt(self, shown: int) -> str | None:
        """Return the reason why the look may not have shown all messages. Return ``None`` if it has shown all messages.

        Args:
            shown: how many messages the browser has shown.
        """
        if not self._classic or (shown if self._there is None else self._there) < _CLASSIC_SHOWS:
            return None
        limit = f"{_CLASSIC_SHOWS} messages of {self._queue} at most (maxBrowsePageSize)"
        every = "`export --take`, `move` and `dlq retry` see every message"
        if self._there is not None:
            return (
                f"ActiveMQ Classic applies a selector to the first {limit}: the {shown:,} found may not be all; {every}"
            )
        if self._messages is not None and shown >= self._messages:
            return None
        return f"ActiveMQ Classic shows a browser {limit}: these {shown:,} may not be all; {every}"


def _shown(connection: Connection, queue: str) -> int:
    with connection.create_session() as session, session.create_browser(Queue(queue)) as browser:
        return sum(1 for _ in islice(browser, _CLASSIC_SHOWS))
