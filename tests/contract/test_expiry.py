"""Expired messages (S156)."""

from __future__ import annotations

import asyncio

import pytest
from polling import eventually, expired

from contract.harness import Heard, Jms, nothing, take, texts
from pyjmsack import AckMode, Message, aio

TIMES_TO_LIVE = 0.3, 1.2, 5
"""Seconds; where a broker is so slow that a message expires there, the next one is tried."""


async def expire_in_the_buffer(jms: Jms, consumer: aio.MessageConsumer) -> None:
    """Let a message expire after it was pushed to the consumer, before it is handed out; another one follows."""
    session = await jms.session()
    message = jms.text(session, "expired")
    producer = await session.create_producer(jms.queue)
    for ttl in TIMES_TO_LIVE:
        await producer.send(message, time_to_live=ttl)
        await eventually(lambda: consumer.stats.buffered == 1 or expired(message.expiration))
        if consumer.stats.buffered:
            break
    await producer.send("fresh")
    await eventually(lambda: consumer.stats.buffered == 2)
    await eventually(lambda: expired(message.expiration))


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
async def test_a_message_that_expired_in_the_buffer_is_not_delivered(jms: Jms, mode: AckMode) -> None:
    """S156, S22: the next one is found in the same receive."""
    consumer = await jms.consumer(mode)
    await expire_in_the_buffer(jms, consumer)
    assert texts(await take(consumer, 1)) == ["fresh"]
    await nothing(consumer)


async def test_a_listener_gets_no_message_that_expired_in_the_buffer(jms: Jms) -> None:
    """S156."""
    consumer = await jms.consumer()
    await expire_in_the_buffer(jms, consumer)
    heard = Heard[Message]()
    consumer.message_listener = heard
    assert (await heard.next()).body == "fresh"
    await jms.left()
    assert heard.silent


async def test_a_timed_receive_of_only_expired_messages_gives_none(jms: Jms) -> None:
    """S22, S156: one deadline over what is dropped."""
    consumer = await jms.consumer()
    await expire_in_the_buffer(jms, consumer)
    await take(consumer, 1)
    assert await consumer.receive(timeout=0.05) is None


@pytest.mark.option("jms.localMessageExpiry", "amqp", "stomp")
async def test_with_the_check_off_an_expired_message_is_delivered(jms: Jms) -> None:
    """S156, jms.localMessageExpiry."""
    consumer = await jms.consumer(options={"jms.localMessageExpiry": "false"})
    await expire_in_the_buffer(jms, consumer)
    assert texts(await take(consumer, 2)) == ["expired", "fresh"]


async def test_a_message_that_expired_at_the_broker_never_comes(jms: Jms) -> None:
    """S154, S156."""
    await jms.send("expired", time_to_live=0.001)
    await asyncio.sleep(0.01)
    await jms.send("fresh")
    await jms.left("fresh")


async def test_a_consumer_tells_how_its_messages_ended_s190(jms: Jms) -> None:
    """Acknowledged, expired or dead-lettered; what a broker's own limits drop no client sees."""
    consumer = await jms.consumer(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    await expire_in_the_buffer(jms, consumer)
    await jms.send("bad")
    good, bad = await take(consumer, 2)
    good.accept()
    bad.reject()
    stats = consumer.stats
    assert (stats.delivered, stats.acknowledged, stats.expired, stats.poisoned) == (2, 1, 1, 1)
    await jms.left()
    if jms.ways.dead_letters != jms.ways.expired:
        await jms.dead("bad")
