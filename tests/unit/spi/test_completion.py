"""A one-shot result: first answer wins, callbacks run once, errors are each waiter's own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pyjmsack.errors import ConnectionLostException, JMSException, TransactionRolledBackException
from pyjmsack.spi.completion import Completion


def test_the_first_result_wins_so_that_an_answer_and_a_time_out_may_race() -> None:
    completion: Completion[int] = Completion()
    completion.succeed(1)
    completion.fail(JMSException("late"))
    completion.succeed(2)
    assert completion.result() == 1
    assert completion.error is None


def test_a_failed_one_stays_failed() -> None:
    completion: Completion[int] = Completion()
    completion.fail(JMSException("no"))
    completion.succeed(1)
    with pytest.raises(JMSException, match="no"):
        completion.result()


def test_success_may_be_none() -> None:
    completion: Completion[None] = Completion()
    completion.succeed()
    assert completion.done
    assert completion.result() is None


@pytest.mark.parametrize("error", [None, JMSException("x")])
def test_settle_takes_an_error_or_none(error: JMSException | None) -> None:
    completion: Completion[None] = Completion()
    completion.settle(error)
    assert completion.done
    assert completion.error is error


def test_a_callback_runs_when_the_result_comes_or_at_once_and_only_once() -> None:
    calls: list[str] = []
    completion: Completion[int] = Completion()
    completion.add_callback(lambda c: calls.append(f"before {c.result()}"))
    assert calls == []
    completion.succeed(7)
    completion.add_callback(lambda c: calls.append(f"after {c.result()}"))
    completion.succeed(8)
    assert calls == ["before 7", "after 7"]


def test_a_callback_may_add_another() -> None:
    calls: list[str] = []
    completion: Completion[None] = Completion()
    completion.add_callback(lambda c: c.add_callback(lambda _: calls.append("inner")))
    completion.succeed()
    assert calls == ["inner"]


def test_every_waiter_gets_an_error_of_its_own_with_the_original_as_cause() -> None:
    """S129: a shared instance would grow a traceback with every raise."""
    original = TransactionRolledBackException("no", error_code="amqp:x", sent=["a"], acknowledged=["b"])
    completion: Completion[None] = Completion()
    completion.fail(original)
    raised: list[Any] = []
    for _ in range(2):
        with pytest.raises(TransactionRolledBackException) as caught:
            completion.result()
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert original not in raised
    seen = [(e.error_code, e.sent, e.acknowledged, e.__cause__) for e in raised]
    assert seen == [("amqp:x", ("a",), ("b",), original)] * 2


def test_the_cause_of_an_error_is_kept_in_its_copies() -> None:
    """S129."""
    original = ConnectionLostException("gone")
    original.__cause__ = OSError("reset")
    completion: Completion[None] = Completion()
    completion.fail(original)
    with pytest.raises(ConnectionLostException, match="gone") as caught:
        completion.result()
    assert isinstance(caught.value.__cause__, OSError)


def test_other_errors_are_raised_as_they_are() -> None:
    completion: Completion[None] = Completion()
    completion.fail(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        completion.result()


def test_no_callback_is_lost_or_run_twice_when_result_and_callback_meet() -> None:
    """The two sides have no lock: each publishes first and looks then."""
    for _ in range(500):
        completion: Completion[int] = Completion()
        ran: list[int] = []
        start = threading.Barrier(2)

        def answer(completion: Completion[int] = completion, start: threading.Barrier = start) -> None:
            start.wait()
            completion.succeed(1)

        thread = threading.Thread(target=answer)
        thread.start()
        start.wait()
        completion.add_callback(lambda c, ran=ran: ran.append(c.result()))
        thread.join()
        assert ran == [1]
