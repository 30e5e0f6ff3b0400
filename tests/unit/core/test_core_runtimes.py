"""Who may use a session, and on which thread or task listeners run (S15, S74, S123, S124, S127)."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from core_fakes import FakeRuntime

from pyjmsack import aio
from pyjmsack.aio import _runtime
from pyjmsack.aio._ending import Ending
from pyjmsack.aio._runtime import HAS_CANCELLING, AioRuntime, SessionLock, TaskDispatcher, ends_task, make_task
from pyjmsack.core import runtime as core_runtime
from pyjmsack.core.guard import nothing
from pyjmsack.core.runtime import all_called, run_commands
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import IllegalStateException
from pyjmsack.io.thread import acquire
from pyjmsack.spi.completion import Completion
from pyjmsack.sync import _runtime as sync_runtime
from pyjmsack.sync._guard import SessionGuard
from pyjmsack.sync._runtime import SyncRuntime, ThreadDispatcher, wait

PATIENCE = 60.0


def finish(steps: Steps[Any]) -> None:
    """Drive steps on this thread."""
    try:
        completion, timeout = next(steps)
        while True:
            completion, timeout = steps.send(wait(completion, PATIENCE if timeout is None else timeout))
    except StopIteration:
        pass


def never(seconds: float, callback: Callable[[], None]) -> None:
    """Stand for the timer of a loop that a dispatcher needs only if the system refuses a thread."""
    raise AssertionError("no timer is needed")


@pytest.fixture
def dispatcher() -> Iterator[ThreadDispatcher]:
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    yield dispatcher
    dispatcher.close()


def test_a_listener_that_does_not_return_delays_a_close_for_its_time_only(dispatcher: ThreadDispatcher) -> None:
    """S74, S123: perhaps it waits for the thread that closes. That thread waited for ever."""
    over = threading.Event()
    dispatcher.submit(lambda: over.wait(PATIENCE))
    steps = all_called(dispatcher, Deadline(1))
    _, timeout = next(steps)
    assert timeout is not None
    assert timeout <= 1
    steps.close()
    over.set()


# -- SessionGuard -----------------------------------------------------------------------------------------------


def elsewhere(call: Any) -> Any:
    """Run a call on another thread and return its result or error."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    return results[0]


def test_a_second_thread_is_refused_at_once_s15() -> None:
    guard = SessionGuard(lambda: False)
    with guard:
        error = elsewhere(guard.acquire)
    assert isinstance(error, IllegalStateException)
    assert "S15" in str(error)


def test_threads_may_take_turns_s15() -> None:
    guard = SessionGuard(lambda: False)
    with guard:
        pass
    assert elsewhere(lambda: (guard.acquire(), guard.release())) == (None, None)


def test_the_same_thread_may_enter_again() -> None:
    guard = SessionGuard(lambda: False)

    def called_by_the_holder() -> None:
        with guard:
            pass
        assert isinstance(elsewhere(guard.acquire), IllegalStateException)

    with guard:
        called_by_the_holder()
    assert elsewhere(lambda: (guard.acquire(), guard.release())) == (None, None)


def test_with_a_listener_a_second_thread_waits_its_turn_s15() -> None:
    guard = SessionGuard(lambda: True)
    entered = threading.Event()

    def enter() -> None:
        with guard:
            entered.set()

    with guard:
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.is_set()
    thread.join(PATIENCE)
    assert entered.is_set()


def test_an_error_inside_gives_the_session_back() -> None:
    guard = SessionGuard(lambda: False)
    with pytest.raises(ZeroDivisionError), guard:
        raise ZeroDivisionError
    assert elsewhere(lambda: (guard.acquire(), guard.release())) == (None, None)


def test_a_holder_whom_ctrl_c_took_away_holds_nothing_s15() -> None:
    """Between taking the session and the ``try`` that would give it back."""
    guard = SessionGuard(lambda: False)

    def interrupted() -> None:
        guard.acquire()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert elsewhere(lambda: (guard.acquire(), guard.release())) == (None, None)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    guard.acquire()
    assert isinstance(elsewhere(guard.acquire), IllegalStateException)
    guard.release()


def test_who_waits_for_a_holder_whom_ctrl_c_took_away_gets_its_turn_s15() -> None:
    guard = SessionGuard(lambda: True)
    held, leave = threading.Event(), threading.Event()

    def interrupted() -> None:
        guard.acquire()
        held.set()
        leave.wait(PATIENCE)
        raise KeyboardInterrupt

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            interrupted()

    holder = threading.Thread(target=run)
    holder.start()
    assert held.wait(PATIENCE)
    waiter = threading.Thread(target=lambda: (guard.acquire(), guard.release()))
    waiter.start()
    leave.set()
    for thread in (holder, waiter):
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_sixteen_threads_take_turns_s15() -> None:
    guard = SessionGuard(lambda: True)
    inside: list[int] = []

    def work() -> None:
        for _ in range(300):
            with guard:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert inside == []


# -- ThreadDispatcher -------------------------------------------------------------------------------------------


