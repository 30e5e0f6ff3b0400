"""The files of docs/howto/monitoring.md name the metrics that ``stat --format prometheus`` really prints."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from pyjmsack.cli.stat import _FORMATS
from pyjmsack.management import QueueStatus

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
METRIC = re.compile(r"\bpyjmsack_queue_\w+")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The metrics of a queue of Artemis, which says everything."""
    _FORMATS["prometheus"]([asdict(QueueStatus("q", 1, 1, 1, 1, 1, 1, killed=1, scheduled=1))])
    return set(re.findall(r"^# TYPE (\S+)", capsys.readouterr().out, re.MULTILINE))


def test_each_metric_of_the_dashboard_is_one_that_stat_prints(printed: set[str]) -> None:
    dashboard = json.loads((HOWTO / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = [METRIC.findall(target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    assert all(asked)
    assert {name for names in asked for name in names} <= printed
    assert METRIC.findall(dashboard["templating"]["list"][1]["query"])[0] in printed


def test_the_page_has_each_metric_and_no_other(printed: set[str]) -> None:
    page = (HOWTO / "monitoring.md").read_text(encoding="utf-8")
    assert set(METRIC.findall(page)) == printed
