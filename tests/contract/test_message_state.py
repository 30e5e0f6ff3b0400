"""What may be read and written on a message, and when (S160, S163, S169)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from contract.brokers import alike
from contract.harness import Jms, take, texts
from pyjmsack import (
    AckMode,
    BytesMessage,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
    Queue,
    TextMessage,
)
from pyjmsack.providers.amqp.wire_types import ULong

THE_MESSAGE_S = alike("a message in the program knows no broker")
SETTERS = {
    "boolean": True,
    "byte": 1,
    "short": 2,
    "int": 3,
    "long": 4,
    "float": 0.5,
    "double": 0.25,
    "string": "text",
    "object": 1,
}
"""The typed property setters and a value for each."""


@THE_MESSAGE_S
async def test_properties_of_a_received_message_are_read_only_until_cleared(jms: Jms) -> None:
    """S163."""
    await jms.send("a")
    (message,) = await take(await jms.consumer(), 1)
    writes: list[Callable[[], Any]] = [
        lambda: message.properties.update(new=1),
        lambda: message.properties.pop("test"),
        lambda: message.properties.clear(),
        *(partial(getattr(message, f"set_{kind}_property"), "new", value) for kind, value in SETTERS.items()),
    ]
    for write in writes:
        with pytest.raises(MessageNotWriteableException):
            write()
    assert message.properties["test"] == jms.queue.name
    message.clear_properties()
    assert not message.properties
    for kind, value in SETTERS.items():
        getattr(message, f"set_{kind}_property")(kind, value)
        assert getattr(message, f"get_{kind}_property")(kind) == value
    assert message.body == "a"


@THE_MESSAGE_S
async def test_the_body_of_a_received_text_message_is_read_only_until_cleared(jms: Jms) -> None:
    """S163."""
    await jms.send("a")
    (message,) = await take(await jms.consumer(), 1)
    assert isinstance(message, TextMessage)
    with pytest.raises(MessageNotWriteableException):
        message.text = "b"
    assert message.text == "a"
    message.clear_body()
    assert message.text is None
    message.text = "b"
    assert message.properties["test"] == jms.queue.name


@THE_MESSAGE_S
async def test_the_body_of_a_received_bytes_message_is_read_only_until_cleared(jms: Jms) -> None:
    """S163, S171."""
    session = await jms.session()
    await (await session.create_producer(jms.queue)).send(b"\x00\x07")
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    assert isinstance(message, BytesMessage)
    with pytest.raises(MessageNotWriteableException):
        message.write_int(1)
    assert message.read_short() == 7
    message.clear_body()
    message.write_int(1)
    with pytest.raises(MessageNotReadableException):
        message.read_int()


@THE_MESSAGE_S
async def test_headers_of_a_received_message_may_be_set(jms: Jms) -> None:
    """S163."""
    await jms.send("a")
    (message,) = await take(await jms.consumer(), 1)
    message.correlation_id, message.type, message.priority = "c", "t", 9
    message.reply_to = message.destination = Queue("elsewhere")
    assert (message.correlation_id, message.type, message.priority) == ("c", "t", 9)
    assert message.reply_to == Queue("elsewhere")


async def test_a_received_message_can_be_sent_on(jms: Jms) -> None:
    """S71, S163: its own id, and what it carries stays."""
    await jms.send("a")
    session = await jms.session()
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    received_id = message.message_id
    await (await session.create_producer(jms.queue)).send(message)
    (again,) = await jms.left("a")
    assert again.properties["test"] == jms.queue.name
    assert received_id != again.message_id == message.message_id


@pytest.mark.option("jms.populateJMSXUserID", "amqp", "stomp")
async def test_the_user_id_is_that_of_the_login_never_what_the_sender_wrote(jms: Jms) -> None:
    """S71, S164."""
    options = {"jms.populateJMSXUserID": "true"}
    connection = await jms.connection(username="alice", password="any", options=options)
    session = await connection.create_session()
    message = session.create_map_message({"a": 1})
    message.properties["JMSXUserID"] = "spoofed"
    await (await session.create_producer(jms.queue)).send(message)
    (received,) = await take(await jms.consumer(), 1)
    assert message.properties["JMSXUserID"] == received.properties["JMSXUserID"] == "alice"


async def test_every_receive_hands_out_a_copy_of_its_own(jms: Jms) -> None:
    """S169."""
    await jms.send("a")
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = await session.create_consumer(jms.queue)
    (first,) = await take(consumer, 1)
    assert isinstance(first, TextMessage)
    first.clear_body()
    first.clear_properties()
    first.text, first.priority = "changed", 9
    await session.recover()
    (second,) = await take(consumer, 1)
    assert second is not first
    assert (second.body, second.priority, second.properties["test"]) == ("a", 4, jms.queue.name)
    assert (first.body, first.delivery_count) == ("changed", 1)


async def test_the_text_none_is_not_the_empty_text(jms: Jms) -> None:
    """S170."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    for text in (None, "", "ä\u0000😀"):
        await producer.send(session.create_text_message(text))
    await producer.send(session.create_message())
    messages = await take(await session.create_consumer(jms.queue), 4)
    assert texts(messages) == [None, "", "ä\u0000😀", None]
    assert [isinstance(message, TextMessage) for message in messages] == [True, True, True, False]


