"""AMQP 1.0 messages of any sender as JMS messages (S110, S156, S159, S160, S163, S165, S166)."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import proton
import pytest

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import MessageFormatException, MessageNotWriteableException
from pyjmsack.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    SerializedObject,
    StreamMessage,
    TextMessage,
    portable,
)
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire_encode import encode_value
from pyjmsack.providers.amqp.wire_types import (
    Described,
    OpaqueDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from pyjmsack.spi.envelope import NotOneMessageError
from pyjmsack.types import Byte, DeliveryMode, Int, Long, Short


def section(code: int, value: Any) -> bytes:
    return b"\x00\x53" + bytes((code,)) + encode_value(value)


def marked(kind: int | None, body: bytes, **properties: Any) -> bytes:
    """Return a message with the mark ``x-opt-jms-msg-type`` and raw body sections."""
    marks = b"" if kind is None else section(0x72, {Symbol("x-opt-jms-msg-type"): Byte(kind)})
    content_type = properties.get("content_type")
    fields = section(0x73, [None] * 6 + [Symbol(content_type)]) if content_type else b""
    return marks + fields + body


def receive(payload: bytes, consumer: Destination | None = None) -> Any:
    return AmqpInbound(payload).to_message(consumer)


def from_proton(**fields: Any) -> bytes:
    return bytes(proton.Message(**fields).encode())


VALUE, DATA, SEQUENCE = 0x77, 0x75, 0x76


@pytest.mark.parametrize(
    ("mark", "body", "kind", "content"),
    [
        (None, section(VALUE, "é"), TextMessage, "é"),
        (None, section(VALUE, "x" * 300), TextMessage, "x" * 300),
        (None, section(VALUE, b"b"), BytesMessage, b"b"),
        (None, section(DATA, b"b"), BytesMessage, b"b"),
        (None, section(DATA, b"a") + section(DATA, b"b" * 300), BytesMessage, b"a" + b"b" * 300),
        (None, section(VALUE, None), Message, None),
        (None, section(VALUE, {"a": 1}), MapMessage, {"a": 1}),
        (None, section(VALUE, {5: 1}), ObjectMessage, {5: 1}),
        (None, section(VALUE, {}), MapMessage, {}),
        (None, section(VALUE, [1, "x"]), StreamMessage, [1, "x"]),
        (None, section(VALUE, []), StreamMessage, []),
        (None, section(VALUE, 5), ObjectMessage, 5),
        (None, section(VALUE, True), ObjectMessage, True),
        (None, section(SEQUENCE, [1]) + section(SEQUENCE, []) + section(SEQUENCE, ["x"]), StreamMessage, [1, "x"]),
        (None, section(VALUE, Described(ULong(1), "x")), ObjectMessage, Described(ULong(1), "x")),
        (5, section(VALUE, "x"), TextMessage, "x"),
        (5, section(VALUE, None), TextMessage, None),
        (5, section(DATA, "é".encode()), TextMessage, "é"),
        (5, section(VALUE, {"a": 1}), MapMessage, {"a": 1}),
        (5, b"", TextMessage, None),
        (3, section(DATA, b"b"), BytesMessage, b"b"),
        (3, section(VALUE, b"b"), BytesMessage, b"b"),
        (3, section(VALUE, None), BytesMessage, b""),
        (3, section(VALUE, "x"), TextMessage, "x"),
        (3, b"", BytesMessage, b""),
        (0, section(VALUE, None), Message, None),
        (0, section(VALUE, "x"), Message, "x"),
        (0, section(VALUE, {"a": 1}), Message, {"a": 1}),
        (0, section(DATA, b"x"), Message, b"x"),
        (1, section(DATA, b"raw"), ObjectMessage, b"raw"),
        (1, section(VALUE, "x"), ObjectMessage, "x"),
        (1, section(VALUE, {"a": [1]}), ObjectMessage, {"a": [1]}),
        (1, section(SEQUENCE, [1]), ObjectMessage, [1]),
        (1, section(VALUE, None), ObjectMessage, None),
        (1, b"", ObjectMessage, None),
        (2, section(VALUE, {"k": Long(1)}), MapMessage, {"k": Long(1)}),
        (2, section(VALUE, None), MapMessage, {}),
        (2, b"", MapMessage, {}),
        (2, section(VALUE, "x"), TextMessage, "x"),
        (2, section(DATA, b"x"), BytesMessage, b"x"),
        (4, section(SEQUENCE, [b"x", None]), StreamMessage, [b"x", None]),
        (4, section(VALUE, [b"x", None]), StreamMessage, [b"x", None]),
        (4, section(VALUE, None), StreamMessage, []),
        (4, b"", StreamMessage, []),
        (4, section(VALUE, {"k": 1}), MapMessage, {"k": 1}),
        (99, section(VALUE, "x"), TextMessage, "x"),
    ],
)
def test_mark_and_body_choose_the_class_s165_s166(mark: int | None, body: bytes, kind: type, content: Any) -> None:
    message = receive(marked(mark, body))
    assert type(message) is kind
    assert message.body == content


@pytest.mark.parametrize(
    ("content_type", "raw", "text"),
    [
        ("text/plain", "é".encode(), "é"),
        ("TEXT/plain; charset=iso-8859-1", b"\xe9", "é"),
        ('text/html;charset="UTF-16LE"', "é".encode("utf-16-le"), "é"),
        ("application/json", b"{}", "{}"),
        ("application/vnd.x+xml", b"<a/>", "<a/>"),
        ("application/octet-stream", b"x", None),
        ("text/plain; charset=idna", b"x", None),
        ("text/plain; charset=klingon", b"x", None),
        ("nonsense", b"x", None),
    ],
)
def test_data_with_a_text_content_type_is_text_s166(content_type: str, raw: bytes, text: str | None) -> None:
    message = receive(marked(None, section(DATA, raw), content_type=content_type))
    if text is None:
        assert type(message) is BytesMessage
        assert message.data == raw
    else:
        assert type(message) is TextMessage
        assert message.text == text


def test_received_bodies_are_read_only_at_the_start_until_cleared_s163_s171() -> None:
    text = receive(marked(5, section(VALUE, "x")))
    with pytest.raises(MessageNotWriteableException):
        text.text = "y"
    data = receive(marked(3, section(DATA, b"\x00\x01\x02")))
    assert data.read_short() == 1
    assert (data.data, data.body_length) == (b"\x00\x01\x02", 3)
    with pytest.raises(MessageNotWriteableException):
        data.write_byte(1)
    data.clear_body()
    data.write_byte(1)
    assert data.data == b"\x01"


def test_each_receive_hands_out_a_message_of_its_own_s169() -> None:
    inbound = AmqpInbound(encode(BytesMessage(b"x"), "q"))
    one, two = inbound.to_message(), inbound.to_message()
    one.clear_properties()
    one.properties["a"] = 1
    assert one is not two
    assert dict(two.properties) == {}


def test_the_delivery_count_is_read_from_the_header_s110() -> None:
    inbound = AmqpInbound(from_proton(delivery_count=3, body="x"))
    assert inbound.redelivery_count == 3
    message = inbound.to_message()
    assert (message.delivery_count, message.redelivered) == (4, True)


def test_without_a_header_the_defaults_of_amqp_hold() -> None:
    inbound = AmqpInbound(section(VALUE, "x"))
    message = inbound.to_message()
    assert (inbound.redelivery_count, inbound.priority) == (0, 4)
    assert (message.delivery_mode, message.priority) == (DeliveryMode.NON_PERSISTENT, 4)
    assert (message.message_id, message.timestamp, message.destination) == (None, None, None)


def test_a_priority_above_9_is_9_s152() -> None:
    inbound = AmqpInbound(section(0x70, [True, UByte(200)]) + section(VALUE, "x"))
    assert inbound.priority == inbound.to_message().priority == 9


def test_expiry_is_the_absolute_time_else_arrival_plus_ttl_s154() -> None:
    both = proton.Message(body="x", ttl=10, expiry_time=5)
    assert AmqpInbound(bytes(both.encode()), arrival_ms=1000).expiration_ms == 5000
    only_ttl = from_proton(body="x", ttl=10)
    assert AmqpInbound(only_ttl, arrival_ms=1000).expiration_ms == 11_000
    assert AmqpInbound(only_ttl).expiration_ms == 0
    assert AmqpInbound(from_proton(body="x"), arrival_ms=1000).expiration_ms == 0


def test_expired_compares_with_the_time_given_s156() -> None:
    inbound = AmqpInbound(from_proton(body="x", expiry_time=5))
    assert [inbound.expired(now) for now in (4999, 5000, 5001)] == [False, True, True]
    assert not AmqpInbound(from_proton(body="x")).expired(2**62)


def spelled_out(short: bytes) -> bytes:
    """Return a section of a small list or string, with sizes of four bytes (1.6.19, 1.6.22)."""
    head, code, size = short[:3], short[3], short[4]
    if code == 0xC0:
        return head + b"\xd0" + (size + 3).to_bytes(4, "big") + short[5].to_bytes(4, "big") + short[6:]
    return head + b"\xb1" + size.to_bytes(4, "big") + short[5:]


def test_a_message_that_a_broker_encoded_anew_is_the_same_message_s105() -> None:
    """ActiveMQ Classic widens the properties section when it delivers again."""
    properties, body = section(0x73, ["ID:1", None, "q"]), section(VALUE, "x")
    key = AmqpInbound(properties + body).identity()
    assert key is not None
    assert AmqpInbound(spelled_out(properties) + spelled_out(body)).identity() == key
    assert AmqpInbound(section(0x73, ["ID:2", None, "q"]) + body).identity() != key
    assert AmqpInbound(properties + section(VALUE, "y")).identity() != key


def test_broken_bytes_are_reported_by_to_message_only_s166() -> None:
    inbound = AmqpInbound(b"garbage")
    assert (inbound.redelivery_count, inbound.priority) == (0, 4)
    assert not inbound.expired(2**62)
    with pytest.raises(MessageFormatException):
        inbound.to_message()


@pytest.mark.parametrize(
    ("address", "mark", "consumer", "expected"),
    [
        ("a", 0, Topic("c"), Queue("a")),
        ("a", 1, Queue("c"), Topic("a")),
        ("a", 2, None, TemporaryQueue("a")),
        ("a", 3, None, TemporaryTopic("a")),
        ("a", None, Topic("c"), Topic("a")),
        ("a", None, TemporaryQueue("c"), TemporaryQueue("a")),
        ("a", None, None, Queue("a")),
        ("a", 77, Topic("c"), Topic("a")),
        ("queue://a", None, Topic("c"), Queue("a")),
        ("topic://a", None, Queue("c"), Topic("a")),
        ("queue://a", 0, None, Queue("a")),
        ("topic://a", 1, None, Topic("a")),
        ("queue://", None, None, Queue("queue://")),
        ("temp-queue://ID:x", None, Queue("c"), TemporaryQueue("temp-queue://ID:x")),
        ("temp-topic://ID:x", 3, Queue("c"), TemporaryTopic("temp-topic://ID:x")),
        (None, None, Topic("c"), Topic("c")),
        (None, 0, None, None),
        ("", None, Queue("c"), Queue("c")),
        (" ", None, Queue("c"), Queue("c")),
        ("?x=1", None, Queue("c"), Queue._literal("?x=1")),
        ("queue://a?x=1", None, Topic("c"), Queue._literal("a?x=1")),
        ("temp-queue://a?x=1", 2, Queue("c"), TemporaryQueue._literal("temp-queue://a?x=1")),
    ],
)
def test_destination_from_address_mark_prefix_and_consumer_s165(
    address: str | None, mark: int | None, consumer: Destination | None, expected: Destination | None
) -> None:
    marks = {} if mark is None else {Symbol("x-opt-jms-dest"): Byte(mark), Symbol("x-opt-jms-reply-to"): Byte(mark)}
    payload = section(0x72, marks) + section(0x73, [None, None, address, None, address]) + section(VALUE, "x")
    message = receive(payload, consumer)
    assert message.destination == expected
    assert message.reply_to == (expected if address and address.strip() else None)
    assert expected is None or not message.destination.options


def test_delivery_time_is_the_annotation_else_the_send_time_s157() -> None:
    plain = proton.Message(body="x", creation_time=5)
    assert receive(bytes(plain.encode()))._delivery_time == 5000
    for value in (7000, proton.timestamp(7000)):
        plain.annotations = {proton.symbol("x-opt-delivery-time"): value}
        assert receive(bytes(plain.encode()))._delivery_time == 7000


def test_incoming_names_that_jms_forbids_are_readable_s160() -> None:
    message = receive(from_proton(body="x", properties={"a-b": "1", "": 2, "NULL": None, "JMSXDeliveryCount": None}))
    assert dict(message.properties) == {"a-b": "1", "": 2, "NULL": None}
    assert message.get_int_property("a-b") == 1
    assert message.get_int_property("JMSXDeliveryCount") == 1


def test_incoming_types_keep_their_conversions_s162() -> None:
    values = {
        "b": proton.byte(1),
        "s": proton.short(1),
        "i": proton.int32(1),
        "l": 1,
        "f": proton.float32(1.5),
        "d": 0.5,
    }
    message = receive(from_proton(body="x", properties=values))
    assert message.get_short_property("b") == message.get_int_property("s") == message.get_long_property("i") == 1
    assert message.get_double_property("f") == 1.5
    for name, wanted in (("s", "byte"), ("i", "short"), ("l", "int"), ("d", "float")):
        with pytest.raises(MessageFormatException):
            getattr(message, f"get_{wanted}_property")(name)


FOREIGN: list[tuple[Any, Any]] = [
    (UByte(255), Short(255)),
    (UShort(65535), Int(65535)),
    (UInt(2**32 - 1), Long(2**32 - 1)),
    (ULong(2**63 - 1), Long(2**63 - 1)),
    (ULong(2**63), ULong(2**63)),
    (Timestamp(5), Long(5)),
    (UUID(int=7), str(UUID(int=7))),
    (Symbol("s"), "s"),
    (OpaqueDecimal(b"\x22\x50\x00\x01"), b"\x22\x50\x00\x01"),
    (Described(ULong(1), UByte(1)), Short(1)),
    ([UByte(1)], [Short(1)]),
    ({Symbol("k"): UByte(1)}, {"k": Short(1)}),
]


@pytest.mark.parametrize(("foreign", "expected"), FOREIGN)
def test_incoming_types_that_jms_has_no_word_for_become_types_of_jms_s166(foreign: Any, expected: Any) -> None:
    values = {"x": foreign, "i": 1}
    properties = receive(section(0x74, values) + section(VALUE, "x")).properties
    fields = receive(marked(2, section(VALUE, values)))
    stream = receive(marked(4, section(SEQUENCE, [foreign])))
    for found in (properties["x"], fields["x"], stream.read_object()):
        assert found == expected
        assert type(found) is type(expected)
    assert encode(fields, "q")
    assert encode(stream, "q")


def test_a_char_beyond_the_16_bits_of_java_becomes_text_s166() -> None:
    message = receive(section(VALUE, {}).replace(b"\xc1\x01\x00", b"\xc1\x09\x02\xa1\x01c\x73\x00\x01\xf6\x00"))
    assert message.get_string("c") == "\U0001f600"
    assert type(message["c"]) is str


@pytest.mark.parametrize("raw", [b"", b"\x00\xff", b"x" * 253, b"x" * 254, b"x" * 70_000])
def test_an_array_of_byte_is_what_java_calls_bytes_s175(raw: bytes) -> None:
    wide = b"\xf0" + struct.pack(">IIB", len(raw) + 5, len(raw), 0x51) + raw
    arrays = [wide, bytes((0xE0, len(raw) + 2, len(raw), 0x51)) + raw] if len(raw) < 254 else [wide]
    for array in arrays:
        message = receive(marked(1, b"\x00\x53\x77" + array))
        assert message.object == raw
        assert type(message.object) is bytes
    cut = wide[:5] + struct.pack(">I", len(raw) + 1) + wide[9:]
    with pytest.raises(MessageFormatException):
        receive(marked(1, b"\x00\x53\x77" + cut))


@pytest.mark.parametrize("mark", [None, 1])
def test_a_java_serialised_object_stays_bytes_and_is_sent_on_as_such_s175(mark: int | None) -> None:
    java = "application/x-java-serialized-object"
    message = receive(marked(mark, section(DATA, b"\xac\xed\x00\x05"), content_type=java))
    assert type(message) is ObjectMessage
    assert isinstance(message.object, SerializedObject)
    assert (message.object, message.content_type) == (b"\xac\xed\x00\x05", java)
    judge = proton.Message()
    judge.decode(encode(message, "q"))
    assert (bytes(judge.body), judge.inferred, judge.content_type) == (b"\xac\xed\x00\x05", True, java)
    assert judge.annotations["x-opt-jms-msg-type"] == 1


@pytest.mark.parametrize("mark", [None, 1, 3, 5])
@pytest.mark.parametrize("code", [VALUE, DATA])
def test_the_portable_form_of_stomp_is_read_s166(mark: int | None, code: int) -> None:
    sent = MapMessage({"a": Short(1), "b": b"x"})
    content_type, text = portable.encode(sent)
    body = section(code, text if code == VALUE else text.encode())
    message = receive(marked(mark, body, content_type=content_type))
    assert type(message) is MapMessage
    assert message.body == sent.body
    assert type(message["a"]) is Short
    with pytest.raises(MessageFormatException, match="map"):
        receive(marked(mark, section(code, "x" if code == VALUE else b"x"), content_type=content_type))


@pytest.mark.parametrize("name", ["_AMQ_CONTENT_TYPE", "content-type"])
def test_a_broker_may_keep_the_content_type_of_stomp_as_a_property_s166(name: str) -> None:
    content_type, text = portable.encode(StreamMessage([Byte(1)]))
    kept = section(0x74, {name: content_type}) + section(VALUE, text)
    message = receive(kept)
    assert type(message) is StreamMessage
    assert message.body == [Byte(1)]
    other = section(0x74, {"other": content_type, name: 5}) + section(VALUE, text)
    assert type(receive(other)) is TextMessage
    assert type(receive(section(0x74, {name: "text/plain"}) + section(DATA, b"x"))) is BytesMessage


def test_long_descriptors_are_understood() -> None:
    symbolic = b"\x00" + encode_value(Symbol("amqp:header:list")) + encode_value([True])
    numeric = b"\x00\x80" + (0x77).to_bytes(8, "big") + encode_value("x")
    message = receive(symbolic + numeric)
    assert (message.text, message.delivery_mode) == ("x", DeliveryMode.PERSISTENT)


def test_delivery_annotations_and_footer_are_passed_over() -> None:
    payload = section(0x71, {Symbol("a"): 1}) + section(VALUE, "x") + section(0x78, {Symbol("b"): 2})
    assert receive(payload).text == "x"


def test_repeating_sections_are_told_apart_by_their_bytes() -> None:
    for _ in range(2):
        for count in range(600):
            payload = section(0x70, [None, None, None, None, UInt(count)]) + section(VALUE, "x")
            assert AmqpInbound(payload).redelivery_count == count


BIG_LIST = b"\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x40"


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        (b"\x00", "byte"),
        (b"\x00\x53", "byte"),
        (b"\x00\x53\x77", "amqp-value"),
        (b"\x01\x53\x77\x40", "expected the beginning of a section"),
        (b"\x00\x53\x10\x40", "unknown section"),
        (b"\x00\xa3\x01x\x40", "unknown section"),
        (b"\x00\x45\x40", "unknown section"),
        (b"\x00\xc0\x02\x01\x40\x40", "unknown section"),
        (section(VALUE, "x")[:-1], "amqp-value"),
        (section(VALUE, "x") + b"\x40", "expected the beginning of a section"),
        (section(VALUE, "x") + section(VALUE, "x"), "amqp-value section: out of order"),
        (section(VALUE, "x") + section(DATA, b"x"), "data section: out of order"),
        (section(DATA, b"x") + section(VALUE, "x"), "amqp-value section: out of order"),
        (section(0x73, []) + section(0x70, []), "header section: out of order"),
        (section(0x70, []) + section(0x70, []), "header section: out of order"),
        (section(0x70, {}) + section(VALUE, "x"), "header"),
        (section(0x70, [5]) + section(VALUE, "x"), "header section: field 0 has the wrong type int"),
        (section(0x70, [None] * 6) + section(VALUE, "x"), "header"),
        (section(0x72, []) + section(VALUE, "x"), "message-annotations"),
        (section(0x73, {}) + section(VALUE, "x"), "properties"),
        (section(0x73, [None] * 14) + section(VALUE, "x"), "properties"),
        (section(0x73, [5]) + section(VALUE, "x"), "properties section: field 0 has the wrong type int"),
        (
            section(0x73, [None] * 9 + ["noon"]) + section(VALUE, "x"),
            "properties section: field 9 has the wrong type str",
        ),
        (b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff" + section(VALUE, "x"), "properties"),
        (b"\x00\x53\x73\xc0\x04\x01\xa1\xff\x61" + section(VALUE, "x"), "properties"),
        (b"\x00\x53\x73" + BIG_LIST + section(VALUE, "x"), "properties"),
        (b"\x00\x53\x73\xc0\x00" + section(VALUE, "x"), "properties"),
        (b"\x00\x53\x77\xa1\x01\xff", "amqp-value"),
        (marked(5, section(DATA, b"\xff")), "data"),
        (section(DATA, "x"), "data"),
        (section(SEQUENCE, {}), "amqp-sequence"),
        (b"\x00\x53\x77" + BIG_LIST, "amqp-value"),
        (b"\x00\x53\x77" + b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", "amqp-value"),
        (b"\x00\x53\x77\xc1\x03\x01\x40\x40", "amqp-value"),
        (b"\x00\x53\x77" + b"\x00" * 5000, "amqp-value"),
    ],
)
def test_an_undecodable_message_names_section_and_offset_s166(payload: bytes, named: str) -> None:
    with pytest.raises(MessageFormatException, match=named) as caught:
        receive(payload)
    assert "at byte" in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        section(0x74, []),
        section(0x74, {1: 2}),
        section(0x74, {Symbol("a"): 2}),
        b"\x00\x53\x74\xc1\x04\x02\xa1\x01\x61",
    ],
)
def test_undecodable_application_properties_are_a_format_error_when_read(raw: bytes) -> None:
    message = receive(raw + section(VALUE, "x"))
    assert message.text == "x"
    with pytest.raises(MessageFormatException, match="application-properties"):
        message.properties.get("a")


@pytest.mark.parametrize("first", [b"", section(VALUE, "x")], ids=["no body", "a body"])
def test_a_second_message_in_the_transfer_makes_it_damaged_and_not_unreadable_s166(first: bytes) -> None:
    """The broker has both whole: they are given back, and not refused for ever."""
    message = section(0x70, []) + section(0x73, ["ID:1"]) + first
    with pytest.raises(NotOneMessageError, match="header section: out of order"):
        AmqpInbound(message + section(0x70, []) + section(VALUE, "y")).to_message()


def test_sections_of_one_message_in_a_wrong_order_are_unreadable_s166() -> None:
    with pytest.raises(MessageFormatException) as raised:
        AmqpInbound(section(0x74, {}) + section(0x73, [])).to_message()
    assert not isinstance(raised.value, NotOneMessageError)


@pytest.mark.parametrize("name", ["ID:1", b"1", UUID(int=1), ULong(1)])
def test_each_delivery_has_the_quick_id_of_its_message(name: Any) -> None:
    header, body = (section(0x70, [True, None, None, None, UInt(count)]) for count in (0, 5)), section(0x77, "text")
    first, second = (AmqpInbound(each + section(0x73, [name]) + body).quick_id() for each in header)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("payload", [section(0x77, "text"), section(0x73, [[1]]), b"damaged"])
def test_a_message_without_an_id_that_can_be_read_has_no_quick_id(payload: bytes) -> None:
    assert AmqpInbound(payload).quick_id() is None
