"""The numbers and outcomes of deliveries, and messages in several transfers (AMQP 1.0 2.6.12, 2.6.14, 2.8.10)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final

from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.engine.fastpath import TransferHeads
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    DECODE_ERROR,
    RELEASED,
    Composite,
    Received,
    decode,
    encode,
)

__all__ = ["KEPT_OF_OVERSIZE", "SERIAL_MASK", "Assembly", "Outgoing", "States", "Unsettled", "serial_distance"]

SERIAL_MASK: Final = 0xFFFFFFFF
KEPT_OF_OVERSIZE: Final = 1024
"""The number of bytes that are kept from the beginning of a message that is too large. They contain the header of the
message."""
_HALF: Final = 1 << 31


def serial_distance(after: int, before: int) -> int:
    """Return the distance from ``before`` to ``after``, two serial numbers of 32 bits (RFC 1982).

    The distance is negative if ``after`` comes before ``before``.
    """
    distance = (after - before) & SERIAL_MASK
    return distance if distance < _HALF else distance - (1 << 32)


class Unsettled(dict[int, Any]):
    """The links of the deliveries of one direction that are not settled. The keys are the delivery-ids.

    The ids have to be added in their order. They may be removed in any order.
    """

    __slots__ = ("_ascending", "_seen")

    def __init__(self) -> None:
        super().__init__()
        self._ascending: list[int] = []
        """The ids in their order, for the search. The list is brought up to date only for a search. It may still have
        ids that were removed."""
        self._seen: int | None = None
        """The first id that is not yet in this list."""

    def within(self, first: int, last: int, end: int) -> list[int]:
        """Return the ids between ``first`` and ``last``, with both ends, in their order. The caller has to remove them.

        The time depends on the number of ids that are found. A peer cannot slow this method down by many ranges that
        contain nothing.

        Args:
            end: the id of the next delivery that will be added.

        Raises:
            ViolationError: ``last`` comes before ``first``.
        """
        count = serial_distance(last, first) + 1
        if count < 1:
            raise ViolationError(
                "amqp:invalid-field",
                f"a disposition ends with delivery {last}, which comes before its first delivery {first}",
            )
        found: list[int] = []
        for index in range(count):  # usually all ids of the range are here
            number = (first + index) & SERIAL_MASK
            if number not in self:
                return self._search(first, count, end)
            found.append(number)
        return found

    def _search(self, first: int, count: int, end: int) -> list[int]:
        self._catch_up(end)
        if not self._ascending:
            return []
        base = self._ascending[0]
        start = (first - base) & SERIAL_MASK
        found = self._cut(base, start, start + count)
        if start + count > SERIAL_MASK:  # the range begins before the first id of the list
            found += self._cut(base, 0, start + count - SERIAL_MASK - 1)
        return found

    def _cut(self, base: int, start: int, stop: int) -> list[int]:
        """Remove the ids with a distance of ``start`` to ``stop`` from ``base`` from the list, and return those that
        are not settled. The others must not be looked at again and again, so they are removed, too."""

        def distance(number: int) -> int:
            return (number - base) & SERIAL_MASK

        ascending = self._ascending
        left = bisect_left(ascending, start, key=distance)
        right = bisect_left(ascending, stop, left, key=distance)
        found = [number for number in ascending[left:right] if number in self]
        del ascending[left:right]
        return found

    def _catch_up(self, end: int) -> None:
        """Bring the list up to date. Make a new list if most of its ids were removed, because the list must not grow
        for ever."""
        seen, self._seen = self._seen, end
        new = SERIAL_MASK if seen is None else (end - seen) & SERIAL_MASK
        if len(self._ascending) + new > 2 * len(self):
            self._ascending = list(self)
        elif seen is not None:
            numbers = ((seen + index) & SERIAL_MASK for index in range(new))
            self._ascending.extend(number for number in numbers if number in self)


class Assembly:
    """A message that arrives in several transfers (2.6.14), or a message that is too large.

    Args:
        limit: the largest number of bytes that the message may have. ``None`` means any number. Only the first bytes of
            a larger message are kept, and the others are dropped as they arrive.
    """

    __slots__ = ("_bytes", "_limit", "delivery_id", "in_pieces", "offered", "settled", "size")

    def __init__(self, delivery_id: int, limit: int | None) -> None:
        self.delivery_id = delivery_id
        self.settled = False
        self.size = 0
        """The number of bytes that arrived, including those that were dropped."""
        self.offered = False
        """True if the owner of the link was asked whether it takes the message in pieces."""
        self.in_pieces = False
        """True if the owner takes the pieces when they come. In this case, nothing is kept here."""
        self._limit = limit
        # a list of tiny pieces would take much memory, and a bytearray would be copied at the end, but a BytesIO is not
        # copied
        self._bytes = BytesIO()

    def add(self, piece: bytes, settled: bool) -> None:
        """Add the payload of one transfer. The message is settled if one of its transfers is settled."""
        self.size += len(piece)
        self.settled = self.settled or settled
        if self.oversize:
            kept = self._bytes.seek(min(self._bytes.tell(), KEPT_OF_OVERSIZE))
            self._bytes.truncate()
            piece = piece[: KEPT_OF_OVERSIZE - kept]
        self._bytes.write(piece)

    @property
    def oversize(self) -> bool:
        """True if the message is larger than the limit."""
        return self._limit is not None and self.size > self._limit

    def kept(self) -> bytes:
        """Return the bytes that have arrived, or only the first bytes if the message is too large."""
        return self._bytes.getvalue()

    def pass_on(self) -> None:
        """Stop keeping bytes, because the owner of the link takes the pieces when they come."""
        self.in_pieces = True
        self._bytes = BytesIO()


class Outgoing:
    """A message that is sent in several transfers, or that waits for room in the peer's session window (2.5.6)."""

    __slots__ = ("_delivery_id", "_heads", "_payload", "_position", "_state", "_told", "link", "settled")

    def __init__(
        self, link: Any, heads: TransferHeads, payload: bytes, state: bytes, told: Callable[[], None] | None
    ) -> None:
        self.link = link
        self._heads = heads
        self._delivery_id = 0
        """The number of the message. The message gets this number with its first transfer."""
        self._payload = memoryview(payload)
        self._state = state
        self.settled = told is not None
        self._told = told
        """Called when a settled message was sent completely."""
        self._position = -1
        """The number of bytes that were sent. -1 before the first transfer."""

    def frame(self, max_frame_size: int) -> tuple[bytes, memoryview]:
        """Return the next transfer as two parts: the bytes before its payload, and the payload."""
        begun, payload = self._position >= 0, self._payload
        if not begun:
            self._delivery_id = self.link.number(self)
        position = max(self._position, 0)
        overhead = len(self._head(begun, True, 0))
        piece = payload[position : position + max_frame_size - overhead]
        self._position = position + len(piece)
        return self._head(begun, not self.done, len(piece)), piece

    def _head(self, begun: bool, more: bool, size: int) -> bytes:
        if begun:
            return self._heads.following(more, size)
        return self._heads.first(self._delivery_id, self.settled, self._state, more, size)

    @property
    def done(self) -> bool:
        """True if the whole message was sent."""
        return self._position >= len(self._payload)

    def left(self) -> None:
        """Count the message as sent, because its last transfer was sent."""
        self.link.sent(self)
        if self._told is not None:
            self._told()


