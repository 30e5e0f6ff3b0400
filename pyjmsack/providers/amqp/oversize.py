"""A message over ``jms.maxMessageSize``. The client drops the bytes of the message when they arrive, and refuses only
this message (S166).

The option is in ``uri/connection.py``, and ``engine/link.py`` counts the bytes.
"""

from __future__ import annotations

from pyjmsack.destination import Destination
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import Message
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire import decode_value
from pyjmsack.providers.amqp.wire_types import Described

__all__ = ["Oversize"]

_HEADER = 0x70


class Oversize(AmqpInbound):
    """The kept part of a message that is too large, which is enough to refuse the message."""

    __slots__ = ("_size", "limit")

    def __init__(self, start: bytes, size: int, limit: int) -> None:
        """Keep ``start``, the first bytes of the message. They contain the header, which says whether the message is
        persistent (3.2)."""
        super().__init__(start)
        self._size = size
        self.limit = limit

    @property
    def size(self) -> int:
        """The number of bytes that the broker sent for the message."""
        return self._size

    @property
    def persistent(self) -> bool:
        """True if the message survives a restart of the broker. False if the header of the message cannot be read."""
        try:
            section, _ = decode_value(self.payload, 0)
        except MessageFormatException:
            return False
        known = isinstance(section, Described) and section.descriptor == _HEADER and isinstance(section.value, list)
        return bool(known and section.value[:1] == [True])

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Raise an error, because the message is not complete.

        Raises:
            MessageFormatException: always. The text names the size and the limit.
        """
        raise MessageFormatException(
            f"the message has {self._size:,} bytes, and jms.maxMessageSize allows {self.limit:,}"
        )
