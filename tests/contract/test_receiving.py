"""Receiving, prefetch and pull (S8-S10, S15, S22, S23, S49-S54)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from polling import eventually

from contract.brokers import alike, not_on
from contract.harness import PATIENCE, Gate, Heard, Jms, counts, nothing, take, texts
from pyjmsack import AckMode, IllegalStateException, InvalidDestinationException, Message, Queue, Topic, aio

BY_BYTES = not_on("stomp-artemis", "STOMP: the window is in bytes, and its smallest is one message")
NO_PULL = not_on("stomp", "STOMP: the smallest window is one message, which comes before it is asked for")
PREFETCHES = pytest.mark.parametrize("prefetch", [0, 1, 3, 1000])


# -- how much is pushed ---------------------------------------------------------------------------------------------


@pytest.mark.option("jms.prefetchPolicy.queuePrefetch", "amqp", "stomp")
@BY_BYTES
@pytest.mark.parametrize(
    ("factory", "destination", "expected"),
    [(None, None, 20), (7, None, 7), (7, 3, 3), (3, 7, 7), (0, 2, 2), (1, None, 1)],
)
async def test_the_broker_pushes_as_much_as_the_prefetch_says(
    jms: Jms, factory: int | None, destination: int | None, expected: int
) -> None:
    """S49, S51, S55: the destination's value beats the factory's; the default takes all twenty."""
    await jms.send(*map(str, range(20)))
    session = await jms.session(options={} if factory is None else {"jms.prefetchPolicy.queuePrefetch": factory})
    queue = jms.queue if destination is None else jms.queue_with(f"consumer.prefetchSize={destination}")
    consumer = await session.create_consumer(queue)
    await eventually(lambda: consumer.stats.buffered == expected)
    other = await (await jms.session()).create_consumer(jms.queue)
    await take(other, 20 - expected)
    await nothing(other)
    assert consumer.stats.buffered == expected


@NO_PULL
async def test_prefetch_zero_takes_nothing_that_nobody_asked_for(jms: Jms) -> None:
    """S50."""
    idle = await jms.consumer(options={"jms.prefetchPolicy.all": 0})
    await jms.send("a", "b", "c")
    other = await jms.consumer()
    assert texts(await take(other, 3)) == ["a", "b", "c"]
    assert idle.stats.buffered == 0


@NO_PULL
async def test_consumers_with_prefetch_zero_share_as_they_ask(jms: Jms) -> None:
    """S50."""
    await jms.send("a", "b", "c", "d")
    consumers = [await jms.consumer(options={"jms.prefetchPolicy.all": 0}) for _ in range(2)]
    shares = [texts(await take(consumer, 1)) for consumer in consumers * 2]
    assert shares == [["a"], ["b"], ["c"], ["d"]]


async def test_with_prefetch_one_the_second_consumer_gets_the_second_message(jms: Jms) -> None:
    """S51."""
    await jms.send("a", "b")
    holder = await jms.consumer(options={"jms.prefetchPolicy.all": 1})
    await eventually(lambda: holder.stats.buffered == 1)
    assert texts(await take(await jms.consumer(options={"jms.prefetchPolicy.all": 1}), 1)) == ["b"]
    assert texts(await take(holder, 1)) == ["a"]


@PREFETCHES
@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE])
async def test_delivery_goes_on_beyond_the_prefetch_acknowledged_or_not(jms: Jms, mode: AckMode, prefetch: int) -> None:
    """S53, S54, S56: more is granted as messages are taken; what is unacknowledged holds nothing up."""
    bodies = [str(number) for number in range(30)]
    await jms.send(*bodies)
    consumer = await jms.consumer(mode, options={"jms.prefetchPolicy.all": prefetch})
    assert texts(await take(consumer, 30)) == bodies
    await nothing(consumer)
    assert consumer.stats.unacknowledged == (0 if mode is AckMode.AUTO_ACKNOWLEDGE else 30)


# -- waiting --------------------------------------------------------------------------------------------------------


@PREFETCHES
async def test_a_receive_that_does_not_wait_finds_what_the_broker_has(jms: Jms, prefetch: int) -> None:
    """S50: the broker is asked before None is returned, again and again."""
    await jms.send("a", "b")
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": prefetch})
    for expected in ("a", "b"):
        message = await _received_without_waiting(jms, consumer)
        assert message.body == expected
    for _ in range(3):
        await nothing(consumer)
    await jms.send("c")
    message = await _received_without_waiting(jms, consumer)
    assert message.body == "c"
    assert await consumer.receive(timeout=timedelta(0)) is None


async def _received_without_waiting(jms: Jms, consumer: Any) -> Message:
    """Return the first message. STOMP has no drain, so a busy broker may deliver it only after an empty answer."""
    for _ in range(1 if jms.target.named("amqp") else 100):
        message = await consumer.receive_nowait()
        if message is not None:
            assert isinstance(message, Message)
            return message
    pytest.fail("the broker has a message, and the consumer did not get it")


@not_on("stomp", "STOMP: no drain; what a busy broker delivers late is met by the next receive")
@PREFETCHES
async def test_a_receive_that_does_not_wait_never_misses_what_is_there(jms: Jms, prefetch: int) -> None:
    """Catalogue 24, S50: however fast one follows the other (a broker may answer the drain before)."""
    bodies = [str(number) for number in range(500)]
    await jms.send(*bodies, delivery_mode=1)
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": prefetch})
    found = [await consumer.receive_nowait() for _ in range(500)]
    assert [None if message is None else message.body for message in found] == bodies


@not_on("stomp", "STOMP: no drain")
@pytest.mark.parametrize("engine", ["python", "proton"])
async def test_polling_gets_messages_of_several_frames_s53(jms: Jms, engine: str) -> None:
    """A broker may answer a drain between two frames of a message, and then wait for credit for the rest."""
    options = {"jms.prefetchPolicy.all": 2, "amqp.engine": engine, "amqp.drainTimeout": 20_000}
    consumer = await jms.consumer(options=options)
    producer = await (await jms.session()).create_producer(jms.queue)
    body = "three frames" * 25_000
    for _ in range(200):
        sending = asyncio.ensure_future(producer.send(body, delivery_mode=1))
        message = None
        while message is None:
            message = await consumer.receive_nowait()
        assert message.body == body
        await sending


@pytest.mark.parametrize("prefetch", [0, 1000])
async def test_consumers_that_ask_the_broker_at_once_all_get_an_answer(jms: Jms, prefetch: int) -> None:
    """Catalogue 24: over one session and over several (a broker may drop a drain that follows another)."""
    connection = await jms.connection(options={"jms.prefetchPolicy.all": prefetch})
    shared = jms.face.name == "aio"  # a blocking session is for one thread at a time
    session = await connection.create_session()
    sessions = [session if shared else await connection.create_session() for _ in range(4)]
    consumers = [await each.create_consumer(jms.queue) for each in sessions]
    for _ in range(25):
        answers = await asyncio.gather(*(consumer.receive_nowait() for consumer in consumers))
        assert answers == [None] * 4


@PREFETCHES
async def test_a_timed_receive_of_an_empty_queue_gives_none_and_messages_flow_afterwards(
    jms: Jms, prefetch: int
) -> None:
    """Catalogue 24, S50: the drain at its end takes no credit away for good."""
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": prefetch})
    for number in range(3):
        assert await consumer.receive(timeout=0.01) is None
        await jms.send(str(number))
        assert texts(await take(consumer, 1)) == [str(number)]


@PREFETCHES
@pytest.mark.parametrize(
    "timeout", [None, PATIENCE, timedelta(seconds=PATIENCE)], ids=["for ever", "float", "timedelta"]
)
async def test_a_blocked_receive_wakes_when_a_message_is_sent(
    jms: Jms, prefetch: int, timeout: float | timedelta | None
) -> None:
    """S22, S50."""
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": prefetch})
    blocked = asyncio.create_task(consumer.receive(timeout))
    await jms.send("a")
    message = await asyncio.wait_for(blocked, PATIENCE)
    assert message is not None
    assert message.body == "a"


@pytest.mark.option("jms.receiveLocalOnly", "amqp", "stomp")
@pytest.mark.option("jms.receiveNoWaitLocalOnly", "amqp", "stomp")
async def test_a_receive_that_looks_only_in_the_buffer_finds_what_was_pushed(jms: Jms) -> None:
    """Catalogue 24, jms.receiveNoWaitLocalOnly and jms.receiveLocalOnly."""
    consumer = await jms.consumer(options={"jms.receiveNoWaitLocalOnly": "true", "jms.receiveLocalOnly": "true"})
    assert await consumer.receive(timeout=0.01) is None
    await nothing(consumer)
    await jms.send("a", "b")
    await eventually(lambda: consumer.stats.buffered == 2)
    assert await consumer.receive_nowait() is not None
    assert await consumer.receive(timeout=0.01) is not None
    await nothing(consumer)


async def test_the_statistics_count_what_happened(jms: Jms) -> None:
    """S57."""
    await jms.send("a", "b", "c")
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = await session.create_consumer(jms.queue)
    messages = await take(consumer, 2)
    await eventually(lambda: consumer.stats.buffered == 1)
    stats = consumer.stats
    assert (stats.delivered, stats.unacknowledged, stats.acknowledged, stats.redelivered) == (2, 2, 0, 0)
    await session.recover()
    messages = await take(consumer, 2)
    messages[0].acknowledge()
    stats = consumer.stats
    assert (stats.delivered, stats.unacknowledged, stats.acknowledged, stats.redelivered) == (4, 0, 2, 2)


# -- listeners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["its own", "another of the session"])
async def test_receive_is_refused_while_any_consumer_of_the_session_has_a_listener(jms: Jms, which: str) -> None:
    """S8."""
    session = await jms.session()
    consumer = await session.create_consumer(jms.queue)
    listening = consumer if which == "its own" else await session.create_consumer(Queue(f"{jms.queue.name}-2"))
    listening.message_listener = Heard[Message]()
    for call in (consumer.receive, consumer.receive_nowait, lambda: consumer.receive_body(str)):
        with pytest.raises(IllegalStateException, match="S8"):
            await call()
    listening.message_listener = None
    await nothing(consumer)


async def test_receive_is_allowed_again_when_the_consumer_with_the_listener_is_closed(jms: Jms) -> None:
    """S8."""
    session = await jms.session()
    consumer = await session.create_consumer(jms.queue)
    listening = await session.create_consumer(Queue(f"{jms.queue.name}-2"))
    listening.message_listener = Heard[Message]()
    await listening.close()
    await nothing(consumer)


async def test_a_listener_set_after_start_and_send_gets_everything_in_order(jms: Jms) -> None:
    """S17."""
    bodies = [str(number) for number in range(200)]
    await jms.send(*bodies, delivery_mode=1)
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": 10})
    heard = Heard[Message]()
    consumer.message_listener = heard
    assert texts(await heard.take(200)) == bodies
    await jms.left()


async def test_a_removed_listener_gets_nothing_more(jms: Jms) -> None:
    """S8."""
    consumer = await jms.consumer()
    heard = Heard[Message]()
    consumer.message_listener = heard
    await jms.send("a")
    await heard.next()
    consumer.message_listener = None
    await jms.send("b")
    assert texts(await take(consumer, 1)) == ["b"]
    assert heard.silent


async def test_listeners_of_one_session_run_one_at_a_time(jms: Jms) -> None:
    """S15."""
    session = await jms.session()
    running, most = 0, 0
    done = Heard[Message]()

    async def listener(message: Message) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with session.create_producer():
            pass
        running -= 1
        done(message)

    for priority in (1, 2):
        (await session.create_consumer(jms.queue, f"JMSPriority = {priority}")).message_listener = listener
        await jms.send(*"abcdefgh", priority=priority)
    await done.take(16)
    assert most == 1


async def test_prefetch_zero_refuses_a_listener_even_none(jms: Jms) -> None:
    """S9."""
    consumer = await jms.consumer(options={"jms.prefetchPolicy.all": 0})
    for listener in (print, None):
        with pytest.raises(IllegalStateException, match=r"consumer\.allowPullListener"):
            consumer.message_listener = listener


@pytest.mark.option("consumer.allowPullListener", "amqp", "stomp")
@pytest.mark.option("consumer.prefetchSize", "amqp", "stomp")
@NO_PULL
async def test_prefetch_zero_feeds_a_listener_one_by_one_if_that_is_allowed(jms: Jms) -> None:
    """S9."""
    session = await jms.session()
    queue = jms.queue_with("consumer.prefetchSize=0&consumer.allowPullListener=true")
    consumer = await session.create_consumer(queue)
    entered, leave = Heard[Message](), Gate()

    async def listener(message: Message) -> None:
        entered(message)
        await leave.passed()

    consumer.message_listener = listener
    await jms.send("a", "b", "c")
    assert (await entered.next()).body == "a"
    other = await jms.consumer()
    assert texts(await take(other, 2)) == ["b", "c"]
    await other.close()  # otherwise the broker may give it the next message as well
    leave.open()
    await jms.send("d")
    assert (await entered.next()).body == "d"


async def test_a_listener_must_be_callable(jms: Jms) -> None:
    """S9."""
    consumer = await jms.consumer()
    with pytest.raises(TypeError, match="callable"):
        consumer.message_listener = "not callable"


# -- sharing, leaving ------------------------------------------------------------------------------------------------


async def test_two_threads_in_one_session_get_an_error_or_take_turns_and_nothing_is_lost(jms: Jms) -> None:
    """S15: the blocking face refuses the second thread; asyncio tasks may share a session."""
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = await session.create_consumer(jms.queue)
    blocked = asyncio.create_task(consumer.receive(timeout=PATIENCE))
    if jms.face.name == "sync":
        await _refused(session, consumer)
    else:
        await session.acknowledge()
    await jms.send("a")
    message = await blocked
    assert message is not None
    message.acknowledge()
    await jms.left()


async def _refused(session: aio.Session, consumer: aio.MessageConsumer) -> None:
    """Wait until the thread is inside ``receive``, then check that every other call of the session is refused."""
    inside = False
    while not inside:
        try:
            await session.acknowledge()
        except IllegalStateException:
            inside = True
    for call in (consumer.receive_nowait, consumer.acknowledge, session.recover):
        with pytest.raises(IllegalStateException, match="another thread"):
            await call()


async def test_leaving_an_iteration_keeps_the_prefetched_messages_for_later(jms: Jms) -> None:
    """S31."""
    await jms.send("a", "b", "c")
    consumer = await jms.consumer()
    iterator: AsyncIterator[Message] = aiter(consumer)
    async for message in iterator:
        assert message.body == "a"
        break
    await eventually(lambda: consumer.stats.buffered == 2)
    assert counts(await jms.left("b", "c")) == jms.ways.counted(1, 1)


@alike("options are checked before anything is sent")
@pytest.mark.parametrize(
    "option", ["customer.prefetchSize=1", "consumer.prefetchsize=1", "consumer.prefetchSize=many", "prefetchSize=1"]
)
async def test_a_wrong_destination_option_is_refused_with_the_right_spelling(jms: Jms, option: str) -> None:
    """S49."""
    session = await jms.session()
    with pytest.raises(InvalidDestinationException, match=r"consumer\.prefetchSize"):
        await session.create_consumer(jms.queue_with(option))


# -- topics and selectors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*AckMode])
async def test_every_subscriber_of_a_topic_gets_what_is_sent_while_it_exists(jms: Jms, mode: AckMode) -> None:
    """S140, S46 to S48 as far as nothing is lost: in every mode, beyond the prefetch."""
    topic = Topic(jms.queue.name)
    sender = await jms.session()
    producer = await sender.create_producer(topic)
    await producer.send("too early")
    sessions = [await jms.session(mode, options={"jms.prefetchPolicy.topicPrefetch": 4}) for _ in range(2)]
    consumers = [await session.create_consumer(topic) for session in sessions]
    bodies = [str(number) for number in range(10)]
    for body in bodies:
        await producer.send(body)
    for session, consumer in zip(sessions, consumers, strict=True):
        messages = await take(consumer, 10)
        assert texts(messages) == bodies
        assert messages[0].destination == topic
        await (session.commit() if session.transacted else session.acknowledge())
        await nothing(consumer)


async def test_a_consumer_may_skip_what_its_own_connection_sent(jms: Jms) -> None:
    """S147."""
    topic = Topic(jms.queue.name)
    session = await jms.session()
    consumer = await session.create_consumer(topic, no_local=True)
    await (await session.create_producer(topic)).send("own")
    await (await (await jms.session()).create_producer(topic)).send("other's")
    assert texts(await take(consumer, 1)) == ["other's"]
    await nothing(consumer)


@pytest.mark.option("consumer.selector", "amqp", "stomp")
@pytest.mark.parametrize(
    "selector",
    [
        "region = 'EU'",
        "region LIKE 'E_'",
        "number BETWEEN 6 AND 8 AND missing IS NULL",
        "number IN ('7') OR number = 7",
        pytest.param("flag", marks=not_on("stomp", "STOMP: properties are strings; flag = TRUE converts, flag cannot")),
        "ratio > 0.2 AND NOT (ratio >= 0.3)",
        "JMSType = 'order'",
        "JMSCorrelationID = 'c-1'",
        "JMSPriority >= 7",
        "JMSDeliveryMode = 'NON_PERSISTENT'",
    ],
)
async def test_a_selector_finds_the_message_and_leaves_the_others(jms: Jms, selector: str) -> None:
    """S187, S189."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("found")
    message.properties.update(region="EU", number=7, flag=True, ratio=0.25)
    message.type, message.correlation_id = "order", "c-1"
    await producer.send("before")
    await producer.send(message, priority=7, delivery_mode=1)
    await producer.send("after")
    consumer = await session.create_consumer(jms.queue, selector)
    assert consumer.selector == selector
    assert texts(await take(consumer, 1)) == ["found"]
    await nothing(consumer)
    await jms.left("before", "after")


# -- by priority ----------------------------------------------------------------------------------------------------


@pytest.mark.option("jms.localMessagePriority", "amqp", "stomp")
@pytest.mark.parametrize("by_priority", [True, False])
async def test_what_was_prefetched_is_handed_out_by_priority_if_that_is_wanted(jms: Jms, by_priority: bool) -> None:
    """S32, S49, jms.localMessagePriority: all five wait in the client before one is taken."""
    options = {"jms.localMessagePriority": by_priority}
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE, options=options)
    consumer = await session.create_consumer(jms.queue)
    for number, (name, priority) in enumerate([("a", 4), ("b", 9), ("c", 4), ("d", 0), ("e", 9)], 1):
        await jms.send(name, priority=priority)
        await eventually(lambda: consumer.stats.buffered == number)  # noqa: B023 - called at once
    expected = [*"beacd"] if by_priority else [*"abcde"]
    assert texts(await take(consumer, 3)) == expected[:3]
    await session.recover()
    assert texts(await take(consumer, 5)) == expected
    await session.acknowledge()
    await jms.left()
