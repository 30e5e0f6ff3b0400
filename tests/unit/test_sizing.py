"""The model of docs/sizing.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are no part of the package

from benchmarks.sizing import DOCS, per_byte, plan, works, write  # noqa: E402 - see the line above


def point(axis: str, scenario: str, value: int, rate: float, processor: float) -> dict[str, Any]:
    return {
        "axis": axis,
        "scenario": scenario,
        "protocol": "amqp",
        "face": "sync",
        "value": value,
        "rate": rate,
        "processor": processor,
    }


GROWTH = {
    "machine": {"cores": 4, "load": 0.1},
    "points": [
        *(
            point("processes", scenario, number, rate, 10.0)
            for scenario in ("send-async", "receive")
            for number, rate in ((1, 90_000.0), (2, 130_000.0), (4, 133_334.0))
        ),
        *(
            point("bodies", "receive", size, 1.0, cost)
            for size, cost in ((100, 9.0), (1_000, 10.0), (100_000, 60.0), (1_000_000, 1009.0))
        ),
    ],
}


def test_a_process_has_one_core_and_all_share_the_cores_with_the_broker() -> None:
    sends, receives = works(GROWTH)
    assert (sends.title, receives.title) == ("send, amqp, blocking", "receive, amqp, blocking")
    assert sends.client == 10.0
    assert sends.broker == pytest.approx(20.0, rel=1e-4)
    assert sends.predict(1) == 100_000
    assert sends.predict(4) == pytest.approx(133_334, rel=1e-4)


def test_a_body_costs_by_its_kilobytes() -> None:
    [(start, slope)] = per_byte(GROWTH).values()
    assert (start, slope) == (pytest.approx(9.0), pytest.approx(1.0))


def test_the_plan_adds_up_sending_and_receiving() -> None:
    chosen = plan(works(GROWTH))
    assert chosen.cores_each == pytest.approx(0.4)
    assert chosen.brokers == 5


def test_the_page_gets_its_tables_and_keeps_its_text(tmp_path: Path) -> None:
    page, picture = tmp_path / "sizing.md", tmp_path / "sizing.svg"
    page.write_text((DOCS / "sizing.md").read_text(encoding="utf-8"), encoding="utf-8")
    for _ in range(2):
        write(GROWTH, page, picture)
    text = page.read_text(encoding="utf-8")
    assert text.count("| send, amqp, blocking | 10.0 | 20.0 | 100,000 / 90,000 |") == 1
    assert text.startswith("# Sizing")
    assert picture.read_text(encoding="utf-8").endswith("</svg>\n")
