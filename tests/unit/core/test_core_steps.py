"""Waiting without knowing how: deadlines, requests, and commands that break."""

from __future__ import annotations

from collections import deque

import pytest
from core_fakes import FakeRuntime

from pyjmsack.core.runtime import run_commands
from pyjmsack.core.steps import Deadline, Steps, answered, together
from pyjmsack.core.transaction import Transaction
from pyjmsack.errors import JMSException, RequestTimedOutException, SendTimedOutException
from pyjmsack.spi.completion import Completion


def test_a_deadline_without_seconds_never_comes() -> None:
    deadline = Deadline(None)
    assert deadline.remaining() is None
    assert not deadline.expired


def test_a_deadline_of_zero_has_come_and_never_has_a_negative_rest() -> None:
    for seconds in (0, -1):
        deadline = Deadline(seconds)
        assert deadline.expired
        assert deadline.remaining() == 0


def test_a_request_returns_the_answer_without_waiting_if_it_is_there() -> None:
    runtime, done = FakeRuntime(), Completion[int]()
    done.succeed(5)
    assert runtime.run(answered(done, Deadline(1, "jms.requestTimeout"), "asking")) == 5
    assert runtime.waits == []


def test_a_request_waits_for_its_time_and_names_what_and_which_option() -> None:
    runtime = FakeRuntime()
    with pytest.raises(RequestTimedOutException, match=r"asking.*jms\.requestTimeout.*2\.5 s"):
        runtime.run(answered(Completion[int](), Deadline(2.5, "jms.requestTimeout"), "asking"))
    assert runtime.waits == [pytest.approx(2.5, abs=0.5)]


def test_a_failed_request_raises_its_error() -> None:
    done = Completion[int]()
    done.fail(SendTimedOutException("x"))
    with pytest.raises(SendTimedOutException):
        FakeRuntime().run(answered(done, Deadline(None), "asking"))


def test_an_answer_that_comes_with_the_time_out_counts() -> None:
    done = Completion[int]()
    steps = answered(done, Deadline(1, "o"), "asking")
    next(steps)
    done.succeed(3)
    with pytest.raises(StopIteration) as stop:
        steps.send(False)
    assert stop.value.value == 3


def test_a_command_that_breaks_fails_who_waits_for_it() -> None:
    """S127: and nobody else."""

    def broken(done: Completion[None]) -> None:
        raise ZeroDivisionError

    done = Completion[None]()
    run_commands(deque([(broken, (done,))]), lambda: None)
    assert isinstance(done.error, ZeroDivisionError)


def test_a_transaction_is_idle_when_every_send_is_answered() -> None:
    """S86."""
    transaction = Transaction()
    transaction.submitted = 2
    idle = Completion[None]()
    transaction.when_decided(idle)
    transaction.on_sent(None)
    assert not idle.done
    transaction.on_sent(None)
    assert idle.done
    assert transaction.failure is None


def test_a_transaction_without_sends_is_idle() -> None:
    idle = Completion[None]()
    Transaction().when_decided(idle)
    assert idle.done


def test_a_transaction_remembers_its_first_failure() -> None:
    """S86."""
    transaction = Transaction()
    first, second = JMSException("first"), JMSException("second")
    for error in (None, first, second):
        transaction.on_sent(error)
    assert transaction.failure is first


def test_steps_together_are_not_cut_short_where_the_loop_alone_answers_s74() -> None:
    """A connection that closed after its time did not wait until its listeners had the outcome of each send."""
    told: Completion[None] = Completion()
    seen: list[bool] = []

    def session() -> Steps[None]:
        seen.append((yield told, None))
        seen.append((yield Completion[None](), 60.0))

    steps = together([session()], Deadline(0))
    assert next(steps) == (told, None)
    _, limit = steps.send(True)
    assert limit == 0
    with pytest.raises(StopIteration):
        steps.send(False)
    assert seen == [True, False]
