"""When a link has to take one message at a time, because Artemis mixes up messages after a connection is lost.

Artemis 2.7 to 2.56 keeps, in the entry that a queue has for a message, the link that is about to send the message. When
a connection with a consumer is lost, its messages go back to the queue, and at once to other links, while the thread of
the lost connection still has entries to send. That thread then writes into the new link, beside the thread to which the
link belongs. Two messages in one transfer, an empty transfer, or bytes of one message under the delivery of another are
the result, and whoever accepts such a delivery removes a message that nobody was given.

The two threads disturb each other only where a link has credit for several messages. So a link that is attached soon
after a loss gets credit for one message at a time, until the lost connection has nothing left to send.
``docs/upstream/`` has the whole story, ``docs/failover.md`` what it means for users.

A fixed time is no proof of that, because the thread of the lost connection may be late. The messages themselves tell
more. Those of the lost connection go back to the head of their queue, and Artemis counts a delivery for each. So the
broker has taken everything back, and the link is past it, when as many counted messages have come as this process had
in its buffers, and then one came that was never delivered before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from time import monotonic

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.sections import read_header

__all__ = ["Caution", "Single", "lost", "single_credit"]

_SECONDS, _SECONDS_AT_MOST = 1.8, 10.0
_ANSWERS = 5
"""How long a link that begins after a loss takes one message at a time at least: so many seconds, or as long as so many
answers of a slow broker take, but no longer than the limit. From a loss to the last message that Artemis wrote for the
lost connection were measured some milliseconds on a quiet machine, 1.6 s at a broker that had just started beside two
busy processes, and 8 s beside twenty busy processes for each core, where the answers of the broker are as late."""

_LATE_ANSWERS, _LATE_SECONDS_AT_MOST = 25, 20.0
"""The same, while messages of the lost connection have not come back. They never do if another client took them."""

_PAUSE = 0.1
"""Seconds between two looks whether they have."""

_REMEMBERED = 60.0
"""Seconds after a loss during which links begin carefully: the default ``connection-ttl`` of Artemis, after which the
broker notices a loss at the latest."""

_MOST_ADDRESSES = 10_000
"""Addresses of which it is remembered how many messages have to come back. Of the oldest beyond these, time and the
message that was never delivered before decide alone."""

_RECENTLY = 1.0
"""Seconds since its last message in which a lost link probably had more ahead, even if nothing was buffered."""


class Single(IntEnum):
    """Whether a link has credit for one message at a time."""

    NO = 0
    FOR_A_WHILE = 1
    ALWAYS = 2


class _Losses:
    """What this process lost with its connections. Every connection may read the queue of every other one, so all share
    it. Loops in two threads may count at the same time; then the count is one too high or low, and a link is careful
    for a little longer, or the message that was never delivered before decides alone."""

    last: float | None = None
    due: dict[str, int] = {}  # noqa: RUF012 - one for the process, as said
    """How many messages have to come back, by address; the address of the newest loss is the last one."""


def lost(cautions: Iterable[Caution] = ()) -> None:
    """Remember that a connection ended without an orderly close, and what its links had."""
    now = monotonic()
    if _Losses.last is None or now - _Losses.last >= _REMEMBERED:
        _Losses.due.clear()
    _Losses.last = now
    for caution in cautions:
        if ahead := caution.ahead(now):
            _Losses.due[caution.address] = _Losses.due.pop(caution.address, 0) + ahead  # now the newest
    for oldest in list(_Losses.due)[:-_MOST_ADDRESSES]:
        _Losses.due.pop(oldest, None)


def single_credit(policy: str) -> Single:
    """Return how a link that is attached now takes messages, by ``amqp.singleCredit``."""
    if policy == "always":
        return Single.ALWAYS
    recent = _Losses.last is not None and monotonic() - _Losses.last < _REMEMBERED
    return Single.FOR_A_WHILE if recent and policy == "afterLoss" else Single.NO


class Caution:
    """How one link takes messages.

    Args:
        single: what was decided when it was attached.
        address: the node from which it receives.
        returns: whether messages that it has not settled go back to the broker when the connection is lost.
        buffered: how many of its messages wait for the caller.
    """

    def __init__(self, single: Single, address: str, *, returns: bool, buffered: Callable[[], int]) -> None:
        self.single = single
        self.address = address
        self._returns = returns
        self._buffered = buffered
        self._answer = self._slowest = 0.0
        """Seconds that the broker took to answer the attach, and for its slowest answer."""
        self._begun: float | None = None
        self._asked = 0.0
        self._repeated = False
        """Whether the last message had been delivered before."""
        self.arrived = 0.0
        """When the last messages came."""

    def ahead(self, now: float) -> int:
        """Return how many messages are certain to go back to the queue if the connection is lost now."""
        if not self._returns:
            return 0
        return max(self._buffered(), int(self.arrived > 0 and now - self.arrived < _RECENTLY))

    def answered(self, seconds: float) -> None:
        """The broker took so long to answer the attach."""
        self._answer = self._slowest = seconds

    def asked(self) -> bool:
        """Note that credit for one message is granted. Return whether the time of a link that is careful for a while
        begins with this."""
        self._asked = monotonic()
        first = self._begun is None and self.single is Single.FOR_A_WHILE
        if first:
            self._begun = self._asked
        return first

    def took(self, payload: bytes) -> None:
        """Note that a message arrived and used the credit."""
        try:
            self._repeated = read_header(payload).delivery_count > 0
        except MessageFormatException:
            self._repeated = True  # nothing is known of it
        due = _Losses.due.get(self.address, 0)
        if due:
            self._slowest = max(self._slowest, monotonic() - self._asked)
        if due > 1 and self._repeated:
            _Losses.due[self.address] = due - 1
        elif due and self._repeated:
            _Losses.due.pop(self.address, None)

    def time_left(self) -> float:
        """Return after how many seconds to ask again whether the whole window is safe; 0 if it is."""
        now = monotonic()
        elapsed = now - (now if self._begun is None else self._begun)
        earliest = min(max(_SECONDS, _ANSWERS * self._answer), _SECONDS_AT_MOST)
        if elapsed < earliest:
            return earliest - elapsed
        due = _Losses.due.get(self.address, 0)
        if not due and not self._repeated:
            return 0.0
        slowest = max(self._slowest, now - self._asked if due else 0.0)
        latest = min(max(_SECONDS, _LATE_ANSWERS * slowest), _LATE_SECONDS_AT_MOST)
        return _PAUSE if elapsed < latest else 0.0
