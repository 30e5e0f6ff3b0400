"""A rollback where messages are redelivered in the client: their order does not depend on who is quicker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from core_fakes import Bench, FakeRuntime

from pyjmsack.core.consumer import Consumer
from pyjmsack.spi.completion import Completion
from pyjmsack.types import Outcome


class Redelivering(FakeRuntime):
    """A loop that is always ahead of the caller, over a provider that puts back what is handed back when a burst ends,
    and what a rollback undoes when the broker answers: before the command with the number ``quick`` behind it."""

    def __init__(self, quick: int) -> None:
        super().__init__()
        self._quick = quick
        self._behind: int | None = None
        self._rollback: Completion[None] | None = None
        self._joined: list[Any] = []
        self._back: list[Any] = []

    def serves(self, bench: Bench, consumer: Consumer) -> None:
        """Work for this consumer from now on."""
        self._consumer = consumer
        bench.provider.settle, bench.provider.rollback = self._settle, self._begin_rollback

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        super().submit(command, *arguments)
        if self._behind is not None:
            self._behind += 1
            if self._behind == self._quick:
                self._answer()
        super().turn()
        self._redeliver(self._back)

    def turn(self) -> None:
        super().turn()
        self._answer()

    def _settle(self, inbound: Any, outcome: Outcome, joins: bool = True) -> None:
        (self._joined if outcome is Outcome.ACCEPTED else self._back).append(inbound)

    def _begin_rollback(self, session_id: int, done: Completion[None]) -> None:
        self._rollback, self._behind = done, 0

    def _answer(self) -> None:
        done, self._rollback = self._rollback, None
        if done is not None:
            self._redeliver(self._joined)
            done.succeed()

    def _redeliver(self, inbounds: list[Any]) -> None:
        back = sorted(inbounds, key=lambda inbound: str(inbound.name))
        inbounds.clear()
        for inbound in back:
            inbound.settled = inbound.sent = False
        if back:
            self._consumer.redeliver(back)


@pytest.mark.parametrize("quick", [1, 2, 3, 4])
def test_what_a_rollback_brings_again_comes_before_what_nobody_saw_however_quick_the_broker_is(quick: int) -> None:
    """S80, S83: its answer may come between any two commands."""
    runtime = Redelivering(quick)
    bench = Bench(runtime=runtime)
    session = bench.session(0)
    consumer = bench.consumer(session)
    bench.arrive(consumer, *"abcd")
    runtime.serves(bench, consumer)
    for _ in "ab":
        consumer.receiving.receive_now()
    bench.run(session.rollback())
    assert [inbound.name for inbound in consumer.inbox.messages] == [*"abcd"]


def test_a_receive_that_ends_during_a_rollback_asks_for_no_newer_message() -> None:
    """S83: in asyncio another task receives. Its credit left before the rollback, so a newer message came first."""
    bench = Bench()
    session = bench.session(0)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    bench.runtime.turn()
    bench.provider.calls.clear()
    bench.provider.hold("drain")
    receiving, rolling_back = consumer.receiving.receive(0), session.rollback()
    next(receiving)
    next(rolling_back)
    bench.runtime.turn()
    for done in bench.provider.held.pop("drain"):
        done.succeed()
    with pytest.raises(StopIteration):  # the task that receives is the first that runs
        receiving.send(True)
    with suppress(StopIteration):
        while True:
            rolling_back.send(True)
            bench.runtime.turn()
    bench.runtime.turn()
    assert bench.provider.names() == ["drain", "drain", "rollback", "begin", "start_consumer"]
