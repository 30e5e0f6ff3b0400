"""The buffer of a consumer that hands out by priority (``jms.localMessagePriority``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from pyjmsack.spi.envelope import Inbound

__all__ = ["PriorityInbox", "emptied"]


class PriorityInbox:
    """Has the verbs of the plain ``deque`` that a consumer otherwise buffers in: a higher priority comes first, and
    among equals the order is that of a deque.

    There is no lock, as with the plain deque: the loop appends while another thread takes. Each lane is a deque, whose
    verbs are atomic, and no verb needs two lanes to agree.
    """

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes: tuple[deque[Inbound], ...] = tuple(deque() for _ in range(10))
        """Highest priority first."""

    def append(self, inbound: Inbound) -> None:
        """Put it behind those of its priority."""
        self._lanes[9 - inbound.priority].append(inbound)

    def extend(self, inbounds: Iterable[Inbound]) -> None:
        """Append each."""
        for inbound in inbounds:
            self.append(inbound)

    def appendleft(self, inbound: Inbound) -> None:
        """Put it before those of its priority."""
        self._lanes[9 - inbound.priority].appendleft(inbound)

    def extendleft(self, inbounds: Iterable[Inbound]) -> None:
        """Put each before those of its priority, as one: whoever takes meanwhile sees no lower or later one first."""
        given = [*inbounds]
        for place, lane in enumerate(self._lanes):
            lane.extendleft([inbound for inbound in given if 9 - inbound.priority == place])

    def popleft(self) -> Inbound:
        """Take the first of the highest priority.

        Raises:
            IndexError: there is none.
        """
        for lane in self._lanes:
            if lane:
                try:
                    return lane.popleft()
                except IndexError:  # the other side emptied it meanwhile
                    continue
        raise IndexError("pop from an empty PriorityInbox")

    def clear(self) -> None:
        """Drop all."""
        for lane in self._lanes:
            lane.clear()

    def __contains__(self, inbound: Inbound) -> bool:
        return any(inbound in lane for lane in self._lanes)

    def __len__(self) -> int:
        return sum(map(len, self._lanes))


def emptied(queue: deque[Inbound]) -> list[Inbound]:
    """Take all out, one by one: the loop adds, and another thread may be here too."""
    taken: list[Inbound] = []
    with suppress(IndexError):
        while True:
            taken.append(queue.popleft())
    return taken
