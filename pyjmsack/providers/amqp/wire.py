"""Decodes AMQP 1.0 values (1.6). This module checks every size, and limits nesting and memory, because the peer may be
hostile.

A reader is a function for one type. It takes the buffer, the position after the type code, the end of the enclosing
value, and the nesting depth. It returns the value and the position after the value.

========================= ================= ======================== =================
AMQP                      Python            AMQP                     Python
========================= ================= ======================== =================
null, boolean             None, bool        binary                   bytes
byte, short, long         Byte, Short, Long string, symbol           str, Symbol
int                       int               char                     Char
ubyte ... ulong           UByte ... ULong   list, array              list
float, double             Float, float      map                      dict
timestamp, uuid           Timestamp, UUID   described                Described
decimal                   OpaqueDecimal     array of byte            bytes
========================= ================= ======================== =================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import merge
from struct import Struct
from typing import Any
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.mapping import mapping
from pyjmsack.message.utf import decode_utf
from pyjmsack.providers.amqp.wire_types import (
    Described,
    OpaqueDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from pyjmsack.types import Byte, Char, Float, Long, Short

__all__ = [
    "MAX_DEPTH",
    "MOST_VALUES",
    "Described",
    "check_values",
    "decode_value",
    "has_more_values",
    "malformed",
    "skip",
    "told",
]

MAX_DEPTH = 64
"""The largest number of levels of nested values. This is far below the limit of Python's own stack."""

MAX_EMPTY_ELEMENTS = 8
"""The largest number of elements of an array whose elements have no bytes. The size of the frame does not limit such
elements, and each may take 56 bytes of memory."""

MOST_VALUES = 2_000_000
"""The largest number of values in the body of a message. A value may have a single byte on the wire. In Python it takes
a hundred bytes, and a microsecond or two until it is decoded."""

_SORTED_AT_ONCE = 32_768
"""How many names of a map are sorted in one call, which takes 30 ms. No other thread runs meanwhile."""

_SHORT_DESCRIPTORS = (b"\x44", b"\x53", b"\x80", b"\xa3")
"""The type codes of a ulong, and of a symbol of at most 255 bytes. AMQP reserves all other descriptors (1.3)."""

_BYTE = 0x51

Reader = Callable[[bytes, int, int, int], "tuple[Any, int]"]

_U32 = Struct(">I").unpack_from


def malformed(why: str, position: int) -> MessageFormatException:
    """Return the error for bytes that are not AMQP 1.0."""
    return MessageFormatException(f"{why} at byte {position}")


def _cut_short(position: int) -> MessageFormatException:
    """Return the error for a value that goes beyond the end of the enclosing value."""
    return malformed("the value goes beyond the end of its list, map or section", position)


def _unknown_type(data: bytes, position: int) -> MessageFormatException:
    return malformed(f"unknown type code 0x{data[position]:02x}", position)


def decode_value(data: bytes, position: int, end: int | None = None, depth: int = 0) -> tuple[Any, int]:
    """Decode one value.

    Args:
        data: the buffer.
        position: the position of the type code of the value.
        end: the position at which the enclosing value or section ends. ``None`` means the end of the buffer.
        depth: the number of values that enclose this value.

    Returns:
        The value, and the position after it.

    Raises:
        MessageFormatException: these bytes are no AMQP value. The text names the position.
    """
    if end is None:
        end = len(data)
    if position >= end:
        raise _cut_short(position)
    reader = _READERS.get(data[position])  # inline, because this function runs for each value
    if reader is None:
        raise _unknown_type(data, position)
    return reader(data, position + 1, end, depth)


