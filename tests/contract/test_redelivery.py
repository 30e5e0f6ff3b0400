"""Delivery counts and the redelivery limit (S110-S114)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from contract.brokers import not_on
from contract.harness import Heard, Jms, counts, nothing, take, texts
from pyjmsack import AckMode, Message, aio

CLIENT, TRANSACTED = AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED
INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE

GiveBack = Callable[[aio.Session, Message], Awaitable[None]]


async def recover(session: aio.Session, message: Message) -> None:
    """Let the session deliver it again."""
    await session.recover()


async def roll_back(session: aio.Session, message: Message) -> None:
    """Let the broker deliver the transaction's messages again."""
    await session.rollback()


async def modify(session: aio.Session, message: Message) -> None:
    """Hand this one back as failed."""
    message.modify()


WAYS = pytest.mark.parametrize(
    ("mode", "give_back"), [(CLIENT, recover), (TRANSACTED, roll_back), (INDIVIDUAL, modify)]
)  # fmt: skip
STRICT = "jms.redeliveryPolicy.maxRedeliveries"
OUTCOME = "jms.redeliveryPolicy.outcome"


async def deliveries(session: aio.Session, consumer: aio.MessageConsumer, give_back: GiveBack) -> list[int]:
    """Give a message back until it does not come again; return the counts seen."""
    seen = []
    while (message := await consumer.receive(timeout=0)) is not None:
        seen.append(message.delivery_count)
        assert len(seen) <= 12
        await give_back(session, message)
    return seen


@WAYS
async def test_the_count_is_one_at_first_and_redelivered_means_more_than_one(
    jms: Jms, mode: AckMode, give_back: GiveBack
) -> None:
    """S110."""
    await jms.send("a")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    for count in (1, 2, 3):
        (message,) = await take(consumer, 1)
        assert (message.delivery_count, message.redelivered) == (count, count > 1)
        assert message.properties["JMSXDeliveryCount"] == count
        assert message.get_int_property("JMSXDeliveryCount") == count
        await give_back(session, message)


@WAYS
@pytest.mark.parametrize("limit", [0, 1, 2])
async def test_a_limit_of_n_allows_n_redeliveries_and_then_the_message_is_dead(
    jms: Jms, mode: AckMode, give_back: GiveBack, limit: int
) -> None:
    """S111, S112, S113."""
    await jms.send("a")
    session = await jms.session(mode, options={STRICT: limit, OUTCOME: "REJECTED"})
    consumer = await session.create_consumer(jms.queue)
    for count in range(1, limit + 2):
        (message,) = await take(consumer, 1)
        assert (message.body, message.delivery_count) == ("a", count)
        await give_back(session, message)
    await jms.send("next")
    (message,) = await take(consumer, 1)
    assert message.body == "next"
    message.acknowledge()
    if mode is TRANSACTED:
        await session.commit()
    await jms.left()
    await jms.dead("a")


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE, INDIVIDUAL])
async def test_a_message_on_which_the_listener_keeps_raising_ends_dead_and_the_next_is_delivered(
    jms: Jms, mode: AckMode
) -> None:
    """S18, S21, S111, S112."""
    heard = Heard[Message]()

    def listener(message: Message) -> None:
        heard(message)
        if message.body == "bad":
            raise RuntimeError("on purpose")
        message.acknowledge()

    session = await jms.session(mode, options={STRICT: 2, OUTCOME: 2})
    (await session.create_consumer(jms.queue_with("consumer.prefetchSize=1"))).message_listener = listener
    await jms.send("bad", "good")
    messages = await heard.take(4)
    assert counts([message for message in messages if message.body == "bad"]) == [1, 2, 3]
    await jms.dead("bad")
    await jms.left()
    assert heard.silent


async def test_each_message_is_judged_by_its_own_count(jms: Jms) -> None:
    """S112: a healthy message of the same range does not go along."""
    await jms.send("bad")
    session = await jms.session(TRANSACTED, options={STRICT: 1, OUTCOME: "REJECTED"})
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    await session.rollback()
    await jms.send("good")
    assert counts(await take(consumer, 2)) == [2, 1]
    await session.rollback()
    messages = await take(consumer, 1)
    assert (texts(messages), counts(messages)) == (["good"], [2])
    await session.commit()
    await jms.left()
    await jms.dead("bad")


@not_on("amqp-classic", "10: undeliverable-here means the dead-letter queue")
@not_on("stomp", "STOMP: no frame says that a message is undeliverable here")
async def test_beyond_the_limit_the_default_outcome_is_not_here_again(jms: Jms) -> None:
    """S111: another consumer may still have it (Artemis; S118)."""
    await jms.send("a", "b")
    session = await jms.session(CLIENT, options={STRICT: 0})
    consumer = await session.create_consumer(jms.queue)
    (message,) = await take(consumer, 1)
    await session.recover()
    assert texts(await take(consumer, 1)) == ["b"]
    await nothing(consumer)
    assert message.delivery_count == 1
    assert texts(await take(await jms.consumer(), 1)) == ["a"]


@pytest.mark.parametrize(("outcome", "left", "dead"), [("ACCEPTED", [], []), (1, [], []), ("REJECTED", [], ["a"])])
async def test_the_outcome_beyond_the_limit_is_chosen_by_name_or_number(
    jms: Jms, outcome: str | int, left: list[str], dead: list[str]
) -> None:
    """S112, jms.redeliveryPolicy.outcome."""
    await jms.send("a")
    session = await jms.session(CLIENT, options={STRICT: 0, OUTCOME: outcome})
    consumer = await session.create_consumer(jms.queue)
    assert await deliveries(session, consumer, recover) == [1]
    await jms.left(*left)
    await jms.dead(*dead)


