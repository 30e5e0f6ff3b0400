"""A field of the Attach frame that proton does not write: the capabilities a link desires (AMQP 1.0 2.7.3)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pyjmsack.providers.amqp.wire import skip

__all__ = ["with_desired_capabilities"]

_ATTACH = b"\x00\x53\x12"
_DESIRED_CAPABILITIES = 12
"""Position of the field in the performative; only ``properties`` comes after it."""
_NULL = b"\x40"


def with_desired_capabilities(frame: bytes, words: Sequence[str]) -> bytes:
    """Return an Attach frame with its desired capabilities set."""
    body = frame[frame[4] * 4 :]
    assert body.startswith(_ATTACH), "not an attach frame"
    wide = body[3] == 0xD0
    position = 4 + (8 if wide else 2)
    fields = []
    while position < len(body):
        after = skip(body, position, len(body))
        fields.append(body[position:after])
        position = after
    fields += [_NULL] * (_DESIRED_CAPABILITIES + 1 - len(fields))
    fields[_DESIRED_CAPABILITIES] = _symbols(words)
    packed = b"".join(fields)
    performative = _ATTACH + struct.pack(">BII", 0xD0, len(packed) + 4, len(fields)) + packed
    return struct.pack(">I", 8 + len(performative)) + b"\x02" + frame[5:8] + performative


def _symbols(words: Sequence[str]) -> bytes:
    """Return an array of symbols (1.6.24)."""
    packed = b"".join(bytes((len(word),)) + word.encode("ascii") for word in words)
    return bytes((0xE0, len(packed) + 2, len(words), 0xA3)) + packed
