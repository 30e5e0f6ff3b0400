"""Computes how long a redelivered message waits before it is handed out (S115).

``uri/policy.py`` has the options, also the number of redeliveries that are allowed. ``RedeliveryLimit`` in
``core/admission.py`` enforces this number. The retries of an ``App`` are in ``app/retry.py``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from pyjmsack.uri import RedeliveryPolicy

__all__ = ["redelivery_delay"]

_LONGEST: Final = (2**31 - 1) / 1000


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
