"""Keeps the messages of one link in the order in which they came, although large messages wait for the disk (S168)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.download import Download
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.pieces import head_of
from pyjmsack.spi.engine import Connector

__all__ = ["Arrivals"]


class Arrivals:
    """The messages that arrived on one link and cannot be handed out yet: a large message that is not completely in its
    file, and all messages that came after it.

    Args:
        connector: makes the files.
        directory: the directory of the files. ``None`` means the directory for temporary files.
        limit: the size in bytes of the largest message that is kept (``jms.maxMessageSize``).
        take: called with each message in its turn; the arguments are the engine's handle of the delivery, the message,
            and whether the broker has settled it.
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
        """The large message of which a part has arrived. ``None`` if there is none."""
        self._waiting: list[Download | tuple[Any, AmqpInbound, bool]] = []

    def __len__(self) -> int:
        """The number of messages that have arrived completely and wait to be handed out."""
        return len(self._waiting)

    @property
    def arriving(self) -> bool:
        """Whether a part of a large message has arrived, and the rest is still missing."""
        return self._download is not None

    @property
    def failure(self) -> JMSException | None:
        """The error that occurred when a large message was written to its file. ``None`` if there is none."""
        downloads = [self._download, *self._waiting]
        failures = (download.failure for download in downloads if isinstance(download, Download))
        return next((failure for failure in failures if failure is not None), None)

    def add(self, delivery: Any, inbound: AmqpInbound, settled: bool) -> None:
        """Hand out a message. If an earlier message is still waiting, let this message wait, too."""
        if self._waiting:
            self._waiting.append((delivery, inbound, settled))
        else:
            self._take(delivery, inbound, settled)

    def begin(self, delivery: Any, start: bytes) -> bool:
        """Begin to write a large message to a file. Return False if the message is not a bytes message.

        Messages of other types are gathered in memory, because they are decoded as a whole.
        """
        head = head_of(start)
        if head is None:
            return False
        spool = self._connector.spool(self._directory, self._written)
        self._download = Download(delivery, start, head, spool, self._limit)
        return True

    def feed(self, payload: bytes) -> int:
        """Add a piece to the large message. Return the number of bytes of this connection that wait for the disk."""
        assert self._download is not None  # the engine gives pieces only of a message that was begun
        self._download.feed(payload)
        return self._download.unwritten

    def end(self, settled: bool) -> Download:
        """Finish the large message. :meth:`go_on` hands the message out when its file is complete."""
        download, self._download = self._download, None
        assert download is not None  # the engine ends only a message that was begun
        download.finish(settled)
        self._waiting.append(download)
        return download

    def abort(self) -> None:
        """Forget the large message, because the broker took it back."""
        download, self._download = self._download, None
        if download is not None:
            download.drop()

    def go_on(self) -> None:
        """Hand out the messages that no longer wait for the disk, in the order in which they came."""
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if not isinstance(first, Download):
                waiting.pop(0)
                self._take(*first)
            elif first.over:
                waiting.pop(0)
                self._take(first.delivery, first.inbound(), first.settled)
            else:
                return

    def forget(self) -> None:
        """Forget all messages that were not handed out. The broker still has these messages, because the link ended
        before they were acknowledged."""
        self.abort()
        self._waiting.clear()
