"""Looks at the frames of a peer before proton gets them.

- Removes Flow frames that belong to no session, because proton would end the connection for such a frame. If a session
  ends during a drain, Artemis 2.56 still answers the drain, on channel 65535. Our own engine ignores such a frame.
- Finds a second Begin frame for one session, because proton 0.40 would later free the session twice, which ends the
  process. For this it looks at the Begin and End frames of this client, too.
- Reads how many links the peer allows, because proton does not tell.
"""

from __future__ import annotations

import struct
from typing import Final

from pyjmsack.providers.amqp.engine.performatives import Begin, decode

__all__ = ["Strays"]

_HEAD: Final = struct.Struct(">IBBH")
_FLOW, _BEGIN, _END = 0x13, 0x11, 0x17
_LONGEST_CODE: Final = len(b"\x00\x80") + 8
"""The number of bytes of the longest descriptor that proton reads: a marker, a type, and the number of the frame."""
_FLOW_SIZE: Final = 512
"""A frame with more bytes than this is no Flow of Artemis."""
_LONGEST_BEGIN: Final = 4096
"""The largest number of bytes of a Begin frame."""
_START: Final = _HEAD.size + len(b"\x00\x53\x11")
"""The number of bytes of the head of a frame and of the descriptor, as proton writes them."""


class Strays:
    """Removes Flow frames from the bytes of a peer if their channel (the number of a session) cannot exist, and reads
    its Begin and End frames.

    Args:
        channel_max: the highest channel number that this client announces.
    """

    def __init__(self, channel_max: int) -> None:
        self._channel_max = channel_max
        self.handle_max = 0xFFFFFFFF
        """The highest number of a link that the peer allows: the smallest one in its Begin frames."""
        self.violation: str | None = None
        """What is wrong with a Begin frame. proton must not read this frame, so the connection has to end."""
        self._channels: set[int] = set()
        """The channels on which the peer has begun a session."""
        self._answered: dict[int, bool] = {}
        """The channels of the sessions that this client began and has not ended. The value says whether the peer has
        answered the Begin frame. This client uses a channel again after its own End frame. Artemis may answer the new
        Begin frame before it answers this End frame."""
        self._sent_left = len(b"AMQP\x00\x01\x00\x00")
        self._sent_held = b""
        """These two are like ``_left`` and ``_held``, for the bytes of this client."""
        self._left = len(b"AMQP\x00\x01\x00\x00")
        """The number of bytes of the present frame, or of the protocol header, that have not arrived yet."""
        self._held = b""
        """The beginning of a frame, while too few bytes have arrived to know what to do with the frame."""

    def without(self, data: bytes) -> bytes:
        """Return the bytes without the Flow frames on channels that cannot exist, up to the first frame that violates
        the protocol. If a frame is incomplete, the next call returns its beginning.
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
            head = data[position : position + _LONGEST_BEGIN]
            size = self._stray(head)
            if size is None or self.violation is not None:
                kept.append(data[begin:position])
                self._held = data[position:]
                return b"".join(kept)
            if size:
                kept.append(data[begin:position])
                begin = position = position + size
            else:
                self._left = max(_HEAD.size, int.from_bytes(head[:4], "big"))
        return b"".join([*kept, data[begin:]]) if kept else data[begin:]

    def sent(self, data: bytes) -> None:
        """Look at the Begin and End frames of this client. Call this with all bytes of proton, in order."""
        data = self._sent_held + data
        position = self._sent_left
        while position + _START <= len(data):
            size, _, _, channel = _HEAD.unpack_from(data, position)
            code = _code(data[position + _HEAD.size : position + _START]) if size > _HEAD.size else None
            if code == _BEGIN:
                self._answered[channel] = False
            elif code == _END:
                self._answered.pop(channel, None)
            position += size
        self._sent_left = max(0, position - len(data))
        self._sent_held = data[position:]

    def _stray(self, start: bytes) -> int | None:
        """Return the size in bytes of a frame that has to be removed. Return 0 if the frame stays. Return ``None`` if
        more bytes are needed to decide."""
        if len(start) < _HEAD.size:
            return None
        size, offset, kind, channel = _HEAD.unpack_from(start)
        begin = 4 * offset
        if kind != 0 or size <= begin:
            return 0
        if len(start) < min(size, begin + _LONGEST_CODE):
            return None
        code = _code(start[begin : begin + _LONGEST_CODE])
        if code == _BEGIN:
            if size > _LONGEST_BEGIN:
                self.violation = f"a Begin frame of {size} bytes"
            elif len(start) < size:
                return None
            else:
                self._begun(channel, start[begin:size])
        elif code == _END:
            self._channels.discard(channel)
        elif code == _FLOW and channel > self._channel_max and size <= _FLOW_SIZE:
            return size if len(start) >= size else None
        return 0

    def _begun(self, channel: int, body: bytes) -> None:
        """Remember a session of the peer, unless its Begin frame violates the protocol (AMQP 1.0 2.5.1)."""
        try:
            begin, _ = decode(body, 0, len(body))
        except Exception as error:  # proton may read what our decoder refuses
            self.violation = f"a Begin frame that cannot be decoded: {error}"
            return
        if not isinstance(begin, Begin):
            self.violation = "a Begin frame that cannot be decoded"
            return
        named = begin.remote_channel
        if channel in self._channels or (named is not None and self._answered.get(named, True)):
            self.violation = f"a Begin frame on channel {channel} that answers no Begin frame, or answers one twice"
            return
        self._channels.add(channel)
        if named is not None:
            self._answered[named] = True
        self.handle_max = min(self.handle_max, begin.handle_max)


def _code(descriptor: bytes) -> int | None:
    """Return the number of a frame from any spelling that proton reads (AMQP 1.0 1.6.10), or ``None``."""
    if descriptor.startswith(b"\x00\x53"):
        return descriptor[2] if len(descriptor) > 2 else None
    return int.from_bytes(descriptor[2:10], "big") if descriptor.startswith(b"\x00\x80") else None