class States:
    """Decodes delivery states. The decoder remembers the last state, because most deliveries have the same few
    states."""

    __slots__ = ("_known", "_last", "_last_bytes")

    _COMMON: Final[dict[bytes, Composite | None]] = {
        b"": None,
        **{encode(state): state for state in (ACCEPTED, RELEASED)},
        **{b"\x00\x53" + bytes((state.code,)) + b"\xc0\x01\x00": state for state in (ACCEPTED, RELEASED)},
    }

    def __init__(self) -> None:
        self._last_bytes: bytes = b""
        self._last: Composite | None = None

    def read(self, encoded: bytes) -> Composite | None:
        """Return an outcome or a transactional state, or ``None`` if the message has no outcome yet (3.4.1).

        Raises:
            ViolationError: the bytes are not a delivery state.
        """
        if encoded in self._COMMON:
            return self._COMMON[encoded]
        if encoded == self._last_bytes:
            return self._last
        state, after = decode(encoded, 0, len(encoded))
        if after != len(encoded) or state.code not in _STATE_CODES:
            raise ViolationError(DECODE_ERROR, f"{state.name} is not a delivery state")
        self._last_bytes, self._last = encoded, None if isinstance(state, Received) else state
        return self._last


_STATE_CODES: Final = frozenset((0x23, 0x24, 0x25, 0x26, 0x27, 0x33, 0x34))


def ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers."""
    start = 0
    for index in range(1, len(numbers) + 1):
        if index == len(numbers) or numbers[index] != (numbers[index - 1] + 1) & SERIAL_MASK:
            yield numbers[start], numbers[index - 1]
            start = index
