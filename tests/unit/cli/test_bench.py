"""What the bench counts and plans, without any broker."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from pyjmsack.cli.bench.histogram import Histogram
from pyjmsack.cli.bench.plan import Plan, Turns
from pyjmsack.cli.bench.report import as_document, in_unit
from pyjmsack.cli.bench.run import Result, run_clients
from pyjmsack.cli.main import cli


def test_percentiles_are_right_to_two_percent_and_the_longest_time_is_exact() -> None:
    histogram = Histogram()
    for number in range(1, 10_001):
        histogram.add(number / 10_000)
    for share in (0.5, 0.9, 0.99, 0.999):
        assert histogram.percentile(share) == pytest.approx(share, rel=0.021)
    assert (histogram.longest, histogram.percentile(1.0), histogram.count) == (1.0, 1.0, 10_000)
    assert Histogram().percentile(0.5) is None


def test_any_number_of_times_needs_few_buckets_and_any_time_fits() -> None:
    histogram = Histogram()
    for exponent in range(-400, 400):
        histogram.add(10.0 ** (exponent / 10))
    assert len(histogram._buckets) <= 1300
    other = Histogram()
    other.merge(histogram)
    assert other.count == 800
    bars = list(other.bars(14))
    assert len(bars) <= 14
    assert sum(count for _, count in bars) == 800


def test_turns_end_with_the_count_and_with_the_time() -> None:
    turns = Turns(3, None, None)
    assert [turns.next() is not None for _ in range(5)] == [True, True, True, False, False]
    turns = Turns(None, 0.0, None)
    turns.begin()
    assert turns.next() is None


def test_with_a_rate_a_late_client_gets_the_moments_that_were_meant() -> None:
    turns = Turns(5, None, 1e6)
    began = time.monotonic()
    turns.begin()
    moments = [moment for _ in range(5) if (moment := turns.next()) is not None]
    assert [later - former for former, later in pairwise(moments)] == pytest.approx([1e-6] * 4, abs=1e-9)
    assert moments[0] >= began


def test_a_turn_for_which_one_client_found_no_message_goes_to_the_client_that_has_it() -> None:
    turns = Turns(1, None, None)
    assert turns.next(keep=True) is not None
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(turns.next, keep=True)
        turns.settle(used=False)
        assert waiting.result(10) is not None
        waiting = other.submit(turns.next, keep=True)
        turns.settle(used=True)
        assert waiting.result(10) is None


def test_the_end_wakes_nobody_for_another_turn() -> None:
    turns = Turns(None, None, 1e-3)  # the second turn would come after a quarter of an hour
    assert turns.next() is not None
    turns.end()
    assert turns.next() is None


def test_a_run_ends_with_its_last_client_and_not_with_the_look_at_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look came up to 0.1 s later, so that short runs showed a fraction of the real speed."""
    now, ended = [0.0], threading.Event()

    def monotonic() -> float:
        if threading.current_thread() is not threading.main_thread():
            ended.set()  # the client ends, and reads the clock
        return now[0]

    def wait(seconds: float) -> None:
        assert ended.wait(10), "the client does not note when it ended"
        now[0] = 100.0

    monkeypatch.setattr("pyjmsack.cli.bench.run.time", MagicMock(monotonic=monotonic))
    client = MagicMock(times=Histogram(), done=1, bytes=0, sent=1)
    stop = MagicMock(requested=False, wait=wait)
    turns = MagicMock(over=False)
    assert run_clients(MagicMock(), [client], turns, stop, MagicMock()).seconds == 0.0


def test_messages_without_an_answer_are_told() -> None:
    result = Result(done=2, unanswered=3, seconds=2.0)
    document = as_document("send", Plan(1, 5, None, None, None), "q", result, [])
    assert (document["messages"], document["unanswered"], document["messages_per_second"]) == (2, 3, 1.0)


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (2e-6, "2 µs"), (0.0123, "12.3 ms"), (61.0, "61 s")])
def test_a_time_has_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert in_unit(seconds) == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["send", "--queue", "orders"], "stay in orders"),
        (["receive", "--queue", "orders"], "destroyed"),
        (["send", "--count", "2000000", "--size", "1024"], "1 GiB"),
        (["receive", "--count", "2000000", "--size", "1024"], "1 GiB"),
        (["roundtrip", "--clients", "0"], "--clients"),
    ],
    ids=str,
)
def test_what_harms_others_is_refused_before_anything_is_sent(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["bench", *arguments, "--url", "amqp://127.0.0.1:1"], input="")
    assert result.exit_code == 2, result.output
    assert said in result.output


def test_a_broker_that_is_not_there_is_an_error_and_no_table() -> None:
    result = CliRunner().invoke(cli, ["bench", "roundtrip", "--url", "amqp://127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "pyjmsack broker" in result.stderr
