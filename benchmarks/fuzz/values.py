"""Random AMQP values, STOMP lines and damage, as bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

__all__ = ["amqp_value", "damaged", "described", "frame", "text", "uint"]

_FIXED = {0x40: 0, 0x41: 0, 0x42: 0, 0x43: 0, 0x44: 0, 0x45: 0, 0x50: 1, 0x51: 1, 0x52: 1, 0x53: 1, 0x54: 1, 0x55: 1}
_FIXED |= {0x56: 1, 0x60: 2, 0x61: 2, 0x70: 4, 0x71: 4, 0x72: 4, 0x73: 4, 0x74: 4, 0x80: 8, 0x81: 8, 0x82: 8, 0x83: 8}
_FIXED |= {0x84: 8, 0x94: 16, 0x98: 16}
_WORDS = [
    "",
    "a",
    "amqp:not-found",
    "x-opt-jms-msg-type",
    "port",
    "1",
    "-1",
    "\u00b2",
    "ID:AMQP_ULONG:9",
    "\u00e4" * 3,
    "0" * 5000,
]


def text(dice: random.Random) -> str:
    """Return a word that some code may stumble over."""
    return dice.choice(_WORDS) if dice.random() < 0.8 else "".join(map(chr, dice.choices(range(1, 0x2FF), k=8)))


def uint(value: int) -> bytes:
    """Encode a uint."""
    return b"\x70" + struct.pack(">I", value)


def _sized(dice: random.Random, narrow: int, data: bytes) -> bytes:
    if len(data) < 256 and dice.random() < 0.7:
        return bytes((narrow, len(data))) + data
    return bytes((narrow | 0x10,)) + struct.pack(">I", len(data)) + data


def _compound(dice: random.Random, narrow: int, count: int, data: bytes) -> bytes:
    if dice.random() < 0.03:
        count = dice.choice([0, 1, 255, 2**31, 2**32 - 1])
    if len(data) < 255 and count < 256 and dice.random() < 0.7:
        return bytes((narrow, len(data) + 1, count)) + data
    return bytes((narrow | 0x10,)) + struct.pack(">II", len(data) + 4, count) + data


def amqp_value(dice: random.Random, depth: int = 0) -> bytes:
    """Encode a random value, nearly always well (1.6)."""
    kind = dice.randrange(10 if depth < 4 else 5)
    if kind < 3:
        code = dice.choice([*_FIXED])
        return bytes((code,)) + (dice.randbytes(_FIXED[code]) if dice.random() < 0.8 else b"\xff" * _FIXED[code])
    if kind < 5:
        code = dice.choice([0xA0, 0xA1, 0xA3])
        return _sized(dice, code, dice.randbytes(dice.randrange(8)) if dice.random() < 0.2 else text(dice).encode())
    if kind == 5:
        return b"\x00" + amqp_value(dice, depth + 1) + amqp_value(dice, depth + 1)
    if kind == 6:  # an array: elements without their own codes
        code = dice.choice([*_FIXED])
        count = dice.randrange(6)
        return _compound(dice, 0xE0, count, bytes((code,)) + dice.randbytes(_FIXED[code] * count))
    count = dice.randrange(5)
    items = [amqp_value(dice, depth + 1) for _ in range(count * (2 if kind == 7 else 1))]
    return _compound(dice, 0xC1 if kind == 7 else 0xC0, len(items), b"".join(items))


def described(code: int, fields: Sequence[bytes]) -> bytes:
    """Encode a described list."""
    data = b"".join(fields)
    return b"\x00\x53" + bytes((code,)) + b"\xd0" + struct.pack(">II", len(data) + 4, len(fields)) + data


def frame(body: bytes, kind: int = 0, channel: int = 0) -> bytes:
    """Return a frame (2.3.1)."""
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


def damaged(dice: random.Random, data: bytes) -> bytes:
    """Return the bytes with a few flipped, cut out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(dice.choice([0, 1, 1, 2, 5])):
        place = dice.randrange(len(changed) + 1)
        action = dice.randrange(5)
        if action == 0 and place < len(changed):
            changed[place] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        elif action == 1:
            del changed[place : place + dice.randrange(1, 9)]
        elif action == 2:
            changed[place:place] = changed[place : place + dice.randrange(1, 40)]
        elif action == 3:
            changed[place:place] = dice.randbytes(dice.randrange(1, 9))
        elif len(changed) >= place + 4:
            changed[place : place + 4] = struct.pack(">I", dice.choice([0, 1, 255, 2**31 - 1, 2**32 - 1]))
    return bytes(changed)
