"""In asyncio the loop has a turn after some work on messages that need not wait, because other tasks wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound
from core_fakes import FakeRuntime as Fake

from pyjmsack.aio import _face, _runtime, _work
from pyjmsack.aio._face import SessionFace
from pyjmsack.aio._runtime import AioRuntime, TaskDispatcher
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.core import taking
from pyjmsack.core.browsing import Browser
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.session import Session
from pyjmsack.core.steps import TURN, Steps
from pyjmsack.core.taking import REFUSED_AT_ONCE
from pyjmsack.destination import Queue
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import TextMessage
from pyjmsack.types import Outcome

Run = Callable[[Callable[[Any], Coroutine[Any, Any, None]]], None]


class Clock:
    """A clock that goes on at each look by as much as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (taking, _runtime, _face, _work):
        monkeypatch.setattr(module, "monotonic", clock)
    return clock


def bad(count: int) -> list[FakeInbound]:
    return [FakeInbound(f"bad {number}", broken=True) for number in range(count)]


def text_of(message: object) -> str:
    assert isinstance(message, TextMessage)
    return message.text or ""


def refused(consumer: Consumer) -> int:
    return consumer.refused


def test_a_receive_lets_the_loop_have_turns_between_messages_that_are_refused_s166(clock: Clock) -> None:
    """1,000 messages that take 23 ms each were refused in one turn."""
    it = Bench()
    consumer = it.consumer()
    it.arrive(consumer, *bad(9), "good")
    clock.step = TURN / 4
    counts: list[int] = []
    it.runtime.meanwhile.extend([lambda: counts.append(refused(consumer))] * 9)
    assert text_of(it.run(consumer.receiving.receive(20))) == "good"
    assert it.runtime.waits[-len(counts) :] == [0] * len(counts), "the turns were waits for something"
    assert len(counts) >= 2
    assert max(after - before for before, after in zip([0, *counts], counts, strict=False)) <= 5


def test_few_quick_refusals_cost_no_turn(clock: Clock) -> None:
    it = Bench()
    consumer = it.consumer()
    it.arrive(consumer, *bad(REFUSED_AT_ONCE - 1), "good")
    waits = len(it.runtime.waits)
    assert text_of(it.run(consumer.receiving.receive(20))) == "good"
    assert len(it.runtime.waits) == waits


def in_a_turn(clock: Clock, timeout: float | None) -> tuple[Bench, Consumer, Steps[Any]]:
    """Return a consumer whose receive lets the loop have a turn, and the steps of this receive."""
    it = Bench()
    consumer = it.consumer()
    it.arrive(consumer, *bad(9), "good")
    clock.step = TURN
    steps = consumer.receiving.receive(timeout)
    next(steps)
    return it, consumer, steps


@pytest.mark.parametrize("timeout", [0, 1, None])
def test_a_receive_that_is_cancelled_in_such_a_turn_takes_no_message_s22(timeout: float | None, clock: Clock) -> None:
    it, consumer, steps = in_a_turn(clock, timeout)
    steps.close()
    assert consumer.has_messages
    assert not consumer.taking.passing
    clock.step = 0
    assert text_of(it.run(consumer.receiving.receive(timeout))) == "good"
    assert [name for name, _ in it.outcomes()].count("good") == 1


def test_a_consumer_that_is_closed_in_such_a_turn_ends_the_receive_s123(clock: Clock) -> None:
    it, consumer, steps = in_a_turn(clock, None)
    it.run(consumer.close())
    with pytest.raises(StopIteration) as end:
        steps.send(False)
    assert end.value.value is None


