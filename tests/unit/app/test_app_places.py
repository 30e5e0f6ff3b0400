"""The places of the sender of an app, also while a signal handler raises at any step of a send."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from interrupting import Strike

from pyjmsack import App, ConnectionLostException, aio
from pyjmsack.app import blocking, sender
from pyjmsack.app.blocking import BlockingFace, Places, run
from pyjmsack.app.steps import Steps

PATIENCE = 60.0
STEPS = 1000
"""More than the steps of a send."""


class SoftTimeLimit(Exception):
    """What a handler of a signal may raise beside ``KeyboardInterrupt``."""


@pytest.fixture(params=[KeyboardInterrupt, SoftTimeLimit])
def strikes(request: pytest.FixtureRequest) -> Iterator[Strike]:
    """Each step of a call, one after the other. The test ends when the call has no such step."""
    return (Strike(step, request.param, blocking.__file__, sender.__file__) for step in range(1, STEPS))


def connected(app: Any, connection: Any) -> Any:
    """Return the sender of an app that is connected."""
    app.sender._started, app.sender.link.connection = True, connection
    return app.sender


def in_time(call: Callable[[], object]) -> bool:
    """Whether a call on another thread ends."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.mark.parametrize("fails", [False, True])
def test_ctrl_c_at_any_step_of_a_send_stops_no_later_send_of_another_thread(
    strikes: Iterator[Strike], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "SESSIONS", 1)
    for strike in strikes:
        sends = connected(App("amqp://localhost:1"), MagicMock())
        producer = sends.link.connection.create_session.return_value.create_producer.return_value
        producer.send.side_effect = ValueError if fails else None

        def send(sends: Any = sends) -> None:
            try:
                sends.send("q", "x")
            except ValueError:
                assert fails

        hit = strike.hits(send)
        assert in_time(send), strike.left
        if not hit:
            return
    pytest.fail("a send has more steps than the test")


def test_steps_that_were_interrupted_between_two_calls_clean_up(strikes: Iterator[Strike]) -> None:
    """The interpreter deleted them, and refused the first call of their cleaning: "generator ignored GeneratorExit"."""
    for strike in strikes:
        begun, cleaned = MagicMock(), MagicMock()

        def steps(begun: Any = begun, cleaned: Any = cleaned) -> Steps[None]:
            begun()
            try:
                yield bool
            except BaseException:
                yield cleaned
                raise

        hit = strike.hits(lambda steps=steps: run(steps()))  # type: ignore[misc]  # mypy sees no default here
        assert cleaned.called is (hit and begun.called)
        if not hit:
            return
    pytest.fail("the calls have more steps than the test")


def test_ctrl_c_at_any_step_of_a_send_without_a_broker_does_not_keep_the_app_from_the_next_broker(
    strikes: Iterator[Strike],
) -> None:
    """A ``threading.Event`` stayed locked, and the thread that connects waited for it, and so did all sends."""
    for strike in strikes:
        strike.files += (threading.__file__,)
        sends = connected(App("amqp://localhost:1"), None)
        sends._timeout = 0

        def send(sends: Any = sends) -> None:
            with pytest.raises(ConnectionLostException):
                sends.send("q", "x")

        hit = strike.hits(send)
        assert in_time(sends.link.connected.set), strike.left
        assert in_time(sends.link.connected.wait)
        if not hit:
            return
    pytest.fail("a send has more steps than the test")


def test_a_signal_that_comes_just_before_the_wait_of_run_stops_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a signal does not end the wait, and its handler runs only after the wait. So a SIGTERM was missed for ever:
    a wait of ``SimpleQueue`` beside two busy threads stood still within 600 signals."""
    app, waits = App("amqp://127.0.0.1:1"), []

    def deaf(timeout: float | None = None) -> bool:
        waits.append(timeout)
        app._stop_wanted.set()
        return len(waits) > 1

    monkeypatch.setattr(app._stop_wanted, "wait", deaf)
    assert app.run()
    assert len(waits) == 2
    assert None not in waits


def test_a_flag_that_is_raised_wakes_each_caller_that_waits() -> None:
    flag, waiting = BlockingFace().event(), threading.Semaphore(0)
    raised: list[bool] = []

    def wait() -> None:
        waiting.release()
        raised.append(bool(flag.wait(PATIENCE)))

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()
        assert waiting.acquire(timeout=PATIENCE)
    flag.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert raised == [True] * 5
    flag.clear()
    assert not flag.wait(0)


def test_a_caller_gets_its_turn_although_the_one_before_could_not_wake_it() -> None:
    places, first, second, waits = Places(1), object(), object(), threading.Event()
    places.take(first)

    def leaves() -> None:
        waits.wait(PATIENCE)
        places.leave(first, None)

    def begins() -> None:
        waits.set()
        places.take(second)

    threading.Thread(target=leaves).start()
    assert in_time(begins)


def test_callers_of_places_are_never_more_than_these_and_all_get_one() -> None:
    places, at_work, most = Places(3), [0], []

    def call() -> None:
        for caller in (object() for _ in range(300)):
            places.take(caller)
            at_work.append(0)
            most.append(len(at_work) - 1)
            at_work.pop()
            places.leave(caller, None)
            places.wake()

    threads = [threading.Thread(target=call, daemon=True) for _ in range(12)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert len(most) == 3600
    assert max(most) <= 3


def test_a_send_that_is_cancelled_while_it_waits_takes_no_place_and_gives_none_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "SESSIONS", 1)

    async def main() -> None:
        sends, at_work, sent = connected(aio.App("amqp://localhost:1"), AsyncMock()), asyncio.Event(), asyncio.Event()
        bodies: list[str] = []

        async def send(message: Any, _: object) -> None:
            bodies.append(message.text)
            at_work.set()
            await sent.wait()

        sends.link.connection.create_session.return_value.create_producer.return_value.send = send
        first = asyncio.create_task(sends.send("q", "first"))
        await at_work.wait()
        second, third = asyncio.create_task(sends.send("q", "second")), asyncio.create_task(sends.send("q", "third"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        assert bodies == ["first"]
        sent.set()
        await asyncio.wait_for(asyncio.gather(first, third), PATIENCE)
        assert bodies == ["first", "third"]

    asyncio.run(main())
