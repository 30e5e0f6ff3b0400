"""Completion listeners and futures: who is told of a send's end, when, and on which thread (S66-S74)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from contract.harness import PATIENCE, Completed, Gate, Heard, Jms, producer_behind, take, texts
from pyjmsack import (
    AckMode,
    DeliveryMode,
    IllegalStateException,
    JMSException,
    Message,
    MessageNotWriteableException,
)

AUTO, TRANSACTED = AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED
PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


WRITES: dict[str, Callable[[Any], Any]] = {
    "text": lambda message: setattr(message, "text", "changed"),
    "clear_body": lambda message: message.clear_body(),
    "clear_properties": lambda message: message.clear_properties(),
    "property": lambda message: message.properties.update(changed=True),
    "set_int_property": lambda message: message.set_int_property("changed", 1),
    "message_id": lambda message: setattr(message, "message_id", "ID:changed"),
    "correlation_id": lambda message: setattr(message, "correlation_id", "changed"),
    "type": lambda message: setattr(message, "type", "changed"),
    "timestamp": lambda message: setattr(message, "timestamp", None),
    "expiration": lambda message: setattr(message, "expiration", None),
    "delivery_time": lambda message: setattr(message, "delivery_time", None),
    "destination": lambda message: setattr(message, "destination", None),
    "reply_to": lambda message: setattr(message, "reply_to", None),
    "delivery_mode": lambda message: setattr(message, "delivery_mode", 1),
    "priority": lambda message: setattr(message, "priority", 1),
    "redelivered": lambda message: setattr(message, "redelivered", True),
}


async def test_a_message_is_read_only_until_its_completion_listener_was_called(jms: Jms) -> None:
    """S73."""
    wire = jms.wire()
    session, producer = await producer_behind(jms, wire)
    wire.swallow_replies()
    listener = Completed()
    message = session.create_text_message("a")
    await producer.send(message, completion_listener=listener)
    for write in WRITES.values():
        with pytest.raises(MessageNotWriteableException):
            write(message)
    with pytest.raises(IllegalStateException):
        await producer.send(message)
    assert message.text == "a"
    wire.heal()
    assert (await listener.heard.next())[0] is message
    for write in WRITES.values():
        write(message)
    message.text = "b"
    await producer.send(message)
    await jms.left("warm-up", "a", "b")


async def test_completion_listeners_are_called_in_the_order_of_the_sends_one_at_a_time(jms: Jms) -> None:
    """S74: over all producers of a session."""
    session = await jms.session()
    producers = [await session.create_producer(jms.queue) for _ in range(3)]
    running, most = 0, 0
    heard = Heard[Message]()

    class Listener:
        def on_completion(self, message: Message) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            heard(message)
            running -= 1

        def on_exception(self, message: Message, error: JMSException) -> None:
            raise AssertionError(error)

    for number in range(60):
        await producers[number % 3].send(
            str(number), completion_listener=Listener(), delivery_mode=PERSISTENT if number % 2 else NON_PERSISTENT
        )
    assert texts(await heard.take(60)) == [str(number) for number in range(60)]
    assert most == 1


@pytest.mark.parametrize("call", ["session.commit", "session.rollback", "session.close", "connection.close"])
async def test_a_completion_listener_may_not_end_its_session_or_transaction(jms: Jms, call: str) -> None:
    """S74."""
    connection = await jms.connection()
    session = await connection.create_session(TRANSACTED)
    producer = await session.create_producer(jms.queue)
    heard = Heard[object]()

    class Listener:
        async def on_completion(self, message: Message) -> None:
            owner, _, method = call.partition(".")
            try:
                await getattr(session if owner == "session" else connection, method)()
            except IllegalStateException as error:
                heard(error)
            else:
                heard(None)

        def on_exception(self, message: Message, error: JMSException) -> None:
            heard(error)

    await producer.send("a", completion_listener=Listener())
    error = await heard.next()
    assert isinstance(error, IllegalStateException)
    assert "S74" in str(error)
    await session.commit()
    await jms.left("a")


async def test_a_completion_listener_may_send(jms: Jms) -> None:
    """S74."""
    producer = await (await jms.session()).create_producer(jms.queue)
    done = Gate()

    class Listener:
        async def on_completion(self, message: Message) -> None:
            await producer.send("b")
            done.open()

        def on_exception(self, message: Message, error: JMSException) -> None:
            raise AssertionError(error)

    await producer.send("a", completion_listener=Listener())
    await done.passed()
    await jms.left("a", "b")


async def test_a_raising_completion_listener_does_not_stop_the_others(jms: Jms) -> None:
    """S127."""
    producer = await (await jms.session()).create_producer(jms.queue)
    heard = Completed()

    class Raising:
        def on_completion(self, message: Message) -> None:
            raise RuntimeError("on purpose")

        def on_exception(self, message: Message, error: JMSException) -> None:
            raise RuntimeError("on purpose")

    await producer.send("a", completion_listener=Raising())
    await producer.send("b", completion_listener=heard)
    assert (await heard.heard.next())[0].body == "b"


@pytest.mark.parametrize("level", ["producer", "session", "connection"])
async def test_close_waits_for_pending_completions(jms: Jms, level: str) -> None:
    """S74."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)
    session = await connection.create_session()
    producer = await session.create_producer(jms.queue)
    await producer.send("warm-up")
    wire.swallow_replies()
    listener = Completed()
    for body in "abc":
        await producer.send(body, completion_listener=listener)
    owners: dict[str, Any] = {"producer": producer, "session": session, "connection": connection}
    closing = asyncio.create_task(owners[level].close())
    await asyncio.wait({closing}, timeout=0.1)
    assert not closing.done()
    wire.heal()
    await closing
    heard = await listener.heard.take(3)
    assert [(message.body, error) for message, error in heard] == [("a", None), ("b", None), ("c", None)]


