"""Only the failures that this connection saw let a message wait (S115). A sender may write any delivery count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core import redelivery
from pyjmsack.core.consumer import Consumer
from pyjmsack.destination import Topic
from pyjmsack.errors import JMSException, TransactionRolledBackException
from pyjmsack.spi.resources import ConsumerInfo, Subscription
from pyjmsack.types import AckMode, Outcome

DELAYS = (
    "jms.redeliveryPolicy.initialRedeliveryDelay=1000",
    "jms.redeliveryPolicy.redeliveryDelay=3000",
    "jms.redeliveryPolicy.useExponentialBackOff=true",
)
OVERTAKE = "jms.nonBlockingRedelivery=true"
FORGED = 50


def take(bench: Bench) -> str:
    """Take the next message of a consumer of the queue, and return its body with its wait in seconds."""
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    return waits_of(bench, consumer)


def waits_of(bench: Bench, consumer: Consumer) -> str:
    found = ""
    while (message := consumer.receiving.receive_now()) is None and bench.runtime.timers:
        bench.runtime.turn()
        found += f"{bench.runtime.timers[0][0]:g} s "
        bench.runtime.fire()
    return found + ("nothing" if message is None else message.body)


@pytest.mark.parametrize("overtake", [(), (OVERTAKE,)], ids=["blocking", "non-blocking"])
def test_a_delivery_count_that_a_sender_wrote_lets_no_message_wait_s115(overtake: tuple[str, ...]) -> None:
    """One message that was never delivered before stopped a consumer for 24 days."""
    bench = Bench(*DELAYS, *overtake)
    bench.fail("another")
    consumer = bench.consumer()
    bench.arrive(consumer, "a", FakeInbound("forged", redeliveries=FORGED), "b")
    assert [waits_of(bench, consumer) for _ in range(3)] == ["a", "forged", "b"]
    assert bench.runtime.timers == []


def test_a_wait_is_as_long_as_the_failures_that_this_connection_saw_s115() -> None:
    bench = Bench(*DELAYS)
    consumer = bench.consumer()
    for wait in ("1 s a", "5 s a", "25 s a"):
        bench.fail("a")
        bench.arrive(consumer, FakeInbound("a", redeliveries=FORGED))
        assert waits_of(bench, consumer) == wait


def test_each_failure_lets_one_delivery_wait_whatever_ids_a_sender_uses_again_s115() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a", 3)
    consumer = bench.consumer()
    bench.arrive(consumer, *(FakeInbound("a", redeliveries=FORGED) for _ in range(5)))
    assert [waits_of(bench, consumer) for _ in range(5)] == ["25 s a", "25 s a", "25 s a", "a", "a"]


def failed_in_turn(bench: Bench, *inbounds: FakeInbound) -> list[str]:
    """Let each message fail as soon as it is handed out, and return their waits."""
    consumer = bench.consumer(bench.session(AckMode.INDIVIDUAL_ACKNOWLEDGE))
    bench.arrive(consumer, *inbounds)
    waits = []
    for inbound in inbounds:
        found = ""
        while (message := consumer.receiving.receive_now()) is None:
            bench.runtime.turn()
            found += f"{bench.runtime.timers[0][0]:g} s"
            bench.runtime.fire()
        assert message.body == inbound.name
        consumer.settle_one(message, Outcome.MODIFIED_FAILED)
        waits.append(found)
    return waits


def test_messages_that_share_an_id_and_a_delivery_count_count_as_two_failures_at_most_s115() -> None:
    """Each of 25 messages failed once, and the messages behind them waited for hours."""
    bench = Bench(*DELAYS)
    forged = [FakeInbound("x", redeliveries=FORGED) for _ in range(25)]
    assert failed_in_turn(bench, *forged) == ["", "1 s", *["5 s"] * 23]


def test_messages_that_share_an_id_wait_also_if_the_first_delay_is_0_s115() -> None:
    """A sender who knows the id of another message must not let that message be delivered without a wait."""
    bench = Bench("jms.redeliveryPolicy.redeliveryDelay=1000")
    forged, poison = FakeInbound("x", redeliveries=FORGED), [FakeInbound("x", redeliveries=n) for n in range(2, 5)]
    assert failed_in_turn(bench, forged, *poison) == ["", "", "1 s", "1 s"]


def test_a_message_of_which_the_broker_forgot_the_count_waits_as_long_as_before_s115() -> None:
    """Classic counts anew for a new consumer."""
    bench = Bench(*DELAYS)
    again = [FakeInbound("a", redeliveries=count) for count in range(4)]
    assert failed_in_turn(bench, *again) == ["", "1 s", "5 s", "25 s"]
    anew = [FakeInbound("a", redeliveries=count) for count in range(5)]
    assert failed_in_turn(bench, *anew) == ["", "1 s", "5 s", "25 s", "125 s"]


def test_failures_without_an_id_let_as_many_deliveries_wait_as_if_they_had_failed_twice_at_most_s115() -> None:
    bench = Bench(*DELAYS)
    bench.fail("", 3)
    consumer = bench.consumer()
    bench.arrive(consumer, *(FakeInbound("", redeliveries=FORGED) for _ in range(5)))
    assert [waits_of(bench, consumer) for _ in range(5)] == ["5 s ", "5 s ", "5 s ", "", ""]


def test_a_poison_without_an_id_waits_also_if_the_first_delay_is_0_s115() -> None:
    """It was delivered 7,592 times in 6 s."""
    bench = Bench("jms.redeliveryPolicy.redeliveryDelay=1000")
    consumer = bench.consumer()
    for count, wait in enumerate(["", "1 s ", "1 s "], 1):
        bench.fail("")
        bench.arrive(consumer, FakeInbound("", redeliveries=count))
        assert waits_of(bench, consumer) == wait


def test_subscribers_of_a_shared_subscription_know_the_failures_of_each_other_s115() -> None:
    """Each has a number of its own, so a message failed once at each of them without a wait."""
    first, second = (
        ConsumerInfo(number, 1, Topic("t"), 1, subscription=Subscription("s", True, True, number)) for number in (1, 2)
    )
    assert first.source == second.source
    assert first.source != ConsumerInfo(3, 1, Topic("t"), 1, subscription=Subscription("s", False, True)).source
    assert ConsumerInfo(4, 1, Topic("t"), 1).source != first.source


def test_a_message_that_nobody_can_count_waits_for_failures_that_may_be_its_own_s115() -> None:
    """A large message without an id on Artemis over AMQP."""
    bench = Bench(*DELAYS)
    inbounds = [FakeInbound("") for _ in range(4)]
    for inbound, likely in zip(inbounds, (0, 1, 2, 2), strict=True):
        inbound.likely_failures = likely
    assert failed_in_turn(bench, *inbounds) == ["", "1 s", "5 s", "5 s"]


def test_a_failure_of_another_queue_lets_nothing_wait_s115() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a")
    other = bench.run(bench.session().create_consumer(type(bench.consumer().info.destination)("other"), None))
    bench.arrive(other, FakeInbound("a", redeliveries=1))
    assert waits_of(bench, other) == "a"


def modified(bench: Bench, outcome: Outcome = Outcome.MODIFIED_FAILED) -> None:
    consumer = bench.consumer(bench.session(AckMode.INDIVIDUAL_ACKNOWLEDGE))
    bench.arrive(consumer, "a")
    message = consumer.receiving.receive_now()
    assert message is not None
    consumer.settle_one(message, outcome)


def listener_raised(bench: Bench, mode: AckMode) -> None:
    consumer = bench.consumer(bench.session(mode))
    consumer.set_listener(lambda message: None)
    bench.arrive(consumer, "a")
    call = consumer.listening.begin()
    assert call is not None
    consumer.listening.end(call.message, ValueError("not now"))


def session_over(bench: Bench, mode: AckMode, end: str) -> None:
    session = bench.session(mode)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    bench.run(getattr(session, end)())


def recovered(bench: Bench) -> None:
    session = bench.session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    session.recover()
    bench.run(consumer.close())


def all_modified(bench: Bench) -> None:
    session = bench.session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    session.acknowledge(Outcome.MODIFIED_FAILED)


def not_transformed(bench: Bench) -> None:
    def transform(message: object) -> None:
        raise ValueError("not now")

    consumer = bench.consumer()
    bench.connection.channel.transforms.received = transform  # type: ignore[assignment]
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is None
    bench.connection.channel.transforms.received = None


def commit_refused(bench: Bench) -> None:
    session = bench.session(AckMode.SESSION_TRANSACTED)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    bench.provider.failing["commit"] = JMSException("not now")
    with pytest.raises(TransactionRolledBackException):
        bench.run(session.commit())


def commit_refused_in_a_close(bench: Bench) -> None:
    """Another thread closes the session while the broker is asked. The broker refuses the commit before it answers the
    rollback of the close."""
    session = bench.session(AckMode.SESSION_TRANSACTED)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    bench.provider.hold("commit", "rollback")

    def close() -> None:
        steps = session.close()
        wait = next(steps)
        bench.runtime.turn()
        while not bench.provider.held["rollback"]:
            wait = steps.send(wait[0].done)
            bench.runtime.turn()
        bench.provider.held["commit"][0].fail(TransactionRolledBackException("refused"))
        bench.runtime.turn()

    bench.runtime.meanwhile.append(close)
    with pytest.raises(TransactionRolledBackException):
        bench.run(session.commit())


WAYS: dict[str, Callable[[Bench], None]] = {
    "modified": modified,
    "undeliverable here": lambda bench: modified(bench, Outcome.MODIFIED_FAILED_UNDELIVERABLE),
    "all modified": all_modified,
    "raised, automatic": lambda bench: listener_raised(bench, AckMode.AUTO_ACKNOWLEDGE),
    "raised, individual": lambda bench: listener_raised(bench, AckMode.INDIVIDUAL_ACKNOWLEDGE),
    "not transformed": not_transformed,
    "rolled back": lambda bench: session_over(bench, AckMode.SESSION_TRANSACTED, "rollback"),
    "commit refused": commit_refused,
    "commit refused in a close": commit_refused_in_a_close,
    "closed in a transaction": lambda bench: session_over(bench, AckMode.SESSION_TRANSACTED, "close"),
    "closed unacknowledged": lambda bench: session_over(bench, AckMode.CLIENT_ACKNOWLEDGE, "close"),
    "recovered, then closed": recovered,
}


@pytest.mark.parametrize("fail", WAYS.values(), ids=WAYS)
def test_whatever_gives_a_message_back_as_failed_lets_its_next_delivery_wait_s115(
    fail: Callable[[Bench], None],
) -> None:
    bench = Bench(*DELAYS)
    fail(bench)
    bench.runtime.turn()
    bench.runtime.timers.clear()
    assert take(bench) == "1 s a"
    assert take(bench) == "a"


def test_a_message_that_nobody_got_has_not_failed_s115() -> None:
    bench = Bench(*DELAYS, "jms.redeliveryPolicy.maxRedeliveries=5", "jms.redeliveryPolicy.outcome=MODIFIED_FAILED")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", broken=True), FakeInbound("a", redeliveries=FORGED))
    assert consumer.receiving.receive_now() is None
    bench.run(consumer.close())
    assert dict(bench.outcomes()) == {"a": Outcome.MODIFIED_FAILED}
    bench.runtime.timers.clear()
    assert take(bench) == "a"


def test_a_failure_is_remembered_across_a_failover_and_a_wait_that_was_broken_off_begins_anew_s115() -> None:
    bench = Bench(*DELAYS)
    bench.fail("a")
    consumer = bench.consumer()
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert consumer.receiving.receive_now() is None
    consumer.interrupted()
    bench.runtime.turn()
    bench.arrive(consumer, FakeInbound("a", redeliveries=2))
    assert waits_of(bench, consumer) == "1 s a"


def test_a_connection_remembers_a_limited_number_of_failures_and_forgets_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redelivery, "_MOST_FAILED", 2)
    bench = Bench(*DELAYS)
    for name in ("a", "b", "a", "c"):
        bench.fail(name)
    consumer = bench.consumer()
    bench.arrive(consumer, *(FakeInbound(name, redeliveries=9) for name in "abc"))
    assert [waits_of(bench, consumer) for _ in range(3)] == ["5 s a", "b", "1 s c"]
