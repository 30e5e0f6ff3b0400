"""Handing out by priority (``jms.localMessagePriority``)."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.inbox import PriorityInbox
from pyjmsack.types import Outcome

BY_PRIORITY = "jms.localMessagePriority=true"
VERBS = st.sampled_from(["append", "appendleft", "extend", "extendleft", "popleft", "clear"])


def messages(*named: str) -> list[FakeInbound]:
    """Return messages called ``b9``, with their priority behind the name."""
    return [FakeInbound(name, priority=int(name[-1])) for name in named]


def names(consumer: Consumer, number: int = 99) -> list[str]:
    """Take messages until there is none."""
    found: list[str] = []
    while len(found) < number and (message := consumer.receiving.receive_now()) is not None:
        found.append(message.text)
    return found


@given(st.lists(st.tuples(VERBS, st.lists(st.integers(0, 9), min_size=1, max_size=4))))
def test_each_priority_is_a_deque_and_the_highest_is_taken_first(steps: list[tuple[str, list[int]]]) -> None:
    inbox: Any = PriorityInbox()
    lanes: list[deque[FakeInbound]] = [deque() for _ in range(10)]
    for verb, priorities in steps:
        given = [FakeInbound("m", priority=priority) for priority in priorities]
        if verb == "popleft":
            full = [lane for lane in lanes if lane]
            if full:
                assert inbox.popleft() is full[-1].popleft()
            else:
                with pytest.raises(IndexError):
                    inbox.popleft()
        elif verb == "clear":
            inbox.clear()
            lanes = [deque() for _ in range(10)]
        else:
            getattr(inbox, verb)(given if verb.startswith("extend") else given[0])
            for inbound in given if verb.startswith("extend") else given[:1]:
                (lanes[inbound.priority].appendleft if "left" in verb else lanes[inbound.priority].append)(inbound)
        assert len(inbox) == sum(map(len, lanes))
        assert bool(inbox) is any(lanes)


def test_what_one_thread_appends_another_takes_once_and_in_order_within_a_priority() -> None:
    inbox: Any = PriorityInbox()
    sent = [FakeInbound(str(number), priority=number % 10) for number in range(5000)]
    appending = threading.Thread(target=lambda: [inbox.append(inbound) for inbound in sent])
    taken: list[FakeInbound] = []
    appending.start()
    while appending.is_alive() or inbox:
        if inbox:
            taken.append(inbox.popleft())
    appending.join()
    assert sorted(map(id, taken)) == sorted(map(id, sent))
    for priority in range(10):
        numbers = [int(inbound.name) for inbound in taken if inbound.priority == priority]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("options", "order"), [((BY_PRIORITY,), ["b9", "d9", "a4", "e4", "c0"]), ((), ["a4", "b9", "c0", "d9", "e4"])]
)
def test_what_is_buffered_is_handed_out_by_priority_if_that_is_wanted(
    options: tuple[str, ...], order: list[str]
) -> None:
    bench = Bench(*options)
    consumer = bench.consumer()
    bench.arrive(consumer, *messages("a4", "b9", "c0", "d9", "e4"))
    assert consumer.stats.buffered == 5
    assert names(consumer) == order


def test_what_comes_again_is_first_within_its_priority_s32() -> None:
    bench = Bench(BY_PRIORITY)
    session = bench.session(2)
    consumer = bench.consumer(session)
    bench.arrive(consumer, *messages("a4", "b4", "c4", "d0"))
    assert names(consumer, 2) == ["a4", "b4"]
    session.recover()
    bench.arrive(consumer, *messages("e9"))
    assert names(consumer) == ["e9", "a4", "b4", "c4", "d0"]
    session.acknowledge()
    assert sorted(bench.outcomes()) == [(name, Outcome.ACCEPTED) for name in ("a4", "b4", "c4", "d0", "e9")]


def test_closing_hands_back_all_that_was_buffered_s31() -> None:
    bench = Bench(BY_PRIORITY)
    consumer = bench.consumer()
    bench.arrive(consumer, *messages("a0", "b9"))
    bench.run(consumer.close())
    assert sorted(bench.outcomes()) == [("a0", Outcome.RELEASED), ("b9", Outcome.RELEASED)]


def test_while_a_redelivered_message_waits_nobody_overtakes_it_s116() -> None:
    bench = Bench(BY_PRIORITY, "jms.redeliveryPolicy.initialRedeliveryDelay=100")
    bench.fail("a0")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a0", redeliveries=1, priority=0))
    assert names(consumer) == []
    bench.arrive(consumer, *messages("b9"))
    assert names(consumer) == []
    bench.runtime.fire()
    assert names(consumer) == ["b9", "a0"]


def test_a_browser_keeps_the_order_of_the_queue_s134() -> None:
    bench = Bench(BY_PRIORITY)
    session = bench.session()
    browser = bench.run(session.create_consumer(bench.consumer(session).info.destination, None, browser=True))
    bench.arrive(browser, *messages("a0", "b9"))
    assert names(browser) == ["a0", "b9"]
