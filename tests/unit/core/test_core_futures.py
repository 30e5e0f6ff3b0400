"""The future of a send in the blocking face: the loop of all connections settles it, and waits for nobody."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from interrupting import Interrupt

from pyjmsack.core import steps
from pyjmsack.errors import JMSException
from pyjmsack.sync._future import SendFuture, _Event

PATIENCE = 60


class Face:
    """A session that runs callbacks at once."""

    def hurry(self) -> None:
        """Nothing waits here."""

    def dispatch_completion(self, call: Callable[[], object]) -> None:
        call()


def made() -> SendFuture:
    return SendFuture(Face())  # type: ignore[arg-type]  # the part of a face that a future uses


WAITS: list[Callable[[SendFuture], object]] = [
    lambda future: future.result(0),
    lambda future: future.exception(0),
    lambda future: future.add_done_callback(bool),
    lambda future: futures.wait([future], 0),
    lambda future: [*futures.as_completed([future], 0)],
]


@pytest.mark.parametrize("wait", WAITS, ids=["result", "exception", "add_done_callback", "wait", "as_completed"])
def test_ctrl_c_at_any_step_of_a_wait_for_a_send_does_not_stop_the_loop_of_all_connections(
    wait: Callable[[SendFuture], object],
) -> None:
    for event in range(1, 1000):
        future, interrupt = made(), Interrupt(event)
        interrupt.run(lambda future=future: wait(future))  # type: ignore[misc]  # mypy sees no default here
        loop = threading.Thread(target=future.settle, args=(None,), daemon=True)
        loop.start()
        loop.join(PATIENCE)
        assert not loop.is_alive(), f"the loop stands still after Ctrl-C at event {event}"
        assert future.result(PATIENCE) is None
        if interrupt.left > 0:
            assert event > 3
            return
    pytest.fail("the wait has more steps than the test")


@pytest.mark.parametrize("error", [None, JMSException("refused")])
def test_waiters_of_the_standard_library_are_told_although_the_answers_come_meanwhile(
    error: JMSException | None,
) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with futures.ThreadPoolExecutor(6) as pool:
            for _ in range(20):
                sends, others = [made() for _ in range(300)], [futures.Future[None]() for _ in range(30)]
                waits = [
                    lambda both=(*sends, *others): futures.wait(both, PATIENCE).done,
                    lambda both=(*sends, *others): {*futures.as_completed(both, PATIENCE)},
                ]
                seen = [pool.submit(wait) for wait in waits * 2]  # type: ignore[misc]  # mypy sees no default here
                pool.submit(lambda sends=sends: [send.settle(error) for send in sends])  # type: ignore[misc]  # as above
                pool.submit(lambda others=others: [other.set_result(None) for other in others])  # type: ignore[misc]
                for done in seen:
                    assert done.result(PATIENCE) == {*sends, *others}
    finally:
        sys.setswitchinterval(interval)


def test_a_wait_sees_one_state_of_a_send_although_the_answer_comes_between_its_looks() -> None:
    """The standard library counts its futures twice, and relies on its lock in between."""
    first, second = made(), made()
    with first._condition:
        assert not first.cancelled()
        first.settle(None)
        assert first.done()
        assert first._state == second._state
    assert first._state != second._state
    assert futures.wait([first, second], 0).done == {first}


def test_a_wait_that_ctrl_c_ended_stops_no_other_wait() -> None:
    """One lock that was left taken kept all later waits of the session from their answers."""
    for event in range(1, 1000):
        left, interrupt = made(), Interrupt(event)
        interrupt.run(lambda left=left: futures.wait([left], 0))  # type: ignore[misc]  # mypy sees no default here
        others = [made(), left, made()]
        with futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(futures.wait, others, PATIENCE)
            for send in others:
                send.settle(None)
            assert waiting.result(PATIENCE).done == {*others}, f"after Ctrl-C at event {event}"
        assert futures.wait(others, PATIENCE).done == {*others}
        if interrupt.left > 0:
            return
    pytest.fail("the wait has more steps than the test")


def test_callbacks_run_once_and_in_order_and_also_after_the_answer() -> None:
    future, called = made(), []
    for number in range(3):
        future.add_done_callback(lambda done, number=number: called.append((number, done)))  # type: ignore[misc]  # as above
    assert called == []
    future.settle(None)
    future.add_done_callback(lambda done: called.append((3, done)))
    assert called == [(number, future) for number in range(4)]


def test_a_program_that_looks_again_and_again_leaves_nothing_behind() -> None:
    future = made()
    for _ in range(100):
        with pytest.raises(futures.TimeoutError):
            future.result(0)
        with pytest.raises(futures.TimeoutError):
            future.exception(-1)
    assert len(future._calls) == 0
    future.settle(JMSException("refused"))
    with pytest.raises(JMSException, match="refused"):
        future.result()
    assert isinstance(future.exception(), JMSException)


def test_waits_that_are_over_leave_nothing_behind() -> None:
    """A program that looked each 10 ms with a time-out kept 30 MB a second, while its broker stood still."""
    send = made()
    for _ in range(100):
        futures.wait([send], 0)
        with pytest.raises(futures.TimeoutError):
            [*futures.as_completed([send], 0)]
        futures.as_completed([send], PATIENCE).close()
    assert (len(send._calls or ()), len(send._waiters)) == (0, 0)


def test_a_wait_ends_although_the_lock_of_its_waiter_is_taken_when_the_last_answer_comes() -> None:
    """A signal handler may run while its own thread has this lock, wait for the loop, and close the connection."""
    first, second = made(), made()
    waiter = futures._base._AsCompletedWaiter()
    with first._condition:
        first._waiters.append(waiter)
    with waiter.lock:
        loop = threading.Thread(target=lambda: [send.settle(None) for send in (first, second)], daemon=True)
        loop.start()
        loop.join(PATIENCE)
        assert second.done()
    assert waiter.event.wait(0)
    assert waiter.finished_futures == [first]


class Handler:
    """Stands for a signal handler at one event of the trace: a call, a line or a return. The handler waits until the
    loop has answered all sends, as a handler does that closes the connection.

    The first send is answered when the thread has looked for answers once. Before the thread looks again, the handler
    runs, or the thread would wait for ever.
    """

    def __init__(self, event: int, sends: list[SendFuture]) -> None:
        self.left = event
        """How many events are left. More than 0 after :meth:`run` means that the wait has fewer events."""
        self._sends = sends
        self._looks = 0
        self._called = False

    def __call__(self, frame: FrameType, event: str, _: object) -> Handler:
        self.left -= 1
        if frame.f_code is steps.Deadline.remaining.__code__ and event == "call":
            self._looks += 1
            if self._looks == 1 and not self._called:
                self._sends[0].settle(None)
        if (self.left == 0 or self._looks == 2) and not self._called:
            self._called = True
            left = [send for send in self._sends if not send.done()]
            loop = threading.Thread(target=lambda: [send.settle(None) for send in left], daemon=True)
            loop.start()
            loop.join(PATIENCE)
            assert futures.wait(self._sends, 0).done == {*self._sends}
        return self

    def run(self, wait: Callable[[list[SendFuture]], object]) -> object:
        gc.disable()  # no signal handler runs in a finalizer of another test's objects; the trace would
        sys.settrace(self)
        try:
            return wait(self._sends)
        finally:
            sys.settrace(None)
            gc.enable()


COMPLETE_WAITS: list[Callable[[list[SendFuture]], object]] = [
    lambda sends: futures.wait(sends, PATIENCE).done,
    lambda sends: futures.wait(sends, PATIENCE, futures.FIRST_EXCEPTION).done,
    lambda sends: {*futures.as_completed(sends, PATIENCE)},
]


@pytest.mark.parametrize("wait", COMPLETE_WAITS, ids=["all", "exception", "as_completed"])
def test_a_wait_ends_although_a_signal_handler_closes_the_connection_at_any_step_of_it(
    wait: Callable[[list[SendFuture]], object],
) -> None:
    """At some steps the thread had the lock of its waiter, and was never told of the answers."""
    for event in range(1, 1000):
        sends = [made() for _ in range(3)]
        handler = Handler(event, sends)
        assert handler.run(wait) == {*sends}, f"the handler ran at event {event}"
        if handler.left > 0:
            assert event > 50
            return
    pytest.fail("the wait has more steps than the test")


def test_a_wait_has_one_time_for_all_its_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 100, 10))
    monkeypatch.setattr(steps, "monotonic", lambda: next(moments))
    waits: list[float] = []

    def woken(_: bool, timeout: float) -> bool:
        waits.append(timeout)
        return len(waits) < 4

    event: Any = _Event()
    event._signal = SimpleNamespace(acquire=woken)
    assert not event.wait(30)
    assert waits == [20, 10, 0, 0]


def test_a_wait_ends_in_time_although_a_signal_handler_takes_longer_than_this_time() -> None:
    """A ``SimpleQueue`` of CPython 3.10 to 3.12 then waited for ever."""
    code = """
