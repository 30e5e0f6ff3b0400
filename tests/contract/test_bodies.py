"""Map, stream and object messages there and back (S151, S164, S166, S168, S172-S176)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from contract.harness import PATIENCE, Jms, take
from pyjmsack import (
    Byte,
    BytesMessage,
    Char,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    MessageEOFException,
    MessageFormatException,
    MessageNotWriteableException,
    ObjectMessage,
    SerializedObject,
    Short,
    StreamMessage,
    TextMessage,
    aio,
)

PROPERTIES: dict[str, Any] = {
    "boolean": True,
    "byte": Byte(-1),
    "short": Short(-2),
    "int": 3,
    "long": Long(4),
    "big": 1 << 40,
    "float": Float(0.5),
    "double": 0.25,
    "string": "é😀",
}
FIELDS: dict[str, Any] = {
    **PROPERTIES,
    "char": Char("ß"),
    "bytes": b"\x00\xff" * 200,
    "empty": b"",
    "none": None,
    "text": "x" * 300,
}
OBJECT: Any = {"list": [1, Short(2), [None]], 5: {"deep": UUID(int=7)}, "bytes": b"x", "char": Char("y")}

Make = Callable[[aio.Session], Message]
MAKERS: dict[str, tuple[Make, type[Message], Any]] = {
    "plain": (lambda s: s.create_message(), Message, None),
    "text": (lambda s: s.create_text_message("é😀"), TextMessage, "é😀"),
    "bytes": (lambda s: s.create_bytes_message(b"\x00\xff"), BytesMessage, b"\x00\xff"),
    "empty bytes": (lambda s: s.create_bytes_message(b""), BytesMessage, b""),
    "map": (lambda s: s.create_map_message(FIELDS), MapMessage, FIELDS),
    "empty map": (lambda s: s.create_map_message(), MapMessage, {}),
    "stream": (lambda s: s.create_stream_message(FIELDS.values()), StreamMessage, [*FIELDS.values()]),
    "empty stream": (lambda s: s.create_stream_message(), StreamMessage, []),
    "object": (lambda s: s.create_object_message(OBJECT), ObjectMessage, OBJECT),
    "number": (lambda s: s.create_object_message(Byte(5)), ObjectMessage, Byte(5)),
    "no object": (lambda s: s.create_object_message(), ObjectMessage, None),
    "json": (lambda s: s.create_object_message([1.5, "x"], "application/json"), ObjectMessage, [1.5, "x"]),
    "java": (
        lambda s: s.create_object_message(SerializedObject(b"\xac\xed\x00\x05p")),
        ObjectMessage,
        b"\xac\xed\x00\x05p",
    ),
}


def kinds(value: Any) -> Any:
    """Return the types within a body, as one that was received has them: a bare ``int`` is an int or a long."""
    if isinstance(value, list):
        return [kinds(item) for item in value]
    if isinstance(value, dict):
        return {name: kinds(item) for name, item in value.items()}
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        return Long
    return {Int: int, Double: float, SerializedObject: bytes}.get(type(value), type(value))


@pytest.mark.parametrize("name", MAKERS)
async def test_every_message_comes_back_with_body_properties_and_types(jms: Jms, name: str) -> None:
    """S151, S161, S165, S172-S175."""
    make, kind, body = MAKERS[name]
    session = await jms.session()
    message = make(session)
    message.properties.update(PROPERTIES)
    message.properties.update(JMSXGroupID="group", JMSXGroupSeq=7)
    await (await session.create_producer(jms.queue)).send(message)
    (received,) = await take(await session.create_consumer(jms.queue), 1)
    assert type(received) is kind
    assert received.body == body
    assert kinds(received.body) == kinds(body)
    found = dict(received.properties)
    assert (found.pop("JMSXGroupID"), found.pop("JMSXGroupSeq")) == ("group", 7)
    assert found == PROPERTIES
    assert kinds(found) == kinds(PROPERTIES)


@pytest.mark.parametrize("name", MAKERS)
async def test_a_received_message_can_be_sent_on_as_it_is(jms: Jms, name: str) -> None:
    """S163, S175: what Java serialised goes on as such."""
    make, kind, body = MAKERS[name]
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    consumer = await session.create_consumer(jms.queue)
    await producer.send(make(session))
    (received,) = await take(consumer, 1)
    await producer.send(received)
    (again,) = await take(consumer, 1)
    assert type(again) is kind
    assert again.body == body
    assert kinds(again.body) == kinds(body)
    if isinstance(received, ObjectMessage) and isinstance(again, ObjectMessage):
        assert again.content_type == received.content_type


async def test_send_makes_a_map_of_a_mapping_and_a_stream_of_a_list(jms: Jms) -> None:
    """S151."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    bodies: list[Any] = [{"a": Short(1)}, [1, "x"], (b"y",), {}, []]
    for body in bodies:
        await producer.send(body)
    received = await take(await session.create_consumer(jms.queue), 5)
    assert [message.body for message in received] == [{"a": 1}, [1, "x"], [b"y"], {}, []]
    assert [type(message) for message in received] == [
        MapMessage,
        StreamMessage,
        StreamMessage,
        MapMessage,
        StreamMessage,
    ]
    for wrong in (5, {"": 1}, {"a": [1]}, [{}], [object()]):
        with pytest.raises(MessageFormatException):
            await producer.send(wrong)


