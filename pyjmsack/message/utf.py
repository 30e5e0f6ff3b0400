"""Writes and reads the modified UTF-8 of Java's ``DataInput``.

Modified UTF-8 has two differences from UTF-8. U+0000 is written as two bytes. A character above U+FFFF is written as
two surrogates.
"""

from __future__ import annotations

import re

from pyjmsack.errors import MessageFormatException

__all__ = ["decode_utf", "encode_utf"]

_PIECE = 1 << 14
"""The number of bytes that are decoded at once, in about 4 ms."""
_HIGH = re.compile(rb"\xed[\xa0-\xaf]")
_LOW = re.compile(rb"\xed[\xb0-\xbf]")
"""The beginnings of the two halves of a character above U+FFFF."""


def encode_utf(text: str) -> bytes:
    """Return ``text`` in modified UTF-8, without the length that ``writeUTF`` puts before it.

    Raises:
        MessageFormatException: ``text`` is not a ``str``.
    """
    if not isinstance(text, str):
        raise MessageFormatException(f"write_utf: expected str, not {type(text).__name__}")
    if any(character > "\uffff" for character in text):
        text = "".join(map(_as_surrogates, text))
    return text.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def _as_surrogates(character: str) -> str:
    code = ord(character) - 0x10000
    return character if code < 0 else chr(0xD800 | code >> 10) + chr(0xDC00 | code & 0x3FF)


def decode_utf(data: bytes) -> str:
    """Return the text of modified UTF-8 bytes. A surrogate without its partner stays in the text.

    A long text is decoded in pieces, because Python decodes surrogates slowly, and no other thread runs meanwhile.

    Raises:
        MessageFormatException: the bytes are not valid modified UTF-8.
    """
    pieces, start = [], 0
    while len(data) - start > _PIECE:
        end = _between_characters(data, start + _PIECE)
        pieces.append(_decode(data[start:end], start))
        start = end
    pieces.append(_decode(data[start:] if start else data, start))
    return "".join(pieces)


def _between_characters(data: bytes, position: int) -> int:
    """Return a position, at most a character before this one, that is not inside of a character. In bytes that are no
    modified UTF-8 the position may be anywhere."""
    for end in range(position, position - 6, -1):
        if data[end] & 0xC0 != 0x80 and not (_LOW.match(data, end) and _HIGH.match(data, end - 3)):
            return end
    return position


def _decode(data: bytes, position: int) -> str:
    try:
        # the byte C0 occurs in the pair C0 80 only, so the replacement changes no other character
        units = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError as error:
        place = position + error.start
        raise MessageFormatException(f"byte {place} is not valid modified UTF-8: {error.reason}") from error
