"""Redeliveries wait as their policy says (S115, S116), on a virtual clock."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.runtime import Later
from pyjmsack.errors import ConnectionLostException
from pyjmsack.types import Outcome

DELAYS = ("jms.redeliveryPolicy.initialRedeliveryDelay=1000", "jms.redeliveryPolicy.redeliveryDelay=3000")
OVERTAKE = "jms.nonBlockingRedelivery=true"


def next_of(consumer: Consumer) -> str | None:
    message = consumer.receiving.receive_now()
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
    bench.fail("a", redeliveries)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=redeliveries))
    assert next_of(consumer) is None
    assert delays(bench) == [wait]
    bench.runtime.fire()
    assert next_of(consumer) == "a"


GROWING = "jms.redeliveryPolicy.useExponentialBackOff=true"
LADDERS = {
    "initial delay, then delay": (DELAYS, [1, 3, 3, 3, 3]),
    "no initial delay": (("jms.redeliveryPolicy.redeliveryDelay=500",), [0, 0.5, 0.5, 0.5, 0.5]),
    "back-off off, whatever the multiplier": ((*DELAYS, "jms.redeliveryPolicy.backOffMultiplier=2"), [1, 3, 3, 3, 3]),
    "the worked case of ActiveMQ": (
        ("jms.redeliveryPolicy.redeliveryDelay=500", GROWING, "jms.redeliveryPolicy.backOffMultiplier=2"),
        [0, 0.5, 1, 2, 4],
    ),
    "from the initial delay on": ((*DELAYS, GROWING, "jms.redeliveryPolicy.backOffMultiplier=2"), [1, 2, 4, 8, 16]),
    "the multiplier of ActiveMQ is 5": ((*DELAYS, GROWING), [1, 5, 25, 125, 625]),
    "with a cap": ((*DELAYS, GROWING, "jms.redeliveryPolicy.maximumRedeliveryDelay=30000"), [1, 5, 25, 30, 30]),
    "a cap below the delay is the delay": (
        (*DELAYS, GROWING, "jms.redeliveryPolicy.maximumRedeliveryDelay=10"),
        [1, 3, 3, 3, 3],
    ),
}


def climb(bench: Bench, rungs: int) -> list[float]:
    """Let a message come back so often; return how long each redelivery waited."""
    consumer = bench.consumer()
    waits = []
    for count in range(1, rungs + 1):
        bench.fail("a")
        bench.arrive(consumer, FakeInbound("a", redeliveries=count))
        if next_of(consumer) is None:
            waits += delays(bench)
            bench.runtime.fire()
            assert next_of(consumer) == "a"
        else:
            waits.append(0)
    return waits


@pytest.mark.option("jms.redeliveryPolicy.backOffMultiplier", "core")
@pytest.mark.option("jms.redeliveryPolicy.maximumRedeliveryDelay", "core")
@pytest.mark.option("jms.redeliveryPolicy.useExponentialBackOff", "core")
@pytest.mark.parametrize("overtake", [(), (OVERTAKE,)], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize(("options", "expected"), LADDERS.values(), ids=LADDERS)
def test_each_redelivery_waits_as_the_ladder_of_its_options_says_s115_s116(
    options: tuple[str, ...], expected: list[float], overtake: tuple[str, ...]
) -> None:
    assert climb(Bench(*options, *overtake), len(expected)) == expected


@pytest.mark.option("jms.redeliveryPolicy.collisionAvoidancePercent", "core")
@pytest.mark.option("jms.redeliveryPolicy.useCollisionAvoidance", "core")
@pytest.mark.parametrize(("given", "percent"), [((), 15), (("jms.redeliveryPolicy.collisionAvoidancePercent=50",), 50)])
def test_with_collision_avoidance_waits_differ_by_their_percentage_at_most_s115(
    given: tuple[str, ...], percent: int
) -> None:
    bench = Bench(*DELAYS, "jms.redeliveryPolicy.useCollisionAvoidance=true", *given)
    _, *waits = climb(bench, 60)
    assert len({*waits}) > 30
    assert all(3 * (1 - percent / 100) <= wait <= 3 * (1 + percent / 100) for wait in waits)
    assert min(waits) < 3 < max(waits), "up and down"


def test_later_messages_wait_behind_it_so_that_the_order_stays_s116() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1), "b")
    assert next_of(consumer) is None
    assert next_of(consumer) is None
    assert delays(bench) == [1.0]
    bench.runtime.fire()
    assert [next_of(consumer), next_of(consumer)] == ["a", "b"]


@pytest.mark.option("jms.nonBlockingRedelivery", "core")
def test_with_non_blocking_redelivery_later_messages_overtake_it_s116() -> None:
    bench = Bench(*DELAYS, OVERTAKE)
    bench.fail("a")
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
    bench.fail("a")
    session = bench.session()
    consumer = bench.consumer(session)
    consumer.set_listener(lambda message: None)
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert consumer.listening.begin() is None
    consumer.listening.unscheduled()
    calls = bench.runtime.dispatchers[f"pyjmsack-session-{session.info.id}-0"].calls
    before = len(calls)
    delays(bench)
    bench.runtime.fire()
    assert len(calls) == before + 1
    assert consumer.listening.begin() is not None


def test_a_message_past_its_limit_does_not_wait_for_its_end_s111() -> None:
    bench = Bench(*DELAYS, "jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.outcome=REJECTED")
    bench.fail("a", 2)
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=2), "b")
    assert next_of(consumer) == "b"
    assert bench.outcomes()[0] == ("a", Outcome.REJECTED)


@pytest.mark.parametrize("options", [DELAYS, (*DELAYS, OVERTAKE)], ids=["blocking", "overtaking"])
def test_what_waits_goes_back_to_the_broker_when_the_consumer_closes_s31(options: tuple[str, ...]) -> None:
    bench = Bench(*options)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert next_of(consumer) is None
    bench.run(consumer.close())
    assert bench.outcomes() == [("a", Outcome.RELEASED)]
    bench.runtime.fire()  # late: nothing happens
    assert consumer.stats.buffered == 0


def test_what_a_look_at_its_body_puts_back_need_not_wait_twice_s176() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert next_of(consumer) is None
    delays(bench)
    bench.runtime.fire()
    with pytest.raises(Exception, match="no body"):
        consumer.receiving.receive_now(bytes)
    assert next_of(consumer) == "a"


def test_a_pull_consumer_does_not_fetch_more_while_one_waits_s50() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a")
    consumer = bench.consumer(prefetch=0)
    bench.runtime.meanwhile.append(lambda: bench.arrive(consumer, FakeInbound("a", redeliveries=1)))
    bench.runtime.meanwhile.append(bench.runtime.fire)
    message = bench.run(consumer.receiving.receive(None))
    assert message is not None
    assert message.body == "a"
    assert bench.provider.names().count("pull") == 1


@pytest.mark.parametrize("overtake", [(), (OVERTAKE,)], ids=["blocking", "non-blocking"])
def test_ctrl_c_behind_the_wait_hands_a_message_out_once(
    overtake: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S116: what waits elsewhere is not put back into the buffer as well."""
    bench = Bench(*DELAYS, *overtake)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    holding = consumer.inbox.delays
    assert holding is not None
    must_wait = holding.must_wait

    def interrupted(inbound: FakeInbound) -> bool:
        must_wait(inbound)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(holding, "must_wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receiving.receive_now()
    bench.runtime.turn()
    bench.runtime.fire()
    assert [next_of(consumer), next_of(consumer)] == ["a", None]


@pytest.mark.parametrize("overtake", [(), (OVERTAKE,)], ids=["blocking", "non-blocking"])
def test_ctrl_c_before_the_timer_is_set_lets_nothing_wait_for_ever(
    overtake: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S116: the message waits when it is taken the next time."""
    bench = Bench(*DELAYS, *overtake)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(consumer.inbox.delays, "_call_later", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receiving.receive_now()
    assert next_of(consumer) is None
    assert delays(bench) == [1.0]
    bench.runtime.fire()
    assert [next_of(consumer), next_of(consumer)] == ["a", None]


GIVEN_BACK = ("jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.outcome=RELEASED")


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.MODIFIED_FAILED], ids=["released", "failed"])
@pytest.mark.parametrize(("options", "wait"), [((), 1.0), (DELAYS, 3.0)], ids=["no delays", "delays"])
def test_what_is_over_the_limit_waits_before_it_goes_back_and_others_overtake_it_s116(
    options: tuple[str, ...], wait: float, outcome: Outcome
) -> None:
    """It went back at once, and came again at once: 2,600 times a second from Artemis, 17,000 times over STOMP."""
    bench = Bench(GIVEN_BACK[0], f"jms.redeliveryPolicy.outcome={outcome.name}", *options)
    bench.fail("bad", 2)
    consumer = bench.consumer(prefetch=1)
    bench.arrive(consumer, FakeInbound("bad", redeliveries=2), "good")
    assert next_of(consumer) == "good"
    assert delays(bench) == [wait]
    assert ("bad", outcome) not in bench.outcomes()
    bench.runtime.fire()
    assert next_of(consumer) is None
    assert ("bad", outcome) in bench.outcomes()


@pytest.mark.parametrize("outcome", [Outcome.RELEASED, Outcome.MODIFIED_FAILED], ids=["released", "failed"])
def test_what_waits_over_the_limit_goes_back_with_its_outcome_if_the_consumer_ends_before_s112(
    outcome: Outcome,
) -> None:
    """Otherwise the broker would never count a delivery for consumers that live for less than a second."""
    bench = Bench(GIVEN_BACK[0], f"jms.redeliveryPolicy.outcome={outcome.name}")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("bad", redeliveries=2), "good", FakeInbound("unseen", redeliveries=2))
    assert next_of(consumer) == "good"
    bench.run(consumer.close())
    given_back = dict(bench.outcomes())
    assert (given_back["bad"], given_back["unseen"]) == (outcome, Outcome.RELEASED)


def test_what_is_over_the_limit_and_comes_again_waits_again() -> None:
    """Over STOMP the client itself keeps the message, so the very same one comes again (S118)."""
    bench = Bench(*GIVEN_BACK)
    consumer = bench.consumer()
    bad = FakeInbound("bad", redeliveries=2)
    for again in range(1, 4):
        bench.arrive(consumer, bad)
        assert next_of(consumer) is None
        assert delays(bench) == [1.0]
        bench.runtime.fire()
        assert next_of(consumer) is None
        assert bench.outcomes() == [("bad", Outcome.RELEASED)] * again
        bad.settled = bad.sent = False


@pytest.mark.parametrize("options", [(*DELAYS, OVERTAKE), GIVEN_BACK], ids=["non-blocking", "over the limit"])
def test_what_waits_aside_makes_room_for_the_next_message_s116(options: tuple[str, ...]) -> None:
    """With prefetch 1 nothing could overtake, because the waiting message used up the prefetch."""
    bench = Bench(*options)
    bench.fail("waits", 2)
    consumer = bench.consumer(prefetch=1)
    bench.arrive(consumer, FakeInbound("waits", redeliveries=2))
    bench.runtime.turn()
    asked = bench.provider.names().count("replenish")
    assert next_of(consumer) is None
    bench.runtime.turn()
    assert bench.provider.names().count("replenish") == asked + 1
    assert bench.provider.names().count("make_room") == 1
    assert consumer.buffered() == 0
    bench.run(consumer.close())
    assert ("waits", Outcome.RELEASED) in bench.outcomes()


def give_back(bench: Bench, consumer: Consumer, how: str) -> None:
    """End all waits of a consumer."""
    if how == "close":
        bench.run(consumer.close())
    elif how == "failover":
        consumer.interrupted()
    else:
        consumer.detached(ConnectionLostException("lost"))
    bench.runtime.turn()


@pytest.mark.parametrize("how", ["close", "failover", "lost"])
@pytest.mark.parametrize(
    "options", [DELAYS, (*DELAYS, OVERTAKE), GIVEN_BACK], ids=["blocking", "non-blocking", "limit"]
)
def test_a_message_whose_wait_ends_early_is_freed_and_leaves_no_timer(options: tuple[str, ...], how: str) -> None:
    """The timers kept whole messages for up to 24 days: with a bad network one more at each failover."""
    bench = Bench(*options)
    bench.fail("a", 2)
    consumer = bench.consumer()
    inbound = FakeInbound("a", redeliveries=2)
    bench.arrive(consumer, inbound)
    waiting = weakref.ref(inbound)
    del inbound
    assert next_of(consumer) is None
    assert len(delays(bench)) == 1
    give_back(bench, consumer, how)
    assert delays(bench) == []
    bench.provider.calls.clear()
    gc.collect()
    assert waiting() is None


def test_a_timer_of_an_earlier_wait_does_not_end_a_later_wait_of_the_same_message() -> None:
    """Over STOMP the client itself keeps the message, so the very same one comes again, perhaps with a longer delay."""
    bench = Bench(*DELAYS)
    bench.fail("a")
    session = bench.session(0)
    consumer = bench.consumer(session)
    waiting = FakeInbound("a", redeliveries=1)
    bench.arrive(consumer, waiting)
    assert next_of(consumer) is None
    bench.runtime.turn()
    (_, early), *_ = bench.runtime.timers
    consumer.interrupted()
    waiting.redeliveries = 2
    bench.arrive(consumer, waiting)
    assert next_of(consumer) is None
    assert delays(bench) == [3.0]
    early()
    assert next_of(consumer) is None
    bench.runtime.fire()
    assert next_of(consumer) == "a"


@pytest.mark.parametrize("options", [DELAYS, (*DELAYS, OVERTAKE)], ids=["blocking", "non-blocking"])
def test_a_wait_that_begins_while_another_thread_ends_all_waits_leaves_no_timer(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(*options)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    call_later = bench.runtime.call_later

    def meanwhile(delay: float, callback: Callable[[], None]) -> Later:
        consumer.interrupted()
        return call_later(delay, callback)

    monkeypatch.setattr(consumer.inbox.delays, "_call_later", meanwhile)
    assert next_of(consumer) is None
    assert delays(bench) == []
