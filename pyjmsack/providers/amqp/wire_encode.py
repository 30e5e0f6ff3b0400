"""Encodes AMQP 1.0 values in their shortest form (1.6). The module ``wire`` decodes them."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.mapping import check_keys
from pyjmsack.providers.amqp.wire import MAX_DEPTH
from pyjmsack.providers.amqp.wire_types import (
    ByteArray,
    Described,
    OpaqueDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["encode_binary", "encode_map", "encode_string", "encode_symbol", "encode_timestamp", "encode_value"]

_BYTE = [bytes((value,)) for value in range(256)]
_TAGGED_SHORT = Struct(">Bh").pack
_TAGGED_USHORT = Struct(">BH").pack
_TAGGED_INT = Struct(">Bi").pack
_TAGGED_UINT = Struct(">BI").pack
_TAGGED_LONG = Struct(">Bq").pack
_TAGGED_ULONG = Struct(">BQ").pack
_TAGGED_FLOAT = Struct(">Bf").pack
_TAGGED_DOUBLE = Struct(">Bd").pack
_COMPOUND8 = Struct(">BBB").pack
_COMPOUND32 = Struct(">BII").pack
_ARRAY32 = Struct(">BIIB").pack

_STRING_HEADS = [bytes((0xA1, size)) for size in range(256)]
_BINARY_HEADS = [bytes((0xA0, size)) for size in range(256)]
_SYMBOL_HEADS = [bytes((0xA3, size)) for size in range(256)]


def encode_string(text: str) -> bytes:
    """Encode ``text`` as an AMQP string.

    Raises:
        MessageFormatException: the text contains half a surrogate pair, which UTF-8 cannot encode.
    """
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"the text is not Unicode at character {error.start}: {error.reason}") from error
    size = len(raw)
    return (_STRING_HEADS[size] if size < 256 else _TAGGED_UINT(0xB1, size)) + raw


def encode_binary(raw: bytes) -> bytes:
    """Encode ``raw`` as an AMQP binary."""
    size = len(raw)
    return (_BINARY_HEADS[size] if size < 256 else _TAGGED_UINT(0xB0, size)) + raw


def encode_symbol(text: str) -> bytes:
    """Encode ``text`` as an AMQP symbol.

    Raises:
        MessageFormatException: the text is not ASCII.
    """
    try:
        raw = text.encode("ascii")
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"symbol {text!r} is not ASCII") from error
    size = len(raw)
    return (_SYMBOL_HEADS[size] if size < 256 else _TAGGED_UINT(0xB3, size)) + raw


def encode_timestamp(milliseconds: int) -> bytes:
    """Encode milliseconds since 1970 as an AMQP timestamp."""
    return _TAGGED_LONG(0x83, milliseconds)


def encode_value(value: Any, depth: int = 0) -> bytes:
    """Encode a value of any type that the table in the module ``wire`` contains.

    A plain Python ``int`` becomes an AMQP int if it fits in 32 bits, and otherwise a long.

    Raises:
        MessageFormatException: AMQP has no type for the value, or the value is out of range or nested deeper than
            ``MAX_DEPTH``.
    """
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    if depth >= MAX_DEPTH:
        raise MessageFormatException(f"expected at most {MAX_DEPTH} levels of nested lists and maps")
    if isinstance(value, Described):
        return b"\x00" + encode_value(value.descriptor, depth + 1) + encode_value(value.value, depth + 1)
    if isinstance(value, dict):
        check_keys([*value])
        pairs = [encode_value(item, depth + 1) for pair in value.items() for item in pair]
        return _compound(0xC1, pairs)
    if isinstance(value, (list, tuple)):
        return _compound(0xC0, [encode_value(item, depth + 1) for item in value]) if value else b"\x45"
    raise MessageFormatException(f"AMQP has no type for a {type(value).__name__}")


def encode_map(items: dict[str, Any], noun: str) -> bytes:
    """Encode names and values as an AMQP map.

    Args:
        items: the names and values.
        noun: the word for an item in an error text, such as ``property``.

    Raises:
        MessageFormatException: an item has one of the faults that :func:`encode_value` names. The text names the item.
    """
    parts = []
    for name, value in items.items():
        try:
            parts.append(encode_string(name))
            parts.append(encode_value(value, 1))
        except MessageFormatException as error:
            raise MessageFormatException(f"{noun} {name!r}: {error}") from error
    return _compound(0xC1, parts)


def _compound(code: int, parts: list[bytes]) -> bytes:
    """Return an encoded list (type code C0) or map (type code C1) of encoded elements. The type code of the long form
    is higher by 16."""
    content = b"".join(parts)
    count = len(parts)
    parts.clear()  # frees the memory of the parts, which may be large
    if len(content) < 255 and count < 256:
        return _COMPOUND8(code, len(content) + 1, count) + content
    return _COMPOUND32(code + 0x10, len(content) + 4, count) + content


def _byte_array(value: ByteArray) -> bytes:
    """Encode bytes as an array whose elements have the type byte (1.6.24)."""
    size = len(value.data)
    if size < 254:
        return bytes((0xE0, size + 2, size, 0x51)) + value.data
    return _ARRAY32(0xF0, size + 5, size, 0x51) + value.data


def _plain_int(value: int) -> bytes:
    if -0x80 <= value < 0x80:
        return b"\x54" + _BYTE[value & 0xFF]
    if -0x80000000 <= value < 0x80000000:
        return _TAGGED_INT(0x71, value)
    return _long(value)


def _long(value: int) -> bytes:
    if -0x80 <= value < 0x80:
        return b"\x55" + _BYTE[value & 0xFF]
    if not -(1 << 63) <= value < 1 << 63:
        raise MessageFormatException(f"{value} does not fit the 64 bits of a long")
    return _TAGGED_LONG(0x81, value)


def _uint(value: int) -> bytes:
    if value == 0:
        return b"\x43"
    return b"\x52" + _BYTE[value] if value < 256 else _TAGGED_UINT(0x70, value)


def _ulong(value: int) -> bytes:
    if value == 0:
        return b"\x44"
    return b"\x53" + _BYTE[value] if value < 256 else _TAGGED_ULONG(0x80, value)


def _float(value: float) -> bytes:
    try:
        return _TAGGED_FLOAT(0x72, value)
    except OverflowError as error:
        raise MessageFormatException(f"{float(value)} is too large for a float") from error


def _timestamp(value: int) -> bytes:
    if not -(1 << 63) <= value < 1 << 63:
        raise MessageFormatException(f"timestamp {int(value)} does not fit 64 bits")
    return encode_timestamp(value)


def _decimal(value: bytes) -> bytes:
    codes = {4: b"\x74", 8: b"\x84", 16: b"\x94"}
    if len(value) not in codes:
        raise MessageFormatException(f"a decimal has 4, 8 or 16 bytes, not {len(value)}")
    return codes[len(value)] + value


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    int: _plain_int,
    str: encode_string,
    float: lambda value: _TAGGED_DOUBLE(0x82, value),
    bytes: encode_binary,
    bytearray: lambda value: encode_binary(bytes(value)),
    memoryview: lambda value: encode_binary(bytes(value)),
    Byte: lambda value: b"\x51" + _BYTE[value & 0xFF],
    Short: lambda value: _TAGGED_SHORT(0x61, value),
    Int: _plain_int,
    Long: _long,
    Float: _float,
    Double: lambda value: _TAGGED_DOUBLE(0x82, value),
    Char: lambda value: _TAGGED_UINT(0x73, ord(value)),
    Symbol: encode_symbol,
    Timestamp: _timestamp,
    UUID: lambda value: b"\x98" + value.bytes,
    UByte: lambda value: b"\x50" + _BYTE[value],
    UShort: lambda value: _TAGGED_USHORT(0x60, value),
    UInt: _uint,
    ULong: _ulong,
    OpaqueDecimal: _decimal,
    ByteArray: _byte_array,
}
