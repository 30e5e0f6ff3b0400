"""The messages of one link in the order in which they came, although a large one has to wait for the disk (S168)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.download import Download
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.pieces import head_of
from pyjmsack.spi.engine import Connector

__all__ = ["Arrivals"]


class Arrivals:
    """What arrived on one link and may not be taken yet: a large message that is not in its file as a whole, and all
    that came behind it.

    Args:
        connector: has the files.
        directory: where they are; ``None`` = where temporary files are.
        limit: bytes of the largest message that is kept (``jms.maxMessageSize``).
        take: called with each message when it is its turn: the engine's delivery, the message, whether it is settled.
        written: called on the loop after a write, with the number of bytes of this connection that wait for the disk.
    """

    def __init__(
        self,
        connector: Connector,
        directory: str | None,
        limit: int,
        take: Callable[[Any, AmqpInbound, bool], None],
        written: Callable[[int], None],
    ) -> None:
        self._connector = connector
        self._directory = directory
        self._limit = limit
        self._take = take
        self._written = written
        self._download: Download | None = None
        """The large message that is arriving."""
        self._waiting: deque[Download | tuple[Any, AmqpInbound, bool]] = deque()

    def __len__(self) -> int:
        """The number of messages that arrived as a whole and wait."""
        return len(self._waiting)

    @property
    def arriving(self) -> bool:
        """Whether a large message has arrived in part."""
        return self._download is not None

    @property
    def failure(self) -> JMSException | None:
        """Why a message cannot be kept."""
        downloads = [self._download, *self._waiting]
        failures = (download.failure for download in downloads if isinstance(download, Download))
        return next((failure for failure in failures if failure is not None), None)

    def add(self, delivery: Any, inbound: AmqpInbound, settled: bool) -> None:
        """Take a message, but not before one that came earlier."""
        if self._waiting:
            self._waiting.append((delivery, inbound, settled))
        else:
            self._take(delivery, inbound, settled)

    def begin(self, delivery: Any, start: bytes) -> bool:
        """Begin a large message; return False if it is not a bytes message.

        Other messages are gathered in memory, because they are decoded as a whole.
        """
        head = head_of(start)
        if head is None:
            return False
        spool = self._connector.spool(self._directory, self._written)
        self._download = Download(delivery, start, head, spool, self._limit)
        return True

    def feed(self, payload: bytes) -> int:
        """Take more of the large message; return how many bytes of this connection wait for the disk."""
        assert self._download is not None  # the engine gives pieces of what was begun
        self._download.feed(payload)
        return self._download.unwritten

    def end(self, settled: bool) -> Download:
        """Finish the large message. It is taken when it is in its file; :meth:`go_on` looks whether it is."""
        download, self._download = self._download, None
        assert download is not None  # as above
        download.finish(settled)
        self._waiting.append(download)
        return download

    def abort(self) -> None:
        """Forget the large message, because the broker took it back."""
        download, self._download = self._download, None
        if download is not None:
            download.drop()

    def go_on(self) -> None:
        """Take what no longer waits for the disk."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if not isinstance(first, Download):
                waiting.popleft()
                self._take(*first)
            elif first.over:
                waiting.popleft()
                self._take(first.delivery, first.inbound(), first.settled)
            else:
                return

    def forget(self) -> None:
        """Forget all that was not taken, because the link ended and the broker has it still."""
        self.abort()
        self._waiting.clear()
