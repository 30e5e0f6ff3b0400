"""Hooks that replace messages (S192)."""

from __future__ import annotations

from typing import Any

import pytest

from contract.brokers import only_on
from contract.harness import Heard, Jms, counts, nothing, take, texts
from pyjmsack import AckMode, Destination, JMSException, Message, TextMessage

pytestmark = only_on("artemis", "hooks are the client's own affair")


class Shouting:
    """Sends louder, hears softer."""

    def producer_transform(self, message: Message, destination: Destination) -> Message | None:
        """Replace texts."""
        if message.body == "as it is":
            return None
        return TextMessage(f"{message.body} for {destination.name[:4]}".upper())

    def consumer_transform(self, message: Message, destination: Destination) -> Message:
        """Return a new message, without a header of its own."""
        return TextMessage(str(message.body).lower())


async def test_a_transformer_replaces_what_is_sent_and_what_is_received(jms: Jms) -> None:
    """S192: the one it returns is stamped and sent; the one that is handed out can be acknowledged."""
    writer = await jms.connection(message_transformer=Shouting())
    session = await writer.create_session()
    producer = await session.create_producer(jms.queue)
    await producer.send("hello")
    await producer.send("as it is")
    await producer.send_async("later")
    reader = await jms.connection()
    consumer = await (await reader.create_session(AckMode.CLIENT_ACKNOWLEDGE)).create_consumer(jms.queue)
    (plain,) = await take(consumer, 1)
    assert plain.body == "HELLO FOR TEST"
    reader.message_transformer = Shouting()
    quiet = await take(consumer, 2)
    assert texts(quiet) == ["as it is", "later for test"]
    assert all(message.message_id is not None for message in quiet), "else nobody could report them"
    quiet[-1].acknowledge()
    await jms.left()


async def test_a_listener_and_a_requestor_get_what_the_hook_returns(jms: Jms) -> None:
    """S192: correlation and reply-to survive a hook that makes a new message."""
    connection = await jms.connection(message_transformer=Shouting())
    session = await connection.create_session()
    server = await connection.create_session()
    replier = await server.create_producer()
    heard = Heard[Message]()

    def answer(message: Message) -> Any:
        heard(message)
        return replier.reply(message, f"yes to {message.body}")

    (await server.create_consumer(jms.queue)).message_listener = answer
    requestor = await session.create_requestor(jms.queue)
    reply = await requestor.request("hello", timeout=10)
    assert reply is not None
    assert (await heard.next()).body == "hello for test"
    assert str(reply.body).startswith("yes to hello for test")


async def test_a_hook_that_raises_hands_its_message_back_counted_and_is_reported(jms: Jms) -> None:
    """S192, S18: as a listener that raises; the limit of redeliveries ends it."""

    class Failing:
        def consumer_transform(self, message: Message, destination: Destination) -> Message:
            if message.body == "bad":
                raise ValueError("cannot read it")
            return message

    options = {"jms.redeliveryPolicy.maxRedeliveries": 1, "jms.redeliveryPolicy.outcome": "REJECTED"}
    connection = await jms.connection(message_transformer=Failing(), options=options)
    heard: Heard[JMSException] = Heard()
    connection.exception_listener = heard
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    await jms.send("bad", "good")
    assert texts(await take(consumer, 1)) == ["good"]
    while not consumer.stats.poisoned:  # it comes again by way of the broker
        await nothing(consumer)
    errors = await heard.take(2)
    assert all("consumer_transform raised" in str(error) for error in errors)
    assert isinstance(errors[0].__cause__, ValueError)
    await jms.left()
    assert counts(await jms.dead("bad"))


async def test_a_hook_that_raises_on_the_way_out_raises_out_of_send(jms: Jms) -> None:
    """S192: and nothing is sent."""

    class Failing:
        def producer_transform(self, message: Message, destination: Destination) -> Message:
            raise ValueError("cannot write it")

    connection = await jms.connection(message_transformer=Failing())
    producer = await (await connection.create_session()).create_producer(jms.queue)
    with pytest.raises(ValueError, match="cannot write it"):
        await producer.send("a")
    connection.message_transformer = None
    await producer.send("b")
    await jms.left("b")


async def test_what_is_no_transformer_is_refused_when_it_is_given(jms: Jms) -> None:
    """S192."""

    class Waiting:
        async def producer_transform(self, message: Message, destination: Destination) -> Message:
            return message

    with pytest.raises(TypeError, match="producer_transform or consumer_transform"):
        jms.factory(message_transformer=object())
    with pytest.raises(TypeError, match="plain function"):
        jms.factory(message_transformer=Waiting())
    connection = await jms.connection()
    with pytest.raises(TypeError):
        connection.message_transformer = lambda message: message
    assert connection.message_transformer is None
