"""What only asyncio has: cancellation, and tasks that share a consumer."""

from __future__ import annotations

import asyncio

import pytest
from polling import eventually

from contract.brokers import not_on, only_on
from contract.faces import AIO, Face
from contract.harness import PATIENCE, Jms, counts, take, texts
from pyjmsack import AckMode, IllegalStateException, Message

INDIVIDUAL = [mode for mode in AckMode if mode.individual]


@pytest.fixture
def face() -> Face:
    """The asyncio face alone."""
    return AIO


@pytest.mark.parametrize("prefetch", [0, 1, 1000])
async def test_a_cancelled_receive_loses_no_message_and_acknowledges_none(jms: Jms, prefetch: int) -> None:
    """Catalogue 98."""
    consumer = await jms.consumer(AckMode.AUTO_ACKNOWLEDGE, options={"jms.prefetchPolicy.all": prefetch})
    for _ in range(3):
        receiving = asyncio.create_task(consumer.receive())
        await asyncio.sleep(0)
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
    await jms.send("a", "b")
    await eventually(lambda: consumer.stats.buffered == min(prefetch or 1, 2))
    assert counts(await jms.left("a", "b")) == jms.ways.counted(1, 1)


async def test_a_receive_cancelled_as_its_message_arrives_leaves_it_for_the_next(jms: Jms) -> None:
    """Catalogue 98: the message is in the buffer, the receiver awake but not running yet."""
    consumer = await jms.consumer()
    receiving = asyncio.create_task(consumer.receive())
    await jms.send("a")
    for _ in range(1_000_000):
        if consumer.stats.buffered or receiving.done():
            break
        await asyncio.sleep(0)
    if receiving.cancel():
        with pytest.raises(asyncio.CancelledError):
            await receiving
        await take(consumer, 1)
    await jms.left()


async def test_two_tasks_that_receive_from_one_consumer_get_a_message_each(jms: Jms) -> None:
    """S15: tasks may share a session."""
    consumer = await jms.consumer()
    tasks = [asyncio.create_task(consumer.receive(timeout=PATIENCE)) for _ in range(2)]
    await asyncio.sleep(0)
    await jms.send("a", "b")
    messages = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE / 3)
    assert sorted(message.body for message in messages if message is not None) == ["a", "b"]


async def test_a_cancelled_commit_leaves_a_usable_session(jms: Jms) -> None:
    """S79: the transaction may have been committed; the next one works."""
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    producer = await session.create_producer(jms.queue)
    await producer.send("a")
    committing = asyncio.create_task(session.commit())
    await asyncio.sleep(0)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    await producer.send("b", priority=9)
    await session.commit()
    left = await (await jms.session()).create_consumer(jms.queue, "JMSPriority = 9")
    assert texts(await take(left, 1)) == ["b"]


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_rollback_does_not_starve_the_consumer(jms: Jms, steps: int) -> None:
    """S83: wherever it was cut, messages flow again after the next one; their order is not promised then."""
    await jms.send("a", "b")
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    rolling_back = asyncio.create_task(session.rollback())
    for _ in range(steps):
        await asyncio.sleep(0)
    rolling_back.cancel()
    await asyncio.gather(rolling_back, return_exceptions=True)
    await session.rollback()
    assert sorted(texts(await take(consumer, 2))) == ["a", "b"]


async def test_a_receive_cancelled_while_it_asks_the_broker_does_not_starve_the_consumer(jms: Jms) -> None:
    """Catalogue 24, 98: the credit that the drain used up is granted again."""
    wire = jms.wire()
    session = await jms.session(url=wire.url)
    consumer = await session.create_consumer(jms.queue)
    wire.swallow_replies()
    receiving = asyncio.create_task(consumer.receive(timeout=0))
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.gather(receiving, return_exceptions=True)
    wire.heal()
    await jms.send("a")
    assert texts(await take(consumer, 1)) == ["a"]


async def test_objects_open_with_await_and_with_async_with(jms: Jms) -> None:
    """Both ways that the interface promises."""
    async with jms.factory().create_connection() as connection:
        await connection.start()
        async with connection.create_session() as session, session.create_producer(jms.queue) as producer:
            await producer.send("a")
            async with session.create_consumer(jms.queue) as consumer:
                assert texts([await anext(aiter(consumer))]) == ["a"]