def test_calls_run_in_order_one_at_a_time_on_one_thread_of_its_own_s74(dispatcher: ThreadDispatcher) -> None:
    seen: list[tuple[int, int]] = []
    done = threading.Event()
    for number in range(100):
        dispatcher.submit(lambda number=number: seen.append((number, threading.get_ident())))
    dispatcher.submit(done.set)
    assert done.wait(PATIENCE)
    assert [number for number, _ in seen] == list(range(100))
    assert {ident for _, ident in seen} != {threading.get_ident()}
    assert len({ident for _, ident in seen}) == 1


def test_no_thread_is_started_before_the_first_call() -> None:
    ThreadDispatcher("pyjmsack-unused", never).close()
    assert "pyjmsack-unused" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_call_that_raises_does_not_stop_the_next_s127(
    dispatcher: ThreadDispatcher, error: type[BaseException]
) -> None:
    def boom() -> None:
        raise error

    done = threading.Event()
    dispatcher.submit(boom)
    dispatcher.submit(done.set)
    assert done.wait(PATIENCE)


class Raises(logging.Handler):
    """A log handler of a program, with a mistake."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def emit(self, record: logging.LogRecord) -> None:
        raise self.error


@pytest.fixture(params=[ValueError, SystemExit])
def broken_log(request: pytest.FixtureRequest) -> Iterator[None]:
    handler = Raises(request.param("a log handler"))
    logger = logging.getLogger("pyjmsack")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.mark.usefixtures("broken_log")
def test_a_log_handler_that_raises_stops_no_listener_s127(dispatcher: ThreadDispatcher) -> None:
    """The thread of the listener ended, and the close waited for its call."""
    over = threading.Event()

    def fail() -> None:
        raise RuntimeError

    dispatcher.submit(fail)
    dispatcher.submit(over.set)
    assert over.wait(PATIENCE)
    finish(dispatcher.through())


@pytest.mark.parametrize("broken_log", [ValueError], indirect=True)
@pytest.mark.usefixtures("broken_log")
def test_a_log_handler_that_raises_leaves_no_caller_waiting_s127() -> None:
    done: Completion[None] = Completion()

    def fail(_: Completion[None]) -> None:
        raise RuntimeError

    run_commands(deque([(fail, (done,))]), lambda: None)
    assert isinstance(done.error, RuntimeError)


class Interrupted(deque[Any]):
    """An outbox at which a signal handler raises, once, just after a command was taken out."""

    def __init__(self, commands: list[Any], error: BaseException) -> None:
        super().__init__(commands)
        self._errors = [error]

    def popleft(self) -> Any:
        command = super().popleft()
        if self._errors:
            raise self._errors.pop()
        return command


@pytest.mark.parametrize("error", [TimeoutError("a signal"), KeyboardInterrupt("a signal")])
def test_a_command_that_was_taken_and_did_not_begin_is_not_lost_s127(error: BaseException) -> None:
    """A signal handler of an asyncio program may raise at any step. The command was gone, and nobody was told."""
    seen: list[str] = []
    again: list[None] = []
    outbox = Interrupted([(seen.append, ("a",)), (seen.append, ("b",))], error)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run_commands(outbox, lambda: again.append(None))
        assert again == [None]
    run_commands(outbox, lambda: None)
    assert seen == ["a", "b"]


def lose_first_run(loop: asyncio.AbstractEventLoop, runtime: SyncRuntime | AioRuntime, name: str) -> list[object]:
    """Let a loop drop the first run of an outbox, as asyncio does if a signal handler raises at its first step."""
    call_soon, lost = getattr(loop, name), list[object]()

    def losing(callback: Callable[..., object], *arguments: Any, **context: Any) -> object:
        if callback == runtime._run and not lost:
            lost.append(callback)
            return call_soon(nothing)
        return call_soon(callback, *arguments, **context)

    setattr(loop, name, losing)
    return lost


def test_an_asyncio_connection_goes_on_after_a_lost_run_of_its_commands_s127() -> None:
    """Nothing of the connection ran any more, because each command believed that a run was on its way."""

    async def main() -> list[str]:
        loop, seen, over = asyncio.get_running_loop(), list[str](), asyncio.Event()
        runtime = AioRuntime(loop, lambda: seen.append("flush"))
        lost = lose_first_run(loop, runtime, "call_soon")
        runtime.submit(seen.append, "a")
        runtime.submit(over.set)
        await asyncio.wait_for(over.wait(), PATIENCE)
        assert lost
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(main()) == ["a", "flush"]


def test_a_blocking_connection_goes_on_after_a_lost_run_of_its_commands_s127() -> None:
    """The same on the thread of the loop, where only an error such as ``MemoryError`` can have this effect."""
    runtime = SyncRuntime(acquire(), nothing)
    over = threading.Event()
    try:
        lost = lose_first_run(runtime.loop, runtime, "call_soon_threadsafe")
        runtime.submit(over.set)
        assert over.wait(PATIENCE)
        assert lost
    finally:
        vars(runtime.loop).pop("call_soon_threadsafe", None)
        runtime.close()


def test_one_timer_makes_up_for_all_lost_runs_of_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer for each burst would cost more than the burst. Each run is followed by a timer that was set before it or
    with it."""
    now, timers = [100.0], list[float]()
    monkeypatch.setattr(core_runtime, "monotonic", lambda: now[0])
    second = core_runtime.SecondRun()
    runs = [100.0 + step / 100 for step in range(100)]
    for now[0] in runs:
        second.ask(lambda call, *arguments: call(*arguments), lambda delay, _: timers.append(now[0] + delay), nothing)
    assert len(timers) <= 5
    assert all(any(0 < timer - run <= core_runtime.SECOND_RUN for timer in timers) for run in runs)


