"""AMQP as another client may write it: each value in its longest form (1.6), which brokers shorten or keep."""

from __future__ import annotations

from struct import pack
from typing import Any

from pyjmsack import Long

__all__ = ["described", "wide"]


def wide(value: Any) -> bytes:
    """Return the longest encoding of a value."""
    if value is None:
        return b"\x40"
    if isinstance(value, bool):
        return b"\x56" + bytes([value])
    if isinstance(value, int):
        return pack(">Bq", 0x81, value) if isinstance(value, Long) else pack(">Bi", 0x71, value)
    if isinstance(value, bytes):
        return pack(">BI", 0xB0, len(value)) + value
    if isinstance(value, str):
        raw = value.encode()
        return pack(">BI", 0xB3 if value.startswith("x-opt-") else 0xB1, len(raw)) + raw
    items = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
    content = b"".join(map(wide, items))
    return pack(">BII", 0xD1 if isinstance(value, dict) else 0xD0, len(content) + 4, len(items)) + content


def described(code: int, value: Any) -> bytes:
    """Return a section; the fields of a header that are numbers are small unsigned ones."""
    if code == 0x70:
        durable, priority = value
        content = wide(durable) + bytes([0x50, priority])
        return pack(">BBBBII", 0, 0x53, code, 0xD0, len(content) + 4, 2) + content
    return bytes([0, 0x53, code]) + wide(value)
