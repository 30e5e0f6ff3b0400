"""Options of consumers that not every broker honours: exclusive, retroactive (A.2, A.4)."""

from __future__ import annotations

import pytest

from contract.brokers import only_on
from contract.harness import Jms, Options, nothing, take, texts
from pyjmsack import ConnectionLostException, Topic, UnsupportedFeatureException

FOR_ALL = {"jms.exclusiveConsumer": True}


@only_on("stomp-classic", "the others refuse it, see below")
@pytest.mark.parametrize(("options", "own"), [(FOR_ALL, ""), ({}, "?consumer.exclusive=true")], ids=["all", "this-one"])
async def test_an_exclusive_consumer_gets_everything_until_it_is_closed(jms: Jms, options: Options, own: str) -> None:
    """S119: broker facts 7."""
    first = await (await jms.session(options=options)).create_consumer(jms.queue_with(own[1:]) if own else jms.queue)
    second = await jms.consumer(options=options)
    await jms.send("a", "b", "c", "d")
    assert texts(await take(first, 4)) == ["a", "b", "c", "d"]
    await nothing(second)
    await first.close()
    await jms.send("e")
    assert texts(await take(second, 1)) == ["e"]


@pytest.mark.option("consumer.exclusive", "amqp", "stomp")
async def test_an_exclusive_consumer_is_refused_where_it_would_not_be_alone(jms: Jms) -> None:
    """S119: for queues; a destination may take back what the connection says, and topics have no such thing."""
    session = await jms.session(options=FOR_ALL)
    if not jms.target.named("stomp-classic"):
        with pytest.raises(UnsupportedFeatureException, match=r"consumer\.exclusive"):
            await session.create_consumer(jms.queue)
    await session.create_consumer(jms.queue_with("consumer.exclusive=false"))
    await session.create_consumer(Topic(f"{jms.queue.name}.topic"))


@pytest.mark.option("consumer.retroactive", "amqp", "stomp")
async def test_a_retroactive_consumer_is_refused_where_it_would_be_an_ordinary_one(jms: Jms) -> None:
    """S119: a queue keeps what was sent in any case."""
    session = await jms.session(options={"jms.useRetroactiveConsumer": True})
    topic = Topic(f"{jms.queue.name}.topic")
    if jms.target.named("stomp-classic"):
        await session.create_consumer(topic)
    else:
        with pytest.raises(UnsupportedFeatureException, match=r"consumer\.retroactive"):
            await session.create_consumer(topic)
    await session.create_consumer(Topic(f"{topic.name}?consumer.retroactive=false"))
    await session.create_consumer(jms.queue)


@pytest.mark.option("amqp.saslLayer", "amqp")
@only_on("amqp", "SASL belongs to AMQP")
async def test_without_the_sasl_layer_artemis_lets_in_whom_it_lets_in_without_a_login(jms: Jms) -> None:
    """A.1 ``amqp.saslLayer``; Classic insists on SASL."""
    await jms.send("a")
    if jms.target.named("classic"):
        with pytest.raises(ConnectionLostException, match="SASL"):
            await jms.connection(options={"amqp.saslLayer": False})
        return
    assert texts(await take(await jms.consumer(options={"amqp.saslLayer": False}), 1)) == ["a"]
