"""Receives a large bytes message in pieces, which go to a file. The message is handed out when it is complete (S168).

The message is complete before the caller gets it. Therefore acknowledgement, failover and the guard against duplicates
treat it like any other message. The loop does a small piece of work for each transfer, and never works on the whole
message.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import JMSException, MessageFormatException
from pyjmsack.message import PIECE, Message, SpooledBytesMessage
from pyjmsack.providers.amqp import sections
from pyjmsack.providers.amqp.engine.deliveries import KEPT_OF_OVERSIZE
from pyjmsack.providers.amqp.identity import LARGE, as_values, head_parts
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.oversize import Oversize
from pyjmsack.providers.amqp.pieces import EMPTY, DataSections
from pyjmsack.providers.amqp.spooled_body import SpooledBody
from pyjmsack.spi.engine import Spool

__all__ = ["Download", "SpooledInbound"]


class SpooledInbound(AmqpInbound):
    """A large bytes message. Its ``payload`` is the message with an empty body, and a file contains the whole
    message."""

    __slots__ = ("_size", "_spool", "body", "spans")

    def __init__(self, payload: bytes, spool: Spool, spans: list[tuple[int, int]], size: int) -> None:
        super().__init__(payload)
        self._spool = spool
        self._size = size
        self.spans = spans
        self.body = SpooledBody(spool, spans)

    @property
    def size(self) -> int:
        """The number of bytes of the whole message, including the body in the file."""
        return self._size

    @property
    def has_footer(self) -> bool:
        """Whether the message has a footer, the section after the body."""
        return not self.payload.endswith(EMPTY)

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Return a new message for the caller. :meth:`AmqpInbound.to_message` explains this."""
        self.consumer_destination = consumer_destination
        try:
            self._decode()
        except MessageFormatException:
            self.unreadable = True
            raise
        message = SpooledBytesMessage.__new__(SpooledBytesMessage)
        message._lazy = self
        message._body = self.body
        message._redelivery_count = self._header.delivery_count
        return message

    @property
    def heavy(self) -> bool:
        """Whether the next call of :meth:`identity` takes long, because it reads the file. Later calls are fast."""
        return self._identity is None

    def identity(self) -> bytes | None:
        """Return the identity of the whole message, as :meth:`AmqpInbound.identity` does.

        Returns ``None`` if the file cannot be read. In this case the message may be handed out twice, but it is never
        skipped by mistake.
        """
        if self._identity is None:
            with suppress(OSError, MessageFormatException):  # to_message() raises an error for the caller
                self._identity = self._identify(self._decode())
        return self._identity

    def _identify(self, fields: list[Any]) -> bytes | None:
        if fields[sections.MESSAGE_ID] is None or self._properties is None:
            return None
        if self.kept_whole:
            start = self._properties[0]
            return head_parts(self, self.payload) + self._digest(start, self._size - start)
        return as_values(self, self.payload, fields, map(self._told, self.spans))

    def _told(self, span: tuple[int, int]) -> bytes:
        return b"binary " + (self._spool.read(*span) if span[1] <= LARGE else self._digest(*span))

    def _digest(self, begin: int, size: int) -> bytes:
        digest = sha256()
        for position in range(begin, begin + size, PIECE):
            digest.update(self._spool.read(position, min(PIECE, begin + size - position)))
        return b"sha256 %b" % digest.digest()


class _Refused(AmqpInbound):
    """A message that cannot be decoded. Only its head was kept."""

    __slots__ = ("_error",)

    def __init__(self, payload: bytes, error: MessageFormatException) -> None:
        super().__init__(payload)
        self._error = error

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Raise an error, because the message is damaged.

        Raises:
            MessageFormatException: always.
        """
        self.unreadable = True
        raise self.told(self._error)


class Download:
    """One large bytes message that is arriving.

    Args:
        delivery: the engine's handle of the delivery.
        start: the first bytes of the message.
        head: the sections before its body, see :func:`head_of`.
        spool: the place in a file to which its bytes are written.
        limit: the largest number of bytes that the message may have (``jms.maxMessageSize``). Only the first bytes of a
            larger message are kept.
    """

    def __init__(self, delivery: Any, start: bytes, head: bytes, spool: Spool, limit: int) -> None:
        self.delivery = delivery
        self.settled = False
        self.start = start[:KEPT_OF_OVERSIZE]
        self._head = head
        self._spool = spool
        self._limit = limit
        self._size = 0
        self._sections = DataSections(len(head))
        self._error: MessageFormatException | None = None
        self._whole = False
        self._add(start, start[len(head) :])

    @property
    def failure(self) -> JMSException | None:
        """The error that occurred when the message was written to its file. ``None`` if there is none."""
        return self._spool.error

    @property
    def over(self) -> bool:
        """Whether the whole message has arrived and, unless the message is refused, is completely in its file."""
        return self._whole and (self._is_dropped or self._spool.written == self._size)

    @property
    def unwritten(self) -> int:
        """The number of bytes that wait for the disk. All messages of this connection count together."""
        return self._spool.unwritten

    @property
    def _is_dropped(self) -> bool:
        return self._error is not None or self._size > self._limit

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the message, which are the payload of one transfer."""
        self._add(data, data)

    def _add(self, data: bytes, of_body: bytes) -> None:
        was_dropped = self._is_dropped
        self._size += len(data)
        if was_dropped:
            return
        try:
            self._sections.feed(of_body)
        except MessageFormatException as error:
            self._error = error
        if self._is_dropped:
            self._spool.drop()
        else:
            self._spool.write(data)

    def finish(self, settled: bool) -> None:
        """Finish the message after its last piece. If ``settled`` is true, the broker wants no outcome."""
        self.settled = settled
        self._whole = True
        if self._is_dropped:
            return
        try:
            self._sections.end()
            self._spool.finish()
        except MessageFormatException as error:
            self._error = error
            self._spool.drop()

    def drop(self) -> None:
        """Forget the message, because the broker took it back or its link ended."""
        if not self._is_dropped and not self._whole:
            self._spool.drop()

    def inbound(self) -> AmqpInbound:
        """Return the message to hand out. If the message is too large or damaged, its ``to_message`` raises an error.

        Call this only when :attr:`over` is True.
        """
        if self._size > self._limit:
            return Oversize(self.start, self._size, self._limit)
        payload = self._head + EMPTY + bytes(self._sections.footer)
        if self._error is not None:
            return _Refused(self._head + EMPTY, self._error)
        return SpooledInbound(payload, self._spool, self._sections.spans, self._size)
