"""Time-outs as callers give them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyjmsack.core.stats import seconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), (0, 0), (1, 1), (0.5, 0.5), (timedelta(milliseconds=20), 0.02), (1e9, 10**9)],
)
def test_a_time_out_is_seconds_a_timedelta_or_none(given: Any, expected: float | None) -> None:
    assert seconds(given) == expected


@pytest.mark.parametrize(
    "given", [-1, -0.001, float("nan"), float("inf"), 10**400, 10**10, 1e300, -(10**400), timedelta(seconds=-1)]
)
def test_a_number_that_no_clock_counts_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^timeout .*expected seconds from 0 to 1,000,000,000, or None"):
        seconds(given)


@pytest.mark.parametrize("given", ["1", b"1", True, [], 1j, object()])
def test_what_is_no_number_is_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^timeout: expected seconds as a number"):
        seconds(given)
