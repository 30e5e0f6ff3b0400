"""What connection listeners are told (S109)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from contract.brokers import not_on, only_on
from contract.harness import PATIENCE, Heard, Jms, take, texts
from pyjmsack import AckMode, ConnectionLostException, InvalidDestinationException, JMSException


async def test_a_connection_listener_hears_of_the_failure_and_may_lack_the_other_methods(jms: Jms) -> None:
    """S109, S128."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)

    class Listener:
        on_connection_failure = Heard[JMSException]()

    listener = Listener()
    connection.add_connection_listener(listener)
    connection.add_connection_listener(object())
    wire.cut()
    assert isinstance(await listener.on_connection_failure.next(), ConnectionLostException)


async def test_a_misspelt_method_of_a_connection_listener_gets_a_warning(
    jms: Jms, caplog: pytest.LogCaptureFixture
) -> None:
    """S109: the method would never be called, and nobody would know."""

    class Listener:
        def on_connection_interupted(self, url: str) -> None: ...

        def on_click(self) -> None: ...

    (await jms.connection()).add_connection_listener(Listener())
    [record] = [record for record in caplog.records if record.name == "pyjmsack" and "never called" in record.message]
    assert "on_connection_interupted of the connection listener Listener" in record.message
    assert "did you mean on_connection_interrupted?" in record.message


class Events:
    """A connection listener that remembers what the broker closed: the event and its arguments."""

    def __init__(self) -> None:
        self.heard = heard = Heard[tuple[str, Any, BaseException]]()
        for event in ("session", "producer", "consumer"):
            method = partial(lambda event, closed, error: heard((event, closed, error)), event)
            setattr(self, f"on_{event}_closed", method)


@not_on("classic", "13: no management by messages")
@not_on("stomp", "STOMP: its consumers are closed with their connection")
async def test_a_queue_that_is_deleted_under_its_consumer_is_an_event(jms: Jms) -> None:
    """S109, S126: once, with the object and the reason; the rest of the session goes on."""
    connection = await jms.connection()
    connection.add_connection_listener(events := Events())
    session = await connection.create_session()
    consumer = await session.create_consumer(jms.queue)
    await jms.manage("destroyQueue", jms.queue.name, True)
    event, closed, error = await events.heard.next()
    assert (event, closed.destination, type(error)) == ("consumer", jms.queue, InvalidDestinationException)
    with pytest.raises(InvalidDestinationException):
        await consumer.receive(timeout=PATIENCE)
    await consumer.close()
    other = await session.create_consumer(jms.queue)
    await jms.send("a")
    assert texts(await take(other, 1)) == ["a"]
    assert events.heard.silent


@not_on("classic", "13: no management by messages")
@not_on("stomp", "STOMP: it has no sessions")
async def test_a_session_that_the_broker_ends_is_an_event(jms: Jms) -> None:
    """S109: the last one of that session, as this broker may detach its links first; other sessions go on."""
    connection = await jms.connection()
    connection.add_connection_listener(events := Events())
    ended, other = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE), await connection.create_session()
    consumer, producer = await ended.create_consumer(jms.queue), await ended.create_producer(jms.queue)
    (mine,) = await jms.consumers_of(jms.queue.name)
    (its_session,) = await jms.listed("listSessions", "id", "EQUALS", mine["session"])
    assert await jms.manage("closeSessionWithID", its_session["connectionID"], its_session["id"])
    while (told := await events.heard.next())[0] != "session":
        pass
    assert told[1].acknowledge_mode is AckMode.CLIENT_ACKNOWLEDGE
    for call in (consumer.receive, partial(producer.send, "lost")):
        with pytest.raises(JMSException, match=r"the broker (ended|closed)"):
            await call()
    await (await other.create_producer(jms.queue)).send("a")
    assert isinstance(told[2], JMSException)
    assert events.heard.silent
    await jms.left("a")


@not_on("classic", "13: no management by messages")
@only_on("stomp", "AMQP closes the consumer alone")
async def test_over_stomp_a_queue_that_is_deleted_under_its_consumer_is_a_lost_connection(jms: Jms) -> None:
    """S109, S128: an ERROR frame ends the connection, and says why."""
    connection = await jms.connection()
    listener = Events()
    listener.on_connection_failure = Heard[JMSException]()
    connection.add_connection_listener(listener)
    await (await connection.create_session()).create_consumer(jms.queue)
    await jms.manage("destroyQueue", jms.queue.name, True)
    error = await listener.on_connection_failure.next()
    assert isinstance(error, ConnectionLostException)
    assert str(error).startswith("the broker ended the connection: consumer with ID")
    assert listener.heard.silent
