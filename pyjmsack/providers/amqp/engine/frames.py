"""Cuts a byte stream into frames, makes frames (AMQP 1.0 2.3), and checks the protocol header (2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from pyjmsack.providers.amqp.engine.errors import ViolationError

__all__ = ["EMPTY_FRAME", "FRAMING_ERROR", "LEAST_MAX_FRAME_SIZE", "PROTOCOL_HEADER", "FrameReader", "frame"]

PROTOCOL_HEADER = b"AMQP\x00\x01\x00\x00"
EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"
"""A frame without a body. This frame only tells the peer that this client is alive (2.4.5)."""
LEAST_MAX_FRAME_SIZE = 512
"""The number of bytes that every peer accepts in one frame (2.7.1). Until the Open frame of the peer has arrived, no
larger frame is sent, because the peer may refuse a larger one."""
FRAMING_ERROR = "amqp:connection:framing-error"

_HEAD = Struct(">IBBH")
_HEAD_SIZE = 8
_AMQP_FRAME = 0
_LAYERS = {b"\x02": "TLS (amqps)", b"\x03": "SASL"}
"""The layers that a peer can ask for by the fifth byte of its protocol header, except AMQP itself (5.1, 5.3)."""


def frame(channel: int, body: bytes) -> bytes:
    """Return a frame with this body. The body begins with a performative, the command of the frame."""
    return _HEAD.pack(_HEAD_SIZE + len(body), 2, _AMQP_FRAME, channel) + body


class FrameReader:
    """Cuts the peer's bytes into frames.

    The reader keeps at most one incomplete frame. It refuses a frame that is too large as soon as the first four bytes
    have arrived. It joins the bytes of a frame only once, even if the frame arrives in many small pieces.

    Args:
        max_frame_size: bytes of the largest frame that is accepted.
    """

    def __init__(self, max_frame_size: int) -> None:
        self._max_frame_size = max_frame_size
        self._header_seen = False
        self._pieces: list[bytes] = []
        self._kept = 0
        self._wanted = len(PROTOCOL_HEADER)
        """The number of bytes that must have arrived before the reader can continue."""

    def cut(self, data: bytes) -> Iterator[tuple[int, bytes, int, int]]:
        """Take the next bytes, and yield each complete frame.

        A frame is a tuple of its channel, a buffer, and the positions in the buffer at which its body begins and ends.

        Raises:
            ViolationError: the bytes are no AMQP 1.0 frames.
        """
        self._pieces.append(data)
        self._kept += len(data)
        if self._kept < self._wanted:
            if not self._header_seen:
                self._check_header(b"".join(self._pieces))
            return
        if len(self._pieces) > 1:
            data = b"".join(self._pieces)
        self._pieces = []
        position, size = 0, len(data)
        if not self._header_seen:
            self._check_header(data)
            self._header_seen = True
            position = len(PROTOCOL_HEADER)
        while size - position >= _HEAD_SIZE:
            length, offset, kind, channel = _HEAD.unpack_from(data, position)
            if not _HEAD_SIZE <= length <= self._max_frame_size or offset < 2 or offset * 4 > length or kind:
                raise self._malformed(length, offset, kind)
            if length > size - position:
                break
            yield channel, data, position + offset * 4, position + length
            position += length
        self._keep(data, position)

    def _keep(self, data: bytes, position: int) -> None:
        """Keep the beginning of a frame that is not complete."""
        self._kept = len(data) - position
        self._wanted = _HEAD_SIZE
        if self._kept >= 4:  # the size is known, so a frame that is too large is refused before it arrives
            length = int.from_bytes(data[position : position + 4], "big")
            if not _HEAD_SIZE <= length <= self._max_frame_size:
                raise self._malformed(length, 2, _AMQP_FRAME)
            self._wanted = length
        if self._kept:
            self._pieces.append(data[position:])

    def _malformed(self, length: int, offset: int, kind: int) -> ViolationError:
        if kind != _AMQP_FRAME:
            return ViolationError(FRAMING_ERROR, f"a frame has the type {kind}; expected type 0 (AMQP)")
        if length > self._max_frame_size:
            return ViolationError(
                FRAMING_ERROR, f"a frame has {length} bytes, but max-frame-size is {self._max_frame_size}"
            )
        return ViolationError(
            FRAMING_ERROR, f"a frame has {length} bytes, but its body begins after {offset} words of 4 bytes"
        )

    @staticmethod
    def _check_header(data: bytes) -> None:
        start = data[: len(PROTOCOL_HEADER)]
        if start != PROTOCOL_HEADER[: len(start)]:
            spoken = _LAYERS.get(start[4:5]) if start[:4] == PROTOCOL_HEADER[:4] else None
            wanted = f"the peer insists on {spoken}" if spoken else "the peer does not speak AMQP 1.0"
            raise ViolationError(FRAMING_ERROR, f"{wanted}: it began with {start!r}")
