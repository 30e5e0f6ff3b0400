"""A message over ``jms.maxMessageSize``: its bytes are dropped as they arrive, and it is refused alone (S166)."""

from __future__ import annotations

from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import Message
from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire import decode_value
from pyjmsack.providers.amqp.wire_types import Described

__all__ = ["Oversize", "take"]

_KEPT = 1024
"""Bytes from the start that are kept: the header, which says whether the message is persistent, comes first (3.2)."""
_HEADER = 0x70
_PIECE = native.SCRATCH_SIZE


class Oversize(AmqpInbound):
    """What is left of a message that is too large: enough to refuse it."""

    __slots__ = ("limit", "size")

    def __init__(self, limit: int) -> None:
        super().__init__(b"")
        self.limit = limit
        self.size = 0

    def add(self, piece: bytes) -> None:
        """More of it arrived."""
        if len(self.payload) < _KEPT:
            self.payload += piece[: _KEPT - len(self.payload)]
        self.size += len(piece)

    @property
    def persistent(self) -> bool:
        """Whether it survives a restart of the broker; what cannot be told counts as not."""
        try:
            section, _ = decode_value(self.payload, 0)
        except MessageFormatException:
            return False
        known = isinstance(section, Described) and section.descriptor == _HEADER and isinstance(section.value, list)
        return bool(known and section.value[:1] == [True])

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Raise, as there is no message.

        Raises:
            MessageFormatException: always; the text has size and limit.
        """
        raise MessageFormatException(f"it has {self.size:,} bytes, and jms.maxMessageSize allows {self.limit:,}")


def take(link: native.Link, delivery: native.Delivery, oversize: Oversize, scratch: Any) -> None:
    """Drop what is here of a delivery, piece by piece: at no time is there a second copy of it."""
    while (size := min(native.delivery_pending(delivery), _PIECE)) > 0:
        oversize.add(native.receive(link, size, scratch))
