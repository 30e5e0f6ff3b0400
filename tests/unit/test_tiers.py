"""Which tests are in which tier (tests/tiers.py)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import tiers

pytestmark = pytest.mark.timeout(300)  # collecting reads many modules

ROOT = Path(__file__).parents[2]
ROWS = "test_a_browser_shows_everything_in_order_ends_and_takes_nothing"


def collected(*arguments: str) -> tuple[set[str], str]:
    """Return the names of the tests that would run, with their parameters, and all that is printed."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}, done.stdout


def test_the_fast_tier_of_the_contract_has_one_row_over_each_protocol_in_any_order() -> None:
    files = ("tests/contract/test_browser.py", "tests/contract/test_asyncio_only.py")
    tests, out = collected("--tier", "fast", *files)
    assert {name for name in tests if name.startswith(ROWS)} == {
        f"{ROWS}[sync-amqp-artemis-0-0]",
        f"{ROWS}[aio-stomp-artemis-1000-25]",
    }
    assert not [name for name in tests if "classic" in name]
    assert "This was the fast tier, without " in out
    assert "All tests: pytest --tier full" in out


def test_the_fast_tier_and_the_rest_are_the_full_tier() -> None:
    files = ("tests/contract/test_browser.py", "tests/contract/test_large_bodies.py", "tests/unit/test_tiers.py")
    fast, rest, full = (collected("--tier", tier, *files)[0] for tier in ("fast", "rest", "full"))
    assert fast
    assert rest
    assert fast | rest == full
    assert not fast & rest


def cells(tests: set[str], test: str) -> Counter[str]:
    """Return how many rows of a test with two parameters there are, by face and target."""
    return Counter(name.rpartition("[")[2].rsplit("-", 2)[0] for name in tests if name.startswith(test))


def test_paths_run_in_the_full_tier_all_rows_on_artemis_and_classic_6_and_one_on_classic_5() -> None:
    tests, out = collected("tests/contract/test_browser.py", "tests/contract/test_large_bodies.py")
    assert cells(tests, ROWS) == {
        "sync-amqp-artemis": 12,
        "aio-stomp-artemis": 12,
        "aio-amqp-classic-6": 12,
        "aio-stomp-classic-6": 12,
        "sync-amqp-classic-5": 1,
        "sync-stomp-classic-5": 1,
    }
    assert "fast tier" not in out
    assert "test_a_body_of_100_mb_passes[sync-stomp-artemis]" in tests, "no Classic runs it, and the face meets STOMP"
    assert "test_a_body_of_100_mb_passes[aio-amqp-artemis]" not in tests


def test_in_the_tests_of_faults_the_faces_take_turns_and_classic_5_has_one_moment_of_each_request() -> None:
    tests, _ = collected("tests/faults/test_proof.py", "tests/faults/test_faults_failover.py")
    killed = "test_a_killed_broker_tears_no_transaction"
    assert {name for name in tests if name.startswith(killed)} == {f"{killed}[sync-amqp]", f"{killed}[aio-stomp]"}
    proof = {name for name in tests if name.startswith("test_what_is_promised")}
    rows = Counter(name.partition("[")[2].split("-", 1)[1] for name in proof)
    assert set(rows.values()) == {1}, "a row runs with one face"
    brokers = Counter(target for target in ("artemis", "classic-5", "classic-6") for name in proof if target in name)
    assert brokers == {"artemis": 72, "classic-6": 72, "classic-5": 18}
    faces = Counter(name.partition("[")[2].partition("-")[0] for name in proof)
    assert faces["aio"] == faces["sync"] == 81


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "without all of tests/{"),
        ({"contract": 1, ".": 2}, "without 2 tests of tests, 1 test of tests/contract and all of tests/{"),
    ],
)
def test_the_fast_tier_says_in_a_sentence_what_it_left_out(counts: dict[str, int], said: str) -> None:
    line = tiers.left_out(Counter(counts))
    assert line.startswith(f"This was the fast tier, {said}")
    assert "broker,celery,cli," in line
    assert line.endswith("}. All tests: pytest --tier full")


def test_the_whole_tier_leaves_nothing_out() -> None:
    tests, _ = collected("--tier", "whole", "tests/contract/test_browser.py", "tests/faults/test_proof.py")
    faces, targets = 2, 6
    assert set(cells(tests, ROWS).values()) == {12}
    assert len(cells(tests, ROWS)) == faces * targets
    assert len([name for name in tests if name.startswith("test_what_is_promised")]) == 9 * 4 * faces * targets
