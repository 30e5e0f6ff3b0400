"""What a tracing is told, and that its code decides neither about a message nor about a close (S123, S127)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest
from core_fakes import Bench, FakeRuntime

from pyjmsack.core.steps import Deadline
from pyjmsack.core.tracing import GATHER, LAST_SPANS, Traces, safely


def raises(error: BaseException) -> Callable[[], None]:
    """Return a function that raises."""

    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, GeneratorExit, BaseException])
def test_no_error_of_a_tracing_passes(error: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    """S127: a span processor may cancel itself, and be no ``Exception``."""
    assert safely(raises(error("on purpose"))) is None
    assert "tracing failed" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_signal_on_the_main_thread_passes_through_a_tracing(error: type[BaseException]) -> None:
    """S127: a user pressed Ctrl-C, or a handler of SIGTERM called ``sys.exit``, while a span processor was at work."""
    with pytest.raises(error):
        safely(raises(error()))


def traces(runtime: FakeRuntime) -> Traces:
    return Traces(MagicMock(), runtime)


def ended(calls: list[Any], number: int) -> Callable[[], None]:
    return lambda: calls.append(number)


def test_spans_that_nobody_waits_for_are_ended_by_the_helper_thread_and_in_order() -> None:
    """S123: also those that came when the thread was about to end; no loop ends a span."""
    runtime, calls = FakeRuntime(), list[Any]()
    spans = traces(runtime)
    for number in range(3):
        spans.later(ended(calls, number))
    assert [delay for delay, _ in runtime.timers] == [GATHER]
    runtime.fire()
    assert calls == []
    ((work, then),) = runtime.work
    runtime.work.clear()
    work()
    assert calls == [0, 1, 2]
    spans.later(ended(calls, 3))
    runtime.fire()
    assert not runtime.work, "the first thread has not ended yet"
    then()
    runtime.work_off()
    assert calls == [0, 1, 2, 3]
    spans.later(ended(calls, 4))
    runtime.fire()
    runtime.work_off()
    assert calls == [0, 1, 2, 3, 4]


def test_a_close_waits_for_the_spans(caplog: pytest.LogCaptureFixture) -> None:
    """S123: also for those of sends that fail with the end of the connection."""
    runtime, calls = FakeRuntime(), list[Any]()
    spans = traces(runtime)
    spans.later(ended(calls, 1))
    runtime.submit(spans.later, ended(calls, 2))
    runtime.meanwhile.append(runtime.work_off)
    runtime.run(spans.close(Deadline(60)))
    assert calls == [1, 2]
    assert not caplog.records


@pytest.mark.parametrize(("left", "least", "most"), [(60, 50, 60), (0, LAST_SPANS, LAST_SPANS)])
def test_a_close_waits_for_a_blocked_span_processor_no_longer_than_it_may(
    left: float, least: float, most: float, caplog: pytest.LogCaptureFixture
) -> None:
    """S123: the close took as long as the ends of all spans, and for ever if one of them never came back."""
    runtime, calls = FakeRuntime(), list[Any]()
    spans = traces(runtime)
    # the close comes while the second span is being ended
    spans.later(ended(calls, 1))
    spans.later(lambda: runtime.run(spans.close(Deadline(left))))
    for number in (3, 4, 5):
        spans.later(ended(calls, number))
    runtime.fire()
    runtime.work_off()
    assert calls == [1], "what was dropped is not ended later"
    (wait,) = runtime.waits
    assert wait is not None
    assert least <= wait <= most
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "4 spans" in record.getMessage()


def test_a_connection_closes_its_tracing_last() -> None:
    """S123: the spans of what the close itself ends are ended, too."""
    bench, calls = Bench(tracing=MagicMock()), list[Any]()
    spans = bench.connection.channel.traces
    assert spans is not None
    bench.provider.abort = lambda error: spans.later(ended(calls, 1))
    bench.runtime.meanwhile.append(bench.runtime.work_off)
    bench.run(bench.connection.close())
    assert calls == [1]