def told(value: Any) -> str:
    """Return a text for comparisons of a decoded value. Two values have the same text only if they are equal and have
    the same types.

    The entries of a map are sorted, because their order must not count. No slow call of C works on all values at
    once, because no other thread could run meanwhile. Ledgers have digests of such texts, so no text may change.
    """
    kind = type(value)
    if kind is dict:
        key = None if all(isinstance(name, str) for name in value) else repr
        names = sorted(value, key=key) if len(value) <= _SORTED_AT_ONCE else _sorted_in_parts([*value], key)
        entries = [f"({type(name).__name__!r}, {name!r}, {told(value[name])})" for name in names]
        return "[" + ", ".join(["'map'", *entries]) + "]"
    if kind is list:
        return "[" + ", ".join([told(item) for item in value]) + "]"
    if kind is Described:
        return f"('described', {told(value.descriptor)}, {told(value.value)})"
    return f"({kind.__name__!r}, {value!r})"


def _sorted_in_parts(names: list[Any], key: Callable[[Any], str] | None) -> Iterable[Any]:
    """Return what ``sorted`` returns. Other threads may run between the parts, and while the parts are merged."""
    starts = range(0, len(names), _SORTED_AT_ONCE)
    return merge(*(sorted(names[start : start + _SORTED_AT_ONCE], key=key) for start in starts), key=key)


def skip(data: bytes, position: int, end: int, depth: int = 0) -> int:
    """Return the position after the value at ``position``, without decoding the value.

    Raises:
        MessageFormatException: the sizes in the bytes do not fit together.
    """
    if position >= end:
        raise _cut_short(position)
    category = data[position] >> 4  # the upper half of a type code says how wide the value is (1.2)
    if category in _FIXED_WIDTHS:
        after = position + 1 + _FIXED_WIDTHS[category]
    elif category >= 0xA:
        size, start = _size(data, position + 1, end, wide=bool(category & 1))
        after = start + size
    elif data[position] == 0 and depth < MAX_DEPTH:
        after = skip(data, skip(data, position + 1, end, depth + 1), end, depth + 1)
    else:
        raise malformed(f"unknown type code 0x{data[position]:02x} or too deeply nested", position)
    if after > end:
        raise _cut_short(position)
    return after


def has_more_values(most: int, data: bytes, position: int, end: int) -> bool:
    """Return whether there are more than ``most`` values between two positions. The values inside of a list or map
    count, too. Counting is quicker than decoding, because it makes no objects, and it ends after ``most`` values.

    Raises:
        MessageFormatException: the sizes in the bytes do not fit together.
    """
    seen = 0
    while position < end and seen <= most:
        seen += 1
        code, category = data[position], data[position] >> 4
        position += 1
        if category in _FIXED_WIDTHS:
            position += _FIXED_WIDTHS[category]
        elif category in (0xA, 0xB):
            size, start = _size(data, position, end, wide=category == 0xB)
            position = start + size
        elif category in (0xC, 0xD):
            position += 8 if category == 0xD else 2  # go on with the first element
        elif category in (0xE, 0xF):
            size, start = _size(data, position, end, wide=category == 0xF)
            count, first = _size(data, start, end, wide=category == 0xF)
            simple = first < end and data[first] != 0 and data[first] >> 4 < 0xC
            if data[first : first + 1] == b"\x51" and count == start + size - first - 1:
                count = 0  # a byte[] of Java, which is one value
            seen += count if simple else size  # the elements of an array of lists have at most so many values
            position = start + size
        elif code != 0:  # after a 0 the descriptor follows, and then the value
            return False  # no type has this code, and the decoder says so
    return seen > most


def check_values(data: bytes, position: int, end: int, most: int = MOST_VALUES) -> None:
    """Refuse bytes that hold more than ``most`` values, before any of them is decoded.

    Raises:
        MessageFormatException: there are more values, or the sizes in the bytes do not fit together.
    """
    if end - position > most and has_more_values(most, data, position, end):
        raise malformed(f"more than {most:,} values", position)


_FIXED_WIDTHS = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}


def _size(data: bytes, position: int, end: int, wide: bool) -> tuple[int, int]:
    """Return a size or count that takes 1 or 4 bytes, and the position after it."""
    after = position + (4 if wide else 1)
    if after > end:
        raise _cut_short(position)
    return (_U32(data, position)[0] if wide else data[position]), after


def _constant(value: Any) -> Reader:
    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        return value, position

    return read


