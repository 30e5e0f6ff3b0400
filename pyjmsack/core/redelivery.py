"""Computes how long a redelivered message waits before it is handed out (S115).

``uri/policy.py`` has the options, also the number of redeliveries that are allowed. ``RedeliveryLimit`` in
``core/admission.py`` enforces this number. The retries of an ``App`` are in ``app/retry.py``.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final

from pyjmsack.spi.envelope import Inbound
from pyjmsack.uri import RedeliveryPolicy

__all__ = ["FailedDeliveries", "redelivery_delay"]

_LONGEST: Final = (2**31 - 1) / 1000
_MOST_FAILED: Final = 10_000
"""The number of failed messages that a connection remembers, because their next delivery may have to wait."""

_NEVER: Final = (0, 0, -1)
"""The entry of a message that did not fail."""


class FailedDeliveries:
    """How often this connection gave each message back as failed (S115). The oldest messages are forgotten first.

    Only these messages wait, because a sender may write any delivery count into a message. A sender also chooses the id
    by which a message is found here, and may use it again. So each failure lets only one delivery wait. A message that
    fails again has a higher delivery count than before. A failure with no higher count may be that of another message,
    so such failures count as two at most. They count as two, so that messages wait also if the first delay is 0.

    Any thread may call the methods, also the loop, so there is no lock. Each step is atomic. If two threads change the
    same message at the same time, a failure may be forgotten, and then one delivery does not wait.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[int, int, int]] = OrderedDict()
        """For each message the number of its failures, for how many of them no delivery has waited yet, and the highest
        delivery count with which it failed. All messages of a source that have no id share one entry."""

    def __len__(self) -> int:
        """The number of failed messages that are remembered."""
        return len(self._known)

    def add(self, source: Hashable, inbound: Inbound) -> None:
        """Count a failure of a message, or as many as there were calls of ``recover()``.

        Args:
            source: the queue or the subscription of the message.
            inbound: the message.
        """
        number, count = _number(source, inbound), inbound.redelivery_count
        failed, due, highest = self._known.pop(number, _NEVER)
        grown = failed + max(1, inbound.redeliveries)
        if count <= highest:  # perhaps another message with this id
            grown = max(failed, min(grown, 2))
        self._known[number] = grown, due + 1, max(count, highest)
        if len(self._known) > _MOST_FAILED:
            with suppress(KeyError):
                self._known.popitem(last=False)

    def of(self, source: Hashable, inbound: Inbound, *, waited: bool) -> int:
        """Return the number of failures of a message, including its calls of ``recover()``. At most two are counted of
        messages without an id, because nobody knows which of them failed. Two let such a message wait for
        ``redeliveryDelay``, also if the first delay is 0.

        Args:
            source: the queue or the subscription of the message.
            inbound: the message.
            waited: whether failures count for which a delivery has waited already. They also count after a
                ``recover()``, which no sender can cause.
        """
        again = inbound.redeliveries
        if not self._known:  # as for most connections
            return again
        failed, due, _ = self._known.get(_number(source, inbound), _NEVER)
        if not (due or again or waited):
            return 0
        return again + (min(failed, 2) if inbound.quick_id() is None else failed)

    def waited(self, source: Hashable, inbound: Inbound) -> None:
        """Remember that a delivery of this message has waited."""
        number = _number(source, inbound)
        failed, due, highest = self._known.get(number, _NEVER)
        if due:
            self._known[number] = failed, due - 1, highest


def _number(source: Hashable, inbound: Inbound) -> int:
    """Return the number by which a message is found. It is a hash, because a sender may choose a long id."""
    return hash((source, inbound.quick_id()))


def redelivery_delay(
    policy: RedeliveryPolicy, redelivery: int, vary: Callable[[float, float], float] = random.uniform
) -> float:
    """Return the seconds to wait before redelivery number ``redelivery``, which counts from 1.

    ``vary(low, high)`` returns a random number from ``low`` to ``high``. With collision avoidance, the wait is made
    longer or shorter by a random part of its length, at most ``collision_avoidance_percent``.
    """
    if redelivery <= 1:
        wait = policy.initial_redelivery_delay
    elif policy.use_exponential_back_off:
        wait = _grown(policy, redelivery)
    else:
        wait = policy.redelivery_delay
    if policy.use_collision_avoidance:
        share = policy.collision_avoidance_percent / 100
        wait += wait * vary(-share, share)
    return wait


def _grown(policy: RedeliveryPolicy, redelivery: int) -> float:
    # the waits grow, beginning with the first wait that is not 0
    first, steps = policy.initial_redelivery_delay, redelivery - 1
    if not first:
        first, steps = policy.redelivery_delay, redelivery - 2
    if not steps:
        return first
    if not first or policy.back_off_multiplier <= 1:  # no growth
        return policy.redelivery_delay
    longest = _LONGEST
    if policy.maximum_redelivery_delay is not None:
        longest = max(policy.maximum_redelivery_delay, policy.redelivery_delay)
    try:
        return min(first * policy.back_off_multiplier**steps, longest)
    except OverflowError:
        return longest
