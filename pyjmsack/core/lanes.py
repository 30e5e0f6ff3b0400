"""A listener on several messages at a time, with the order of each message group kept (``concurrency=N``)."""

from __future__ import annotations

from collections.abc import Sequence

from pyjmsack.core.runtime import Dispatcher
from pyjmsack.message import Message
from pyjmsack.spi.envelope import Inbound

__all__ = ["Lanes"]


class Lanes:
    """Dispatchers that share the messages of one consumer; used under the session's guard.

    A message of a group (``JMSXGroupID``) goes where an earlier one of its group still is, and waits there behind it;
    any other goes to the emptiest lane. As many messages as there are lanes are out at a time.
    """

    def __init__(self, dispatchers: Sequence[Dispatcher]) -> None:
        self._dispatchers = dispatchers
        self._load = [0] * len(dispatchers)
        self._groups: dict[str, tuple[int, int]] = {}
        """Lane and number of messages of every group that has some out."""
        self._lane_of: dict[int, int] = {}
        self._inside: dict[int, Inbound] = {}

    @property
    def full(self) -> bool:
        """Whether another message has to wait."""
        return len(self._lane_of) >= len(self._dispatchers)

    def enter(self, message: Message) -> Dispatcher:
        """Return the dispatcher that runs the listener for this message."""
        group = message._group_id
        lane, members = self._groups.get(group, (None, 0)) if group is not None else (None, 0)
        if lane is None:
            lane = self._load.index(min(self._load))
        if group is not None:
            self._groups[group] = (lane, members + 1)
        self._load[lane] += 1
        self._lane_of[id(message)] = lane
        self._inside[id(message)] = message._delivery
        return self._dispatchers[lane]

    def work_on(self, inbound: Inbound) -> bool:
        """Whether the listener is still at work on this message, which an earlier connection delivered as well (S105).

        Then it waits: if the listener succeeds it was processed, and is nothing for another lane.
        """
        identity = inbound.identity()
        inside = [*self._inside.values()] if identity is not None else ()
        return any(one.generation != inbound.generation and one.identity() == identity for one in inside)

    def leave(self, message: Message) -> None:
        """The listener is through with this message."""
        lane = self._lane_of.pop(id(message))
        del self._inside[id(message)]
        self._load[lane] -= 1
        group = message._group_id
        if group is not None:
            _, members = self._groups.pop(group)
            if members > 1:
                self._groups[group] = (lane, members - 1)
