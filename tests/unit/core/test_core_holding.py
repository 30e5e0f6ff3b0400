"""Redeliveries wait as their policy says (S115, S116), on a virtual clock."""

from __future__ import annotations

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core.consumer import Consumer
from pyjmsack.types import Outcome

DELAYS = ("jms.redeliveryPolicy.initialRedeliveryDelay=1000", "jms.redeliveryPolicy.redeliveryDelay=3000")
OVERTAKE = "jms.nonBlockingRedelivery=true"


def next_of(consumer: Consumer) -> str | None:
    message = consumer.receive_now()
    return None if message is None else message.body


def delays(bench: Bench) -> list[float]:
    bench.runtime.turn()
    return [delay for delay, _ in bench.runtime.timers]


def test_a_first_delivery_does_not_wait() -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer()
    bench.arrive(consumer, "a")
    assert next_of(consumer) == "a"
    assert delays(bench) == []


@pytest.mark.parametrize(("redeliveries", "wait"), [(1, 1.0), (2, 3.0), (5, 3.0)])
def test_a_redelivery_waits_by_its_number_s115(redeliveries: int, wait: float) -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=redeliveries))
    assert next_of(consumer) is None
    assert delays(bench) == [wait]
    bench.runtime.fire()
    assert next_of(consumer) == "a"


def test_later_messages_wait_behind_it_so_that_the_order_stays_s116() -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1), "b")
    assert next_of(consumer) is None
    assert next_of(consumer) is None
    assert delays(bench) == [1.0]
    bench.runtime.fire()
    assert [next_of(consumer), next_of(consumer)] == ["a", "b"]


def test_with_non_blocking_redelivery_later_messages_overtake_it_s116() -> None:
    bench = Bench(*DELAYS, OVERTAKE)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1), "b")
    assert next_of(consumer) == "b"
    assert consumer.stats.buffered == 1
    bench.arrive(consumer, "c")
    delays(bench)
    bench.runtime.fire()
    assert [next_of(consumer), next_of(consumer)] == ["a", "c"]


def test_a_message_that_comes_again_waits_again_and_longer_s115() -> None:
    bench = Bench(*DELAYS)
    session = bench.session(2)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert next_of(consumer) == "a"
    for wait in (1.0, 3.0):
        session.recover()
        assert next_of(consumer) is None
        assert delays(bench) == [wait]
        bench.runtime.fire()
        assert next_of(consumer) == "a"


def test_a_listener_gets_it_when_its_time_has_come() -> None:
    bench = Bench(*DELAYS)
    session = bench.session()
    consumer = bench.consumer(session)
    consumer.set_listener(lambda message: None)
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert consumer.begin_dispatch() is None
    consumer.unscheduled()
    calls = bench.runtime.dispatchers[f"pyjmsack-session-{session.info.id}-0"].calls
    before = len(calls)
    delays(bench)
    bench.runtime.fire()
    assert len(calls) == before + 1
    assert consumer.begin_dispatch() is not None


def test_a_message_past_its_limit_does_not_wait_for_its_end_s111() -> None:
    bench = Bench(*DELAYS, "jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.outcome=REJECTED")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=2), "b")
    assert next_of(consumer) == "b"
    assert bench.outcomes()[0] == ("a", Outcome.REJECTED)


@pytest.mark.parametrize("options", [DELAYS, (*DELAYS, OVERTAKE)], ids=["blocking", "overtaking"])
def test_what_waits_goes_back_to_the_broker_when_the_consumer_closes_s31(options: tuple[str, ...]) -> None:
    bench = Bench(*options)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert next_of(consumer) is None
    bench.run(consumer.close())
    assert bench.outcomes() == [("a", Outcome.RELEASED)]
    bench.runtime.fire()  # late: nothing happens
    assert consumer.stats.buffered == 0


def test_what_a_look_at_its_body_puts_back_need_not_wait_twice_s176() -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert next_of(consumer) is None
    delays(bench)
    bench.runtime.fire()
    with pytest.raises(Exception, match="no body"):
        consumer.receive_now(bytes)
    assert next_of(consumer) == "a"


def test_a_pull_consumer_does_not_fetch_more_while_one_waits_s50() -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer(prefetch=0)
    bench.runtime.meanwhile.append(lambda: bench.arrive(consumer, FakeInbound("a", redeliveries=1)))
    bench.runtime.meanwhile.append(bench.runtime.fire)
    message = bench.run(consumer.receive(None))
    assert message is not None
    assert message.body == "a"
    assert bench.provider.names().count("pull") == 1
