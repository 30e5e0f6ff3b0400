"""The programs in ``examples/spark`` do what they say, in the session of these tests."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "spark"
EXPECTED = {
    "dead_letters.py": ["3 dead letters in EUR", "3 dead letters in XXX", "3 payments back in the queue"],
    "parquet_to_queue.py": ["50 invoices in the queue"],
    "queue_to_parquet.py": ["100 orders stored"],
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_example_prints_what_it_promises(
    name: str, spark: Any, broker_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYJMSACK_URL", broker_url)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == EXPECTED[name]
