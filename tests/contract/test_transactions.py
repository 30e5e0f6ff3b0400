"""Transactions as a real broker shows them (S75-S86)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from polling import eventually

from contract.brokers import not_on, only_on
from contract.harness import PATIENCE, Completed, Gate, Heard, Jms, counts, nothing, take, texts
from pyjmsack import (
    AckMode,
    DeliveryMode,
    Message,
    Queue,
    ResourceAllocationException,
    TextMessage,
    TransactionRolledBackException,
    aio,
)

TRANSACTED = AckMode.SESSION_TRANSACTED
PREFETCHES = pytest.mark.parametrize("prefetch", [0, 1, 1000])


async def transacted(jms: Jms, prefetch: int = 1000) -> tuple[aio.Session, aio.MessageConsumer, aio.MessageProducer]:
    """Return a transacted session with a consumer and a producer of the queue."""
    session = await jms.session(TRANSACTED, options={"jms.prefetchPolicy.all": prefetch})
    return session, await session.create_consumer(jms.queue), await session.create_producer(jms.queue)


@PREFETCHES
async def test_commit_acknowledges_everything_received(jms: Jms, prefetch: int) -> None:
    """S75, S78."""
    await jms.send("a", "b", "c")
    session, consumer, _ = await transacted(jms, prefetch)
    await take(consumer, 2)
    await session.commit()
    await jms.left("c")


async def test_a_transaction_may_receive_many_times_its_prefetch(jms: Jms) -> None:
    """S49, S54, S75: Classic sends another message for each ACK of the transaction over STOMP. The client took this for
    a broker that ignores the window, and ended the connection."""
    bodies = [str(number) for number in range(400)]
    await jms.send(*bodies)
    session, consumer, _ = await transacted(jms, 100)
    assert texts(await take(consumer, 400)) == bodies
    await session.rollback()
    assert texts(await take(consumer, 400)) == bodies
    await session.commit()
    await jms.left()


@PREFETCHES
async def test_rollback_brings_everything_again_first_to_last_counted_before_newer_ones(
    jms: Jms, prefetch: int
) -> None:
    """S80, S83."""
    await jms.send("a", "b", "c")
    session, consumer, _ = await transacted(jms, prefetch)
    for count in (1, 2, 3):
        messages = await take(consumer, 2)
        assert texts(messages) == ["a", "b"]
        assert counts(messages) == [count, count]
        await session.rollback()
    messages = await take(consumer, 3)
    assert texts(messages) == ["a", "b", "c"]
    assert counts(messages) == [4, 4, 1]
    await session.commit()
    await jms.left()


@not_on("classic", "12: it may have sent newer messages ahead to its own end of the link")
async def test_rollback_keeps_the_order_before_messages_that_the_broker_still_has(jms: Jms) -> None:
    """S83: some received, some prefetched, some still at the broker."""
    bodies = [*"abcdefgh"]
    await jms.send(*bodies)
    session, consumer, _ = await transacted(jms, 3)
    for _ in range(5):
        assert texts(await take(consumer, 2)) == ["a", "b"]
        await eventually(lambda: consumer.stats.buffered > 0)
        await session.rollback()
    assert texts(await take(consumer, 8)) == bodies
    await session.commit()


async def test_sends_appear_at_commit_and_not_before(jms: Jms) -> None:
    """S75."""
    session = await jms.session(TRANSACTED)
    producer = await session.create_producer(jms.queue)
    outside = await jms.consumer()
    await producer.send("a")
    await producer.send("b")
    await nothing(outside)
    await session.commit()
    assert texts(await take(outside, 2)) == ["a", "b"]


async def test_rolled_back_sends_never_appear_and_the_next_transaction_is_untouched(jms: Jms) -> None:
    """S75, S80."""
    session, _, producer = await transacted(jms)
    await producer.send("never")
    await session.rollback()
    await producer.send("a")
    await session.commit()
    await jms.left("a")


async def test_a_message_object_may_be_changed_and_sent_again_inside_a_transaction(jms: Jms) -> None:
    """S72, S75."""
    session, _, producer = await transacted(jms)
    message = session.create_text_message()
    ids = set()
    for text in ("a", "b", "c"):
        message.text = text
        await producer.send(message)
        ids.add(message.message_id)
    await session.commit()
    assert len(ids) == 3
    await jms.left("a", "b", "c")


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_all_consumers_and_producers_of_a_session_share_one_transaction(jms: Jms, end: str) -> None:
    """S77."""
    await jms.send("a", priority=1)
    await jms.send("b", priority=2)
    session = await jms.session(TRANSACTED)
    for priority in (1, 2):
        await take(await session.create_consumer(jms.queue, f"JMSPriority = {priority}"), 1)
        await (await session.create_producer(jms.queue)).send(f"sent {priority}", priority=9)
    await getattr(session, end)()
    await jms.left(*(["sent 1", "sent 2"] if end == "commit" else ["b", "a"] if jms.ways.by_priority else ["a", "b"]))


async def test_a_rollback_returns_what_another_consumer_of_the_session_prefetched(jms: Jms) -> None:
    """S77, S83: the one that took no part keeps working."""
    session = await jms.session(TRANSACTED)
    one = await session.create_consumer(jms.queue, "JMSPriority = 1")
    two = await session.create_consumer(jms.queue, "JMSPriority = 2")
    await jms.send("a", priority=1)
    await jms.send("b", priority=2)
    await take(one, 1)
    await session.rollback()
    assert counts(await take(one, 1)) == [2]
    assert counts(await take(two, 1)) == [1]
    await session.commit()
    await jms.left()


async def test_a_commit_spoils_no_acknowledgement_of_another_session(jms: Jms) -> None:
    """S80, S89: Classic forgot over STOMP what the other session had acknowledged, and ended the connection."""
    await jms.send("a")
    connection = await jms.connection()
    receiving, sending = [await connection.create_session(TRANSACTED) for _ in range(2)]
    consumer, producer = await receiving.create_consumer(jms.queue), await sending.create_producer(jms.queue)
    await take(consumer, 1)
    await producer.send("b")
    await sending.commit()
    await receiving.rollback()
    assert texts(await take(consumer, 2)) == ["a", "b"]
    await receiving.commit()
    await jms.left()


async def test_a_transaction_takes_more_messages_than_a_broker_delivers_ahead(jms: Jms) -> None:
    """S80, S89: Classic stops over STOMP after 400 messages that nobody has acknowledged."""
    bodies = [str(number) for number in range(500)]
    await jms.send(*bodies, delivery_mode=DeliveryMode.NON_PERSISTENT)
    session, consumer, _ = await transacted(jms)
    assert texts(await take(consumer, 500)) == bodies
    await session.rollback()
    assert texts(await take(consumer, 500)) == bodies
    await session.commit()
    await jms.left()


@only_on("classic", "this broker forgets at a COMMIT what was acknowledged in other transactions")
@only_on("stomp", "its sessions share one connection of the broker")
async def test_a_commit_spoils_no_large_transaction_of_another_session(jms: Jms) -> None:
    """S80, S89: its ACKs are sent before its end. The ACKs after the rollback ended the connection."""
    bodies = [str(number) for number in range(120)]
    await jms.send(*bodies)
    connection = await jms.connection()
    receiving, sending = [await connection.create_session(TRANSACTED) for _ in range(2)]
    consumer, producer = await receiving.create_consumer(jms.queue), await sending.create_producer(jms.queue)
    await take(consumer, 110)
    await producer.send("x")
    await sending.commit()
    await receiving.rollback()
    messages = await take(consumer, 121)
    assert texts(messages) == [*bodies, "x"]
    assert counts(messages[:110]) == [2] * 110
    await receiving.commit()
    await jms.left()


async def test_commit_and_rollback_without_work_succeed(jms: Jms) -> None:
    """S85."""
    session, consumer, _ = await transacted(jms)
    for _ in range(2):
        await session.commit()
        await session.rollback()
    await jms.send("a")
    await take(consumer, 1)
    await session.commit()
    await jms.left()


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_listener_may_end_its_transaction_and_the_message_in_hand_is_part_of_it(jms: Jms, end: str) -> None:
    """S75, S80."""
    heard, done = Heard[Message](), Gate()
    session, consumer, producer = await transacted(jms)

    async def listener(message: Message) -> None:
        heard(message)
        await producer.send(f"answer to {message.body}")
        if end == "commit" or message.delivery_count == 2:
            await session.commit()
            done.open()
        else:
            await session.rollback()

    selected = await session.create_consumer(jms.queue, "JMSPriority = 9")
    await consumer.close()
    selected.message_listener = listener
    await jms.send("a", priority=9)
    await done.passed()
    assert counts([await heard.next()]) == [1]
    await jms.left("answer to a")


NO_LIMITS = not_on("classic", "6: a full queue blocks its senders, it refuses nothing")
NO_CREDIT = not_on("stomp", "STOMP: no credit, the broker answers every SEND")


async def out_of_credit(jms: Jms) -> tuple[aio.Session, Queue, aio.MessageProducer]:
    """Return a transacted session with a refused send, and its producer, from which the broker took the credit."""
    limited = Queue(f"limited.{jms.queue.name}")
    session = await jms.session(TRANSACTED)
    producer = await session.create_producer(limited)
    filler = await (await jms.session()).create_producer(limited)
    for body in "ab":
        await filler.send(body)
    listener = Completed()
    await producer.send("refused", completion_listener=listener)
    assert isinstance((await listener.heard.next())[1], ResourceAllocationException)
    return session, limited, producer


async def sent_when_there_is_room(session: aio.Session, producer: aio.MessageProducer, text: str) -> None:
    """Send and commit until the broker takes the message. The broker notices some time after the acknowledgements that
    there is room.
    """
    committed = False
    while not committed:
        await producer.send(text)
        with suppress(TransactionRolledBackException):
            await session.commit()
            committed = True


@NO_LIMITS
@NO_CREDIT
async def test_a_send_that_the_broker_refuses_makes_commit_roll_back(jms: Jms) -> None:
    """S86, S79, S129: nothing of the transaction took effect, and the next one works."""
    await jms.send("a")
    session, _, _ = await out_of_credit(jms)
    consumer, producer = await session.create_consumer(jms.queue), await session.create_producer(jms.queue)
    await take(consumer, 1)
    await producer.send("never")
    with pytest.raises(TransactionRolledBackException) as raised:
        await session.commit()
    assert isinstance(raised.value.__cause__, ResourceAllocationException)
    assert len(raised.value.sent) == 2
    assert len(raised.value.acknowledged) == 1
    await session.rollback()
    assert counts(await take(consumer, 1)) == [2]
    await producer.send("b")
    await session.commit()
    await jms.left("b")


@NO_LIMITS
@NO_CREDIT
@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_send_that_never_got_credit_dies_with_its_transaction(jms: Jms, end: str) -> None:
    """S66, S75, S86: nobody waits for it once another was refused, and it is not sent when there is room again."""
    session, limited, producer = await out_of_credit(jms)
    await producer.send("without credit")
    if end == "commit":
        with pytest.raises(TransactionRolledBackException):
            await asyncio.wait_for(session.commit(), PATIENCE)
    else:
        await asyncio.wait_for(session.rollback(), PATIENCE)
    outside = await (await jms.session()).create_consumer(limited)
    assert texts(await take(outside, 2)) == ["a", "b"]
    await asyncio.wait_for(sent_when_there_is_room(session, producer, "next"), PATIENCE)
    assert texts(await take(outside, 1)) == ["next"]
    await nothing(outside)


async def test_a_transaction_spans_queues_and_is_all_or_nothing(jms: Jms) -> None:
    """S75."""
    other = Queue(f"{jms.queue.name}-other")
    await jms.send("a", "b")
    session, consumer, _ = await transacted(jms)
    producer = await session.create_producer()
    outside = await (await jms.session()).create_consumer(other)
    for end in (session.rollback, session.commit):
        (message,) = await take(consumer, 1)
        assert isinstance(message, TextMessage)
        await producer.send(f"moved {message.text}", other)
        await nothing(outside)
        await end()
    moved = await outside.receive(timeout=PATIENCE)
    assert moved is not None
    assert moved.body == "moved a"
    await nothing(outside)
    await jms.left("b")
