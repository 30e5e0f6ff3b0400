"""How long a redelivered message waits (S115)."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.core.redelivery import redelivery_delay
from pyjmsack.uri import RedeliveryPolicy

LADDERS: list[tuple[dict[str, Any], list[float]]] = [
    ({}, [0, 0, 0]),
    ({"initial_redelivery_delay": 1, "redelivery_delay": 2}, [1, 2, 2, 2]),
    # the worked case of ActiveMQ's tests
    (
        {
            "initial_redelivery_delay": 0,
            "redelivery_delay": 0.5,
            "use_exponential_back_off": True,
            "back_off_multiplier": 2,
        },
        [0, 0.5, 1, 2, 4],
    ),
    (
        {
            "initial_redelivery_delay": 0,
            "redelivery_delay": 0.5,
            "use_exponential_back_off": False,
            "back_off_multiplier": 2,
        },
        [0, 0.5, 0.5, 0.5],
    ),
    ({"initial_redelivery_delay": 1, "redelivery_delay": 9, "use_exponential_back_off": True}, [1, 5, 25, 125]),
    (
        {
            "initial_redelivery_delay": 1,
            "redelivery_delay": 1,
            "use_exponential_back_off": True,
            "back_off_multiplier": 2,
            "maximum_redelivery_delay": 3,
        },
        [1, 2, 3, 3, 3],
    ),
    # the cap is never below the plain delay
    (
        {
            "initial_redelivery_delay": 1,
            "redelivery_delay": 4,
            "use_exponential_back_off": True,
            "back_off_multiplier": 3,
            "maximum_redelivery_delay": 2,
        },
        [1, 3, 4, 4],
    ),
    ({"redelivery_delay": 2, "use_exponential_back_off": True, "back_off_multiplier": 1}, [0, 2, 2, 2]),
    # without back-off there is no cap
    ({"initial_redelivery_delay": 7, "redelivery_delay": 8, "maximum_redelivery_delay": 3}, [7, 8, 8]),
]


@pytest.mark.parametrize(("fields", "delays"), LADDERS)
def test_delays_between_redeliveries_follow_the_ladder_of_s115(fields: dict[str, Any], delays: list[float]) -> None:
    redelivery = RedeliveryPolicy(**fields)
    assert [redelivery_delay(redelivery, number) for number in range(1, len(delays) + 1)] == delays


@pytest.mark.parametrize("initial", [0.0, 1.0])
def test_delay_of_a_late_redelivery_is_found_at_once_and_bounded_s115(initial: float) -> None:
    redelivery = RedeliveryPolicy(
        initial_redelivery_delay=initial, redelivery_delay=1, use_exponential_back_off=True, back_off_multiplier=1.5
    )
    assert redelivery_delay(redelivery, 10**9) == (2**31 - 1) / 1000
    assert redelivery_delay(redelivery, 60) == (2**31 - 1) / 1000
    assert redelivery_delay(RedeliveryPolicy(use_exponential_back_off=True), 10**9) == 0


@pytest.mark.parametrize(("share", "delay"), [(-0.2, 8.0), (0.0, 10.0), (0.2, 12.0)])
def test_collision_avoidance_varies_a_delay_by_its_percentage_s115(share: float, delay: float) -> None:
    asked: list[tuple[float, float]] = []

    def vary(low: float, high: float) -> float:
        asked.append((low, high))
        return share

    redelivery = RedeliveryPolicy(redelivery_delay=10, use_collision_avoidance=True, collision_avoidance_percent=20)
    assert redelivery_delay(redelivery, 2, vary) == delay
    assert asked == [(-0.2, 0.2)]
    assert 8 <= redelivery_delay(redelivery, 3) <= 12
    assert redelivery_delay(RedeliveryPolicy(redelivery_delay=10), 2, vary) == 10
