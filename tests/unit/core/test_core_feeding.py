"""Both faces feed a listener: no error and no moment leaves a listener without its next message (S17-S21, S105)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.aio._face import SessionFace as AioFace
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.guard import MemoryStore
from pyjmsack.core.session import Session
from pyjmsack.core.steps import Steps
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import Message
from pyjmsack.sync._face import SessionFace as SyncFace
from pyjmsack.types import AckMode, Outcome


class Fed:
    """A session of one face, whose dispatchers run when the test says so."""

    def __init__(self, name: str, mode: int, *options: str, tracing: Any = None) -> None:
        self.bench = Bench(*options, tracing=tracing)
        self._face: Callable[[Session], Any] = self._aio if name == "aio" else self._sync
        self.bench.connection._face = self._face
        self.session = self.bench.session(mode)
        self.consumer: Consumer = self.bench.consumer(self.session)

    def _sync(self, core: Session) -> SyncFace:
        runtime: Any = SimpleNamespace(run=self.bench.run, hurry=None)
        return SyncFace(runtime, core)

    def _aio(self, core: Session) -> AioFace:
        async def run(steps: Steps[Any]) -> Any:
            return self.bench.run(steps)

        runtime: Any = SimpleNamespace(run=run, work=None, loop=None)
        return AioFace(runtime, core)

    def work(self) -> None:
        """Run what the dispatchers have to do now."""
        while busy := [one for one in self.bench.runtime.dispatchers.values() if one.busy]:
            result = busy[0].calls.popleft()()
            if result is not None:
                asyncio.run(result)


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_listener_is_called_again_after_a_rollback_that_had_no_answer(face: str) -> None:
    """S20: the listener was never called again."""
    fed = Fed(face, AckMode.SESSION_TRANSACTED, "jms.rollbackOnListenerError=true")
    heard: list[Any] = []

    def listener(message: Message) -> None:
        heard.append(message.body)
        if message.body == "a":
            raise ValueError("on purpose")

    fed.consumer.set_listener(listener)
    fed.bench.arrive(fed.consumer, "a")
    fed.bench.provider.hold("rollback")
    with pytest.raises(RequestTimedOutException):
        fed.work()
    fed.bench.provider.held.clear()
    fed.bench.arrive(fed.consumer, "b")
    fed.bench.runtime.fire()
    fed.work()
    assert heard == ["a", "b"]


def test_an_error_before_the_listener_is_called_repeats_after_a_pause_and_not_at_once(face: str) -> None:
    fed = Fed(face, AckMode.AUTO_ACKNOWLEDGE)
    heard: list[Any] = []
    take, tries = fed.consumer.take_for_listener, 0

    def fails() -> None:
        nonlocal tries
        tries += 1
        raise MemoryError("on purpose")

    fed.consumer.take_for_listener = fails  # type: ignore[assignment]  # an error of the machine
    fed.consumer.set_listener(lambda message: heard.append(message.body))
    fed.bench.arrive(fed.consumer, "a")
    for tried in (1, 2):
        with pytest.raises(MemoryError):
            fed.work()
        assert (tries, len(fed.bench.runtime.timers)) == (tried, 1)
        fed.bench.runtime.fire()
    fed.consumer.take_for_listener = take
    fed.work()
    assert heard == ["a"]


def test_a_worker_is_free_again_although_what_follows_its_listener_failed(
    face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S124: the worker counted as busy for ever, and after two such errors nothing was handed out any more."""
    fed = Fed(face, AckMode.AUTO_ACKNOWLEDGE)
    heard: list[Any] = []
    fed.consumer.set_listener(lambda message: heard.append(message.body), 2)
    fed.bench.arrive(fed.consumer, "a", "b")

    def fails(*_: object) -> None:
        raise MemoryError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr("pyjmsack.core.listening.Listening.end", fails)
        for _ in "ab":
            with pytest.raises(MemoryError):
                fed.work()
    fed.bench.arrive(fed.consumer, "c")
    fed.work()
    assert heard == ["a", "b", "c"]