def test_refusals_without_end_end_a_receive_after_its_patience_as_before_s22(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Bench()
    consumer = it.consumer()
    clock.step = TURN
    monkeypatch.setattr("pyjmsack.core.receiving._PATIENCE", 0)
    it.arrive(consumer, *bad(50))
    with pytest.raises(RequestTimedOutException, match="all messages that came were refused"):
        it.run(consumer.receiving.receive(0))


def test_a_browser_lets_the_loop_have_turns_between_messages_that_it_cannot_show_s134(clock: Clock) -> None:
    it = Bench()
    consumer = it.run(it.session().create_consumer(Queue("q"), None, False, browser=True))
    it.arrive(consumer, *bad(9), "good")
    clock.step = TURN / 4
    it.runtime.waits.clear()
    assert text_of(it.run(Browser(consumer).next())) == "good"
    assert it.runtime.waits
    assert set(it.runtime.waits) == {0}


class Turns:
    """Counts the turns of the running loop."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._turned)

    def _turned(self) -> None:
        self.count += 1
        self._loop.call_soon(self._turned)


@pytest.fixture
def on_loop(clock: Clock) -> Run:
    """Run a test on a loop, with a runtime of asyncio."""

    def run(test: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            await test(AioRuntime(asyncio.get_running_loop(), lambda: None))

        asyncio.run(main())

    return run


def test_only_work_on_messages_counts_until_the_loop_has_a_turn(clock: Clock, on_loop: Run) -> None:
    async def test(runtime: AioRuntime) -> None:
        work = runtime.work
        for _ in range(2):
            clock.now += 10
            assert not work.too_long, "the time of the program does not count"
            began = work.begin()
            clock.now += 0.06
            work.end(began)
        assert work.too_long
        began = work.begin()
        await asyncio.sleep(0)
        clock.now += 1
        work.end(began)
        assert not work.too_long, "the loop had a turn"
        began = work.begin()
        await asyncio.sleep(0)
        clock.now += 1
        work.begin()
        work.end(began)
        assert not work.too_long, "another call began in the same turn as this one ended"

    on_loop(test)


def consumer_of(it: Bench, runtime: AioRuntime, core: Consumer) -> MessageConsumer:
    face: Any = SessionFace(runtime, core.session)  # type: ignore[arg-type]  # the consumer reads two attributes
    return MessageConsumer(core, face)


@pytest.mark.parametrize("by", ["receive", "receive_body", "async for"])
def test_receives_that_need_not_wait_let_the_loop_have_turns(by: str, clock: Clock, on_loop: Run) -> None:
    """1,000 messages of 1,000 values each were received in one turn, which took half a second."""

    async def test(runtime: AioRuntime) -> None:
        it = Bench()
        core = it.consumer()
        it.arrive(core, *"abcdefgh")
        consumer, turns = consumer_of(it, runtime, core), Turns()
        seen: list[int] = []
        clock.step = 0.04  # between two looks at the clock, before and behind the work on a message
        if by == "async for":
            async for _ in consumer:
                seen.append(turns.count)
                if len(seen) == 8:
                    break
        else:
            for _ in range(8):
                await (consumer.receive() if by == "receive" else consumer.receive_body(str))
                seen.append(turns.count)
        assert seen[:3] == [0, 0, 0], "a receive waited although the loop had no cause for a turn"
        assert 2 <= seen[-1] <= 8

    on_loop(test)


def test_a_browser_that_need_not_wait_lets_the_loop_have_turns(clock: Clock, on_loop: Run) -> None:
    async def test(runtime: AioRuntime) -> None:
        it = Bench()
        session = it.session()
        core = it.run(session.create_consumer(Queue("q"), None, False, browser=True))
        it.arrive(core, *"abcdefgh")

        async def run(steps: Any) -> Any:
            return core if steps is None else it.run(steps)

        session.create_consumer = lambda *_, **__: None  # type: ignore[method-assign, assignment, return-value]
        face: Any = SimpleNamespace(run=run, work=runtime.work)
        browser = QueueBrowser(session, face, Queue("q"), None)
        turns, seen = Turns(), list[int]()
        clock.step = 0.04
        async for _ in browser:
            seen.append(turns.count)
            if len(seen) == 8:
                break
        assert seen[-1] >= 2

    on_loop(test)


def test_a_receive_that_is_cancelled_while_the_loop_has_a_turn_loses_no_message_s22(clock: Clock, on_loop: Run) -> None:
    async def test(runtime: AioRuntime) -> None:
        it = Bench()
        core = it.consumer()
        it.arrive(core, "a", "b")
        consumer = consumer_of(it, runtime, core)
        clock.step = 0.2
        assert text_of(await consumer.receive()) == "a"
        receive = consumer.receive().__await__()
        next(receive)  # it lets the loop have a turn
        receive.close()
        assert it.outcomes() == [("a", Outcome.ACCEPTED)]
        assert text_of(await consumer.receive()) == "b"

    on_loop(test)


def test_calls_of_a_dispatcher_that_do_not_wait_let_the_loop_have_turns(clock: Clock, on_loop: Run) -> None:
    async def test(runtime: AioRuntime) -> None:
        dispatcher, turns = TaskDispatcher(runtime.loop, "test", runtime.ending), Turns()
        seen: list[int] = []
        done = asyncio.Event()

        def call() -> None:
            clock.now += TURN / 2
            seen.append(turns.count)
            if len(seen) == 8:
                done.set()

        for _ in range(8):
            dispatcher.submit(call)
        await done.wait()
        assert seen[0] == seen[1], "each call had a turn"
        assert seen[-1] - seen[0] >= 3

    on_loop(test)


def test_a_listener_lets_the_loop_have_turns_and_keeps_the_order_of_its_messages_s14(
    clock: Clock, on_loop: Run
) -> None:
    """64 messages of 23 ms each were handed out in one turn."""

    async def test(runtime: AioRuntime) -> None:
        fake = Fake()
        fake.dispatcher = runtime.dispatcher  # type: ignore[method-assign, assignment]
        it = Bench(runtime=fake)
        it.connection._face = lambda session: SessionFace(runtime, session)
        session: Session = it.session()
        core, turns = it.consumer(session), Turns()
        heard: list[str] = []
        seen: list[int] = []
        done = asyncio.Event()

        def listener(message: Any) -> None:
            heard.append(message.text)
            seen.append(turns.count)
            clock.now += TURN / 2
            if len(heard) == 8:
                done.set()

        core.set_listener(listener)
        it.arrive(core, *bad(3), *"abcdefgh")
        await done.wait()
        assert heard == [*"abcdefgh"]
        assert seen[-1] - seen[0] >= 3

    on_loop(test)
