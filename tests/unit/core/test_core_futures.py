"""The future of a send in the blocking face: the loop of all connections settles it, and waits for nobody."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent import futures

import pytest
from interrupting import Interrupt
from polling import wait_until

from pyjmsack.errors import JMSException
from pyjmsack.sync._future import SendFuture

PATIENCE = 60


class Face:
    """A session that runs callbacks at once."""

    def hurry(self) -> None:
        """Nothing waits here."""

    def dispatch_completion(self, call: Callable[[], object]) -> None:
        call()

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()


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
                sends = [made() for _ in range(300)]
                waits = [
                    lambda sends=sends: futures.wait(sends, PATIENCE).done,
                    lambda sends=sends: {*futures.as_completed(sends, PATIENCE)},
                ]
                seen = [pool.submit(wait) for wait in waits * 2]  # type: ignore[misc]  # mypy sees no default here
                pool.submit(lambda sends=sends: [send.settle(error) for send in sends])  # type: ignore[misc]  # as above
                for done in seen:
                    assert done.result(PATIENCE) == {*sends}
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
    assert (len(send._calls or ()), len(send._waiters), len(send._waiters._telling)) == (0, 0, 0)


def test_the_loop_does_not_wait_for_a_waiter_in_whose_lock_a_signal_handler_waits_for_the_loop() -> None:
    first, second = made(), made()
    waiter = futures._base._AsCompletedWaiter()
    first._waiters.append(waiter)
    with waiter.lock:
        loop = threading.Thread(target=lambda: [send.settle(None) for send in (first, second)], daemon=True)
        loop.start()
        assert second.result(PATIENCE) is None
    wait_until(lambda: waiter.finished_futures == [first], PATIENCE)