@THE_MESSAGE_S
@pytest.mark.parametrize(
    "name", ["", None, "with space", "with-dash", "1st", "a.b", "NULL", "TRUE", "NOT", "BETWEEN", "IS", "ESCAPE"]
)
async def test_a_property_name_that_jms_forbids_is_refused(jms: Jms, name: Any) -> None:
    """S160."""
    session = await jms.session()
    for message in (session.create_message(), session.create_text_message(), session.create_bytes_message()):
        with pytest.raises(MessageFormatException):
            message.properties[name] = 1
        with pytest.raises(MessageFormatException):
            message.set_string_property(name, "x")


@pytest.mark.option("jms.validatePropertyNames", "amqp", "stomp")
async def test_a_name_check_that_is_off_allows_all_names_but_none_and_empty(jms: Jms) -> None:
    """S160: and such names are readable where the check is on."""
    session = await jms.session(options={"jms.validatePropertyNames": "false"})
    message = session.create_text_message("a")
    message.properties["not-java"] = 1
    name: Any
    for name in ("", None):
        with pytest.raises(MessageFormatException):
            message.properties[name] = 1
    await (await session.create_producer(jms.queue)).send(message)
    (received,) = await jms.left("a")
    assert received.properties["not-java"] == 1
    assert received.property_exists("not-java")


async def costs_itself_alone(jms: Jms, producer: Any, message: Any) -> None:
    """Check that a message with the text "a" is refused with a short error, unless it goes to Artemis over AMQP, and
    that the next message is sent."""
    takes = jms.target.protocol == "amqp" and jms.target.broker == "artemis"
    if takes:
        await producer.send(message)
    else:
        with pytest.raises(MessageFormatException) as raised:
            await producer.send(message)
        assert len(str(raised.value)) < 1000
    await producer.send("b")
    await jms.left(*"ab" if takes else "b")


async def test_a_property_name_that_this_broker_cannot_take_costs_its_message_alone(jms: Jms) -> None:
    """S160: Classic ended the connection over AMQP if a name had more than 65,535 bytes."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    message.properties["n" * 65_536] = 1
    await costs_itself_alone(jms, producer, message)


@pytest.mark.parametrize("text", ["x" * 65_536, "\0" * 32_768], ids=["long", "NUL"])
@pytest.mark.parametrize("field", ["correlation_id", "type", "_group_id"])
async def test_a_header_that_this_broker_cannot_write_is_refused_before_it_is_sent(
    jms: Jms, field: str, text: str
) -> None:
    """S160: Classic answered over AMQP that it had rejected the message, and delivered it all the same."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    setattr(message, field, text)
    await costs_itself_alone(jms, producer, message)


@pytest.mark.parametrize(
    "held", [[b"x"], {"a": [ULong(1 << 63)]}, [{1: 2}], {"n" * 65_536: 1}], ids=["value", "deep", "key", "long"]
)
async def test_a_list_or_map_that_this_broker_cannot_take_costs_its_message_alone(jms: Jms, held: Any) -> None:
    """S160: a sender over AMQP may set such a property. Classic ended the connection of whoever sent it on."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    message._properties = {"held": held}
    takes = jms.target.protocol == "amqp" and jms.target.broker == "artemis"
    if takes:
        await producer.send(message)
    else:
        with pytest.raises(MessageFormatException, match="property 'held'"):
            await producer.send(message)
    await producer.send("b")
    await jms.left(*"ab" if takes else "b")


@THE_MESSAGE_S
@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, b"bytes", 1 << 63, {1}])
async def test_a_property_value_that_jms_forbids_is_refused(jms: Jms, value: Any) -> None:
    """S161."""
    message = (await jms.session()).create_message()
    with pytest.raises(MessageFormatException):
        message.properties["name"] = value
