"""Converts AMQP values whose types JMS does not have into the closest JMS values (S166)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

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
from pyjmsack.types import Char, Int, Long, Short

__all__ = ["as_jms", "as_jms_map"]


def as_jms(value: Any) -> Any:
    """Return the value of a property, map field or stream field in a type of JMS.

    An unsigned number becomes the next wider type. A timestamp becomes a long of milliseconds. A symbol, a UUID, and a
    char beyond the 16 bits of Java become text. A decimal becomes its bytes, and a described value becomes the value
    without its descriptor. A number that is too large for a long keeps its type. A list or map in a field keeps its
    type, too. ``get_object`` reads such values.
    """
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


def as_jms_map(items: dict[Any, Any]) -> dict[Any, Any]:
    """Return the map with its values in types of JMS. If no value has to be converted, return the same map."""
    if _CONVERSIONS.keys().isdisjoint(map(type, items.values())):
        return items
    return {name: as_jms(value) for name, value in items.items()}


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    UByte: Short,
    UShort: Int,
    UInt: Long,
    ULong: lambda value: Long(value) if value < 1 << 63 else value,
    Timestamp: Long,
    Symbol: str,
    UUID: str,
    Char: lambda value: value if value <= "\uffff" else str(value),
    OpaqueDecimal: bytes,
    Described: lambda value: as_jms(value.value),
    list: lambda value: [as_jms(item) for item in value],
    dict: lambda value: {as_jms(name): as_jms(item) for name, item in value.items()},
}
