"""Decides when a link takes one message at a time, because Artemis mixes up messages after a connection is lost.

A queue of Artemis 2.7 to 2.56 has an entry for each message. The entry names the link that is about to send the
message. When a connection with a consumer is lost, its messages go back to the queue, and from there at once to other
links. At this time the thread of the lost connection may still have entries to send. This thread then writes into the
new link, and so does the thread to which the new link belongs. The result is two messages in one transfer (the frame
that carries a message), an empty transfer, or bytes of one message in the delivery of another. If a client
accepts such a delivery, the broker removes from the queue a message that no client has received.

The two threads mix messages up only where a link has credit for several messages. Therefore a link that is opened soon
after a loss gets credit for one message at a time, until the lost connection has nothing left to send. Both threads may
still write this one message. In this case an empty transfer comes in addition to the message, and no message is lost.
``docs/upstream/`` describes the defect, and ``docs/failover.md`` says what it means for users.

Waiting for a fixed time is not enough, because the thread of the lost connection may be late. Therefore the link also
looks at the messages. The messages of the lost connection go back to the head of their queue, and Artemis counts a
delivery for each of them. Therefore the link first receives as many counted messages as this process had in its
inboxes. When the link then receives a message that was never delivered before, the broker has nothing left to send for
the lost connection.
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
"""A link that begins after a loss takes one message at a time for some time. Three numbers give the shortest such time.

This shortest time is ``_SECONDS``. If the broker is slow, it is ``_ANSWERS`` times the time that the broker needs for
an answer, but at most ``_SECONDS_AT_MOST``. We measured the time from a loss to the last message that Artemis wrote for
the lost connection: some milliseconds on a quiet machine, 1.6 s at a broker that had just started beside two busy
processes, and 8 s beside twenty busy processes for each core. In the last case the answers of the broker are late too,
and the factor covers this case.
"""

_LATE_ANSWERS, _LATE_SECONDS_AT_MOST = 25, 20.0
"""Two numbers give the longest time for which a link that begins after a loss takes one message at a time. This time is
``_SECONDS``, or ``_LATE_ANSWERS`` times the slowest answer, but at most ``_LATE_SECONDS_AT_MOST``. The link waits for
the longest time if messages of the lost connection are not delivered again, for example because another client took
them."""

_PAUSE = 0.1
"""Seconds between two checks whether the messages of the lost connection were delivered again."""

_REMEMBERED = 60.0
"""Seconds after a loss during which new links take one message at a time. This is the default ``connection-ttl`` of
Artemis, the time after which the broker notices a loss at the latest."""

_MOST_ADDRESSES = 10_000
"""The number of addresses for which this module remembers how many messages have to be delivered again. If there are
more addresses, the oldest one is forgotten. A link for a forgotten address takes one message at a time for the shortest
time (``_SECONDS``), and until a message comes that was never delivered before.
"""

_RECENTLY = 1.0
"""If the last message of a lost link came within this number of seconds before the loss, the broker probably had more
messages for the link, even if nothing was buffered."""


class Single(IntEnum):
    """The decision whether a link has credit for one message at a time."""

    NO = 0
    FOR_A_WHILE = 1
    ALWAYS = 2


class _Losses:
    """The memory of this process about its lost connections. All connections share this object, because any connection
    may read the queue that a lost connection read.

    Loops in two threads may count at the same time. In this case the count may be wrong by one. If the count is too
    high, a link takes one message at a time for a little longer. If the count is too low, a link still waits for the
    shortest time and for a message that was never delivered before.
    """

    last: float | None = None
    due: dict[str, int] = {}  # noqa: RUF012 - all connections of the process share it
    """For each address, the number of messages that have to be delivered again. The address of the newest loss comes
    last."""


def lost(cautions: Iterable[Caution] = ()) -> None:
    """Remember that a connection ended without an orderly close, and how many messages its links had."""
    now = monotonic()
    if _Losses.last is None or now - _Losses.last >= _REMEMBERED:
        _Losses.due.clear()
    _Losses.last = now
    for caution in cautions:
        if ahead := caution.ahead(now):
            _Losses.due[caution.address] = (
                _Losses.due.pop(caution.address, 0) + ahead
            )  # the address moves to the end, because it is the newest
    for oldest in list(_Losses.due)[:-_MOST_ADDRESSES]:
        _Losses.due.pop(oldest, None)


def single_credit(policy: str) -> Single:
    """Return whether a link that is opened now takes one message at a time.

    Args:
        policy: the value of ``amqp.singleCredit``.
    """
    if policy == "always":
        return Single.ALWAYS
    recent = _Losses.last is not None and monotonic() - _Losses.last < _REMEMBERED
    return Single.FOR_A_WHILE if recent and policy == "afterLoss" else Single.NO


class Caution:
    """Decides for one link when it takes one message at a time.

    Args:
        single: the decision that was made when the link was opened.
        address: the name of the queue or topic from which the link receives.
        returns: whether unsettled messages of the link go back to the broker when the connection is lost.
        buffered: returns the number of messages of the link that wait for the caller.
    """

    def __init__(self, single: Single, address: str, *, returns: bool, buffered: Callable[[], int]) -> None:
        self.single = single
        self.address = address
        self._returns = returns
        self._buffered = buffered
        self._answer = self._slowest = 0.0
        """Two numbers of seconds: the time that the broker took to answer the Attach frame, and the time of its slowest
        answer."""
        self._begun: float | None = None
        self._asked = 0.0
        self._repeated = False
        """Whether the last message was a redelivery."""
        self.arrived = 0.0
        """The time when the last messages came, on the monotonic clock in seconds. 0 means that no message has come."""

    def ahead(self, now: float) -> int:
        """Return the number of messages that will certainly go back to the queue if the connection is lost now."""
        if not self._returns:
            return 0
        return max(self._buffered(), int(self.arrived > 0 and now - self.arrived < _RECENTLY))

    def answered(self, seconds: float) -> None:
        """Remember the number of seconds that the broker took to answer the Attach frame."""
        self._answer = self._slowest = seconds

    def asked(self) -> bool:
        """Remember that credit for one message is granted.

        Returns:
            True if this is the first credit of a link that takes one message at a time for a while. The
            time of :meth:`time_left` begins with this credit.
        """
        self._asked = monotonic()
        first = self._begun is None and self.single is Single.FOR_A_WHILE
        if first:
            self._begun = self._asked
        return first

    def took(self, payload: bytes) -> None:
        """Remember that a message arrived, and whether this was a redelivery."""
        try:
            self._repeated = read_header(payload).delivery_count > 0
        except MessageFormatException:
            self._repeated = True  # the message may have been delivered before
        due = _Losses.due.get(self.address, 0)
        if due:
            self._slowest = max(self._slowest, monotonic() - self._asked)
        if due > 1 and self._repeated:
            _Losses.due[self.address] = due - 1
        elif due and self._repeated:
            _Losses.due.pop(self.address, None)

    def time_left(self) -> float:
        """Return the seconds until the next check whether the link may have its whole window. 0 means that the link may
        have its whole window now."""
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
