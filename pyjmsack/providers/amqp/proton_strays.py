"""Looks at the frames of a peer before proton gets them. Removes Flow frames that belong to no session, because proton
would end the connection for such a frame. Reads how many links the peer allows, because proton does not tell.

If a session ends during a drain, Artemis 2.56 still answers the drain, on channel 65535. Our own engine ignores such a
frame.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final

from pyjmsack.providers.amqp.engine.performatives import Begin, decode

__all__ = ["Strays"]

_HEAD: Final = struct.Struct(">IBBH")
_FLOW: Final = b"\x00\x53\x13"
_BEGIN: Final = b"\x00\x53\x11"
_FLOW_SIZE: Final = 512
"""A frame with more bytes than this is no Flow of Artemis. A Begin frame with more bytes is not read."""


class Strays:
    """Removes Flow frames from the bytes of a peer if their channel (the number of a session) cannot exist, and reads
    its Begin frames.

    Args:
        channel_max: the highest channel number that this client announces.
    """

    def __init__(self, channel_max: int) -> None:
        self._channel_max = channel_max
        self.handle_max = 0xFFFFFFFF
        """The highest number of a link that the peer allows: the smallest one in its Begin frames."""
        self._left = len(b"AMQP\x00\x01\x00\x00")
        """The number of bytes of the present frame, or of the protocol header, that have not arrived yet."""
        self._held = b""
        """The beginning of a frame, while too few bytes have arrived to know whether the frame is a Flow."""

    def without(self, data: bytes) -> bytes:
        """Return the bytes without the Flow frames on channels that cannot exist. If a frame is incomplete, the next
        call returns its beginning.
        """
        data, self._held = self._held + data, b""
        kept: list[bytes] = []
        begin = position = 0
        while True:
            position += self._left
            if position >= len(data):
                self._left = position - len(data)
                break
            self._left = 0
            head = data[position : position + _FLOW_SIZE]
            size = self._stray(head)
            if size is None:
                kept.append(data[begin:position])
                self._held = data[position:]
                return b"".join(kept)
            if size:
                kept.append(data[begin:position])
                begin = position = position + size
            else:
                self._left = max(_HEAD.size, int.from_bytes(head[:4], "big"))
        return b"".join([*kept, data[begin:]]) if kept else data[begin:]

    def _stray(self, start: bytes) -> int | None:
        """Return the size in bytes of a frame that has to be removed. Return 0 if the frame stays. Return ``None`` if
        more bytes are needed to decide."""
        if len(start) < _HEAD.size:
            return None
        size, offset, kind, channel = _HEAD.unpack_from(start)
        if kind == 0 and 4 * offset + len(_BEGIN) <= size <= _FLOW_SIZE:
            if len(start) < 4 * offset + len(_BEGIN):
                return None
            if start.startswith(_BEGIN, 4 * offset):
                if len(start) < size:
                    return None
                self._read(start[4 * offset : size])
                return 0
        if channel <= self._channel_max or kind != 0 or not _HEAD.size < size <= _FLOW_SIZE:
            return 0
        if len(start) < size:
            return None
        return size if start[4 * offset :].startswith(_FLOW) else 0

    def _read(self, body: bytes) -> None:
        with suppress(Exception):  # proton reports a malformed frame
            begin, _ = decode(body, 0, len(body))
            if isinstance(begin, Begin):
                self.handle_max = min(self.handle_max, begin.handle_max)