def test_idle_waits_for_the_call_at_work_s124(dispatcher: ThreadDispatcher) -> None:
    entered, leave = threading.Event(), threading.Event()
    over: list[bool] = []

    def call() -> None:
        entered.set()
        leave.wait(PATIENCE)
        over.append(True)

    dispatcher.submit(call)
    assert entered.wait(PATIENCE)
    waiting = threading.Thread(target=lambda: finish(dispatcher.idle()))
    waiting.start()
    assert waiting.is_alive()
    leave.set()
    waiting.join(PATIENCE)
    assert over == [True]


def test_a_call_counts_from_its_submission_to_its_end_s124(dispatcher: ThreadDispatcher) -> None:
    """Also in the moment in which the thread has taken it and not begun: then ``stop()`` would not wait for it."""
    seen: list[bool] = []
    over = threading.Event()

    def look(frame: Any, event: str, _: Any) -> Any:
        """See before each line of the thread whether the call counts."""
        if frame.f_code.co_filename == core_file and not over.is_set():
            seen.append(dispatcher.busy)
        return look

    core_file = ThreadDispatcher.submit.__code__.co_filename
    first = threading.Event()
    dispatcher.submit(first.set)
    assert first.wait(PATIENCE)
    finish(dispatcher.through())
    gate = threading.Event()

    def trace() -> None:
        sys.settrace(look)
        frame = sys._getframe()
        while frame is not None:
            frame.f_trace = look
            frame = frame.f_back
        gate.wait(PATIENCE)

    dispatcher.submit(trace)
    dispatcher.submit(over.set)
    gate.set()
    assert over.wait(PATIENCE)
    finish(dispatcher.through())
    assert seen
    assert all(seen)


def test_all_that_is_queued_is_waited_for_s124(dispatcher: ThreadDispatcher) -> None:
    """A lane has messages in hand that wait behind another one of their group."""
    gate = threading.Event()
    over: list[int] = []
    for number in range(3):
        dispatcher.submit(lambda number=number: (gate.wait(PATIENCE), over.append(number)))
    waiting = threading.Thread(target=lambda: finish(dispatcher.through()))
    waiting.start()
    assert waiting.is_alive()
    gate.set()
    waiting.join(PATIENCE)
    assert over == [0, 1, 2]


def test_idle_inside_a_call_does_not_wait_for_itself_s14(dispatcher: ThreadDispatcher) -> None:
    done = threading.Event()

    def call() -> None:
        assert dispatcher.running_here()
        finish(dispatcher.idle())
        done.set()

    dispatcher.submit(call)
    assert done.wait(PATIENCE)
    assert not dispatcher.running_here()


def test_idle_returns_at_once_when_nothing_was_ever_submitted() -> None:
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    finish(dispatcher.idle())
    dispatcher.close()


def test_close_ends_the_thread_after_what_was_queued_s123() -> None:
    dispatcher = ThreadDispatcher("pyjmsack-closing", never)
    seen: list[int] = []
    for number in range(10):
        dispatcher.submit(lambda number=number: seen.append(number))
    dispatcher.close()
    assert seen == list(range(10))
    assert "pyjmsack-closing" not in [thread.name for thread in threading.enumerate()]


