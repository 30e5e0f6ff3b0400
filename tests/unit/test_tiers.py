"""Which tests are in which tier (tests/tiers.py)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = "test_a_browser_shows_everything_in_order_ends_and_takes_nothing"


def collected(*arguments: str) -> tuple[set[str], str]:
    """Return the names of the tests that would run, with their parameters, and all that is printed."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}, done.stdout


def test_the_fast_tier_of_the_contract_has_one_row_over_each_protocol_in_any_order() -> None:
    files = ("tests/contract/test_browser.py", "tests/contract/test_asyncio_only.py")
    tests, out = collected("--tier", "fast", *files)
    assert {name for name in tests if name.startswith(ROWS)} == {
        f"{ROWS}[sync-amqp-artemis-0-0]",
        f"{ROWS}[aio-stomp-artemis-1000-25]",
    }
    assert not [name for name in tests if "classic" in name]
    assert "This was the fast tier. Left out:" in out
    assert "All tests: pytest --tier full" in out


def test_paths_run_whole_all_rows_on_each_broker_and_one_with_the_other_face() -> None:
    tests, out = collected("tests/contract/test_browser.py")
    ran = Counter(
        name.removeprefix(ROWS).rpartition("[")[2].rsplit("-", 2)[0] for name in tests if name.startswith(ROWS)
    )
    assert ran == {
        "sync-amqp-artemis": 12,
        "aio-amqp-artemis": 1,
        "sync-amqp-classic-5": 12,
        "aio-amqp-classic-6": 12,
        "sync-stomp-artemis": 1,
        "aio-stomp-artemis": 12,
        "sync-stomp-classic-5": 12,
        "aio-stomp-classic-6": 12,
    }
    assert "fast tier" not in out
