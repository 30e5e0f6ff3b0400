"""A listener on several messages at a time: groups keep their order, modes that acknowledge together are refused."""

from __future__ import annotations

import pytest
from core_fakes import Bench, FakeDispatcher

from pyjmsack.core.listening import Workers
from pyjmsack.errors import IllegalStateException
from pyjmsack.message import Message


def message(group: str | None = None) -> Message:
    made = Message()
    made._group_id = group
    return made


def lanes(number: int) -> tuple[Workers, list[FakeDispatcher]]:
    dispatchers = [FakeDispatcher() for _ in range(number)]
    return Workers(dispatchers), dispatchers


def test_messages_without_a_group_take_the_emptiest_lane_and_no_more_are_out_than_there_are_lanes() -> None:
    shared, dispatchers = lanes(3)
    first, second, third = message(), message(), message()
    assert [shared.enter(m) for m in (first, second, third)] == dispatchers
    assert shared.full
    shared.leave(second)
    assert not shared.full
    assert shared.enter(message()) is dispatchers[1]


def test_a_group_waits_behind_its_own_earlier_message() -> None:
    shared, dispatchers = lanes(3)
    red, blue, red_again = message("red"), message("blue"), message("red")
    assert shared.enter(red) is dispatchers[0]
    assert shared.enter(blue) is dispatchers[1]
    assert shared.enter(red_again) is dispatchers[0]
    shared.leave(red)
    shared.leave(red_again)
    assert shared.enter(message()) is dispatchers[0]
    assert shared.enter(message("red")) is dispatchers[2]  # nothing of it is out: any lane will do


@pytest.mark.parametrize("mode", [0, 2])
def test_modes_that_acknowledge_together_allow_one_message_at_a_time(mode: int) -> None:
    bench = Bench()
    consumer = bench.consumer(bench.session(mode))
    with pytest.raises(IllegalStateException, match="acknowledges messages together"):
        consumer.set_listener(lambda message: None, 2)
    consumer.set_listener(lambda message: None, 1)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5])
def test_a_concurrency_that_is_no_number_of_messages_is_refused(wrong: int) -> None:
    consumer = Bench().consumer()
    with pytest.raises(ValueError, match="at least 1"):
        consumer.set_listener(lambda message: None, wrong)


def test_a_consumer_hands_out_no_more_than_its_lanes_hold() -> None:
    bench = Bench()
    consumer = bench.consumer()
    consumer.set_listener(lambda message: None, 2)
    bench.arrive(consumer, *"abc")
    out = []
    for _ in range(2):
        call = consumer.listening.begin()
        assert call is not None
        out.append(call)
    assert consumer.listening.begin() is None
    consumer.listening.leave(out[0])
    assert consumer.listening.begin() is not None