@only_on("amqp-artemis", "the window is the client's; six thousand durable sends take Classic too long")
async def test_any_number_of_tasks_may_send_beyond_the_window_of_a_producer(jms: Jms) -> None:
    """S65: each waits for room, none is forgotten."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    sends = [producer.send(str(number), delivery_mode=2) for number in range(6000)]
    await asyncio.wait_for(asyncio.gather(*sends), PATIENCE)
    assert len([message async for message in await session.create_browser(jms.queue)]) == 6000


async def test_async_with_deletes_a_temporary_destination(jms: Jms) -> None:
    """S130."""
    session = await jms.session()
    async with session.create_temporary_queue() as queue, session.create_temporary_topic() as topic:
        assert {queue.deleted, topic.deleted} == {False}
    assert {queue.deleted, topic.deleted} == {True}


async def test_a_cancelled_close_of_a_session_rolls_the_transaction_back(jms: Jms) -> None:
    """S84: over STOMP the transaction stayed open as long as the connection, and ActiveMQ Classic gave its messages to
    nobody."""
    bodies = [str(number) for number in range(120)]  # over STOMP, acknowledgements are sent in batches
    await jms.send(*bodies)
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    consumer, all_here, leave = await session.create_consumer(jms.queue), asyncio.Event(), asyncio.Event()

    async def listener(message: Message) -> None:
        if message.body == bodies[-1]:
            all_here.set()
            await leave.wait()

    consumer.message_listener = listener
    await asyncio.wait_for(all_here.wait(), PATIENCE)
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    leave.set()
    others = await jms.consumer()
    assert sorted(texts(await take(others, len(bodies)))) == sorted(bodies)


# -- acknowledge() in each mode ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*AckMode])
async def test_acknowledge_of_a_received_message_may_be_awaited_in_each_mode(jms: Jms, mode: AckMode) -> None:
    """S12: in the modes without an acknowledgement by the caller it does nothing. ``await`` raised ``TypeError``."""
    session = await jms.session(mode)
    await jms.send("a", "b", "c")
    consumer = await session.create_consumer(jms.queue)
    for message in await take(consumer, 3):
        await message.acknowledge()
        if mode not in (AckMode.CLIENT_ACKNOWLEDGE, *INDIVIDUAL):
            with pytest.raises(IllegalStateException, match="INDIVIDUAL_ACKNOWLEDGE"):
                message.accept()
    if session.transacted:
        await session.commit()
    await session.close()
    await jms.left()


@pytest.mark.parametrize("mode", [mode for mode in AckMode if mode is not AckMode.SESSION_TRANSACTED])
async def test_a_listener_may_await_acknowledge_in_each_mode(jms: Jms, mode: AckMode) -> None:
    """S12: the ``TypeError`` was an error of the listener, so a message in AUTO mode became a dead letter."""
    consumer = await jms.consumer(mode)
    over = asyncio.Event()

    async def listener(message: Message) -> None:
        await message.acknowledge()
        if message.body == "b":
            over.set()

    consumer.message_listener = listener
    await jms.send("a", "b")
    await asyncio.wait_for(over.wait(), PATIENCE)
    await consumer.close()
    await jms.left()


@not_on("stomp-artemis", "STOMP: `browser:true` is ignored, so a browser is refused")
async def test_acknowledge_of_a_browsed_message_may_be_awaited(jms: Jms) -> None:
    """S12, S134."""
    await jms.send("a")
    browser = await (await jms.session()).create_browser(jms.queue)
    for message in [message async for message in browser]:
        await message.acknowledge()
    await jms.left("a")


async def test_a_reply_may_be_acknowledged_with_await(jms: Jms) -> None:
    """S12: the session of a requestor is an AUTO session."""
    connection = await jms.connection()
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    answering = await connection.create_session()
    producer = await answering.create_producer(None)

    async def listener(message: Message) -> None:
        assert message.reply_to is not None
        reply = answering.create_text_message("reply")
        reply.correlation_id = message.correlation_id
        await producer.send(reply, destination=message.reply_to)

    consumer.message_listener = listener
    requestor = await (await connection.create_session()).create_requestor(jms.queue)
    reply = await requestor.request("request", PATIENCE)
    assert reply is not None
    await reply.acknowledge()


# -- a listener and the tasks that it starts ------------------------------------------------------------------------


@only_on("amqp-artemis", "the client alone decides who waits for whom")
@pytest.mark.parametrize("call", ["close", "drain"])
async def test_a_listener_may_close_its_own_consumer_in_a_task_for_which_it_waits(jms: Jms, call: str) -> None:
    """S14: the close waited for the listener, and the listener for the close, for ever. ``wait_for`` makes such a task
    before Python 3.12."""
    await jms.send("a", "b")
    session = await jms.session(AckMode.AUTO_ACKNOWLEDGE)
    consumer, closed = await session.create_consumer(jms.queue), asyncio.Event()

    async def listener(message: Message) -> None:
        await asyncio.gather(getattr(consumer, call)())
        closed.set()

    consumer.message_listener = listener
    await asyncio.wait_for(closed.wait(), PATIENCE)
    assert counts(await jms.left("b")) == jms.ways.counted(1)


@only_on("amqp-artemis", "the client alone decides who waits for whom")
@pytest.mark.parametrize("what", ["session.close", "connection.close", "connection.stop"])
async def test_a_listener_may_start_a_task_that_closes_what_runs_the_listener(jms: Jms, what: str) -> None:
    """S14, S120, S124: the task waits for the listener."""
    await jms.send("a")
    connection = await jms.connection()
    session = await connection.create_session(AckMode.AUTO_ACKNOWLEDGE)
    consumer = await session.create_consumer(jms.queue)
    owner, verb = (session if what.startswith("session") else connection), what.partition(".")[2]
    tasks, over, ended = list[asyncio.Task[None]](), asyncio.Event(), list[bool]()

    async def listener(message: Message) -> None:
        tasks.append(asyncio.create_task(getattr(owner, verb)()))
        await asyncio.wait(tasks, timeout=0.1)
        ended.append(tasks[0].done())
        over.set()

    consumer.message_listener = listener
    await asyncio.wait_for(over.wait(), PATIENCE)
    await asyncio.wait_for(tasks[0], PATIENCE)
    assert ended == [False]
    await jms.left()


@only_on("amqp-artemis", "the client alone decides who waits for whom")
async def test_a_stop_for_which_the_listener_waits_does_not_wait_for_ever(jms: Jms) -> None:
    """S14, S120."""
    await jms.send("a", "b")
    connection = await jms.connection(options={"jms.closeTimeout": 300})
    consumer = await (await connection.create_session(AckMode.AUTO_ACKNOWLEDGE)).create_consumer(jms.queue)
    raised: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def listener(message: Message) -> None:
        (error,) = await asyncio.gather(connection.stop(), return_exceptions=True)
        raised.set_result(error)

    consumer.message_listener = listener
    error = await asyncio.wait_for(raised, PATIENCE)
    assert isinstance(error, IllegalStateException)
    assert "S14" in str(error)
    await connection.stop()
    await jms.left("b")
