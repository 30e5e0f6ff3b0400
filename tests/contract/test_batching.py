"""Acknowledgements sent together, listeners on several messages at a time, the end without loss; on real brokers."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from polling import eventually

from contract.brokers import only_on
from contract.harness import Gate, Heard, Jms, counts, nothing, take, texts
from pyjmsack import AckMode, IllegalStateException, Message

OPTIMIZE = {"jms.optimizeAcknowledge": True}


async def test_optimised_acknowledgements_arrive_when_the_batch_is_full_s40(jms: Jms) -> None:
    """Scenario 18: the seventh of ten makes 0.65 x prefetch; the last three come again when the line is cut."""
    await jms.send(*"abcdefghij")
    wire = jms.wire()
    session = await jms.session(url=wire.url, options=OPTIMIZE | {"jms.optimizeAcknowledgeTimeOut": 0})
    consumer = await session.create_consumer(jms.queue_with("consumer.prefetchSize=10"))
    assert texts(await take(consumer, 10)) == [*"abcdefghij"]
    assert (consumer.stats.acknowledged, consumer.stats.unacknowledged) == (7, 3)
    await nothing(consumer)  # the broker has answered: it has read the acknowledgements, which left before
    wire.cut()
    await jms.left(*"hij")


@pytest.mark.option("jms.optimizeAcknowledgeTimeOut", "amqp", "stomp")
async def test_optimised_acknowledgements_arrive_when_their_time_is_over_s41_s44(jms: Jms) -> None:
    await jms.send("a", "b")
    wire = jms.wire()
    session = await jms.session(url=wire.url, options=OPTIMIZE | {"jms.optimizeAcknowledgeTimeOut": 20})
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 2)
    await eventually(lambda: consumer.stats.acknowledged == 2)
    await nothing(consumer)
    wire.cut()
    await jms.left()


async def test_closing_sends_the_acknowledgements_that_wait_s43(jms: Jms) -> None:
    await jms.send("a", "b", "c")
    session = await jms.session(options=OPTIMIZE | {"jms.optimizeAcknowledgeTimeOut": 0})
    await take(await session.create_consumer(jms.queue), 2)
    await session.close()
    await jms.left("c")


async def test_a_pull_consumer_cannot_optimise_s10(jms: Jms) -> None:
    session = await jms.session(options=OPTIMIZE)
    with pytest.raises(IllegalStateException, match="prefetch 0"):
        await session.create_consumer(jms.queue_with("consumer.prefetchSize=0"))


async def test_a_drained_consumer_gives_back_uncounted_what_nobody_saw(jms: Jms) -> None:
    await jms.send(*"abc")
    consumer = await jms.consumer(AckMode.CLIENT_ACKNOWLEDGE)
    (first,) = await take(consumer, 1)
    assert await consumer.drain(5) is True
    assert await consumer.receive(timeout=None) is None
    assert [message async for message in consumer] == []
    first.acknowledge()
    assert counts(await jms.left("b", "c")) == jms.ways.counted(1, 1)


@only_on("amqp-artemis", "elsewhere nothing tells the client that the last message has arrived")
async def test_a_drained_consumer_hands_out_what_the_broker_has_forgotten_s36(jms: Jms) -> None:
    """In no-acknowledgement mode nothing can go back. No message that the broker still has is taken."""
    await jms.send(*map(str, range(20)))
    consumer = await jms.consumer(AckMode.NO_ACKNOWLEDGE, options={"jms.prefetchPolicy.all": 5})
    got = [message.body for message in await take(consumer, 1)]
    assert await consumer.drain(10) is True
    while (message := await consumer.receive(timeout=10)) is not None:
        got.append(message.body)
    await consumer.close()
    assert len(got) < 20
    assert got == [*map(str, range(len(got)))]
    await jms.left(*map(str, range(len(got), 20)))


async def test_draining_waits_for_the_listener_at_work(jms: Jms) -> None:
    await jms.send("a", "b")
    consumer = await jms.consumer()
    begun, go_on = Gate(), Gate()

    async def listener(message: Message) -> None:
        begun.open()
        await go_on.passed()

    consumer.message_listener = listener
    await begun.passed()
    assert await consumer.drain(0) is False
    go_on.open()
    assert await consumer.drain(10) is True
    await jms.left("b")


async def test_a_listener_works_on_several_messages_and_keeps_the_order_of_each_group(jms: Jms) -> None:
    groups = ["red", "blue", "green"]
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        for number in range(30):
            message = session.create_text_message(str(number))
            message.properties["JMSXGroupID"] = groups[number % 3]
            await producer.send(message)
    consumer = await jms.consumer(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    together, heard = Gate(), Heard[tuple[str, int]]()
    at_work: set[str] = set()

    async def listener(message: Message) -> None:
        group = message.properties["JMSXGroupID"]
        at_work.add(group)
        if len(at_work) == 3:
            together.open()
        await together.passed()  # three messages are out at the same time, or this fails
        heard((group, int(message.body)))
        message.acknowledge()

    consumer.set_message_listener(listener, concurrency=3)
    of_group = defaultdict(list)
    for group, number in await heard.take(30):
        of_group[group].append(number)
    assert of_group == {group: [*range(start, 30, 3)] for start, group in enumerate(groups)}
    await jms.left()


@pytest.mark.option("jms.rollbackOnListenerError", "amqp", "stomp")
async def test_a_raising_listener_may_roll_back_its_session_s20(jms: Jms) -> None:
    await jms.send("a", "b")
    session = await jms.session(AckMode.SESSION_TRANSACTED, options={"jms.rollbackOnListenerError": True})
    consumer = await session.create_consumer(jms.queue)
    heard = Heard[tuple[str, int]]()

    async def listener(message: Message) -> None:
        heard((message.body, message.delivery_count))
        if message.body == "a" and message.delivery_count == 1:
            raise ValueError("not yet")
        if message.body == "b":
            await session.commit()

    consumer.message_listener = listener
    assert await heard.take(3) == [("a", 1), ("a", 2), ("b", 1)]
    await jms.left()


@pytest.mark.option("jms.producerWindowSize", "amqp", "stomp")
async def test_a_producer_waits_for_room_in_its_window_of_bytes_s65(jms: Jms) -> None:
    wire = jms.wire()
    session = await jms.session(url=wire.url, options={"jms.forceAsyncSend": True, "jms.producerWindowSize": 3000})
    producer = await session.create_producer(jms.queue)
    wire.swallow_replies()
    for _ in range(3):
        await producer.send("x" * 1000)
    waiting = asyncio.ensure_future(producer.send("y"))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    wire.heal()
    await waiting
    assert len(await jms.left(*["x" * 1000] * 3, "y")) == 4
