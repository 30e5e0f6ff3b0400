"""The lock of a session in asyncio, also while a signal handler raises at any step (S15, S127)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from contextvars import copy_context
from types import FrameType
from typing import Any

import pytest

from pyjmsack.aio import _runtime
from pyjmsack.aio._face import SessionFace
from pyjmsack.aio._runtime import AioRuntime, SessionLock
from pyjmsack.core.guard import nothing

PATIENCE = 60.0
NEVER = 10 * PATIENCE
STRIKES = 50


class SoftTimeLimit(Exception):
    """What a handler of a signal may raise beside ``KeyboardInterrupt``."""


ERRORS = [KeyboardInterrupt, SoftTimeLimit]


class Strike:
    """Raises at one step of ``aio/_runtime.py`` at which a signal handler may run: at the first step of a function, or
    after a call of C code."""

    def __init__(self, step: int, error: type[BaseException]) -> None:
        self.left = step
        self.error = error

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and sys.version_info < (3, 11) and frame.f_lasti >= 0:
            return  # no handler runs when Python 3.10 resumes a coroutine, and an error here would skip its ``finally``
        if event in ("call", "c_return") and frame.f_code.co_filename == _runtime.__file__:
            self.left -= 1
            if self.left == 0:
                raise self.error


class Listeners:
    """A consumer whose listener has no message."""

    looks = 0

    def begin(self) -> None:
        """Count the look."""
        self.looks += 1

    def unscheduled(self) -> None:
        """Do nothing."""

    broke_off = dispatch = unscheduled


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    yield loop
    loop.close()


def outlive(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    """Run the loop until the work is done, although the loop is interrupted."""
    task = loop.create_task(work)
    while not task.done():
        try:
            loop.run_until_complete(task)
        except tuple(ERRORS):
            pass
    task.exception()


async def make_face(loop: asyncio.AbstractEventLoop) -> SessionFace:
    return SessionFace(AioRuntime(loop, nothing), None)  # type: ignore[arg-type]


async def within_patience(work: Awaitable[Any]) -> None:
    await asyncio.wait_for(work, PATIENCE)


def feed(face: SessionFace, listeners: Listeners) -> None:
    """Feed in a new context, as a task does. This never waits if the session is free."""
    coroutine = face.feed(listeners)  # type: ignore[arg-type]
    with suppress(StopIteration):
        copy_context().run(coroutine.send, None)


def check_free(face: SessionFace, listeners: Listeners) -> None:
    before = listeners.looks
    feed(face, listeners)
    assert listeners.looks == before + 1


def with_each_error(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test with each error that a handler may raise. Python warns of the coroutine that the handler cut off."""
    test = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")(test)
    test = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")(test)
    return pytest.mark.parametrize("error", ERRORS)(test)


@with_each_error
def test_a_handler_that_raises_at_any_step_leaves_the_session_to_the_next_listener_s127(
    loop: asyncio.AbstractEventLoop, error: type[BaseException]
) -> None:
    step, left = 0, 0
    while left <= 0:
        step += 1
        face, listeners = loop.run_until_complete(make_face(loop)), Listeners()
        strike = Strike(step, error)
        sys.setprofile(strike)
        try:
            with suppress(error):
                feed(face, listeners)
        finally:
            sys.setprofile(None)
        left = strike.left
        check_free(face, listeners)
    assert step > 5


@with_each_error
def test_a_handler_that_raises_at_any_moment_leaves_the_session_to_the_next_listener_s127(
    loop: asyncio.AbstractEventLoop, error: type[BaseException]
) -> None:
    """The same with real signals."""
    strikes, armed = 0, False

    def strike(_: int, frame: FrameType | None) -> None:
        nonlocal strikes, armed
        if armed and frame is not None and frame.f_code.co_filename == _runtime.__file__:
            strikes, armed = strikes + 1, False
            raise error

    face, listeners = loop.run_until_complete(make_face(loop)), Listeners()
    old = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0001, 0.0001)  # in time of the processor, so that a slow machine is none
    try:
        while strikes < STRIKES:
            armed = True
            with suppress(error):
                feed(face, listeners)
            armed = False
            check_free(face, listeners)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