async def test_a_received_map_is_read_only_until_cleared(jms: Jms) -> None:
    """S163, S173."""
    session = await jms.session()
    await (await session.create_producer(jms.queue)).send(FIELDS)
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    assert isinstance(message, MapMessage)
    for write in (lambda: message.set_int("int", 5), message.clear, lambda: message.update(new=1)):
        with pytest.raises(MessageNotWriteableException):
            write()
    assert (message.get_long("byte"), message.get_string("char")) == (-1, "ß")
    assert (message.get_double("float"), message.get_bytes("none")) == (0.5, None)
    with pytest.raises(MessageFormatException):
        message.get_byte("int")
    message.clear_body()
    message["new"] = 1
    assert message.body == {"new": 1}


async def test_a_received_stream_is_at_its_start_and_read_only_until_cleared(jms: Jms) -> None:
    """S163, S174."""
    session = await jms.session()
    sent = session.create_stream_message()
    sent.write_short(1)
    sent.write_bytes(b"abcd")
    sent.write_string("7")
    await (await session.create_producer(jms.queue)).send(sent)
    assert sent.read_short() == 1, "sending resets it"
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    assert isinstance(message, StreamMessage)
    with pytest.raises(MessageNotWriteableException):
        message.write_int(1)
    with pytest.raises(MessageFormatException):
        message.read_byte()
    assert message.read_int() == 1
    assert [message.read_bytes(2), message.read_bytes(2)] == [b"ab", b"cd"]
    with pytest.raises(MessageFormatException):
        message.read_string()
    assert message.read_bytes(2) is None
    assert message.read_long() == 7
    with pytest.raises(MessageEOFException):
        message.read_object()
    message.clear_body()
    message.write_int(1)


async def test_an_empty_map_does_not_end_a_loop_of_receives(jms: Jms) -> None:
    """S172: a message is true, whatever it holds."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    for body in ({}, {"a": 1}):
        await producer.send(body)
    consumer = await session.create_consumer(jms.queue)
    count = 0
    while count < 2 and (await consumer.receive(timeout=PATIENCE)):
        count += 1
    assert count == 2


@pytest.mark.parametrize(("body", "kind"), [({"a": 1}, dict), ([1], list)])
async def test_receive_body_of_maps_and_streams(jms: Jms, body: Any, kind: type[Any]) -> None:
    """S176."""
    session = await jms.session()
    await (await session.create_producer(jms.queue)).send(body)
    consumer = await session.create_consumer(jms.queue)
    with pytest.raises(MessageFormatException):
        await consumer.receive_body(str, timeout=PATIENCE)
    assert await consumer.receive_body(kind, timeout=PATIENCE) == body


async def test_receive_body_of_an_object(jms: Jms) -> None:
    """S176."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    await producer.send(session.create_object_message({"a": 1}, "application/json"))
    await producer.send(session.create_object_message(UUID(int=7)))
    consumer = await session.create_consumer(jms.queue)
    with pytest.raises(MessageFormatException):
        await consumer.receive_body(UUID, timeout=PATIENCE)
    assert await consumer.receive_body(dict, timeout=PATIENCE) == {"a": 1}
    assert await consumer.receive_body(UUID, timeout=PATIENCE) == UUID(int=7)


async def test_an_object_that_its_codec_cannot_read_is_delivered_and_harms_no_other(jms: Jms) -> None:
    """S166, S175."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    await producer.send(session.create_object_message(SerializedObject(b"{", "application/json")))
    await producer.send("next")
    consumer = await session.create_consumer(jms.queue)
    with pytest.raises(MessageFormatException):  # and it is the next to be received (S176)
        await consumer.receive_body(dict, timeout=PATIENCE)
    first, second = await take(consumer, 2)
    assert isinstance(first, ObjectMessage)
    assert first.content_type == "application/json"
    with pytest.raises(MessageFormatException):
        _ = first.object
    assert second.body == "next"
