"""What one end writes the other reads as the type it was: bodies, properties, headers, both directions (S151-S176)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from agent import typed
from conftest import Java

from pyjmsack import Byte, Char, Float, Long, Message, ObjectMessage, Queue, Session, Short

PROPERTIES: dict[str, Any] = {
    "aBoolean": True,
    "aByte": Byte(-8),
    "aShort": Short(-300),
    "anInt": 70_000,
    "aLong": Long(5),
    "aBigLong": 1 << 40,
    "aFloat": Float(0.5),
    "aDouble": 0.1,
    "aString": "ä€😀",
}
VALUES: dict[str, Any] = PROPERTIES | {"aChar": Char("ß"), "someBytes": bytes(range(256)), "nothing": None}


def properties(java: Java) -> dict[str, Any]:
    """Return the properties that pass between the ends: Artemis 2.56 mangles what is outside the basic plane of Unicode
    in the properties and map values of an OpenWire client."""
    return PROPERTIES | ({"aString": "ä€"} if java.client == "openwire" else {})


def values(java: Java) -> dict[str, Any]:
    """Return the values of a map that pass."""
    return VALUES | properties(java)


def elements(java: Java) -> list[Any]:
    """Return the elements of a stream that pass: Artemis cannot convert one with a byte array for OpenWire."""
    return [value for value in values(java).values() if java.client == "qpid" or not isinstance(value, bytes)]


TEXTS = ["hello", "", "ä€😀 \x00 line\nbreak", "x" * 200_000]
BINARY = [b"", bytes(range(256)), b"\x00" * 200_000]


def typed_all(of: dict[str, Any]) -> dict[str, list[str]]:
    return {name: typed(value) for name, value in of.items()}


def receive(session: Session, queue: Queue) -> Message:
    with session.create_consumer(queue) as consumer:
        message = consumer.receive(timeout=60)
    assert message is not None
    return message


def by_java(java: Java, queue: Queue, number: int = 1) -> list[dict[str, Any]]:
    found: Any = java.do("receive", destination=queue.name, count=number)
    assert len(found) == number
    return list(found)


# -- ours to Java -------------------------------------------------------------------------------------------------


def test_java_reads_our_text_s170(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    producer = session.create_producer(queue)
    for text in [*TEXTS, None]:
        producer.send(session.create_text_message(text))
    found = by_java(java, queue, len(TEXTS) + 1)
    assert [(m["type"], m["body"]) for m in found] == [("text", text) for text in [*TEXTS, None]]


def test_java_reads_our_bytes_s171(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    producer = session.create_producer(queue)
    for data in BINARY:
        producer.send(data)
    found = by_java(java, queue, len(BINARY))
    assert [(m["type"], base64.b64decode(m["body"])) for m in found] == [("bytes", data) for data in BINARY]


def test_java_reads_our_map_s172(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    session.create_producer(queue).send(session.create_map_message(values(java)))
    (found,) = by_java(java, queue)
    assert found["type"] == "map"
    assert found["body"] == typed_all(values(java))


def test_java_reads_our_stream_s174(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    session.create_producer(queue).send(session.create_stream_message(elements(java)))
    (found,) = by_java(java, queue)
    assert found["type"] == "stream"
    assert found["body"] == [typed(value) for value in elements(java)]


def test_java_reads_our_message_without_a_body(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    session.create_producer(queue).send(session.create_message())
    (found,) = by_java(java, queue)
    assert found["type"] == (
        "message" if java.client == "qpid" else "text"
    )  # Artemis takes a null value for a null text
    assert found["body"] is None


def test_java_reads_our_properties_with_their_types_s161(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    message = session.create_text_message("x")
    message.properties.update(properties(java))
    session.create_producer(queue).send(message)
    (found,) = by_java(java, queue)
    assert {name: found["properties"][name] for name in PROPERTIES} == typed_all(properties(java))


def test_java_reads_our_headers(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    message = session.create_text_message("x")
    message.correlation_id, message.type = "any text", "order"
    message.reply_to = session.create_queue(f"{queue_name}.reply")
    message.properties["JMSXGroupID"], message.properties["JMSXGroupSeq"] = "g", 7
    session.create_producer(queue).send(message, priority=8, time_to_live=600, delivery_mode=1)
    (found,) = by_java(java, queue)
    assert (found["correlationId"], found["jmsType"]) == ("any text", "order")
    assert (found["replyTo"], found["destination"]) == (f"queue:{queue_name}.reply", f"queue:{queue_name}")
    assert (found["priority"], found["deliveryMode"], found["redelivered"]) == (8, 1, False)
    assert (found["properties"]["JMSXGroupID"], found["groupSequence"]) == (["string", "g"], 7)
    assert message.timestamp is not None
    assert found["timestamp"] == round(message.timestamp.timestamp() * 1000)
    assert found["expiration"] == pytest.approx(found["timestamp"] + 600_000, abs=2000)


# -- Java to us ---------------------------------------------------------------------------------------------------


def test_we_read_java_s_text_and_bytes(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    texts = [{"type": "text", "body": text} for text in TEXTS]
    data = [{"type": "bytes", "body": base64.b64encode(data).decode()} for data in BINARY]
    java.do("send", destination=queue_name, messages=[*texts, *data])
    consumer = session.create_consumer(queue)
    assert [consumer.receive_body(str, timeout=10) for _ in TEXTS] == TEXTS
    assert [consumer.receive_body(bytes, timeout=10) for _ in BINARY] == BINARY


def test_we_read_java_s_map_with_its_types(java: Java, session: Session, queue_name: str) -> None:
    body = typed_all(values(java))
    java.do("send", destination=queue_name, messages=[{"type": "map", "body": body}])
    found = receive(session, session.create_queue(queue_name)).body
    assert {name: typed(found[name]) for name in found} == body


def test_we_read_java_s_stream_with_its_types(java: Java, session: Session, queue_name: str) -> None:
    body = [typed(value) for value in elements(java)]
    java.do("send", destination=queue_name, messages=[{"type": "stream", "body": body}])
    found = receive(session, session.create_queue(queue_name)).body
    assert [typed(value) for value in found] == body


def test_we_read_java_s_object_as_bytes_and_send_it_on_s175(java: Java, session: Session, queue_name: str) -> None:
    java.do("send", destination=queue_name, messages=[{"type": "object", "body": "carried"}])
    queue = session.create_queue(queue_name)
    message = receive(session, queue)
    assert isinstance(message, ObjectMessage)
    session.create_producer(queue).send(session.create_object_message(message.object))
    (found,) = by_java(java, queue)
    assert found["type"] == "object"
    assert "text=carried" in found["body"]


def test_we_read_java_s_properties_and_headers(java: Java, session: Session, queue_name: str) -> None:
    document = {
        "type": "text",
        "body": "x",
        "properties": typed_all(properties(java)) | {"JMSXGroupID": ["string", "g"]},
        "correlationId": "any text",
        "jmsType": "order",
        "replyTo": f"{queue_name}.reply",
        "priority": 8,
        "timeToLive": 600_000,
    }
    (message_id,) = java.do("send", destination=queue_name, messages=[document])
    message = receive(session, session.create_queue(queue_name))
    assert {name: typed(message.properties[name]) for name in PROPERTIES} == typed_all(properties(java))
    assert message.properties["JMSXGroupID"] == "g"
    assert (message.correlation_id, message.type, message.priority) == ("any text", "order", 8)
    assert message.message_id == message_id or java.client == "openwire"  # Artemis gives converted messages new ids
    assert message.reply_to == session.create_queue(f"{queue_name}.reply")
    assert message.destination == session.create_queue(queue_name)
    assert message.expiration is not None