class Tracing:
    """A tracing whose method ``place`` raises ``error``; each of its methods returns a mock otherwise."""

    def __new__(cls, place: str, error: BaseException) -> Any:
        tracing = MagicMock()
        consumer = tracing.consumer.return_value
        calls = {
            "process": consumer.process,
            "end": consumer.process.return_value.end,
            "leave": consumer.process.return_value.leave,
            "settle": consumer.settle,
            "settled": consumer.settle.return_value.end,
        }
        calls[place].side_effect = error
        return tracing


def on_a_thread(call: Callable[[], None]) -> None:
    """Run a call on a thread that no signal handler runs on. The call may raise no error."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(call).exception(60) is None


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, BaseException])
@pytest.mark.parametrize("place", ["process", "end", "leave", "settle", "settled"])
def test_no_error_of_a_tracing_keeps_a_message_from_its_listener_and_its_outcome(
    face: str, place: str, error: type[BaseException], concurrency: int
) -> None:
    """S124, S127: the messages had no outcome, and the workers counted as busy for ever."""
    fed = Fed(face, AckMode.AUTO_ACKNOWLEDGE, tracing=Tracing(place, error("on purpose")))
    heard: list[Any] = []
    fed.consumer.set_listener(lambda message: heard.append(message.body), concurrency)
    fed.bench.arrive(fed.consumer, "a", "b", "c")
    on_a_thread(fed.work)
    assert sorted(heard) == ["a", "b", "c"]
    assert sorted(fed.bench.outcomes()) == [(name, Outcome.ACCEPTED) for name in sorted(heard)]


@pytest.mark.parametrize("place", ["end", "settle", "settled"])
def test_ctrl_c_in_the_code_of_a_tracing_ends_the_program_and_the_message_has_its_outcome(place: str) -> None:
    """S127: on the main thread, on which the asyncio face calls listeners."""
    fed = Fed("aio", AckMode.AUTO_ACKNOWLEDGE, tracing=Tracing(place, KeyboardInterrupt()))
    fed.consumer.set_listener(lambda message: None, 2)
    fed.bench.arrive(fed.consumer, "a")
    with pytest.raises(KeyboardInterrupt):
        fed.work()
    assert fed.bench.outcomes() == [("a", Outcome.ACCEPTED)]
    assert fed.consumer.listening.workers is not None
    assert not fed.consumer.listening.workers._worker_of


class Turns:
    """A session's guard; what waits gets the turn when the dispatcher gives it back."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def wait(self) -> None:
        """The dispatcher has the turn."""

    def release(self) -> None:
        while self.waiting:
            self.waiting.pop()()


def test_a_worker_that_ends_as_the_dispatcher_leaves_lets_it_come_by_again() -> None:
    """S105: the message at the head waited for the worker, and nobody came back for those behind it."""
    fed = Fed("sync", AckMode.AUTO_ACKNOWLEDGE)
    fed.session.memory.store = MemoryStore(10)
    consumer = fed.consumer = fed.bench.consumer(fed.session)
    turns = Turns()
    fed.session.face.guard = turns  # type: ignore[attr-defined]  # of the blocking face
    heard: list[Any] = []
    consumer.set_listener(lambda message: heard.append(message.body), 2)
    fed.bench.arrive(consumer, "a")
    first = fed.session.dispatchers.first
    first.calls.popleft()()  # type: ignore[attr-defined]  # of the fake: a is with its worker
    fed.bench.connection.on_interrupted(ConnectionError("gone"), 1)
    again = [FakeInbound(name) for name in "abc"]
    for inbound in again:
        inbound.generation = 2
    fed.bench.arrive(consumer, *again)
    turns.waiting.append(fed.work)
    first.calls.popleft()()  # type: ignore[attr-defined]  # of the fake
    fed.work()
    assert heard == ["a", "b", "c"]
    assert len(consumer.inbox) == 0
