"""ActiveMQ Classic's own ways over AMQP: what is refused because it would mean something else there (S119)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from contract.brokers import only_on
from contract.harness import Jms, Options, counts, nothing, take, texts
from pyjmsack import (
    AckMode,
    DeliveryMode,
    InvalidDestinationException,
    Message,
    MessageFormatException,
    Queue,
    RequestTimedOutException,
    Topic,
    UnsupportedFeatureException,
)
from pyjmsack.broker import EmbeddedActiveMQ

pytestmark = only_on("classic", "it is about Classic")
LIMIT = "jms.redeliveryPolicy.maxRedeliveries"


@only_on("amqp", "over STOMP see test_acknowledgement.py")
@pytest.mark.parametrize("mode", [AckMode.INDIVIDUAL_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE])
@pytest.mark.parametrize("how", ["method", "property"])
async def test_undeliverable_here_is_refused_and_the_message_stays(jms: Jms, mode: AckMode, how: str) -> None:
    """S119, broker facts 10: it would mean the dead-letter queue."""
    await jms.send("a")
    (message,) = await take(await jms.consumer(mode), 1)
    if how == "method":
        settle = partial(message.modify, undeliverable_here=True)
    else:
        message.properties["JMS_AMQP_ACK_TYPE"] = 5
        settle = message.acknowledge
    with pytest.raises(UnsupportedFeatureException, match=r"dead-letter queue at once.*reject\(\)"):
        settle()
    await jms.left("a")


async def recovered(jms: Jms, options: Options, times: int) -> list[int]:
    """Let a message be delivered again and again over one link; return its counts."""
    session = await jms.session(AckMode.INDIVIDUAL_ACKNOWLEDGE, options=options)
    consumer = await session.create_consumer(jms.queue)
    seen = []
    while len(seen) < times and (message := await consumer.receive(timeout=0)) is not None:
        seen.append(message.delivery_count)
        message.modify()
    return seen


async def test_a_poisonous_message_comes_again_for_ever_unless_the_client_has_a_limit(jms: Jms) -> None:
    """S111, S112, S114, broker facts 10; beyond the limit it is rejected."""
    await jms.send("a")
    assert await recovered(jms, {}, 25) == [*range(1, 26)]
    await jms.close()
    assert await recovered(jms, {LIMIT: 3}, 25) == [*range(*jms.ways.counted(2), 5)]
    await jms.left()
    await jms.dead("a")


@pytest.mark.parametrize("mode", DeliveryMode)
async def test_rejected_messages_are_dead_lettered_for_good_though_everything_is_closed_at_once(
    jms: Jms, mode: DeliveryMode
) -> None:
    """S118, broker facts 10: the stock policy discards what is not persistent, so that is copied; it does not return to
    its queue, and does not expire in the other."""
    bodies = [str(number) for number in range(30)]
    await jms.send(*bodies, delivery_mode=mode, time_to_live=60)
    for message in await take(await jms.consumer(AckMode.INDIVIDUAL_ACKNOWLEDGE), 30):
        message.reject()
    await jms.left()
    dead = await jms.dead(*bodies)
    if mode is DeliveryMode.NON_PERSISTENT:
        assert {message.expiration for message in dead} == {None}


async def test_what_was_released_stays_with_its_consumer_until_that_is_closed(jms: Jms) -> None:
    """Broker facts 10: nobody else gets it meanwhile."""
    await jms.send("a")
    consumer = await jms.consumer(AckMode.INDIVIDUAL_ACKNOWLEDGE, options={"jms.prefetchPolicy.all": 0})
    (message,) = await take(consumer, 1)
    message.release()
    other = await jms.consumer()
    await nothing(other)
    await consumer.close()
    assert counts(await take(other, 1)) == jms.ways.counted(1)


@only_on("stomp", "over AMQP messages are released one by one, uncounted")
async def test_what_nobody_had_is_not_counted_when_another_subscription_replaces_the_one_that_had_it(
    jms: Jms,
) -> None:
    """S80, S89, S110: the broker flags all that the ended subscription had."""
    bodies = [str(number) for number in range(150)]
    await jms.send(*bodies)
    connection = await jms.connection()
    session, other = [await connection.create_session(AckMode.SESSION_TRANSACTED) for _ in range(2)]
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 120)
    await (await other.create_producer(jms.queue)).send("last")
    await other.commit()
    await session.rollback()
    messages = await take(consumer, 151)
    assert texts(messages) == [*bodies, "last"]
    assert counts(messages) == [2] * 120 + [1] * 31
    await session.commit()
    await jms.left()


async def test_a_delivery_delay_is_refused_as_the_broker_would_ignore_it(jms: Jms) -> None:
    """S157, broker facts 13."""
    producer = await (await jms.session()).create_producer(jms.queue)
    with pytest.raises(UnsupportedFeatureException, match=r"schedulerSupport.*broker\.scheduler=true"):
        await producer.send("late", delivery_delay=5)
    await jms.left()


@pytest.fixture(scope="module")
def scheduling() -> Iterator[Callable[[str], str]]:
    """The address of a broker with its scheduler on, started when it is first asked for."""
    with EmbeddedActiveMQ(scheduler=True) as broker:
        yield lambda protocol: getattr(broker, f"{protocol}_url")


@only_on("classic-6", "one broker with a scheduler is enough")
@pytest.mark.parametrize("receiving", ["amqp", "stomp"])
@pytest.mark.parametrize(
    "url", ["{}?broker.scheduler=true", "failover:({}?broker.scheduler=true)", "failover:({})?broker.scheduler=true"]
)
async def test_a_delivery_delay_works_where_the_scheduler_is_on(
    jms: Jms, scheduling: Callable[[str], str], url: str, receiving: str
) -> None:
    """S157, S160: ``broker.scheduler=true``; no property tells how it was done."""
    session = await jms.session(url=url.format(scheduling(jms.target.protocol)))
    producer = await session.create_producer(jms.queue)
    producer.disable_message_id = jms.target.protocol == "amqp"  # else Classic ends a STOMP connection at the ACK
    consumer = await (await jms.session(url=scheduling(receiving))).create_consumer(jms.queue)
    message = session.create_text_message("late")
    message.properties["color"] = "red"
    await producer.send(message, delivery_delay=1)
    await producer.send("soon")
    soon, late = await take(consumer, 2)
    assert texts([soon, late]) == ["soon", "late"]
    assert dict(late.properties) == {"color": "red"}
    if (jms.target.protocol, receiving) != ("stomp", "amqp"):  # the broker does not turn it into an annotation
        assert late.delivery_time == message.delivery_time


@only_on("stomp", "AMQP has no such limits")
async def test_what_ends_the_connection_is_refused_and_not_repeated_for_ever(jms: Jms) -> None:
    """S91, S160, broker facts STOMP: a header line above 10 KiB; the longest that passes does."""
    session = await jms.session(url=f"failover:({jms.url})")
    producer = await session.create_producer(jms.queue)
    for size in (10_240 - len("color:"), 10_241 - len("color:")):
        message = session.create_text_message(str(size))
        message.properties["color"] = "x" * size
        if size < 10_241 - len("color:"):
            await producer.send(message)
        else:
            with pytest.raises(MessageFormatException, match=r"'color' is too long.*10240"):
                await producer.send(message)
    await jms.left(str(10_240 - len("color:")))


@only_on("stomp", "over AMQP the browser ends")
async def test_a_browser_whose_selector_the_broker_cannot_evaluate_ends(jms: Jms) -> None:
    """S134, broker facts STOMP: properties are strings, the broker cannot compute with them, and often falls silent."""
    session = await jms.session(options={"stomp.drainTimeout": 500})
    producer = await session.create_producer(jms.queue)
    for number, text in enumerate("ab", 1):
        message = session.create_text_message(text)
        message.properties["number"] = number
        await producer.send(message)
    with contextlib.suppress(RequestTimedOutException):
        assert [message async for message in await session.create_browser(jms.queue, "number * 2 = 4")] == []
    await jms.left("a", "b")


@pytest.mark.parametrize("kind", ["create_shared_consumer", "create_shared_durable_consumer"])
async def test_shared_subscriptions_are_refused_as_they_would_not_be_shared(jms: Jms, kind: str) -> None:
    """S143, broker facts 13."""
    session = await jms.session()
    with pytest.raises(UnsupportedFeatureException, match="every subscriber every message"):
        await getattr(session, kind)(Topic(jms.queue.name), "name")


async def test_a_queue_and_a_topic_of_one_name_are_two_things(jms: Jms) -> None:
    """Broker facts 2: the prefix tells them apart, also for a producer without a destination, and both ways back."""
    session = await jms.session()
    queue, topic = jms.queue, Topic(jms.queue.name)
    of_queue, of_topic = await session.create_consumer(queue), await session.create_consumer(topic)
    producer = await session.create_producer()
    for destination, answers in ((queue, topic), (topic, queue)):
        message = session.create_text_message(str(destination))
        message.reply_to = answers
        await producer.send(message, destination)
    found: list[Message] = [*await take(of_queue, 1), *await take(of_topic, 1)]
    assert texts(found) == [str(queue), str(topic)]
    assert [message.destination for message in found] == [queue, topic]
    assert [message.reply_to for message in found] == [topic, queue]
    await nothing(of_queue)
    await nothing(of_topic)


async def test_what_the_broker_is_may_be_said_in_the_url(jms: Jms) -> None:
    """S119: here the one of the other major version, then none that is known: with its prefixes all the same."""
    for key in ("classic-5", "unknown"):
        connection = await jms.connection(f"{jms.url}?broker={key}")
        assert connection.metadata.broker == key
        session = await connection.create_session()
        await (await session.create_producer(Queue(jms.queue.name))).send(key)
        assert texts(await take(await session.create_consumer(jms.queue), 1)) == [key]
        await jms.close()


async def test_no_name_damages_the_store_of_the_broker(jms: Jms) -> None:
    """S67: with such a name nobody could make a destination until the broker was started again. A requestor's
    `reply_to` may have it."""
    session, long = await jms.session(), "r" * 70_000
    request = session.create_text_message("question")
    request.reply_to = Queue(long)
    producer = await session.create_producer(None)
    sends = [(request, jms.queue), ("x", Queue(long)), ("x", Topic(long))]
    for message, where in sends:
        with pytest.raises(InvalidDestinationException, match="damage the store of ActiveMQ Classic"):
            await producer.send(message, where)
    for ask in (session.create_producer, session.create_consumer, session.create_browser):
        with pytest.raises((InvalidDestinationException, UnsupportedFeatureException)):
            await ask(Queue(long))
    with pytest.raises(InvalidDestinationException):
        await session.unsubscribe(long)
    await producer.send("a", jms.queue)
    await jms.left("a")
