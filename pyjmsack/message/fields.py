"""Checks the values that JMS allows in a map or stream body, and converts them to other types (S172, S173)."""

from __future__ import annotations

from typing import Any

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.convert import check_value, convert, kind_of, sized
from pyjmsack.types import Char

__all__ = ["check_field", "convert_field", "sized_field"]


def check_field(name: object, value: Any) -> Any:
    """Return ``value`` as a map or stream keeps it (S172). Bytes are copied.

    Args:
        name: the name or the position of the field, for the error text.
        value: the value that the caller gave.

    Raises:
        MessageFormatException: JMS does not allow the type, or the number does not fit.
    """
    if type(value) is Char:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return check_value(name, value, "field")


def sized_field(name: object, kind: str, value: Any) -> Any:
    """Return ``value`` as the Java type ``kind``, for methods such as ``set_byte`` and ``write_byte``.

    Raises:
        MessageFormatException: ``value`` has another Python type, or does not fit.
    """
    if kind == "char" and isinstance(value, str):
        return Char(value)
    if kind == "bytes" and isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if kind == "bytes" and value is None:
        return None
    return sized(name, kind, value, "field")


def convert_field(name: object, value: Any, wanted: str) -> Any:
    """Read ``value`` as the type ``wanted``, if the table of S173 allows this conversion. The table has the conversions
    that S162 allows for properties, and also those of char and bytes.

    Args:
        name: the name or the position of the field, for the error text.
        value: the stored value. ``None`` stands for a missing value.
        wanted: ``boolean``, ``byte``, ``short``, ``char``, ``int``, ``long``, ``float``, ``double``, ``string`` or
            ``bytes``.

    Returns:
        A plain ``bool``, ``int``, ``float``, ``str`` or ``bytes``, or a ``Char``. ``None`` only if ``value`` is
        ``None`` and ``wanted`` is ``string`` or ``bytes``.

    Raises:
        MessageFormatException: the table does not allow this conversion, or the string is not a number of this type.
    """
    is_char = type(value) is Char
    if wanted == "char":
        if is_char:
            return value
        raise _refusal(name, value, wanted)
    if wanted == "bytes":
        if value is None or isinstance(value, bytes):
            return None if value is None else bytes(value)
        raise _refusal(name, value, wanted)
    if is_char and wanted != "string":
        raise _refusal(name, value, wanted)
    return convert(name, value, wanted)


def _refusal(name: object, value: Any, wanted: str) -> MessageFormatException:
    if value is None:
        return MessageFormatException(f"{name!r} is missing or None; expected a value that can be read as {wanted}")
    kind = "char" if type(value) is Char else kind_of(value)
    return MessageFormatException(f"{name!r} has the type {kind}; JMS does not allow reading this type as {wanted}")
