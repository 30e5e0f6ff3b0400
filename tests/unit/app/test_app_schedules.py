"""``app.every``: a function runs at its times, never twice at the same time, until the app stops."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from polling import eventually, wait_until

from pyjmsack import App, IllegalStateException, aio
from pyjmsack.app import schedule as schedules
from pyjmsack.app.schedule import Schedule

NOWHERE = "amqp://127.0.0.1:1"
"""No broker is needed: a schedule runs while the app looks for its broker."""


class Clock:
    """Takes the place of the module ``time``. A wait of the schedule moves the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(schedules, "time", self)

    def monotonic(self) -> float:
        return self.now


class Over:
    """A flag whose waits move the clock. The flag is set when so many runs were made."""

    def __init__(self, clock: Clock, runs: list[float], most: int) -> None:
        self._clock, self._runs, self._most = clock, runs, most

    def is_set(self) -> bool:
        return len(self._runs) >= self._most

    def wait(self, timeout: float) -> bool:
        self._clock.now += timeout
        return self.is_set()


def times(clock: Clock, most: int, seconds: float, delay: float, lasts: Callable[[int], float]) -> list[float]:
    """Return the times of the runs. ``lasts`` says how many seconds each run takes."""
    runs: list[float] = []

    def function() -> None:
        runs.append(clock.now - 100.0)
        clock.now += lasts(len(runs))

    app = App(NOWHERE)
    made = Schedule("f", function, seconds, delay, app._face, app)
    app._face.run(made.steps(Over(clock, runs, most)))  # type: ignore[arg-type] - a flag of the test
    return runs


def test_runs_begin_at_a_fixed_rate_whatever_each_of_them_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spring's ``fixedRate``, with ``initialDelay``."""
    clock = Clock(monkeypatch)
    assert times(clock, 4, 10, 0, lambda _: 3) == [0, 10, 20, 30]
    assert times(Clock(monkeypatch), 3, 10, 2.5, lambda _: 9) == [2.5, 12.5, 22.5]


def test_runs_that_were_due_during_a_long_run_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert times(clock, 4, 10, 0, lambda number: 25 if number == 2 else 1) == [0, 10, 40, 50]


def test_an_error_is_logged_and_the_next_run_comes(caplog: pytest.LogCaptureFixture) -> None:
    app, enough = App(NOWHERE), threading.Event()
    errors: list[BaseException] = [ValueError("no stock"), SystemExit(3)]

    @app.every(0.01)
    def report() -> None:
        if errors:
            raise errors.pop(0)
        enough.set()

    with caplog.at_level(logging.ERROR, "pyjmsack.app"), app:
        assert enough.wait(60)
    failed = [record for record in caplog.records if record.getMessage() == "schedule 'report' failed"]
    assert [str(record.exc_info[1]) for record in failed if record.exc_info] == ["no stock", "3"]


def test_in_asyncio_functions_of_both_kinds_run_and_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        app, runs = aio.App(NOWHERE), {"coroutine": 0, "plain": 0}

        @app.every(0.01)
        async def coroutine() -> None:
            runs["coroutine"] += 1
            raise ValueError("no stock")

        @app.every(0.01)
        def plain() -> None:
            runs["plain"] += 1

        async with app:
            await eventually(lambda: min(runs.values()) > 1)

    with caplog.at_level(logging.ERROR, "pyjmsack.app"):
        asyncio.run(main())
    assert "schedule 'coroutine' failed" in caplog.text


def test_a_stop_waits_for_a_run_at_work_and_no_other_run_begins() -> None:
    app, begun, go = App(NOWHERE), threading.Event(), threading.Event()
    ended: list[bool] = []
    runs: list[str] = []

    @app.every(0.01)
    def slow() -> None:
        runs.append("began")
        begun.set()
        assert go.wait(60)
        runs.append("ended")

    app.start()
    assert begun.wait(60)
    stopping = threading.Thread(target=lambda: ended.append(app.stop()))
    stopping.start()
    wait_until(lambda: app._ticking._over is not None and app._ticking._over.is_set())
    assert runs == ["began"]
    go.set()
    stopping.join(60)
    assert ended == [True]
    assert runs == ["began", "ended"]


