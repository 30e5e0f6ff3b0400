"""Finds the body of a large message that arrives in pieces. Only the type and the size of each data section are read
(3.2)."""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.body import is_plain_bytes
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.sections import MOST_SECTIONS, body_begins
from pyjmsack.spi.envelope import NotOneMessageError

__all__ = ["EMPTY", "DataSections", "head_of"]

EMPTY: Final = b"\x00\x53\x75\xa0\x00"
"""A data section without content. This section replaces the body, so that the head of a message can be read like a
whole message."""
_LARGEST_PROPERTIES = 65_536
"""The largest number of bytes of the application properties of a message whose body is received into a file."""
_MOST_FOOTER = 65_536
"""The largest number of bytes that the footer of a message may have."""


def _heads() -> dict[bytes, tuple[int, bool]]:
    """Return all byte strings with which a data section or a footer can begin.

    For each byte string, the dictionary has two values: the number of bytes of the size field that follows, and whether
    the section is a footer.
    """
    found = {}
    for code, name, types in ((0x75, b"amqp:data:binary", (0xA0, 0xB0)), (0x78, b"amqp:footer:map", (0xC1, 0xD1))):
        for descriptor in (b"\x53%c" % code, b"\x80" + bytes(7) + b"%c" % code, b"\xa3%c%b" % (len(name), name)):
            for kind, width in zip(types, (1, 4), strict=True):
                found[b"\x00%b%c" % (descriptor, kind)] = (width, code == 0x78)
    return found


_HEADS: Final = _heads()
_WHOLE: Final = re.compile(
    b"|".join(b"(%b.{%d})" % (re.escape(head), width) for head, (width, _) in _HEADS.items()), re.DOTALL
)
"""Finds the whole head of a section in one step. The number of the matching group is the place of this head in
``_HEADS``."""
_KINDS: Final = tuple(_HEADS.values())


def head_of(start: bytes) -> bytes | None:
    """Return the sections before the body, if the message is a bytes message whose body is in data sections.

    Args:
        start: the first bytes of a message.

    Returns:
        ``None`` if the message is of another kind, or if the sections before the body are not complete or cannot be
        read. Such a message is gathered in memory and decoded as a whole.
    """
    position = body_begins(start)
    if position is None:
        return None
    head = AmqpInbound(start[:position] + EMPTY)
    try:
        fields = head._decode()
        begin, end = head._application_properties or (0, 0)
        if end - begin > _LARGEST_PROPERTIES:  # the loop would decode them for the content type
            return None
        content_type = head._content_type(fields)
    except MessageFormatException:
        return None
    return start[:position] if is_plain_bytes(head._annotations.wire_type, content_type) else None


class DataSections:
    """Finds the content of the data sections of one message. The bytes of the message may arrive in pieces that begin
    and end anywhere.

    Args:
        position: the position in the message at which the first section begins.

    Attributes:
        spans: the contents that were found so far, each as its position and its length in bytes.
        footer: the section after the body. It is empty if there is no such section.
    """

    def __init__(self, position: int) -> None:
        self.spans: list[tuple[int, int]] = []
        self.footer = bytearray()
        self._position = position
        self._begun = bytearray()
        """The bytes of the head of a section that have arrived, while the head is not complete."""
        self._left = 0
        """The number of bytes of the present section that have not arrived yet."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the message.

        Raises:
            NotOneMessageError: another message begins in these bytes.
            MessageFormatException: the bytes are not data sections, or there are too many data sections.
        """
        place, end = 0, len(data)
        while place < end:
            if self._left:
                size = min(self._left, end - place)
                self._left -= size
                if self.footer:
                    self.footer += data[place : place + size]
            elif self._begun or self.footer or (head := _WHOLE.match(data, place)) is None:
                size = 1
                self._begun += data[place : place + 1]
                self._look(self._position + 1)
            else:  # take the whole head at once, because a hostile message has thousands of sections
                size = len(head[0])
                width, is_footer = _KINDS[(head.lastindex or 1) - 1]
                self._begin(head[0], width, self._position + size, is_footer)
            place += size
            self._position += size

    def end(self) -> None:
        """Check that the message may end here.

        Raises:
            MessageFormatException: the message ends inside a section.
        """
        if self._left or self._begun:
            raise MessageFormatException(f"data section: {self._left or 'some'} bytes are missing at its end")

    def _look(self, position: int) -> None:
        """Begin a section if its head is complete. ``position`` is the place after the bytes of the head that have
        arrived."""
        begun = bytes(self._begun)
        if self.footer:
            raise NotOneMessageError("bytes follow the footer, which must end the message")
        for head, (width, is_footer) in _HEADS.items():
            if begun.startswith(head):
                if len(begun) == len(head) + width:
                    self._begin(begun, width, position, is_footer)
                return
        if not any(head.startswith(begun) for head in _HEADS):
            if begun[:2] == b"\x00\x53" and 0x70 <= begun[-1] <= 0x78 and len(begun) == 3:
                raise NotOneMessageError("a section that belongs to another message follows the body")
            raise MessageFormatException("expected a data section or a footer after a data section")

    def _begin(self, begun: bytes, width: int, position: int, is_footer: bool) -> None:
        """Begin a section. The last ``width`` bytes of its head are the size of its content."""
        size = int.from_bytes(begun[-width:], "big")
        self._begun.clear()
        self._left = size
        if is_footer:
            if size > _MOST_FOOTER:
                raise MessageFormatException(f"footer section: {size:,} bytes, expected at most {_MOST_FOOTER:,}")
            self.footer += begun
        elif len(self.spans) == MOST_SECTIONS:
            raise MessageFormatException(f"expected at most {MOST_SECTIONS:,} data sections")
        else:
            self.spans.append((position, size))
