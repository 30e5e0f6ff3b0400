"""What a client sees of a broker that is killed, restarted or frozen, and what is left: each kind of the plugin's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from pyjmsack import AckMode, ConnectionFactory, JMSException, SendTimedOutException, aio
from pyjmsack.testing import Broker, Wire

PATIENCE = 60.0

pytestmark = [
    pytest.mark.xdist_group("containers"),  # one worker, so that each broker is started once
    pytest.mark.parametrize("jms_broker", ["artemis", "activemq", "activemq5"], indirect=True),
]


def send(url: str, queue: str, *bodies: str) -> None:
    """Send persistent messages; they are confirmed when this returns."""
    with ConnectionFactory(url).create_context() as context:
        producer = context.create_producer(context.create_queue(queue))
        for body in bodies:
            producer.send(body)


def drain(url: str, queue: str, count: int) -> list[str]:
    """Take that many messages off a queue, and see that there is no other."""
    with ConnectionFactory(url).create_context(AckMode.CLIENT_ACKNOWLEDGE) as context:
        consumer = context.create_consumer(context.create_queue(queue))
        messages = [consumer.receive(timeout=PATIENCE) for _ in range(count)]
        assert consumer.receive_nowait() is None
        messages[-1].acknowledge()
        return [message.text for message in messages]


def test_both_urls_answer_the_protocol_they_name(jms_broker: Broker, queue_name: str) -> None:
    send(jms_broker.amqp_url, queue_name, "here")
    assert drain(jms_broker.amqp_url, queue_name, 1) == ["here"]
    port = int(jms_broker.stomp_url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as stomp:
        stomp.sendall(b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\0")
        assert stomp.recv(9, socket.MSG_WAITALL) == b"CONNECTED"


@pytest.mark.parametrize("harm", ["kill", "restart"])
def test_what_was_confirmed_outlives_the_broker_and_its_urls_stay(
    jms_broker: Broker, queue_name: str, harm: str
) -> None:
    urls = (jms_broker.amqp_url, jms_broker.stomp_url)
    bodies = [f"message {number}" for number in range(50)]
    send(jms_broker.amqp_url, queue_name, *bodies)
    getattr(jms_broker, harm)()
    if harm == "kill":
        assert not jms_broker.running
        with pytest.raises(JMSException):
            send(jms_broker.amqp_url, queue_name, "nobody is there")
        jms_broker.restart()
    assert jms_broker.running
    assert urls == (jms_broker.amqp_url, jms_broker.stomp_url)
    assert drain(jms_broker.amqp_url, queue_name, 50) == bodies


def test_a_consumer_sees_at_once_that_its_broker_was_killed(jms_broker: Broker, queue_name: str) -> None:
    with ConnectionFactory(jms_broker.amqp_url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(queue_name))
        jms_broker.kill()
        with pytest.raises(JMSException):
            consumer.receive(timeout=PATIENCE)


def test_a_send_to_a_frozen_broker_times_out_in_doubt_and_is_done_when_it_goes_on(
    jms_broker: Broker, queue_name: str
) -> None:
    """S66."""
    with ConnectionFactory(jms_broker.amqp_url, options={"jms.sendTimeout": 2000}).create_context() as context:
        producer = context.create_producer(context.create_queue(queue_name))
        producer.send("before")
        jms_broker.pause()
        assert jms_broker.running
        with pytest.raises(SendTimedOutException):
            producer.send("in doubt")
        jms_broker.resume()
        producer.send("after")
    assert drain(jms_broker.amqp_url, queue_name, 3) == ["before", "in doubt", "after"]


def test_a_reply_that_is_cut_off_leaves_the_message_with_the_broker(
    jms_broker: Broker, queue_name: str, wire: Callable[[str], Wire]
) -> None:
    line = wire(jms_broker.amqp_url)

    async def scenario() -> None:
        factory = aio.ConnectionFactory(line.url)
        async with factory.create_connection() as connection, connection.create_session() as session:
            producer = await session.create_producer(session.create_queue(queue_name))
            line.cut_after(0, replies=True)
            with pytest.raises(JMSException):
                await producer.send("in doubt")

    asyncio.run(scenario())
    assert drain(jms_broker.amqp_url, queue_name, 1) == ["in doubt"]
