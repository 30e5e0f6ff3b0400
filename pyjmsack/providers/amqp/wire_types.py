"""Python classes for the AMQP 1.0 primitive types (1.6) that neither Python nor JMS has a class for."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyjmsack.errors import MessageFormatException

__all__ = ["ByteArray", "Described", "OpaqueDecimal", "Symbol", "Timestamp", "UByte", "UInt", "ULong", "UShort"]


class Symbol(str):
    """An AMQP symbol: ASCII text that names something."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970, 64 bits signed."""

    __slots__ = ()


class _Unsigned(int):
    """An ``int`` with a width; the constructor refuses what does not fit, with ``MessageFormatException``."""

    __slots__ = ()
    bits = 0

    def __new__(cls, value: int) -> _Unsigned:
        if not 0 <= value < 1 << cls.bits:
            raise MessageFormatException(f"{value} does not fit {cls.bits} bits, unsigned")
        return super().__new__(cls, value)


class UByte(_Unsigned):
    """8 bits, unsigned."""

    __slots__ = ()
    bits = 8


class UShort(_Unsigned):
    """16 bits, unsigned."""

    __slots__ = ()
    bits = 16


class UInt(_Unsigned):
    """32 bits, unsigned."""

    __slots__ = ()
    bits = 32


class ULong(_Unsigned):
    """64 bits, unsigned."""

    __slots__ = ()
    bits = 64


class OpaqueDecimal(bytes):
    """An IEEE 754 decimal number as its 4, 8 or 16 bytes; JMS has no such type, so it is only passed on."""

    __slots__ = ()


class ByteArray(NamedTuple):
    """Bytes to be written as an array of byte: how a Java ``byte[]`` looks as the object of Qpid JMS."""

    data: bytes


class Described(NamedTuple):
    """A value with a descriptor (1.1.2)."""

    descriptor: Any
    value: Any