def test_close_waits_for_a_listener_that_does_not_return_no_longer_than_its_limit_s123(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited five seconds more, for each session."""
    monkeypatch.setattr(sync_runtime, "_JOIN_TIMEOUT", 3 * PATIENCE)
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    begun, gate, done = threading.Event(), threading.Event(), threading.Event()
    dispatcher.submit(lambda: (begun.set(), gate.wait(2 * PATIENCE), done.set()))
    assert begun.wait(PATIENCE)
    dispatcher.close(Deadline(0.0))
    assert not done.is_set()
    gate.set()
    assert done.wait(PATIENCE)


def test_a_dispatcher_that_is_let_end_drops_no_call_and_keeps_no_caller_waiting_s123() -> None:
    """A caller whom Ctrl-C ended left the thread behind for ever."""
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    begun, gate, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[str] = []
    dispatcher.submit(lambda: (begun.set(), gate.wait(PATIENCE), seen.append("at work")))
    dispatcher.submit(lambda: seen.append("queued"))
    assert begun.wait(PATIENCE)
    for _ in range(2):
        dispatcher.let_end()
    assert seen == []
    dispatcher.submit(lambda: (seen.append("late"), done.set()))
    gate.set()
    assert done.wait(PATIENCE)
    assert seen == ["at work", "queued", "late"]
    assert dispatcher._thread is not None
    dispatcher._thread.join(PATIENCE)
    assert not dispatcher._thread.is_alive()


def test_a_call_may_close_its_own_dispatcher() -> None:
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    done = threading.Event()
    dispatcher.submit(lambda: (dispatcher.close(), done.set()))
    assert done.wait(PATIENCE)


def test_a_late_call_is_not_dropped() -> None:
    """A callback that is added to a future after close must run."""
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    dispatcher.close()
    done = threading.Event()
    dispatcher.submit(done.set)
    assert done.wait(PATIENCE)


def test_late_calls_run_in_order_one_at_a_time_s74() -> None:
    """The listeners of a session that was closed too early got their outcomes in any order."""
    dispatcher = ThreadDispatcher("pyjmsack-test", never)
    begun, gate, done = threading.Event(), threading.Event(), threading.Event()
    seen: list[str] = []
    dispatcher.submit(lambda: (begun.set(), gate.wait(PATIENCE), seen.append("early")))
    assert begun.wait(PATIENCE)
    with dispatcher._starting:
        dispatcher._closed = True  # as if ``close`` waited for the call at work
    for number in range(20):
        dispatcher.submit(lambda number=number: seen.append(str(number)))
    dispatcher.submit(done.set)
    gate.set()
    dispatcher.close()
    assert done.wait(PATIENCE)
    assert seen == ["early", *map(str, range(20))]


@pytest.mark.parametrize("closed", [False, True])
def test_a_call_waits_while_the_system_refuses_a_thread(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller may be the loop: its error ended the search for a broker, and the connection waited for ever."""
    start, refused, timers = threading.Thread.start, [True, True], list[Callable[[], None]]()

    def refuse(thread: threading.Thread) -> None:
        if refused:
            refused.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    dispatcher = ThreadDispatcher("pyjmsack-test", lambda seconds, callback: timers.append(callback))
    if closed:
        dispatcher.close()
    done = threading.Event()
    dispatcher.submit(done.set)
    while timers:
        timers.pop()()
    assert done.wait(PATIENCE)
    dispatcher.close()


def test_a_loop_for_whose_thread_the_system_has_no_room_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file descriptors stayed open until the next garbage collection."""
    loops: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def remember() -> asyncio.AbstractEventLoop:
        loops.append(make())
        return loops[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", remember)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("pyjmsack.io.thread._threads", {})  # another test may have left a connection with its thread
    with pytest.raises(RuntimeError, match="can't start new thread"):
        acquire()
    assert [loop.is_closed() for loop in loops] == [True]


# -- SyncRuntime ------------------------------------------------------------------------------------------------


def test_a_flush_that_raises_is_not_repeated_without_end() -> None:
    """A loop that did so had no time for the other connections of the process."""
    seen: list[str] = []

    def flush() -> None:
        seen.append("flush")
        raise RuntimeError("the stream broke")

    runtime = SyncRuntime(acquire(), flush)
    over = threading.Event()

    def turn(left: int) -> None:
        if left:
            runtime.loop.call_soon(turn, left - 1)
        else:
            over.set()

    runtime.submit(seen.append, "command")
    runtime.submit(turn, 50)
    assert over.wait(PATIENCE)
    runtime.close()
    assert seen.count("flush") <= 4


def test_commands_run_in_order_and_are_flushed_once_a_burst() -> None:
    seen: list[Any] = []
    runtime = SyncRuntime(acquire(), lambda: seen.append("flush"))
    try:
        gate, done = threading.Event(), threading.Event()
        runtime.submit(gate.wait, PATIENCE)
        for number in range(50):
            runtime.submit(seen.append, number)
        runtime.submit(done.set)
        gate.set()
        assert done.wait(PATIENCE)
    finally:
        runtime.close()
    assert [item for item in seen if item != "flush"] == list(range(50))
    assert seen.count("flush") <= 4


def test_what_nobody_waits_for_gathers_until_somebody_does() -> None:
    """One wake of the loop for a burst: the first command runs at once, the others with the one that is awaited."""
    seen: list[Any] = []
    runtime = SyncRuntime(acquire(), lambda: seen.append("flush"))
    try:
        for round_ in range(3):
            first: Completion[None] = Completion()
            runtime.submit_lazily(first.succeed)
            assert wait(first, PATIENCE)
            for number in range(50):
                runtime.submit_lazily(seen.append, number)
            last: Completion[None] = Completion()
            runtime.submit_lazily(last.succeed)
            runtime.hurry()
            assert wait(last, PATIENCE), round_
    finally:
        runtime.close()
    assert [item for item in seen if item != "flush"] == [*range(50)] * 3


def test_what_nobody_waits_for_is_done_all_the_same() -> None:
    """In a moment, though nothing else happens."""
    runtime = SyncRuntime(acquire(), nothing)
    try:
        events = [threading.Event() for _ in range(250)]
        for event in events:
            runtime.submit_lazily(event.set)
        assert all(event.wait(PATIENCE) for event in events)
    finally:
        runtime.close()


def test_no_command_is_forgotten_however_threads_and_the_timer_meet() -> None:
    """A command is queued while the timer is set, while it fires, and while nobody has woken the loop."""
    runtime = SyncRuntime(acquire(), nothing)
    seen: list[list[int]] = [[] for _ in range(4)]

    def work(mine: list[int]) -> None:
        for number in range(5000):
            runtime.submit_lazily(mine.append, number)
            if number % 97 == 0:
                done: Completion[None] = Completion()
                (runtime.submit if number % 2 else runtime.submit_lazily)(done.succeed)
                if number % 3:
                    runtime.hurry()
                assert wait(done, PATIENCE)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in seen]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        runtime.flush_out(PATIENCE)
    finally:
        runtime.close()
    assert seen == [[*range(5000)]] * 4


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a lazy command"])
def test_what_gathers_is_refused_once_the_connection_is_closed(waits: bool) -> None:
    runtime = SyncRuntime(acquire(), nothing)
    if waits:
        runtime.submit_lazily(nothing)
    runtime.close()
    refused: Completion[None] = Completion()
    runtime.submit_lazily(lambda done: None, refused)
    assert isinstance(refused.error, IllegalStateException)


def test_a_command_that_breaks_does_not_stop_the_next_s127() -> None:
    runtime = SyncRuntime(acquire(), nothing)
    try:
        done = threading.Event()
        runtime.submit(lambda: 1 // 0)
        runtime.submit(done.set)
        assert done.wait(PATIENCE)
    finally:
        runtime.close()


def test_an_interrupted_wait_lets_the_steps_clean_up() -> None:
    """Ctrl-C."""
    runtime = SyncRuntime(acquire(), nothing)
    cleaned: list[bool] = []

    def steps() -> Steps[None]:
        done: Completion[None] = Completion()

        def interrupt(_: Any) -> None:
            raise KeyboardInterrupt

        try:
            done.add_callback(interrupt)
            done.succeed()
            yield done, None
        finally:
            cleaned.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            runtime.run(steps())
    finally:
        runtime.close()
    assert cleaned == [True]


def test_a_wait_ends_with_its_time_or_with_the_answer() -> None:
    completion: Completion[None] = Completion()
    assert wait(completion, 0.01) is False
    completion.succeed()
    assert wait(completion, None) is True


# -- asyncio ----------------------------------------------------------------------------------------------------


def test_the_asyncio_dispatcher_awaits_what_calls_return_in_order_s74() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())

        async def slow(name: str) -> None:
            await asyncio.sleep(0)
            seen.append(name)

        dispatcher.submit(lambda: slow("a"))
        dispatcher.submit(lambda: seen.append("b"))
        dispatcher.submit(lambda: slow("c"))
        runtime = AioRuntime(asyncio.get_running_loop(), nothing)
        while len(seen) < 3:
            await runtime.run(dispatcher.idle())
        return seen

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE)) == ["a", "b", "c"]


def test_all_that_is_queued_is_waited_for_in_asyncio_too_s124() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())

        async def slow(number: int) -> None:
            await asyncio.sleep(0)
            seen.append(number)

        for number in range(3):
            dispatcher.submit(lambda number=number: slow(number))
        await AioRuntime(asyncio.get_running_loop(), nothing).run(dispatcher.through())
        return seen

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE)) == [0, 1, 2]


def test_an_asyncio_call_that_raises_does_not_stop_the_next_s127() -> None:
    async def main() -> None:
        done = asyncio.Event()
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())
        dispatcher.submit(lambda: 1 // 0)
        dispatcher.submit(done.set)
        await asyncio.wait_for(done.wait(), PATIENCE)

    asyncio.run(main())


@pytest.mark.parametrize("counts", [True, *([False] if HAS_CANCELLING else [])])
@pytest.mark.parametrize("own", [True, False])
def test_a_task_knows_its_own_cancellation_in_each_version_of_python(own: bool, counts: bool) -> None:
    """S127: before Python 3.11 each one counted as that of something that the listener awaited."""

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        awaited: asyncio.Future[None] = loop.create_future()

        async def work() -> bool:
            try:
                await awaited
            except asyncio.CancelledError as error:
                return ends_task(error)
            return False

        task = make_task(loop, work(), "test", counts=counts)
        await asyncio.sleep(0)
        (task if own else awaited).cancel()
        return await asyncio.wait_for(task, PATIENCE)

    assert asyncio.run(main()) is own


def test_a_dispatcher_that_is_cancelled_calls_nothing_more() -> None:
    """S127: ``asyncio.run`` cancels all tasks at its end; with Python 3.10 it went on for ever."""
    seen: list[str] = []

    async def main() -> None:
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())
        dispatcher.submit(asyncio.Event().wait)
        dispatcher.submit(lambda: seen.append("next"))
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen == []


class Abort(BaseException):
    """An error that ends a task, such as the one by which pytest fails a test."""


@pytest.mark.parametrize("waits", ["before", "behind", "pausing"])
def test_a_close_does_not_wait_for_calls_that_never_run_because_the_loop_is_shut_down_s127(waits: str) -> None:
    """A connection that an open asynchronous generator closes then waited for ``jms.closeTimeout``."""

    async def main() -> None:
        ending = Ending()
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", ending)
        runtime = AioRuntime(asyncio.get_running_loop(), lambda: None)
        for _ in range(2):
            dispatcher.submit(asyncio.Event().wait)
        await asyncio.sleep(0)
        if waits == "pausing":  # asyncio.run has cancelled the task, and the next one is to start in a second
            task = dispatcher.task
            assert task is not None
            task.cancel()
            await asyncio.wait([task])
            await asyncio.sleep(0)
            waiting = asyncio.ensure_future(runtime.run(dispatcher.idle()))
            await asyncio.sleep(0)
            end = asyncio.ensure_future(ending.end())
        elif waits == "before":
            waiting = asyncio.ensure_future(runtime.run(dispatcher.through()))
            await asyncio.sleep(0)
            end = asyncio.ensure_future(ending.end())
        else:
            end = asyncio.ensure_future(ending.end())
            waiting = asyncio.ensure_future(runtime.run(dispatcher.through()))
        await asyncio.wait_for(asyncio.gather(waiting, end), PATIENCE)

    asyncio.run(main())


def test_a_call_that_begins_while_asyncio_ends_its_tasks_is_cancelled_and_none_begins_later_s127(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """``asyncio.run`` looks for tasks once. The call that began later was destroyed with the loop."""
    told: list[str] = []
    over, submitted = threading.Event(), threading.Event()
    begun: Any = None
    ended: Any = None

    async def listener(name: str) -> None:
        told.append(name)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(f"{name} {type(sys.exc_info()[1]).__name__}")
            ended.set()

    async def main() -> None:
        nonlocal begun, ended
        begun, ended = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        dispatcher = TaskDispatcher(loop, "test", Ending())
        kept.append(dispatcher)

        async def ends_last() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                dispatcher.submit(lambda: listener("one"))
                await begun.wait()

        def message_comes() -> None:
            dispatcher.submit(lambda: listener("two"))
            loop.call_soon(lambda: loop.call_soon(submitted.set))

        def thread() -> None:
            assert over.wait(PATIENCE)
            loop.call_soon_threadsafe(message_comes)
            assert submitted.wait(PATIENCE)

        async def generator() -> AsyncIterator[None]:
            try:
                yield
            finally:
                await ended.wait()
                over.set()

        kept.append(generator())
        await kept[-1].__anext__()
        kept.append(asyncio.ensure_future(ends_last()))
        kept.append(loop.run_in_executor(None, thread))
        await asyncio.sleep(0)

    kept: list[Any] = []
    asyncio.run(main())
    assert told == ["one", "one CancelledError"]
    assert not caplog.records


@pytest.mark.parametrize("way", ["raises", "cancelled", "cancelled before its first step"])
def test_what_ends_the_task_of_a_listener_ends_no_other_call_s127(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queued calls of other listeners waited until somebody queued one more, perhaps for ever."""
    monkeypatch.setattr(_runtime, "_AGAIN", 0)
    seen: list[str] = []

    async def first() -> None:
        seen.append("first")
        if way == "raises":
            raise Abort
        if way == "cancelled":
            await asyncio.Event().wait()

    async def main() -> None:
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())
        over = asyncio.Event()
        dispatcher.submit(first)
        dispatcher.submit(over.set)
        task = dispatcher._task
        assert task is not None
        if way == "cancelled":
            await asyncio.sleep(0)
        if way != "raises":
            task.cancel()
        idle = asyncio.create_task(AioRuntime(asyncio.get_running_loop(), nothing).run(dispatcher.through()))
        await asyncio.wait_for(over.wait(), PATIENCE)
        await asyncio.wait_for(idle, PATIENCE)
        await asyncio.gather(task, return_exceptions=True)
        assert not dispatcher.busy

    asyncio.run(main())
    assert seen == ["first"]


