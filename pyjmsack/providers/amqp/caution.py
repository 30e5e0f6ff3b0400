"""When a link has to take one message at a time, because Artemis mixes up messages after a connection is lost.

Artemis 2.7 to 2.56 keeps, in the entry that a queue has for a message, the link that is about to send the message. When
a connection with a consumer is lost, its messages go back to the queue, and at once to other links, while the thread of
the lost connection still has entries to send. That thread then writes into the new link, beside the thread to which the
link belongs. Two messages in one transfer, an empty transfer, or bytes of one message under the delivery of another are
the result, and whoever accepts such a delivery removes a message that nobody was given.

The two threads disturb each other only where a link has credit for several messages. So a link that is attached soon
after a loss gets credit for one message at a time, until the lost connection has nothing left to send.
``docs/upstream/`` has the whole story, ``docs/failover.md`` what it means for users.
"""

from __future__ import annotations

from enum import IntEnum
from time import monotonic

__all__ = ["Single", "lost", "seconds", "single_credit"]

_SECONDS, _SECONDS_AT_MOST = 1.8, 10.0
_ANSWERS = 5
"""How long a link that begins after a loss takes one message at a time: so many seconds, or as long as so many answers
of a slow broker take, but no longer than the limit. From a loss to the last message that Artemis wrote for the lost
connection were measured some milliseconds on a quiet machine, 1.6 s at a broker that had just started beside two busy
processes, and 6.9 s beside twenty busy processes for each core, where the answers of the broker are as late."""

_REMEMBERED = 60.0
"""Seconds after a loss during which links begin carefully: the default ``connection-ttl`` of Artemis, after which the
broker notices a loss at the latest."""


class Single(IntEnum):
    """Whether a link has credit for one message at a time."""

    NO = 0
    FOR_A_WHILE = 1
    ALWAYS = 2


class _Losses:
    """When this process lost a connection. Every connection may read the queue of every other one, so all share it."""

    last: float | None = None


def lost() -> None:
    """Remember that a connection ended without an orderly close."""
    _Losses.last = monotonic()


def single_credit(policy: str) -> Single:
    """Return how a link that is attached now takes messages, by ``amqp.singleCredit``."""
    if policy == "always":
        return Single.ALWAYS
    recent = _Losses.last is not None and monotonic() - _Losses.last < _REMEMBERED
    return Single.FOR_A_WHILE if recent and policy == "afterLoss" else Single.NO


def seconds(answered_after: float) -> float:
    """Return how long a link is careful whose attach the broker answered after so many seconds."""
    return min(max(_SECONDS, _ANSWERS * answered_after), _SECONDS_AT_MOST)