@not_on("amqp-classic", "10: no limit of deliveries")
@not_on("stomp", "STOMP: no frame says that a delivery failed, so no broker counts to its limit")
async def test_without_a_limit_the_broker_decides(jms: Jms) -> None:
    """S114: ten deliveries at Artemis."""
    await jms.send("a")
    session = await jms.session(TRANSACTED)
    consumer = await session.create_consumer(jms.queue)
    assert await deliveries(session, consumer, roll_back) == [*range(1, 11)]
    await jms.dead("a")


async def test_what_was_only_prefetched_is_within_a_limit_of_0_s111_s31(jms: Jms) -> None:
    """Over STOMP on Classic 99 of 100 messages became dead letters at the next consumer, because Classic flags what a
    consumer had prefetched when it ended."""
    bodies = [str(number) for number in range(20)]
    await jms.send(*bodies)
    first = await jms.consumer(options={STRICT: 0})
    await take(first, 1)
    await first.close()
    second = await jms.consumer(options={STRICT: 0})
    assert texts(await take(second, 19)) == bodies[1:]
    await jms.left()


@pytest.mark.option("jms.redeliveryPolicy.initialRedeliveryDelay", "amqp", "stomp")
async def test_a_failing_listener_gets_its_message_again_after_its_delay_s115(jms: Jms) -> None:
    await jms.send("a", "b")
    consumer = await jms.consumer(options={"jms.redeliveryPolicy.initialRedeliveryDelay": 40})
    heard: Heard[tuple[str, int]] = Heard()

    def listener(message: Message) -> None:
        heard((message.body, message.delivery_count))
        if (message.body, message.delivery_count) == ("a", 1):
            raise ValueError("not now")

    consumer.message_listener = listener
    first, *others = await heard.take(3)
    assert first == ("a", 1)
    assert sorted(others) == [("a", 2), ("b", 1)]  # b was prefetched, and the broker gives a back behind it
    await jms.left()


@WAYS
async def test_a_message_waits_for_the_failures_of_its_own_connection_alone_s115(
    jms: Jms, mode: AckMode, give_back: GiveBack
) -> None:
    """A sender may write any delivery count into a message, so the count alone lets no message wait."""
    await jms.send("a")
    session = await jms.session(INDIVIDUAL)
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    message.modify()
    await session.close()
    hour = {f"jms.redeliveryPolicy.{name}edeliveryDelay": 3_600_000 for name in ("initialR", "r")}
    session = await jms.session(mode, options=hour)
    consumer = await session.create_consumer(jms.queue)
    (message,) = await take(consumer, 1)
    await give_back(session, message)
    await nothing(consumer)
    await session.close()
    await jms.left("a")


@not_on("stomp-artemis", "S116: a second subscription could end the connection")
@pytest.mark.parametrize(
    "options",
    [
        {"jms.nonBlockingRedelivery": "true", "jms.redeliveryPolicy.initialRedeliveryDelay": 60_000},
        {STRICT: 0, OUTCOME: "RELEASED"},
    ],
    ids=["non-blocking", "over the limit"],
)
async def test_others_overtake_a_message_that_waits_also_with_prefetch_1_s116(
    jms: Jms, options: dict[str, object]
) -> None:
    """Over STOMP the message filled the window: the broker sent the consumer nothing else while the message waited."""
    await jms.send("waits", "b", "c")
    consumer = await jms.consumer(options={**options, "jms.prefetchPolicy.all": 1})
    heard: Heard[object] = Heard()

    def listener(message: Message) -> None:
        heard(message.body)
        if message.body == "waits":
            raise ValueError("not now")

    consumer.message_listener = listener
    assert await heard.take(3) == ["waits", "b", "c"]
    await consumer.close()
    await jms.left("waits")


@pytest.mark.option("jms.redeliveryPolicy.maxRedeliveries", "amqp", "stomp")
@pytest.mark.option("jms.redeliveryPolicy.outcome", "amqp", "stomp")
@pytest.mark.option("jms.redeliveryPolicy.redeliveryDelay", "amqp", "stomp")
async def test_a_poison_message_is_delivered_once_and_n_times_more_and_is_then_dead_s111_s112(jms: Jms) -> None:
    """S117: also across a restart of the consumer, where the broker counts; Classic begins anew then (facts, 10)."""
    await jms.send("poison")
    options = {"jms.redeliveryPolicy.maxRedeliveries": 3, "jms.redeliveryPolicy.outcome": "REJECTED"}
    delay = "jms.redeliveryPolicy.redeliveryDelay"
    heard: Heard[int] = Heard()

    def listener(message: Message) -> None:
        heard(message.delivery_count)
        raise ValueError("never")

    first = await jms.consumer(options={**options, delay: 60_000})  # it is closed before the third delivery
    first.message_listener = listener
    assert await heard.take(2) == [1, 2]
    await first.close()
    second = await jms.consumer(options={**options, delay: 10})
    second.message_listener = listener
    rest = [await heard.next()]
    while rest[-1] < 4:
        rest.append(await heard.next())
    assert rest == ([3, 4] if jms.ways.keeps_counts else [*range(*jms.ways.counted(2), 5)])
    await jms.dead("poison")
    assert heard.silent
