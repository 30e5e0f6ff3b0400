"""Artemis mixes up messages when a connection is lost (docs/upstream): each message must become what was asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the flows are those of ``python -m benchmarks shift``

from benchmarks.shift import MODES, Case, run_round


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("consumers", "policy", "modes"),
    [
        pytest.param(1, "afterLoss", MODES, id="1-afterLoss"),
        pytest.param(3, "always", MODES[::2], id="3-always"),
        pytest.param(
            3,
            "always",
            MODES[1::2],
            id="3-always-other-modes",
            marks=pytest.mark.whole_tier("one credit at a time is slow, and is the same part in all modes"),
        ),
    ],
)
def test_after_many_cuts_each_message_was_acknowledged_released_or_rejected_as_itself(
    consumers: int, policy: str, modes: tuple[str, ...]
) -> None:
    """S34, S38, S78, S103, S105: several cuts for each mode; the faces take turns. What was released comes again as
    itself, what was rejected lies among the dead letters, all else was acknowledged. One consumer alone acknowledges
    nothing twice, but in CLIENT mode what it held when the connection was lost (S95).

    Of three consumers one is never cut: it needs credit for one message at a time. One alone needs the default.
    """
    faces = ("aio", "sync") if consumers == 1 else ("sync", "aio")
    options = f"amqp.singleCredit={policy}"
    kinds = [Case(mode, faces[place % 2], consumers, consumers > 1, options) for place, mode in enumerate(modes)]
    for found in run_round(kinds, seed=consumers):
        assert not [*found.problems()], found.case
        assert len(found.confirmed) > 1000
        assert found.rejected <= found.confirmed
