"""A fast encoder and decoder for Transfer and Disposition. Every message needs these two commands of AMQP: a Transfer
carries a message, and a Disposition carries an outcome.

This module makes no object for each command. Its readers know only the encodings that senders usually choose for a
field. If a frame has another encoding, valid or not, :func:`.performatives.decode` reads the frame instead.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - "error" says too little
from typing import Final, TypeAlias

from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.engine.performatives import (
    DECODE_ERROR,
    Disposition,
    Transfer,
    decode,
    encode,
)

__all__ = [
    "DISPOSITION",
    "MAX_TAG_SIZE",
    "TRANSFER",
    "DispositionFrame",
    "TransferFrame",
    "TransferHeads",
    "disposition_frame",
    "read_disposition",
    "read_transfer",
]

TRANSFER: Final = b"\x00\x53\x14"
DISPOSITION: Final = b"\x00\x53\x15"
MAX_TAG_SIZE: Final = 32
"""The largest number of bytes that a delivery tag may have (2.8.7). A delivery tag is the name of a sent message."""

_U32 = Struct(">I").unpack_from
_FALSE, _TRUE, _NULL = 0x42, 0x41, 0x40
_UINT_0, _UINT_8, _UINT_32 = 0x43, 0x52, 0x70


TransferFrame: TypeAlias = "tuple[int, int | None, bool, bool, bool, int]"
"""The fields of a transfer: handle, delivery-id, settled, more, aborted, and the position at which the payload
begins."""
DispositionFrame: TypeAlias = "tuple[bool, int, int, bool, bytes]"
"""The fields of a disposition: role, first, last, settled, and the encoded delivery state, which is ``b""`` if there is
no state."""


def read_transfer(data: bytes, start: int, end: int) -> TransferFrame:
    """Read the transfer, a frame with a message, whose descriptor is at ``start``.

    The descriptor may have any legal spelling. Only :data:`TRANSFER` has the code of a list three bytes later, so the
    fast reader takes no other spelling. The same is true of :func:`read_disposition`.

    Raises:
        ViolationError: the transfer is malformed.
    """
    try:
        found = _usual_transfer(data, start + 3, end)
    except (IndexError, StructError):  # the fields go beyond the buffer
        found = None
    if found is not None:
        return found
    transfer, after = decode(data, start, end)
    assert isinstance(transfer, Transfer)  # the descriptor names this class
    if transfer.delivery_tag is not None and len(transfer.delivery_tag) > MAX_TAG_SIZE:
        text = f"a delivery tag has {len(transfer.delivery_tag)} bytes; expected at most {MAX_TAG_SIZE}"
        raise ViolationError(DECODE_ERROR, text)
    return transfer.handle, transfer.delivery_id, transfer.settled, transfer.more, transfer.aborted, after


def _usual_transfer(data: bytes, position: int, end: int) -> TransferFrame | None:
    """Read the fields handle, delivery-id, delivery-tag, message-format, settled and more of a transfer.

    Return ``None`` for an unusual encoding. While the fields are read, the position may go beyond the end of the list.
    This does no harm, because the position is checked after the last field.
    """
    code = data[position]
    if code == 0xC0:
        after, count = position + 2 + data[position + 1], data[position + 2]
        position += 3
    elif code == 0xD0:
        after, count = position + 5 + _U32(data, position + 1)[0], _U32(data, position + 5)[0]
        position += 9
    else:
        return None
    if after > end or not 4 <= count <= 6:
        return None
    code = data[position]
    if code == _UINT_0:
        handle, position = 0, position + 1
    elif code == _UINT_8:
        handle, position = data[position + 1], position + 2
    elif code == _UINT_32:
        handle, position = _U32(data, position + 1)[0], position + 5
    else:
        return None
    code = data[position]
    delivery_id: int | None
    if code == _UINT_8:
        delivery_id, position = data[position + 1], position + 2
    elif code == _UINT_32:
        delivery_id, position = _U32(data, position + 1)[0], position + 5
    elif code == _UINT_0:
        delivery_id, position = 0, position + 1
    elif code == _NULL:
        delivery_id, position = None, position + 1
    else:
        return None
    code = data[position]
    if code == 0xA0 and data[position + 1] <= MAX_TAG_SIZE:
        position += 2 + data[position + 1]
    elif code == _NULL:
        position += 1
    else:
        return None
    code = data[position]
    if code in (_UINT_0, _NULL):
        position += 1
    elif code == _UINT_8:
        position += 2
    elif code == _UINT_32:
        position += 5
    else:
        return None
    settled, more = data[position] if count > 4 else _FALSE, data[position + 1] if count == 6 else _FALSE
    if position + count - 4 != after or not (_NULL <= settled <= _FALSE and _NULL <= more <= _FALSE):
        return None
    return handle, delivery_id, settled == _TRUE, more == _TRUE, False, after


def read_disposition(data: bytes, start: int, end: int) -> DispositionFrame:
    """Read the disposition, a frame with an outcome, whose descriptor is at ``start``.

    Raises:
        ViolationError: the disposition is malformed.
    """
    try:
        found = _usual_disposition(data, start + 3, end)
    except (IndexError, StructError):  # the fields go beyond the buffer
        found = None
    if found is not None:
        return found
    disposition, _ = decode(data, start, end)
    assert isinstance(disposition, Disposition)  # the descriptor names this class
    first, last, state = disposition.first, disposition.last, disposition.state
    encoded = b"" if state is None else encode(state)
    return disposition.role, first, first if last is None else last, disposition.settled, encoded


def _usual_disposition(data: bytes, position: int, end: int) -> DispositionFrame | None:
    """Read the fields role, first, last, settled and state of a disposition. Return ``None`` for an unusual
    encoding."""
    if data[position] != 0xC0:
        return None
    after, count = position + 2 + data[position + 1], data[position + 2]
    role = data[position + 3]
    if after > end or not 4 <= count <= 5 or not _TRUE <= role <= _FALSE:
        return None
    position += 4
    numbers = []
    for _ in range(2):
        code = data[position]
        if code == _UINT_8:
            numbers.append(data[position + 1])
            position += 2
        elif code == _UINT_32:
            numbers.append(_U32(data, position + 1)[0])
            position += 5
        elif code == _UINT_0:
            numbers.append(0)
            position += 1
        elif code == _NULL and numbers:
            numbers.append(numbers[0])
            position += 1
        else:
            return None
    settled = data[position]
    state = data[position + 1 : after] if count == 5 else b""
    if not _NULL <= settled <= _FALSE or position + 1 + len(state) != after or (state and state[0] != 0):
        return None
    return role == _TRUE, numbers[0], numbers[1], settled == _TRUE, state


_SETTLING = Struct(">IHH3sBIIBBIBIB")


def disposition_frame(channel: int, role: bool, first: int, last: int, state: bytes) -> bytes:
    """Return the frame that settles the deliveries ``first`` to ``last`` with an encoded state. ``b""`` stands for no
    state."""
    size, count = len(state), 5 if state else 4
    our_role = _TRUE if role else _FALSE
    head = _SETTLING.pack(
        _SETTLING.size + size,
        0x0200,
        channel,
        DISPOSITION,
        0xD0,
        16 + size,
        count,
        our_role,
        0x70,
        first,
        0x70,
        last,
        0x41,
    )
    return head + state


class TransferHeads:
    """Makes the part before the payload of each transfer frame of one link.

    The tag of a delivery is its delivery-id. A tag must be unique among the unsettled deliveries of the link (2.6.12),
    and a delivery-id is unique among the deliveries of the whole session.
    """

    SIZE: Final = 32
    """The number of bytes of a frame before its payload, if the message fits in one frame and has no delivery state."""

    _WHOLE = Struct(">I16sI2sI2s").pack
    _UNSETTLED, _SETTLED = b"\x43\x42", b"\x43\x41"  # message-format 0, settled

    def __init__(self, channel: int, handle: int) -> None:
        self._frame = b"\x02\x00" + channel.to_bytes(2, "big")
        self._handle = b"\x70" + handle.to_bytes(4, "big")
        self._start = self._frame + TRANSFER + b"\xc0\x13\x05" + self._handle + b"\x70"

    def whole(self, delivery_id: int, settled: bool, size: int) -> bytes:
        """Return the part of a transfer frame before its payload. The payload has ``size`` bytes and is a whole
        message."""
        end = self._SETTLED if settled else self._UNSETTLED
        return self._WHOLE(self.SIZE + size, self._start, delivery_id, b"\xa0\x04", delivery_id, end)

    def first(self, delivery_id: int, settled: bool, state: bytes, more: bool, size: int) -> bytes:
        """Return the part of a transfer frame before its payload, which is the first or only payload of a message.
        ``state`` is an encoded delivery state (3.4, 4.5)."""
        number = delivery_id.to_bytes(4, "big")
        fields = self._handle + b"\x70" + number + b"\xa0\x04" + number
        fields += (self._SETTLED if settled else self._UNSETTLED) + (b"\x41" if more else b"\x42")
        if state:
            fields += b"\x40" + state  # this field follows rcv-settle-mode
        return self._head(fields, 8 if state else 6, size)

    def following(self, more: bool, size: int) -> bytes:
        """Return the part of a transfer frame before its payload, which is a later payload of a message (2.6.14)."""
        return self._head(self._handle + b"\x40\x40\x40\x40" + (b"\x41" if more else b"\x42"), 6, size)

    def aborted(self) -> bytes:
        """Return the whole frame that takes back a message of which a part was sent (2.6.14)."""
        fields = self._handle + b"\x40\x40\x40\x40" + b"\x42" + b"\x40\x40\x40" + b"\x41"
        return self._head(fields, 10, 0)

    def _head(self, fields: bytes, count: int, size: int) -> bytes:
        body = TRANSFER + b"\xd0" + (len(fields) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + fields
        return (8 + len(body) + size).to_bytes(4, "big") + self._frame + body
