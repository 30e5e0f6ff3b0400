"""Python classes for the AMQP 1.0 primitive types (1.6) that neither Python nor JMS has a class for."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyjmsack.errors import MessageFormatException

__all__ = ["ByteArray", "Described", "OpaqueDecimal", "Symbol", "Timestamp", "UByte", "UInt", "ULong", "UShort"]


class Symbol(str):
    """An AMQP symbol: ASCII text that names something."""

    __slots__ = ()


class Timestamp(int):
    """A time in milliseconds since 1970, with 64 bits and a sign."""

    __slots__ = ()


class _Unsigned(int):
    """An unsigned integer with a fixed number of bits.

    The constructor raises ``MessageFormatException`` if the value does not fit.
    """

    __slots__ = ()
    bits = 0

    def __new__(cls, value: int) -> _Unsigned:
        if not 0 <= value < 1 << cls.bits:
            raise MessageFormatException(f"{value} does not fit in an unsigned integer of {cls.bits} bits")
        return super().__new__(cls, value)


class UByte(_Unsigned):
    """An unsigned integer of 8 bits."""

    __slots__ = ()
    bits = 8


class UShort(_Unsigned):
    """An unsigned integer of 16 bits."""

    __slots__ = ()
    bits = 16


class UInt(_Unsigned):
    """An unsigned integer of 32 bits."""

    __slots__ = ()
    bits = 32


class ULong(_Unsigned):
    """An unsigned integer of 64 bits."""

    __slots__ = ()
    bits = 64


class OpaqueDecimal(bytes):
    """The 4, 8 or 16 bytes of an IEEE 754 decimal number. JMS has no such type, so this library gives the bytes to the
    caller unchanged."""

    __slots__ = ()


class ByteArray(NamedTuple):
    """Bytes that are encoded as an array of the type byte, like a Java ``byte[]`` in an object message of Qpid JMS."""

    data: bytes


class Described(NamedTuple):
    """A value together with its descriptor, which names the type of the value (1.1.2)."""

    descriptor: Any
    value: Any