def test_a_call_that_leaves_a_count_of_cancellations_behind_delays_no_other_s127(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task group whose child fails leaves it in Python 3.11 and 3.12, and so do some libraries after a time limit."""
    monkeypatch.setattr(_runtime, "_AGAIN", 3600)
    later: list[bool] = []

    async def first() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)

    async def main() -> None:
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())
        dispatcher.submit(first)
        dispatcher.submit(lambda: later.append(_runtime.is_cancelled()))
        await asyncio.wait_for(AioRuntime(asyncio.get_running_loop(), nothing).run(dispatcher.through()), PATIENCE)

    asyncio.run(main())
    assert later == [False]


def test_a_dispatcher_is_busy_while_queued_calls_wait_for_its_next_task() -> None:
    """S124: a close waits for them, because a worker that has taken a message must not run after the close."""

    async def main() -> None:
        dispatcher = TaskDispatcher(asyncio.get_running_loop(), "test", Ending())
        dispatcher.submit(asyncio.Event().wait)
        dispatcher.submit(nothing)
        await asyncio.sleep(0)
        task = dispatcher._task
        assert task is not None
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert dispatcher.busy
        dispatcher.submit(nothing)  # begins the next task at once
        await asyncio.wait_for(AioRuntime(asyncio.get_running_loop(), nothing).run(dispatcher.through()), PATIENCE)
        assert not dispatcher.busy

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="tasks start eagerly since Python 3.12")
def test_a_loop_that_starts_tasks_eagerly_delays_no_call_and_hides_no_dispatcher_s14(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S14, S124. The first call ran before the dispatcher knew its task: the call could close its own session, and the
    next call waited for a second."""
    monkeypatch.setattr(_runtime, "_AGAIN", 10 * PATIENCE)
    inside: list[bool] = []

    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.set_task_factory(asyncio.eager_task_factory)
        dispatcher = TaskDispatcher(loop, "test", Ending())
        dispatcher.submit(lambda: inside.append(dispatcher.running_here()))
        dispatcher.submit(lambda: inside.append(dispatcher.running_here()))
        dispatcher.submit(over.set)
        await asyncio.wait_for(over.wait(), PATIENCE)

    asyncio.run(main())
    assert inside == [True, True]


def test_a_task_that_a_call_started_belongs_to_the_call_as_long_as_the_call_runs_s14() -> None:
    belongs: list[tuple[bool, bool, bool]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        dispatcher, another = TaskDispatcher(loop, "test", Ending()), TaskDispatcher(loop, "another", Ending())
        tasks, next_call, over = list[asyncio.Task[None]](), asyncio.Event(), asyncio.Event()

        async def task() -> None:
            belongs.append((dispatcher.running_here(), dispatcher.started_here(), another.started_here()))
            await next_call.wait()
            belongs.append((dispatcher.running_here(), dispatcher.started_here(), another.started_here()))
            over.set()

        async def first() -> None:
            tasks.append(asyncio.create_task(task()))
            inner = asyncio.Event()
            another.submit(lambda: belongs.append((True, dispatcher.started_here(), another.started_here())))
            another.submit(inner.set)
            await inner.wait()

        async def second() -> None:
            next_call.set()
            await over.wait()

        dispatcher.submit(first)
        dispatcher.submit(second)
        await asyncio.wait_for(asyncio.gather(over.wait()), PATIENCE)
        assert not dispatcher.started_here()

    asyncio.run(main())
    assert belongs == [(False, True, False), (True, False, True), (False, False, False)]


def test_a_call_does_not_hold_the_lock_of_the_session_in_whose_listener_its_dispatcher_began_s15() -> None:
    """A listener that wakes the listener of another session lends it the context, and not its own session."""
    order: list[str] = []

    async def main() -> None:
        lock, over = SessionLock(), asyncio.Event()
        another = TaskDispatcher(asyncio.get_running_loop(), "another", Ending())

        async def another_call() -> None:
            order.append("another")
            over.set()

        async def first_call() -> None:
            another.submit(lambda: lock.in_turn(another_call))
            for _ in range(10):
                await asyncio.sleep(0)
            order.append("first")

        await lock.in_turn(first_call)
        await asyncio.wait_for(over.wait(), PATIENCE)

    asyncio.run(main())
    assert order == ["first", "another"]


def test_tasks_take_turns_at_a_session_and_one_may_enter_again_s15() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        lock = SessionLock()

        async def work(name: str) -> None:
            seen.append(f"{name} in")
            await lock.in_turn(lambda: asyncio.sleep(0))
            seen.append(f"{name} out")

        both = asyncio.gather(lock.in_turn(lambda: work("a")), lock.in_turn(lambda: work("b")))
        await asyncio.wait_for(both, PATIENCE)
        return seen

    assert asyncio.run(main()) == ["a in", "a out", "b in", "b out"]


def test_a_cancelled_wait_closes_its_steps_and_an_answer_later_is_harmless() -> None:
    """Catalogue 98."""

    async def main() -> list[str]:
        runtime, seen = AioRuntime(asyncio.get_running_loop(), nothing), []
        done: Completion[None] = Completion()

        def steps() -> Steps[None]:
            try:
                yield done, None
            finally:
                seen.append("closed")

        task = asyncio.ensure_future(runtime.run(steps()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done.succeed()
        return seen

    assert asyncio.run(main()) == ["closed"]


def test_nothing_waits_for_the_loop_while_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose ``__del__`` closed a connection at its end never ended, because no daemon thread runs then."""
    runtime = SyncRuntime(acquire(), nothing)

    def steps() -> Steps[None]:
        yield Completion(), None

    with monkeypatch.context() as ending:
        ending.setattr(sync_runtime, "sys", SimpleNamespace(is_finalizing=lambda: True))
        with pytest.raises(IllegalStateException, match="the program is ending"):
            runtime.submit(nothing)
        with pytest.raises(IllegalStateException, match="the program is ending"):
            runtime.run(steps())
        runtime.close()
    runtime.close()


def test_a_message_is_acknowledged_from_another_thread_at_once() -> None:
    """A program gives messages to ``asyncio.to_thread``. In the debug mode of asyncio, this stopped the connection for
    good; without it, nothing woke the loop."""
    seen: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        runtime = AioRuntime(loop, nothing)
        over = asyncio.Event()
        thread = threading.Thread(target=runtime.submit, args=(over.set,))
        thread.start()
        await asyncio.wait_for(over.wait(), PATIENCE)
        thread.join(PATIENCE)
        runtime.submit(seen.append, "later")
        await asyncio.sleep(0)

    asyncio.run(main(), debug=True)
    assert seen == ["later"]


def test_threads_that_acknowledge_in_asyncio_choose_an_outcome_one_after_the_other_s28() -> None:
    """Each of two threads that acknowledged a message at the same time could choose its outcome, which was then counted
    and recorded twice."""

    async def main() -> bool:
        lock = AioRuntime(asyncio.get_running_loop(), nothing).lock()
        entered = threading.Event()

        def enter() -> None:
            with lock:
                entered.set()

        thread = threading.Thread(target=enter)
        with lock:
            thread.start()
            too_early = entered.wait(0.1)
        thread.join(PATIENCE)
        return not too_early and entered.is_set()

    assert asyncio.run(main())


def test_each_command_after_the_end_of_the_loop_is_an_error() -> None:
    """The first one was, and the next ones seemed to work."""

    async def main() -> AioRuntime:
        return AioRuntime(asyncio.get_running_loop(), nothing)

    runtime = asyncio.run(main())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            runtime.submit(nothing)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_gets_an_error_even_if_the_loop_was_about_to_run_commands() -> None:
    """A child made by ``fork`` gets an error when it sends or acknowledges. It got none if the parent had just done so,
    and what it sent was dropped."""

    async def aio() -> AioRuntime:
        runtime = AioRuntime(asyncio.get_running_loop(), nothing)
        runtime.submit(nothing)
        return runtime if refuses(runtime) else pytest.fail("the child of an asyncio program got no error")

    def refuses(runtime: SyncRuntime | AioRuntime) -> bool:
        child = os.fork()
        if child == 0:
            try:
                runtime.submit(nothing)
            except IllegalStateException:
                os._exit(0)
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    asyncio.run(aio())
    runtime = SyncRuntime(acquire(), nothing)
    gate = threading.Event()
    try:
        runtime.submit(gate.wait, PATIENCE)  # the loop stands still
        runtime.submit(nothing)
        assert runtime._woken or runtime._outbox
        runtime._woken = True
        assert refuses(runtime)
    finally:
        gate.set()
        runtime.close()


def test_an_asyncio_connection_belongs_to_its_loop() -> None:
    async def make() -> AioRuntime:
        return AioRuntime(asyncio.get_running_loop(), nothing)

    runtime = asyncio.run(make())

    def steps() -> Steps[None]:
        return
        yield

    async def use() -> None:
        await runtime.run(steps())

    with pytest.raises(IllegalStateException, match="another event loop"):
        asyncio.run(use())


def test_what_comes_after_another_thread_closed_the_connection_fails_its_waiters_s123() -> None:
    runtime = SyncRuntime(acquire(), nothing)
    runtime.close()
    runtime.close()
    done: Completion[None] = Completion()
    runtime.submit(lambda completion: completion.succeed(), done)
    with pytest.raises(IllegalStateException, match="closed"):
        done.result()


def test_a_close_in_the_middle_of_a_close_gives_the_loop_thread_back_once() -> None:
    """A second time would end the loop under the other connections of the process (S123)."""
    thread = acquire()
    other = acquire()
    runtime = SyncRuntime(thread, nothing)
    flush_out, closes = runtime.flush_out, iter([runtime.close])

    def interrupted(timeout: float | None) -> None:
        flush_out(timeout)
        for close in closes:  # a signal handler
            close()

    runtime.flush_out = interrupted  # type: ignore[method-assign]  # the place where the handler runs
    before = thread.users
    runtime.close()
    assert thread.users == before - 1
    other.release()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_object_whose_opening_was_not_awaited_says_so() -> None:
    """``'Opening' object has no attribute 'create_session'`` explained nothing."""
    connection = aio.ConnectionFactory("amqp://127.0.0.1:1").create_connection()
    with pytest.raises(AttributeError, match=r"has no attribute 'create_session': write `await \.\.\.`.*`async with"):
        connection.create_session()  # type: ignore[attr-defined]  # type checkers see the mistake, too
    assert not hasattr(connection, "close")


def cancelled_call(runtime: SyncRuntime | AioRuntime) -> weakref.ref[FakeRuntime]:
    """Let the runtime call something in an hour, and cancel the call."""
    kept = FakeRuntime()
    later = runtime.call_later(3600, kept.turn)
    runtime.submit(later.cancel)
    return weakref.ref(kept)


def test_a_call_for_later_that_is_cancelled_keeps_nothing_in_memory() -> None:
    """Its timer kept a message for up to 24 days, although nobody could get the message any more."""

    async def in_asyncio() -> None:
        runtime = AioRuntime(asyncio.get_running_loop(), nothing)
        kept = cancelled_call(runtime)
        runtime.run_queued()
        gc.collect()
        assert kept() is None

    asyncio.run(in_asyncio())
    runtime = SyncRuntime(acquire(), nothing)
    try:
        kept = cancelled_call(runtime)
        runtime.flush_out(PATIENCE)
        gc.collect()
        assert kept() is None
    finally:
        runtime.close()
