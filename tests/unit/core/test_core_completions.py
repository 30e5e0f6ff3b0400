"""Completion listeners without a broker (S73, S74)."""

from __future__ import annotations

from typing import Any

import pytest
from core_fakes import FakeDispatcher, FakeRuntime

from pyjmsack.core.completions import Completions
from pyjmsack.core.steps import Deadline
from pyjmsack.errors import ConnectionLostException, JMSException, MessageNotWriteableException
from pyjmsack.message import TextMessage


class Listener:
    def __init__(self, told: list[tuple[str, str]], errors: list[JMSException] | None = None) -> None:
        self.told = told
        self.errors = errors if errors is not None else []

    def on_completion(self, message: Any) -> None:
        self.told.append(("completed", message.text))

    def on_exception(self, message: Any, error: JMSException) -> None:
        self.told.append(("failed", message.text))
        self.errors.append(error)


class Sends:
    """Three sends with listeners."""

    def __init__(self, number: int = 3) -> None:
        self.dispatcher = FakeDispatcher()
        self.runtime = FakeRuntime()
        self.completions = Completions(self.dispatcher, self.runtime.submit)
        self.told: list[tuple[str, str]] = []
        self.errors: list[JMSException] = []
        self.then: list[Any] = []
        self.messages = [TextMessage(str(n)) for n in range(number)]
        self.entries = []
        for message in self.messages:
            entry = self.completions.entry(Listener(self.told, self.errors), self.then.append)
            self.completions.add(entry, message)
            self.entries.append(entry)


def test_answers_out_of_order_are_reported_in_the_order_of_the_sends() -> None:
    """S74."""
    sends = Sends()
    sends.entries[2].answered(None)
    sends.entries[1].answered(JMSException("no"))
    sends.dispatcher.run()
    assert sends.told == []
    sends.entries[0].answered(None)
    sends.dispatcher.run()
    assert sends.told == [("completed", "0"), ("failed", "1"), ("completed", "2")]


def test_a_second_answer_is_ignored() -> None:
    """A time-out of close and a late outcome may race."""
    sends = Sends(1)
    sends.entries[0].answered(JMSException("closed"))
    sends.entries[0].answered(None)
    sends.dispatcher.run()
    assert sends.told == [("failed", "0")]
    assert len(sends.then) == 1


def test_the_message_is_locked_until_just_before_its_listener_runs() -> None:
    """S73."""
    sends = Sends(1)
    with pytest.raises(MessageNotWriteableException):
        sends.messages[0].text = "x"
    sends.entries[0].answered(None)
    with pytest.raises(MessageNotWriteableException):
        sends.messages[0].text = "x"
    sends.dispatcher.run()
    sends.messages[0].text = "x"


def test_an_error_of_another_kind_reaches_the_listener_as_a_jms_error_with_its_cause() -> None:
    """S129."""
    sends = Sends(1)
    sends.entries[0].answered(ValueError("odd"))
    sends.dispatcher.run()
    (error,) = sends.errors
    assert isinstance(error, JMSException)
    assert "odd" in str(error)


def test_finish_waits_until_all_are_answered() -> None:
    """S74."""
    sends = Sends(2)
    runtime = sends.runtime
    runtime.meanwhile.append(lambda: [entry.answered(None) for entry in sends.entries])
    runtime.run(sends.completions.finish(Deadline(5)))
    assert sends.told == [("completed", "0"), ("completed", "1")]
    assert len(runtime.waits) == 1


def test_finish_fails_the_rest_after_its_time_in_order() -> None:
    """S74."""
    sends = Sends(3)
    runtime = sends.runtime
    runtime.meanwhile.append(lambda: sends.entries[1].answered(None))
    runtime.run(sends.completions.finish(Deadline(0.01)))
    sends.dispatcher.run()  # the close of the dispatcher waits for them, also after the time
    assert sends.told == [("failed", "0"), ("completed", "1"), ("failed", "2")]


def test_finish_without_sends_waits_for_nothing() -> None:
    sends = Sends(0)
    sends.runtime.run(sends.completions.finish(Deadline(5)))
    assert sends.runtime.waits == []


def test_only_the_loop_gives_sends_up() -> None:
    """S74: the loop may take an answer at the same moment. A listener was told that the broker has a message without an
    answer, because the thread of the close had just taken the send before it.
    """
    sends = Sends(2)
    steps = sends.completions.finish(Deadline(0.01))
    next(steps)
    given_up, _ = steps.send(False)
    assert [entry.over for entry in sends.entries] == [False, False]
    sends.runtime.turn()
    assert given_up.done
    sends.runtime.run(steps)
    assert sends.told == [("failed", "0"), ("failed", "1")]


def test_a_lost_connection_fails_them_in_order() -> None:
    """S128."""
    sends = Sends()
    for entry in reversed(sends.entries):
        entry.answered(ConnectionLostException("gone"))
    sends.dispatcher.run()
    assert sends.told == [("failed", "0"), ("failed", "1"), ("failed", "2")]
    assert len({id(error) for error in sends.errors}) == 3
