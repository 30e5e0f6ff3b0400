"""The future of a send in the blocking face: the loop of all connections settles it, and waits for nobody."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent import futures
from types import FrameType

import pytest

from pyjmsack.errors import JMSException
from pyjmsack.sync._future import SendFuture

PATIENCE = 60


class Face:
    """A session: it runs callbacks at once, and lets a thread tell the waiters of the standard library."""

    def hurry(self) -> None:
        """Nothing waits here."""

    def dispatch_completion(self, call: Callable[[], object]) -> None:
        call()

    def tell(self, call: Callable[[], object]) -> None:
        threading.Thread(target=call, daemon=True).start()


def made() -> SendFuture:
    return SendFuture(Face())  # type: ignore[arg-type]  # the part of a face that a future uses


class Interrupt:
    """Raises at one event of the trace: a call, a line or a return, also inside of the standard library."""

    def __init__(self, event: int) -> None:
        self.left = event

    def __call__(self, frame: FrameType, event: str, _: object) -> Interrupt:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self

    def run(self, call: Callable[[], object]) -> None:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except (KeyboardInterrupt, futures.TimeoutError, RuntimeError):
            pass  # a condition of the standard library makes a RuntimeError of some interrupts
        finally:
            sys.settrace(before)


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
    sends = [made() for _ in range(500)]

    def answer() -> None:
        for send in sends:
            send.settle(error)

    waits = [lambda: futures.wait(sends, PATIENCE).done, lambda: {*futures.as_completed(sends, PATIENCE)}]
    with futures.ThreadPoolExecutor(5) as pool:
        seen = [pool.submit(wait) for wait in waits * 2]
        pool.submit(answer)
        for done in seen:
            assert done.result(PATIENCE) == {*sends}


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
