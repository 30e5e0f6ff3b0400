"""The parts of a receiving link, each alone: how much credit is due, and how a drain goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from pyjmsack.providers.amqp.caution import Caution, Single
from pyjmsack.providers.amqp.credit import Credit
from pyjmsack.providers.amqp.drains import Drains
from pyjmsack.providers.amqp.owed import Owed
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer


class Timers:
    """A connector that has timers and no clock: a test calls what is due."""

    def __init__(self) -> None:
        self.running: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Start a timer."""
        entry = (delay, callback)
        self.running.append(entry)
        return cast(Timer, _Timer(lambda: self.running.remove(entry) if entry in self.running else None))

    def fire(self, delay: float) -> None:
        """Let the timer of so many seconds run out."""
        entry = next(entry for entry in self.running if entry[0] == delay)
        self.running.remove(entry)
        entry[1]()

    @property
    def delays(self) -> list[float]:
        """The seconds of all timers that run."""
        return [delay for delay, _ in self.running]


class _Timer:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel


class Link:
    """What a receiver does when the drains ask for it."""

    def __init__(self, timeout: float | None = None) -> None:
        self.timers = Timers()
        self.done: list[str] = []
        self.arrived = 0
        self.drains = Drains(
            cast(Connector, self.timers),
            timeout,
            repeat=self.repeat,
            ask_again=self.ask_again,
            overdue=lambda: self.done.append("overdue"),
            progress=lambda: self.arrived,
            owed=Owed(),
        )

    def begin(self) -> None:
        """Begin a drain for one caller."""
        self.drains.waiting.append(Completion())
        self.drains.begin(1)

    def repeat(self) -> None:
        """Send the drain again."""
        self.done.append("repeat")
        self.drains.repeated()

    def ask_again(self) -> None:
        """Ask for the drain again, with its credit."""
        self.drains.asked_again()
        self.repeat()


def credit_of(prefetch: int, single: Single = Single.NO) -> Credit:
    """Return the credit of a link without messages."""
    return Credit(prefetch, Caution(single, "q", returns=True, buffered=lambda: 0))


@pytest.mark.parametrize(
    ("credit", "buffered", "due"),
    [(0, 0, 100), (50, 0, 50), (51, 0, 0), (0, 70, 30), (0, 71, 0), (50, 20, 30), (50, 21, 0), (-5, 0, 105)],
)
def test_credit_is_due_when_half_the_window_is_used_and_the_inbox_has_room(
    credit: int, buffered: int, due: int
) -> None:
    """What the link has and what waits for the caller then fill the window together."""
    assert credit_of(100).due(credit, buffered) == due


@pytest.mark.parametrize(
    ("credit", "buffered", "due"), [(901, 0, 0), (900, 0, 100), (800, 100, 100), (800, 101, 0), (0, 0, 1000)]
)
def test_credit_is_due_when_half_a_page_of_the_broker_is_used(credit: int, buffered: int, due: int) -> None:
    """S53: Classic sends 200 messages that nobody has acknowledged, and waits for credit or for 30 seconds."""
    window = Credit(1000, Caution(Single.NO, "q", returns=True, buffered=lambda: 0), 200)
    assert window.due(credit, buffered) == due


@pytest.mark.parametrize(("credit", "buffered", "due"), [(0, 0, 1), (1, 0, 0), (-2, 9, 3), (0, 10, 0)])
def test_a_careful_link_gets_credit_for_one_message(credit: int, buffered: int, due: int) -> None:
    """Credit below 0, for messages that nobody asked for, is made good."""
    assert credit_of(10, Single.ALWAYS).due(credit, buffered) == due


def test_a_drain_is_repeated_after_longer_and_longer_times() -> None:
    """The time has an upper limit, and begins anew with the next drain."""
    link = Link()
    link.begin()
    for delay in (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        assert link.timers.delays == [delay]
        link.timers.fire(delay)
    assert link.done == ["repeat"] * 7
    link.drains.end(by_message=False)
    assert link.timers.delays == []
    link.begin()
    assert link.timers.delays == [0.05]


def test_two_answers_are_doubted_after_a_message_ended_a_drain() -> None:
    """The third is believed. A drain during which a message arrived believes its first answer."""
    link = Link()
    link.begin()
    link.drains.end(by_message=True)
    link.begin()
    for _ in range(2):
        assert link.drains.doubt_answer()
        assert link.drains.pausing
        assert link.timers.delays == [0.005]
        link.timers.fire(0.005)
        assert not link.drains.pausing
        assert link.timers.delays == [0.1]
    assert not link.drains.doubt_answer()
    link.drains.end(by_message=True)
    link.begin()
    link.drains.arrived = 1
    assert not link.drains.doubt_answer()


def test_the_time_limit_of_a_drain_includes_its_wait_for_the_disk() -> None:
    """One timer runs from the first request to the end of the drain."""
    link = Link(timeout=60.0)
    done: Completion[None] = Completion()
    link.drains.postpone(done)
    link.begin()
    assert link.timers.delays == [60.0, 0.05]
    assert link.drains.take_postponed() == [done]
    assert link.timers.delays == [60.0, 0.05]
    link.timers.fire(60.0)
    assert link.done == ["overdue"]


def test_the_time_limit_ends_with_the_wait_for_the_disk_if_no_drain_is_under_way() -> None:
    """The postponed drain that begins then has the whole time."""
    link = Link(timeout=60.0)
    link.drains.postpone(Completion())
    link.drains.take_postponed()
    assert link.timers.delays == []


def test_a_drain_on_a_slow_link_is_not_overdue_while_something_arrives_s50() -> None:
    """The time limit is for a broker that is silent. A large message may take longer on a slow network."""
    link = Link(timeout=60.0)
    link.begin()
    for _ in range(3):
        link.arrived += 1
        link.timers.fire(60.0)
    assert "overdue" not in link.done
    link.timers.fire(60.0)
    assert link.done[-1] == "overdue"


def test_a_broker_that_sends_a_few_bytes_from_time_to_time_does_not_keep_a_drain_for_ever_s50() -> None:
    link = Link(timeout=60.0)
    link.begin()
    for _ in range(10):
        assert "overdue" not in link.done
        link.arrived += 1
        link.timers.fire(60.0)
    assert link.done[-1] == "overdue"
    assert 60.0 not in link.timers.delays