import signal, time
from concurrent import futures
from pyjmsack.sync._future import SendFuture
signal.signal(signal.SIGALRM, lambda *_: time.sleep(1))
send = SendFuture(type("Face", (), {"hurry": lambda self: None})())
signal.setitimer(signal.ITIMER_REAL, 0.2)
assert not futures.wait([send], 0.5).done
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_a_wait_returns_with_the_first_answer_or_the_first_error() -> None:
    for how, error in ((futures.FIRST_COMPLETED, None), (futures.FIRST_EXCEPTION, JMSException("refused"))):
        pending, answered, other = made(), made(), futures.Future[None]()
        with futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(futures.wait, [pending, answered, other], PATIENCE, how)
            answered.settle(error)
            assert waiting.result(PATIENCE).done == {answered}
            waiting = pool.submit(futures.wait, [pending, other], PATIENCE, how)
            other.set_exception(error or JMSException("late"))
            assert waiting.result(PATIENCE).done == {other}


@pytest.fixture
def collected_often() -> Iterator[Callable[[int], None]]:
    before = gc.get_threshold()
    yield gc.set_threshold
    gc.set_threshold(*before)


def test_an_answer_counts_that_comes_in_the_middle_of_a_garbage_collection(
    collected_often: Callable[[int], None],
) -> None:
    """CPython 3.11 collected garbage while it made the ``__dict__`` of a future that somebody began to wait for. What
    the loop wrote meanwhile was lost, or the process crashed."""

    class Garbage:
        """Its finalizer lets the loop run, as closing a file does."""

        def __init__(self, send: SendFuture) -> None:
            self.send = send
            self.me = self

        def __del__(self) -> None:
            self.send.settle(None)

    class Sent(SendFuture):
        """Has no room for later attributes. CPython gives each class room for about 30, and takes one away for each
        object, as in a program that sends much before it waits."""

    face: Any = Face()
    for _ in range(100):
        Sent(face).settle(None)
    Sent(face).add_done_callback(bool)
    for allocations in range(1, 100):
        send = Sent(face)
        gc.collect()
        Garbage(send)
        collected_often(allocations)
        futures.wait([send], 0)
        collected_often(0)  # never
        gc.collect()
        assert futures.wait([send], 0).done == {send}, f"a collection after {allocations} allocations"