def _fixed(form: str, wrap: Callable[[Any], Any]) -> Reader:
    layout = Struct(form)
    width, unpack = layout.size, layout.unpack_from

    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        after = position + width
        if after > end:
            raise _cut_short(position)
        return wrap(unpack(data, position)[0]), after

    return read


def _sized(wide: bool, wrap: Callable[[bytes, int], Any]) -> Reader:
    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        size, start = _size(data, position, end, wide)
        after = start + size
        if after > end:
            raise _cut_short(position)
        return wrap(data[start:after], start), after

    return read


def _text(raw: bytes, position: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        text = _java_text(raw)
        if text is None:
            raise malformed("the string is not UTF-8", position + error.start) from error
        return text


def _java_text(raw: bytes) -> str | None:
    """Return the text of bytes in Java's modified UTF-8, or ``None`` if they are no such text.

    If ActiveMQ Classic converts a map (``transport.transformer=jms``), it writes the texts of the map in this encoding.
    The bytes are no UTF-8 if a text has a NUL or a character above U+FFFF.
    """
    try:
        text = decode_utf(raw)
        text.encode()  # half a surrogate pair is no character
    except (MessageFormatException, UnicodeEncodeError):
        return None
    return text


def _symbol(raw: bytes, position: int) -> Symbol:
    try:
        return Symbol(raw.decode("ascii"))
    except UnicodeDecodeError as error:
        raise malformed("the symbol is not ASCII", position + error.start) from error


def _binary(raw: bytes, position: int) -> bytes:
    return raw


def _char(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
    after = position + 4
    if after > end:
        raise _cut_short(position)
    code = _U32(data, position)[0]
    if code > 0x10FFFF:
        raise malformed(f"char 0x{code:x} is not a Unicode code point", position)
    # a char of AMQP may need more than the 16 bits of Java, so the check in the constructor of Char is left out
    return str.__new__(Char, chr(code)), after


def _boolean(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
    if position >= end:
        raise _cut_short(position)
    if data[position] > 1:
        raise malformed("the boolean is neither 0 nor 1", position)
    return data[position] == 1, position + 1


def _compound_head(data: bytes, position: int, end: int, wide: bool, depth: int) -> tuple[int, int, int]:
    """Return the number of elements of a list, map or array, the position of the first element, and the position of the
    end."""
    if depth >= MAX_DEPTH:
        raise malformed(f"expected at most {MAX_DEPTH} levels of nested values", position)
    size, start = _size(data, position, end, wide)
    after = start + size
    if after > end:
        raise _cut_short(position)
    count, first = _size(data, start, after, wide)
    return count, first, after


def _elements(data: bytes, position: int, count: int, end: int, depth: int) -> list[Any]:
    if count > end - position:  # each element has at least a type code
        raise malformed(f"{count} elements do not fit in {end - position} bytes", position)
    values = []
    for _ in range(count):
        value, position = decode_value(data, position, end, depth)
        values.append(value)
    if position != end:
        raise malformed(f"{end - position} bytes follow the last element, expected none", position)
    return values


def _list(wide: bool) -> Reader:
    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        count, first, after = _compound_head(data, position, end, wide, depth)
        return _elements(data, first, count, after, depth + 1), after

    return read


def _map(wide: bool) -> Reader:
    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        count, first, after = _compound_head(data, position, end, wide, depth)
        if count % 2:
            raise malformed(f"a map has {count} elements, expected pairs of a key and a value", position)
        values = _elements(data, first, count, after, depth + 1)
        try:
            return mapping(values[::2], values[1::2]), after
        except TypeError as error:
            raise malformed("the key of a map is a list or a map, expected a simple value", position) from error

    return read


def _array(wide: bool) -> Reader:
    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        count, first, after = _compound_head(data, position, end, wide, depth)
        if first < after and data[first] == _BYTE and count == after - first - 1:
            return data[first + 1 : after], after  # a byte[] of Java
        element, position = _element_reader(data, first, after, depth + 1)
        values: list[Any] = []
        for _ in range(count):
            start = position
            value, position = element(data, position, after, depth + 1)
            if position == start and count > MAX_EMPTY_ELEMENTS:
                raise malformed(
                    f"an array has {count} elements without bytes; expected at most {MAX_EMPTY_ELEMENTS}", start
                )
            values.append(value)
        if position != after:
            raise malformed(f"{after - position} bytes follow the last element, expected none", position)
        return values, after

    return read


def _element_reader(data: bytes, position: int, end: int, depth: int) -> tuple[Reader, int]:
    """Return the reader for the elements of an array, and the position of the first element (1.6.24).

    The type of the elements stands in the array once, with its descriptor. Therefore each element may have only one
    descriptor, and this descriptor must be short. Otherwise an element of one byte would become many objects.
    """
    if position >= end:
        raise _cut_short(position)
    if data[position] != 0:
        return _reader(data, position), position + 1
    if depth >= MAX_DEPTH:
        raise malformed(f"expected at most {MAX_DEPTH} levels of nested values", position)
    start = position + 1
    if data[start : start + 1] not in _SHORT_DESCRIPTORS:
        raise malformed("the descriptor of the elements of an array is neither a ulong nor a short symbol", start)
    descriptor, position = decode_value(data, start, end, depth + 1)
    if position >= end:
        raise _cut_short(position)
    if data[position] == 0:
        raise malformed("the elements of an array have more than one descriptor", position)
    element = _reader(data, position)

    def read(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
        value, position = element(data, position, end, depth + 1)
        return Described(descriptor, value), position

    return read, position + 1


def _reader(data: bytes, position: int) -> Reader:
    reader = _READERS.get(data[position])
    if reader is None:
        raise _unknown_type(data, position)
    return reader


def _described(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
    if depth >= MAX_DEPTH:
        raise malformed(f"expected at most {MAX_DEPTH} levels of nested values", position)
    descriptor, position = decode_value(data, position, end, depth + 1)
    value, position = decode_value(data, position, end, depth + 1)
    return Described(descriptor, value), position


def _empty_list(data: bytes, position: int, end: int, depth: int) -> tuple[Any, int]:
    return [], position


def _make(kind: type[Any]) -> Callable[[Any], Any]:
    """Return the fastest function that makes a value of a wrapper class.

    The function checks no range, because a value with the right number of bytes is always in range.
    """
    return partial(kind.__mro__[-2].__new__, kind)


_READERS: dict[int, Reader] = {
    0x00: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(_make(UInt)(0)),
    0x44: _constant(_make(ULong)(0)),
    0x45: _empty_list,
    0x50: _fixed(">B", _make(UByte)),
    0x51: _fixed(">b", _make(Byte)),
    0x52: _fixed(">B", _make(UInt)),
    0x53: _fixed(">B", _make(ULong)),
    0x54: _fixed(">b", int),
    0x55: _fixed(">b", _make(Long)),
    0x56: _boolean,
    0x60: _fixed(">H", _make(UShort)),
    0x61: _fixed(">h", _make(Short)),
    0x70: _fixed(">I", _make(UInt)),
    0x71: _fixed(">i", int),
    0x72: _fixed(">f", Float),
    0x73: _char,
    0x74: _fixed("4s", OpaqueDecimal),
    0x80: _fixed(">Q", _make(ULong)),
    0x81: _fixed(">q", _make(Long)),
    0x82: _fixed(">d", float),
    0x83: _fixed(">q", Timestamp),
    0x84: _fixed("8s", OpaqueDecimal),
    0x94: _fixed("16s", OpaqueDecimal),
    0x98: _fixed("16s", lambda raw: UUID(bytes=raw)),
    0xA0: _sized(False, _binary),
    0xA1: _sized(False, _text),
    0xA3: _sized(False, _symbol),
    0xB0: _sized(True, _binary),
    0xB1: _sized(True, _text),
    0xB3: _sized(True, _symbol),
    0xC0: _list(False),
    0xC1: _map(False),
    0xD0: _list(True),
    0xD1: _map(True),
    0xE0: _array(False),
    0xF0: _array(True),
}
