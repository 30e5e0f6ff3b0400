"""What a Java programmer writes is understood, refused or warned of, and never ignored."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import pyjmsack
from contract.harness import Jms
from pyjmsack import InvalidDestinationException, PossiblyMillisecondsWarning, UnsupportedFeatureException

pytestmark = pytest.mark.alike("names and times are read before a broker is asked")


async def test_an_attribute_that_does_not_exist_is_refused_and_java_names_are_answered_with_ours(jms: Jms) -> None:
    """On reading as on writing; ``producer.timeToLive = 1000`` was a new attribute that nobody read."""
    connection = await jms.connection()
    async with connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        consumer = await session.create_consumer(jms.queue)
        message = session.create_text_message("x")
        written: list[tuple[Any, str, str]] = [
            (jms.factory(), "clientId", ""),
            (connection, "exceptionListener", "exception_listener"),
            (connection, "clientID", "client_id"),
            (producer, "timeToLive", "time_to_live"),
            (producer, "setTimeToLive", "time_to_live"),
            (consumer, "messageListener", "message_listener"),
            (consumer, "nonsense", ""),
        ]
        read: list[tuple[Any, str, str]] = [
            *written,
            (connection, "createSession", "create_session"),
            (connection, "getMetaData", "metadata"),
            (session, "createTextMessage", "create_text_message"),
            (session, "createDurableSubscriber", "create_durable_consumer"),
            (consumer, "receiveNoWait", "receive_nowait"),
            (message, "getText", "text"),
            (message, "JMSReplyTo", "reply_to"),
            (message, "getJMSCorrelationID", "correlation_id"),
            (message, "setStringProperty", "message.properties['name']"),
            (jms.queue, "getQueueName", "name"),
        ]
        for thing, name, ours in written:
            with pytest.raises(AttributeError, match=name) as refused:
                setattr(thing, name, None)
            assert str(refused.value).endswith(f"in Python it is {ours}" if ours else repr(name))
        for thing, name, ours in read:
            with pytest.raises(AttributeError, match=name) as refused:
                getattr(thing, name)
            assert str(refused.value).endswith(f"in Python it is {ours}" if ours else repr(name))
            assert not hasattr(thing, name)
        producer.time_to_live = 60
        assert producer.time_to_live == 60


async def test_the_scheme_of_a_destination_is_understood_as_in_activemq(jms: Jms) -> None:
    async with (await jms.connection()).create_session() as session:
        assert session.create_queue("queue://a?consumer.prefetchSize=1") == session.create_queue("a")
        assert session.create_topic("topic://a") == session.create_topic("a")
        assert session.create_queue("http://a").name == "http://a"
        with pytest.raises(InvalidDestinationException, match=r"names a topic.*use create_topic\('a'\)"):
            session.create_queue("topic://a")
        with pytest.raises(InvalidDestinationException, match=r"use create_queue\('a'\)"):
            session.create_topic("QUEUE://a")
        with pytest.raises(InvalidDestinationException, match=r"use create_temporary_queue\(\)"):
            session.create_queue("temp-queue://a")


async def test_a_time_that_looks_like_milliseconds_is_warned_of_where_it_was_written(jms: Jms) -> None:
    async with (await jms.connection()).create_session() as session:
        producer = await session.create_producer(jms.queue)
        consumer = await session.create_consumer(jms.queue)
        for _ in range(4):
            await producer.send("x")
        with pytest.warns(PossiblyMillisecondsWarning, match="5000 is in seconds .1:23:20.*write 5 if") as told:
            await consumer.receive(5000)
        package = Path(pyjmsack.__file__).parent
        assert not [each for each in told if package in Path(each.filename).parents], "the place of the caller"
        with pytest.warns(PossiblyMillisecondsWarning, match="seconds"):
            producer.time_to_live = 86_400_000
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await consumer.receive(5000.0)
            await consumer.receive(999)
            producer.time_to_live = 86_400


async def test_several_queues_in_one_name_work_or_are_refused_with_the_way(jms: Jms) -> None:
    """S67: Artemis took the text as one name and confirmed the message, which neither queue got."""
    async with (await jms.connection()).create_session() as session:
        if jms.target.broker == "artemis":
            with pytest.raises(InvalidDestinationException, match=r"'a', 'b' in one transaction.*Queue\('a,b'\)"):
                session.create_queue("a,b")
            with pytest.raises(InvalidDestinationException, match=r"Topic\('a,b'\)"):
                session.create_topic("a,b")
            assert pyjmsack.Queue("a,b").name == "a,b"
        else:
            assert session.create_queue("a,b").name == "a,b"


@pytest.mark.parametrize("name", ["_AMQ_SCHED_DELIVERY", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON"])
async def test_a_property_that_asks_for_a_delay_in_vain_is_refused_with_the_call(jms: Jms, name: str) -> None:
    """S157: the broker delivered such a message at once. Where the broker itself reads the property, it is sent."""
    if jms.target.broker != "artemis" and name != "_AMQ_SCHED_DELIVERY":
        pytest.skip("ActiveMQ Classic reads it")
    async with (await jms.connection()).create_session() as session:
        producer = await session.create_producer(jms.queue)
        message = session.create_text_message("x")
        message.properties[name] = "0 * * * *" if name.endswith("CRON") else 60_000
        if name == "AMQ_SCHEDULED_DELAY" and jms.target.protocol == "stomp":
            await producer.send(message)
            consumer = await session.create_consumer(jms.queue)
            assert await consumer.receive_nowait() is None
            return
        how = "send the message again yourself" if name.endswith("CRON") else "delivery_delay=SECONDS"
        with pytest.raises(UnsupportedFeatureException, match=f"{name}.*{how}"):
            await producer.send(message)
