"""One URL with both protocols: the connection is lost over one, and everything goes on over the other."""

from __future__ import annotations

import asyncio
import logging

import pytest
from contract.brokers import Target
from contract.faces import Face
from contract.harness import Jms, take, texts
from polling import eventually
from shared_brokers import Served

from faults.faults_support import failover_url
from pyjmsack import AckMode, JMSException, Queue, TransactionRolledBackException, UnsupportedFeatureException
from pyjmsack.testing import Wire

OTHER = {"amqp": "stomp", "stomp": "amqp"}


@pytest.fixture
def jms(face: Face, protocol: str, any_broker: Served, queue_name: str, no_leaks: None) -> Jms:
    """The broker itself, over the protocol that is lost. On Classic STOMP cannot acknowledge what AMQP sent."""
    return Jms(face, getattr(any_broker, f"{protocol}_url"), queue_name, Target(protocol, "artemis"))


async def test_a_connection_that_is_lost_over_one_protocol_goes_on_over_the_other(
    jms: Jms, protocol: str, any_broker: Served
) -> None:
    """S91, S92, S95, S97, S101, S103, S106: sends, transactions and consumers; the repeated send is stored once."""
    with Wire(jms.url) as wire:
        connection = await jms.connection(failover_url(wire.url, getattr(any_broker, f"{OTHER[protocol]}_url")))
        assert protocol.upper() in connection.metadata.protocol
        session = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
        transacted = await connection.create_session(AckMode.SESSION_TRANSACTED)
        producer, in_transaction = [await each.create_producer(jms.queue) for each in (session, transacted)]
        inbox = Queue(f"{jms.queue.name}.inbox")
        consumer, to_inbox = await session.create_consumer(inbox), await session.create_producer(inbox)
        for body in ("1", "2"):
            await to_inbox.send(body)
        (first,) = await take(consumer, 1)
        await producer.send("a")
        await in_transaction.send_async("undone")
        wire.cut_after(0, replies=True)
        await producer.send("b")
        assert OTHER[protocol].upper() in connection.metadata.protocol
        first.acknowledge()
        with pytest.raises(TransactionRolledBackException):
            await transacted.commit()
        await in_transaction.send("c")
        await transacted.commit()
        again = await take(consumer, 2)
        assert texts([first, *again]) == ["1", "1", "2"]  # the guard compares what one protocol delivered
        again[-1].acknowledge()
        await jms.left("a", "b", "c")


async def test_a_send_that_goes_over_the_other_protocol_overtakes_nothing(
    jms: Jms, protocol: str, any_broker: Served
) -> None:
    """S91: Artemis puts a message that has a delivery time before the others when that has come."""
    await jms.send("a", "b")
    with Wire(jms.url) as wire:
        connection = await jms.connection(failover_url(wire.url, getattr(any_broker, f"{OTHER[protocol]}_url")))
        producer = await (await connection.create_session()).create_producer(jms.queue)
        wire.cut_after(0)
        await producer.send("c")
        await jms.left("a", "b", "c")


@pytest.mark.parametrize("protocol", ["amqp"])
async def test_a_browser_does_not_go_on_where_it_would_consume_the_queue(
    jms: Jms, any_broker: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """S104, S119, S134: over STOMP Artemis takes a browser for a consumer. The broker is refused until it is closed."""
    caplog.set_level(logging.DEBUG, "pyjmsack.failover")
    await jms.send("a", "b", "c")
    with Wire(jms.url) as wire:
        connection = await jms.connection(failover_url(wire.url, any_broker.stomp_url))
        session = await connection.create_session()
        producer = await session.create_producer(jms.queue)
        browser = await session.create_browser(jms.queue)
        look = aiter(browser)
        assert (await anext(look)).body == "a"
        wire.cut()
        await eventually(lambda: "would consume the queue" in caplog.text)
        await browser.close()
        await producer.send("d")
        assert "STOMP" in connection.metadata.protocol
        with pytest.raises(UnsupportedFeatureException):
            await session.create_browser(jms.queue)
        await jms.left("a", "b", "c", "d")


@pytest.mark.parametrize("protocol", ["amqp"])
async def test_a_strict_transaction_does_not_go_on_where_it_would_not_be_atomic(
    jms: Jms, any_broker: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """S88, S104: what ``strict=true`` refuses at the start it refuses after a failover."""
    caplog.set_level(logging.DEBUG, "pyjmsack.failover")
    with Wire(jms.url) as wire:
        url = f"{failover_url(wire.url, any_broker.stomp_url)}&strict=true"
        session = await (await jms.connection(url)).create_session(AckMode.SESSION_TRANSACTED)
        producer = await session.create_producer(jms.queue)
        wire.cut()
        await eventually(lambda: "strict=true" in caplog.text)
        wire.heal()
        await producer.send("a")
        await session.commit()
        assert session.transaction_guarantee == "atomic"
        await jms.left("a")


async def test_a_refused_send_in_the_middle_of_a_burst_is_not_confirmed_when_the_others_are_repeated(
    jms: Jms, any_broker: Served
) -> None:
    """S61, S106: Artemis keeps the duplicate id of a message that it refuses, and confirmed the repeated message."""
    connection = await jms.connection(failover_url(jms.url))
    producer = await (await connection.create_session()).create_producer(None)
    destinations = [jms.queue, jms.queue, Queue(f"{jms.queue.name}#"), jms.queue, jms.queue]
    futures = [producer.send_async(str(number), destination=queue) for number, queue in enumerate(destinations)]
    answers = await asyncio.gather(*futures, return_exceptions=True)
    assert [isinstance(each, JMSException) for each in answers] == [False, False, True, False, False]
    await jms.left("0", "1", "3", "4")
