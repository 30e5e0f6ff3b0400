"""``Retry``: how often a message is delivered again after its listener raised, and what happens after the last time.

``app/worker.py`` and the redelivery policy of the connection (``core/redelivery.py``) apply these rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Failures", "Retry"]

_OUTCOMES: Final = {"reject": "REJECTED", "release": "RELEASED", "drop": "ACCEPTED"}
_LONGEST: Final = 86_400.0
_MOST_FAILED: Final = 10_000
"""The number of failed messages that a listener remembers."""


class Failures:
    """How often a listener raised for each message, in this process. The oldest messages are forgotten first.

    ``Retry(then="drop")`` uses these counts, and not those of the broker, because a lost connection raises the count of
    the broker for messages that no function had. A message id is not enough as a key, because some senders use an id
    again for another message.
    """

    def __init__(self) -> None:
        self._times: OrderedDict[int, int] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether any message is remembered."""
        return bool(self._times)

    def add(self, key: Hashable | None) -> int:
        """Count a failure, and return the number of failures of this message.

        Args:
            key: the destination and the identity of the message. ``None`` = the message has no identity, so it cannot
                be found again. Such a failure is not counted, and the number is 0, so the message is never dropped.
        """
        if key is None:
            return 0
        number = hash(key)  # a number, because an identity may be long
        times = self._times[number] = self._times.pop(number, 0) + 1
        if len(self._times) > _MOST_FAILED:
            self._times.popitem(last=False)  # one step, because several threads may fail at the same time
        return times

    def has(self, key: Hashable | None) -> bool:
        """Return whether this message is remembered."""
        return key is not None and hash(key) in self._times

    def forget(self, key: Hashable | None) -> None:
        """Forget the failures of a message that is done, because another message may have the same identity."""
        if key is not None:
            self._times.pop(hash(key), None)


@dataclass(frozen=True)
class Retry:
    """The rule for a message whose listener raised. The message is given back, and is delivered again after a wait. The
    redelivery is counted.

    The client waits before it hands the message out, so nothing is lost if the process ends during the wait. During the
    wait the worker takes no other message. The client waits only for errors on the present connection of the listener
    (S115), so a message that failed in another process is taken at once. The broker has a limit of its own (Artemis: 10
    deliveries), which may be reached first.

    Args:
        limit: how often a message may be delivered again, 0 to 1,000,000. ``None`` leaves the limit to the broker
            (S114). With ``"reject"`` and ``"release"`` a delivery counts even if the connection was lost before the
            listener began. With ``"drop"`` only the errors of the listener in this process count.
        delay: seconds before the first redelivery, 0 to 86,400.
        backoff: the factor by which each wait is longer than the wait before, 1 to 1000.
        longest: the longest wait in seconds, 0 to 86,400.
        then: what happens to a message over the limit. ``"reject"`` makes the message a dead letter. ``"release"``
            gives the message back uncounted, at most once a second, and other messages overtake it. ``"drop"``
            acknowledges the message. The last delivery is logged as an error.

    Raises:
        ValueError: a number is out of its range, or ``then`` is unknown.
    """

    limit: int | None = None
    delay: float = 1.0
    backoff: float = 2.0
    longest: float = 30.0
    then: Literal["reject", "release", "drop"] = "reject"

    def __post_init__(self) -> None:
        if self.limit is not None and not 0 <= self.limit <= 1_000_000:
            raise ValueError(f"Retry: limit is {self.limit!r}; expected 0 to 1,000,000, or None for the broker's limit")
        for name, value in (("delay", self.delay), ("longest", self.longest)):
            if not 0 <= value <= _LONGEST:
                raise ValueError(f"Retry: {name} is {value!r}; expected 0 to {_LONGEST:g} seconds")
        if not 1 <= self.backoff <= 1000:
            raise ValueError(f"Retry: backoff is {self.backoff!r}; expected 1 to 1000")
        if self.then not in _OUTCOMES:
            raise ValueError(f"Retry: then={self.then!r}; expected one of {', '.join(map(repr, _OUTCOMES))}")

    def options(self, *, transacted: bool) -> dict[str, object]:
        """Return the URL options by which the library follows this rule (S112-S116).

        Args:
            transacted: whether the listener is transacted. Otherwise the worker itself drops a message.
        """
        drops = self.then == "drop"
        unlimited = self.limit is None or (drops and not transacted)
        first = max(self.delay, 1.0) if self.then == "release" else self.delay
        milliseconds = round(first * 1000)
        chosen: dict[str, object] = {
            "initialRedeliveryDelay": milliseconds,
            "redeliveryDelay": milliseconds,
            "useExponentialBackOff": self.backoff > 1,
            "backOffMultiplier": float(self.backoff),
            "maximumRedeliveryDelay": max(milliseconds, round(self.longest * 1000)),
            "useCollisionAvoidance": True,
            "outcome": _OUTCOMES[self.then],
            "maxRedeliveries": -1 if unlimited else self.limit,
            # "drop" counts rollbacks, because the broker also counts lost connections for messages sent ahead
            "preDispatchCheck": not drops,
        }
        return {f"jms.redeliveryPolicy.{name}": value for name, value in chosen.items()}

    def last(self, delivery_count: int) -> bool:
        """Return whether a message that failed in this delivery is over the limit.

        Args:
            delivery_count: the number of this delivery, or the number of failures; 1 = the first.
        """
        return self.limit is not None and delivery_count > self.limit
