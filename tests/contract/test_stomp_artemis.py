"""What Artemis does in its own way over STOMP, and what must not come of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shared_brokers import Served

from contract.brokers import only_on
from contract.harness import Jms, take
from pyjmsack import AckMode, Queue, Topic
from pyjmsack.errors import ResourceAllocationException

pytestmark = only_on("stomp-artemis", "these are its ways")

INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE


async def test_a_property_named_ack_does_not_choose_what_is_acknowledged(
    jms: Jms, brokers: Callable[[str], Served]
) -> None:
    """S34: the broker writes its own line of that name behind it."""
    amqp = jms.factory(brokers("artemis").amqp_url).create_connection()
    async with amqp as connection, connection.create_session() as session:
        message = session.create_text_message("a")
        message.properties.update({"ack": "0,999", "subscription": "77", "redelivered": "true"})
        await (await session.create_producer(jms.queue)).send(message)
    consumer = await jms.consumer(INDIVIDUAL)
    (received,) = await take(consumer, 1)
    assert not received.redelivered
    received.acknowledge()
    await jms.left()


async def test_each_subscriber_of_a_topic_may_reject_its_own_copy(jms: Jms) -> None:
    """S118: the copies for the dead-letter queue are not taken for repetitions of each other."""
    topic, name = Topic(jms.queue.name), jms.queue.name
    subscribers = []
    for number in range(2):
        connection = await jms.connection(client_id=f"{name}-{number}")
        session = await connection.create_session(INDIVIDUAL)
        subscribers.append(await session.create_durable_consumer(topic, "sub"))
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        message = session.create_text_message("a")
        message.properties["test"] = name
        await (await session.create_producer(topic)).send(message)
    for subscriber in subscribers:
        (received,) = await take(subscriber, 1)
        received.reject()
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        await connection.start()
        async with session.create_consumer(Queue("DLQ"), f"test = '{name}'") as dead:
            assert [message.body for message in await take(dead, 2)] == ["a", "a"]


async def test_a_large_message_is_dead_lettered_as_a_message_of_its_own(jms: Jms) -> None:
    """S118: the broker's note of its size, ``_AMQ_LARGE_SIZE``, would make the copy one without a body file."""
    body = "x" * 1_000_000
    await jms.send(body)
    (message,) = await take(await jms.consumer(INDIVIDUAL), 1)
    message.reject()
    await jms.left()
    (dead,) = await jms.dead(body)
    assert "_AMQ_LARGE_SIZE" not in dead.properties


async def test_a_queue_that_takes_one_consumer_does_not_end_its_consumer(jms: Jms) -> None:
    """S53, S56: the caller holds a whole window, so the consumer asks for another subscription, and this broker ends
    the connection with its refusal. The restored consumer must not ask again."""
    single = Queue(f"single.{jms.queue.name}")
    connection = await jms.connection(f"failover:({jms.url})", options={"jms.prefetchPolicy.all": 1})
    session = await connection.create_session(INDIVIDUAL)
    producer = await session.create_producer(single)
    for text in "abc":
        await producer.send(text)
    consumer = await session.create_consumer(single)
    held = await take(consumer, 2)  # the second one only after the connection was lost and restored
    got = {message.body for message in held}
    for message in held:
        message.acknowledge()
    while len(got) < 3:
        (message,) = await take(consumer, 1)
        message.acknowledge()
        got.add(message.body)
    assert await consumer.receive(timeout=0.2) is None


async def test_a_message_that_cannot_be_converted_closes_its_consumer_alone(
    jms: Jms, brokers: Callable[[str], Served]
) -> None:
    """S101: the message behind it is no dead letter, although it is delivered with each loss. A neighbour goes on."""
    amqp = jms.factory(brokers("artemis").amqp_url).create_connection()
    async with amqp as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        await producer.send(session.create_object_message({"a": [1, 2]}))
        await producer.send("behind it")
    connection = await jms.connection(f"failover:({jms.url})", options={"jms.prefetchPolicy.all": 1})
    session, other = await connection.create_session(INDIVIDUAL), Queue(f"other.{jms.queue.name}")
    neighbour, producer = await session.create_consumer(other), await session.create_producer(other)
    consumer = await session.create_consumer(jms.queue)

    async def exhaust() -> None:
        while True:  # the message behind it may be handed out, unacknowledged, again and again
            await consumer.receive(timeout=30)

    with pytest.raises(ResourceAllocationException, match=jms.queue.name):
        await exhaust()
    await producer.send("still here")
    (message,) = await take(neighbour, 1)
    message.acknowledge()
    async with jms.factory(brokers("artemis").amqp_url).create_connection() as reader:
        await reader.start()
        async with reader.create_session() as session, session.create_consumer(jms.queue) as rest:
            assert [message.body for message in await take(rest, 2)] == [{"a": [1, 2]}, "behind it"]