def test_a_run_that_outlives_the_time_for_stopping_has_no_second_one_beside_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also not after the app was started again."""
    app, begun, go, others = App(NOWHERE, stop_timeout=0.05), threading.Event(), threading.Event(), threading.Event()
    at_work = 0

    @app.every(0.01)
    def stuck() -> None:
        nonlocal at_work
        at_work += 1
        assert at_work == 1
        begun.set()
        assert go.wait(60)
        at_work -= 1

    @app.every(0.01)
    def other() -> None:
        if "left out" in caplog.text:
            others.set()

    app.start()
    assert begun.wait(60)
    assert app.stop() is False
    assert "schedule 'stuck' did not finish in 0.05 s" in caplog.text
    begun.clear()
    app.start()
    assert others.wait(60), "the warning that a run is left out"
    assert not begun.is_set()
    go.set()
    assert begun.wait(60), "free again"
    assert app.stop()


def test_in_asyncio_a_run_that_outlives_the_time_for_stopping_is_cancelled() -> None:
    async def main() -> None:
        app, begun, cancelled = aio.App(NOWHERE, stop_timeout=0.05), asyncio.Event(), asyncio.Event()

        @app.every(60)
        async def stuck() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        await app.start()
        await asyncio.wait_for(begun.wait(), 60)
        assert await app.stop() is False
        await asyncio.wait_for(cancelled.wait(), 60)

    asyncio.run(main())


def test_a_scheduled_function_may_stop_its_app() -> None:
    """The stop waits for the function, so the function must not wait for the stop."""
    app = App(NOWHERE)
    answers: list[bool] = []
    app.every(60)(lambda: answers.append(app.stop()))
    assert app.run() is True
    assert answers == [False]


def test_in_asyncio_a_scheduled_function_may_stop_its_app() -> None:
    async def main() -> None:
        app = aio.App(NOWHERE)

        @app.every(60)
        async def end() -> None:
            answers.append(await app.stop())

        assert await app.run() is True

    answers: list[bool] = []
    asyncio.run(main())
    assert answers == [False]


def test_a_test_runs_a_scheduled_function_without_a_broker() -> None:
    app, sent = App(NOWHERE), []  # type: ignore[var-annotated]

    @app.every(30, name="stock")
    def report() -> str:
        app.sender.send("stock", {"pieces": 42})
        return "done"

    assert app.schedules["stock"].call(sent=sent) == "done"
    assert [(name, message.body) for name, message in sent] == [("stock", '{"pieces": 42}')]
    assert repr(app.schedules["stock"]) == "<schedule 'stock' every 30 s>"
    assert callable(report), "the function itself stays as it is"


def test_in_asyncio_a_test_awaits_the_call() -> None:
    app = aio.App(NOWHERE)

    @app.every(30)
    async def report() -> str:
        return "done"

    assert asyncio.run(app.schedules["report"].call()) == "done"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda app: app.every(0), ValueError, "every: seconds is 0; expected 0.01 to 2,678,400 seconds"),
        (lambda app: app.every(float("nan")), ValueError, "seconds is nan"),
        (lambda app: app.every(3_600_000), ValueError, r"seconds \(31 days\)"),
        (lambda app: app.every(1, delay=-1), ValueError, "delay is -1; expected 0 to"),
        (lambda app: app.every(print), TypeError, r"expected a number of seconds, as in @app.every\(30\)"),
        (lambda app: app.every(1)(lambda message: None), TypeError, "expected a function without arguments"),
    ],
)
@pytest.mark.parametrize("kind", [App, aio.App])
def test_a_schedule_that_cannot_work_is_refused(
    kind: Callable[[str], Any], make: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(kind(NOWHERE))


async def _coroutine() -> None: ...


def test_a_coroutine_function_needs_the_app_of_asyncio() -> None:
    with pytest.raises(TypeError, match=r"schedule '_coroutine': a coroutine function needs pyjmsack.aio.App"):
        App(NOWHERE).every(1)(_coroutine)


def test_names_are_unique_and_a_running_app_takes_no_schedule() -> None:
    app = App(NOWHERE)
    app.every(60)(test_names_are_unique_and_a_running_app_takes_no_schedule)
    with pytest.raises(ValueError, match="give the new schedule another name="):
        app.every(60)(test_names_are_unique_and_a_running_app_takes_no_schedule)
    other = App(NOWHERE)
    with other, pytest.raises(IllegalStateException, match="register its schedules before it starts"):
        other.every(60)(lambda: None)