@pytest.mark.parametrize("level", ["session", "connection"])
async def test_close_fails_what_is_still_pending_after_the_close_timeout(jms: Jms, level: str) -> None:
    """S74, S123."""
    wire = jms.wire()
    connection = await jms.connection(wire.url, options={"jms.closeTimeout": 200})
    session = await connection.create_session()
    producer = await session.create_producer(jms.queue)
    await producer.send("warm-up")
    wire.swallow_replies()
    listener = Completed()
    message = session.create_text_message("a")
    await producer.send(message, completion_listener=listener)
    await asyncio.wait_for((session if level == "session" else connection).close(), PATIENCE)
    reported, error = await listener.heard.next()
    assert reported is message
    assert isinstance(error, JMSException)
    message.text = "writeable again"


async def test_a_lost_connection_fails_pending_sends_of_every_kind(jms: Jms) -> None:
    """S64, S128."""
    wire = jms.wire()
    _, producer = await producer_behind(jms, wire)
    wire.swallow_replies()
    listener = Completed()
    await producer.send("a", completion_listener=listener)
    future = producer.send_async("b")
    sending = asyncio.create_task(producer.send("c"))
    await asyncio.wait({sending}, timeout=0.05)
    wire.cut()
    for waiting in (future, sending):
        with pytest.raises(ConnectionError):
            await waiting
    assert isinstance((await listener.heard.next())[1], ConnectionError)


async def test_a_future_is_done_when_the_broker_has_confirmed(jms: Jms) -> None:
    """S63, S64."""
    wire = jms.wire()
    _, producer = await producer_behind(jms, wire)
    wire.swallow_replies()
    future = producer.send_async("a")
    await asyncio.wait({future}, timeout=0.1)
    assert not future.done()
    wire.heal()
    await future
    await jms.left("warm-up", "a")


async def test_a_future_and_a_completion_listener_go_together(jms: Jms) -> None:
    """S64, S73."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    listener = Completed()
    message = session.create_text_message("a")
    await producer.send_async(message, completion_listener=listener)
    assert (await listener.heard.next()) == (message, None)


async def test_close_waits_for_pending_futures(jms: Jms) -> None:
    """S74."""
    session = await jms.session()
    future = (await session.create_producer(jms.queue)).send_async("a")
    await session.close()
    await asyncio.wait_for(future, PATIENCE)
    await jms.left("a")


async def test_sent_messages_keep_their_order_whatever_the_way(jms: Jms) -> None:
    """S61: one producer, one queue, one order."""
    producer = await (await jms.session()).create_producer(jms.queue)
    listener = Completed()
    futures = []
    for number in range(0, 40, 4):
        await producer.send(str(number))
        futures.append(producer.send_async(str(number + 1)))
        await producer.send(str(number + 2), completion_listener=listener)
        await producer.send(str(number + 3), delivery_mode=NON_PERSISTENT if jms.ways.one_order else PERSISTENT)
    await asyncio.gather(*futures)
    await jms.left(*map(str, range(40)))


async def test_thousands_of_sends_arrive_complete(jms: Jms) -> None:
    """S61, S65."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    bodies = [str(number) for number in range(3000)]
    await asyncio.gather(*(producer.send_async(body, delivery_mode=NON_PERSISTENT) for body in bodies))
    assert texts(await take(await session.create_consumer(jms.queue), 3000)) == bodies
