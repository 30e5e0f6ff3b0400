"""What ``stat`` shows of a queue that is given by its whole name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from pyjmsack.cli.stat import _listed, _show_prometheus
from pyjmsack.management import QueueStatus, UnknownQueueError


class Scripted:
    """A manager whose broker lists nothing, and afterwards has one queue."""

    def __init__(self, created: str) -> None:
        self._created = created

    def queues(self, pattern: str) -> list[QueueStatus]:
        return []

    def queue(self, name: str) -> QueueStatus:
        if name != self._created:
            raise UnknownQueueError(name)
        return QueueStatus(name, 3, 0, 0, 0, 0, 0)


def names(pattern: str, *, may_be_missing: bool = False) -> list[str]:
    manager: Any = Scripted("orders")
    return [row["name"] for row in _listed(manager, pattern, may_be_missing=may_be_missing)]


def test_a_queue_that_is_created_while_the_broker_is_asked_is_shown_and_not_left_out() -> None:
    assert names("orders") == ["orders"]


def test_a_name_that_no_queue_has_is_an_error_unless_it_is_watched_and_a_pattern_is_none() -> None:
    with pytest.raises(UnknownQueueError):
        names("oders")
    assert names("oders", may_be_missing=True) == []
    assert names("o*") == []


def test_prometheus_gets_no_series_of_a_queue_whose_name_never_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Each run of the command printed the queue on which it gets its answers, so that Prometheus kept a new series for
    each of its looks."""
    _show_prometheus([asdict(QueueStatus(name, 3, 0, 0, 0, 0, 0, temporary=name == "t")) for name in ("t", "lasts")])
    assert {line.partition("}")[0] for line in capsys.readouterr().out.splitlines() if "{" in line} == {
        f'pyjmsack_queue_{name}{{queue="lasts"'
        for name in ("messages", "delivering", "consumers", "added_total", "acknowledged_total", "expired_total")
    }


def test_two_queues_never_share_a_label_whatever_their_names_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters were all shown as one. Prometheus refuses a page on which a series is there twice, so that a
    stranger who creates queues ended the monitoring of all others."""
    found = ["a\x01", "a\x02", "a\ufffd", 'a"', "a\\", "a\n", "a\\n", "a\r", "a\u2028"]
    _show_prometheus([asdict(QueueStatus(name, 3, 0, 0, 0, 0, 0)) for name in found])
    lines = [line for line in capsys.readouterr().out.split("\n") if line.startswith("pyjmsack_queue_messages{")]
    assert len(lines) == len({*lines}) == len(found)
    assert all(line.endswith('"} 3') for line in lines)
