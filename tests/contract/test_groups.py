"""Message groups (S191)."""

from __future__ import annotations

import logging

import pytest

from contract.brokers import only_on
from contract.harness import PATIENCE, Jms, nothing, take, texts
from pyjmsack import AckMode


async def send_groups(jms: Jms, *bodies: str) -> None:
    """Send messages whose group is the first letter of their body, and whose number in it is the rest."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    for body in bodies:
        message = session.create_text_message(body)
        message.properties["JMSXGroupID"] = body[0]
        message.properties["JMSXGroupSeq"] = int(body[1:])
        await producer.send(message)


async def test_a_group_goes_to_one_consumer_with_id_and_number(jms: Jms) -> None:
    """The second consumer gets nothing of the first one's group."""
    first, second = await jms.consumer(), await jms.consumer()
    await send_groups(jms, "a1", "a2", "a3", "a4")
    message = await first.receive(timeout=0)
    holder, other = (first, second) if message is not None else (second, first)
    found = ([message] if message is not None else []) + await take(holder, 3 if message is not None else 4)
    assert texts(found) == ["a1", "a2", "a3", "a4"]
    assert [m.properties["JMSXGroupID"] for m in found] == ["a"] * 4
    assert [m.properties["JMSXGroupSeq"] for m in found] == [1, 2, 3, 4]
    await nothing(other)


async def test_in_client_mode_a_group_is_acknowledged_once_after_its_last_message(jms: Jms) -> None:
    """S191: what came after it stays."""
    await send_groups(jms, "a1", "a2", "a3", "b1", "b2")
    consumer = await jms.consumer(AckMode.CLIENT_ACKNOWLEDGE)
    group = await take(consumer, 3)
    assert texts(group) == ["a1", "a2", "a3"]
    group[-1].acknowledge()
    assert texts(await take(consumer, 1)) == ["b1"]
    await jms.left("b1", "b2")


@only_on("stomp", "over AMQP messages that the caller holds take no room of the window")
async def test_a_group_that_is_larger_than_the_window_is_named_in_the_log(
    jms: Jms, caplog: pytest.LogCaptureFixture
) -> None:
    """S191: the broker keeps the group at the subscription that is full. The consumer waited without a word."""
    await send_groups(jms, *(f"a{number}" for number in range(1, 9)), "b1")
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE)
    name = f"{jms.queue.name}?consumer.prefetchSize=2&consumer.expectedMessageSize=300"
    consumer = await session.create_consumer(session.create_queue(name))
    with caplog.at_level(logging.WARNING, "pyjmsack.stomp"):
        held = await take(consumer, 1)
        for _ in range(int(PATIENCE)):  # a busy broker may deliver the second message late
            if (message := await consumer.receive(timeout=1)) is not None:
                held.append(message)
            elif "the broker keeps a group at one subscription" in caplog.text:
                break
    assert "the broker keeps a group at one subscription" in caplog.text
    bodies = texts(held)
    assert "a8" not in bodies
    for _ in range(9 - len(bodies)):  # each acknowledgement makes room for the next message
        held[-1].acknowledge()
        held = await take(consumer, 1)
        bodies += texts(held)
    assert sorted(bodies) == sorted([*(f"a{number}" for number in range(1, 9)), "b1"])