@with_each_error
def test_a_handler_that_raises_while_tasks_wait_for_their_turns_ends_one_task_at_most_s127(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr(_runtime, "SECOND_RUN", 0.001)
    step, left = 0, 0
    while left <= 0:
        step += 1
        lock, strike, ends = SessionLock(), Strike(step, error), list[object]()
        outlive(loop, contend(lock, strike, ends))
        left = strike.left
        assert len(ends) == 4
        assert sum(isinstance(end, error) for end in ends) <= 1
        assert sum(end is None for end in ends) >= 3
        loop.run_until_complete(within_patience(lock.in_turn(lambda: asyncio.sleep(0))))
        assert not lock._turns
    assert step > 50


async def contend(lock: SessionLock, strike: Strike, ends: list[object]) -> None:
    inside = 0

    async def work() -> None:
        nonlocal inside
        inside += 1
        try:
            assert inside == 1
            for _ in range(3):
                await asyncio.sleep(0)
        finally:
            inside -= 1

    tasks = [asyncio.ensure_future(lock.in_turn(work)) for _ in range(4)]
    sys.setprofile(strike)
    try:
        await asyncio.wait_for(asyncio.wait(tasks), PATIENCE)
    finally:
        sys.setprofile(None)
        ends += [task.exception() for task in tasks]


def test_ends_of_turns_that_are_all_cut_off_leave_no_task_waiting_s127(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each end of a turn tells the next two. A signal handler may raise in several of them, one after the other."""
    monkeypatch.setattr(_runtime, "SECOND_RUN", 0.001)

    class CutOff(Exception):
        """What the handler raises."""

    def leave(self: SessionLock, token: object) -> None:
        raise CutOff

    monkeypatch.setattr(SessionLock, "_leave", leave)
    lock = SessionLock()

    async def all_of_them() -> list[object]:
        tasks = [lock.in_turn(lambda: asyncio.sleep(0.002)) for _ in range(6)]
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)

    assert {type(end) for end in loop.run_until_complete(all_of_them())} == {CutOff}


def in_order(names: str, lock: SessionLock, seen: list[str]) -> list[asyncio.Task[None]]:
    """Return tasks that ask for their turns in this order."""

    def work(name: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            seen.append(name)
            await asyncio.sleep(0)

        return note

    return [asyncio.create_task(lock.in_turn(work(name))) for name in names]


def test_turns_come_in_the_order_of_their_requests_s15(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that asks for turn after turn without a pause does not keep the others waiting."""
    monkeypatch.setattr(_runtime, "SECOND_RUN", NEVER)
    seen: list[str] = []

    async def main() -> None:
        lock = SessionLock()

        async def note() -> None:
            seen.append("greedy")
            await asyncio.sleep(0)

        async def greedy() -> None:
            for _ in range(3):
                await lock.in_turn(note)

        await asyncio.wait_for(asyncio.gather(greedy(), *in_order("abc", lock, seen)), PATIENCE)

    asyncio.run(main())
    assert sorted(seen[:4]) == ["a", "b", "c", "greedy"]
    assert [name for name in seen if name != "greedy"] == ["a", "b", "c"]


def test_a_task_that_is_cancelled_when_its_turn_comes_passes_the_turn_on_s15(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "SECOND_RUN", NEVER)
    seen: list[str] = []

    async def main() -> None:
        lock, first = SessionLock(), asyncio.Event()

        async def cancel_the_next() -> None:
            await lock.in_turn(first.wait)
            tasks[0].cancel()  # it was woken just now, and has not run since then

        running = asyncio.create_task(cancel_the_next())
        await asyncio.sleep(0)
        tasks = in_order("ab", lock, seen)
        await asyncio.sleep(0)
        first.set()
        await asyncio.wait_for(asyncio.wait([running, *tasks]), PATIENCE)
        assert tasks[0].cancelled()

    asyncio.run(main())
    assert seen == ["b"]


def test_a_task_that_asyncio_dropped_when_its_turn_came_does_not_keep_the_others_waiting_s127(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A coroutine that nobody drives stands for the task. If it goes on later, it gets its turn."""
    monkeypatch.setattr(_runtime, "SECOND_RUN", 0.001)
    seen: list[str] = []

    async def main() -> None:
        lock = SessionLock()

        async def late() -> None:
            seen.append("late")

        tasks = in_order("a", lock, seen)
        await asyncio.sleep(0)
        dropped = lock.in_turn(late)
        dropped.send(None)
        tasks += in_order("bc", lock, seen)
        await asyncio.wait_for(asyncio.wait(tasks), PATIENCE)
        for _ in dropped.__await__():
            pass

    asyncio.run(main())
    assert seen == ["a", "b", "c", "late"]


def test_turns_that_are_destroyed_after_the_end_of_their_loop_say_nothing(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    lock, coroutines = SessionLock(), list[Coroutine[Any, Any, None]]()

    async def main() -> None:
        for _ in range(3):
            coroutine = lock.in_turn(lambda: asyncio.sleep(NEVER))
            coroutine.send(None)
            coroutines.append(coroutine)

    loop.run_until_complete(main())
    loop.close()
    while coroutines:
        del coroutines[0]
    assert said == []
    assert not lock._turns
