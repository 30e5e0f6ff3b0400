"""JMS messages as AMQP 1.0 sections, read by proton (S165, S154, S157)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
)
from pyjmsack.message.convert import kind_of
from pyjmsack.message.headers import Headers
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import _LOADERS, AmqpInbound
from pyjmsack.types import Byte, Char, DeliveryMode, Double, Float, Int, Long, Short


def read(message: Message, address: str = "q", ttl_ms: int = 0, **more: Any) -> proton.Message:
    judge = proton.Message()
    judge.decode(encode(message, address, ttl_ms, **more))
    return judge


def marks(judge: proton.Message) -> dict[str, Any]:
    return {str(key): value for key, value in (judge.annotations or {}).items()}


def plain(theirs: Any) -> Any:
    """Return a value of proton's with its binaries, which are views, and its arrays of byte as bytes."""
    if isinstance(theirs, memoryview):
        return bytes(theirs)
    if isinstance(theirs, proton.Array):
        assert theirs.type == proton.Data.BYTE
        return bytes(element & 0xFF for element in theirs.elements)
    if isinstance(theirs, list):
        return [plain(item) for item in theirs]
    return {name: plain(item) for name, item in theirs.items()} if isinstance(theirs, dict) else theirs


@pytest.mark.parametrize(
    ("message", "mark", "body", "content_type", "inferred"),
    [
        (Message(), 0, None, None, False),
        (TextMessage("é"), 5, "é", None, False),
        (TextMessage(""), 5, "", None, False),
        (TextMessage(), 5, None, None, False),
        (TextMessage("x" * 70_000), 5, "x" * 70_000, None, False),
        (BytesMessage(b"\x00\xff"), 3, b"\x00\xff", "application/octet-stream", True),
        (BytesMessage(), 3, b"", "application/octet-stream", True),
        (BytesMessage(b"x" * 70_000), 3, b"x" * 70_000, "application/octet-stream", True),
        (MapMessage(), 2, {}, None, False),
        (MapMessage({"a": 1, "b": "x" * 300}), 2, {"a": 1, "b": "x" * 300}, None, False),
        (StreamMessage(), 4, [], None, True),
        (StreamMessage([1, None, "x" * 300]), 4, [1, None, "x" * 300], None, True),
        (ObjectMessage(), 1, None, None, False),
        (ObjectMessage("x"), 1, "x", None, False),
        (ObjectMessage(b"\x00\xff"), 1, b"\x00\xff", None, False),
        (ObjectMessage(b""), 1, b"", None, False),
        (ObjectMessage([b"x" * 253, b"x" * 254]), 1, [b"x" * 253, b"x" * 254], None, False),
        (ObjectMessage([1, {"a": [True]}]), 1, [1, {"a": [True]}], None, False),
        (ObjectMessage(SerializedObject(b"x")), 1, b"x", "application/x-java-serialized-object", True),
        (ObjectMessage(SerializedObject(b"x" * 300)), 1, b"x" * 300, "application/x-java-serialized-object", True),
        (ObjectMessage([1], "application/json"), 1, b"[1]", "application/json", True),
    ],
)
def test_each_class_has_the_body_section_and_mark_of_qpid_jms_s165(
    message: Message, mark: int, body: Any, content_type: str | None, inferred: bool
) -> None:
    judge = read(message)
    assert marks(judge) == {"x-opt-jms-msg-type": proton.byte(mark)}
    assert type(marks(judge)["x-opt-jms-msg-type"]) is proton.byte
    assert plain(judge.body) == body
    assert judge.inferred is inferred
    assert str(judge.content_type) == str(content_type)


@pytest.mark.parametrize(("kind", "mark"), [(Queue, 0), (Topic, 1), (TemporaryQueue, 2), (TemporaryTopic, 3)])
def test_destination_and_reply_to_carry_their_kind_s165(kind: type[Destination], mark: int) -> None:
    message = TextMessage("x")
    message.destination = message.reply_to = kind("d")
    judge = read(message, "queue://d", address_of=lambda destination: f"prefix-{destination.name}")
    assert (judge.address, judge.reply_to) == ("queue://d", "prefix-d")
    assert marks(judge) == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": mark, "x-opt-jms-reply-to": mark}
    assert {type(value) for value in marks(judge).values()} == {proton.byte}


def test_reply_to_is_by_default_the_name() -> None:
    message = Message()
    message.reply_to = Queue("answers?consumer.prefetchSize=1")
    assert read(message).reply_to == "answers"


@pytest.mark.parametrize("mode", DeliveryMode)
@pytest.mark.parametrize("priority", range(10))
@pytest.mark.parametrize("ttl", [0, 1, 255, 256, 2**32 - 1])
def test_header_has_durable_priority_and_ttl_s152(mode: DeliveryMode, priority: int, ttl: int) -> None:
    message = Message()
    message.delivery_mode, message.priority = mode, priority
    judge = read(message, ttl_ms=ttl)
    assert judge.durable is (mode is DeliveryMode.PERSISTENT)
    assert judge.priority == priority
    assert round(judge.ttl * 1000) == ttl


def test_a_ttl_beyond_32_bits_is_said_by_the_expiry_time_only_s154() -> None:
    message = Message()
    message._expiration = 2**50
    judge = read(message, ttl_ms=2**32)
    assert judge.ttl == 0
    assert judge.expiry_time == 2**50 / 1000


@pytest.mark.parametrize("override", [0, 1, 5000])
def test_the_property_jms_amqp_ttl_overrides_the_ttl_and_0_removes_it_s154(override: int) -> None:
    message = Message()
    message.properties["JMS_AMQP_TTL"] = override
    judge = read(message, ttl_ms=1000)
    assert judge.ttl == override / 1000
    assert not judge.properties


def test_all_fields_of_the_properties_section_s164_s165() -> None:
    message = TextMessage("x")
    message.message_id, message.correlation_id, message.type = "ID:1", "corr", "kind"
    message.timestamp = datetime(2024, 1, 1, tzinfo=timezone.utc)
    message.expiration = datetime(2025, 1, 1, tzinfo=timezone.utc)
    message.properties.update(JMSXUserID="üser", JMSXGroupID="g", JMSXGroupSeq=7, JMS_AMQP_REPLY_TO_GROUP_ID="r")
    judge = read(message)
    assert (judge.id, judge.correlation_id, judge.subject) == ("ID:1", "corr", "kind")
    assert (judge.creation_time, judge.expiry_time) == (1704067200, 1735689600)
    assert bytes(judge.user_id).decode() == "üser"
    assert (judge.group_id, judge.group_sequence, judge.reply_to_group_id) == ("g", 7, "r")
    assert not judge.properties


def test_a_negative_group_sequence_keeps_its_32_bits_s164() -> None:
    message = Message()
    message.properties["JMSXGroupSeq"] = -1
    raw = encode(message, "q")
    assert AmqpInbound(raw).to_message().properties["JMSXGroupSeq"] == -1


def test_a_long_properties_section() -> None:
    message = Message()
    for size in range(180, 260):
        message.correlation_id = "c" * size
        assert read(message).correlation_id == message.correlation_id


def test_delivery_time_is_an_annotation_of_delayed_messages_only_s157() -> None:
    message = Message()
    message._timestamp = message._delivery_time = 1_700_000_000_000
    assert "x-opt-delivery-time" not in marks(read(message))
    message._delivery_time += 1000
    assert marks(read(message))["x-opt-delivery-time"] == 1_700_000_001_000


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, bool),
        (Byte(1), proton.byte),
        (Short(1), proton.short),
        (Int(1), proton.int32),
        (1, proton.int32),
        (2**31, int),
        (Long(1), int),
        (Float(0.1), proton.float32),
        (0.1, float),
        (Double(0.1), float),
        ("x", str),
        (Char("x"), str),
        (None, type(None)),
    ],
)
def test_application_properties_keep_their_width_s161(value: Any, kind: type) -> None:
    message = Message()
    message.properties["p"] = value
    judge = read(message)
    assert type(judge.properties["p"]) is kind
    if value is not None:
        assert judge.properties["p"] == (pytest.approx(value) if kind is proton.float32 else value)


@pytest.mark.parametrize("make", [lambda v: MapMessage({"p": v}), lambda v: StreamMessage([v]), ObjectMessage])
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, type(None)),
        (True, bool),
        (Byte(1), proton.byte),
        (Short(1), proton.short),
        (Int(1), proton.int32),
        (1, proton.int32),
        (2**31, int),
        (Long(1), int),
        (Float(1.5), proton.float32),
        (1.5, float),
        (Double(1.5), float),
        (Char("é"), proton.char),
        ("é", str),
        (b"x", memoryview),
    ],
)
def test_fields_of_bodies_keep_their_width_s172_s175(make: Any, value: Any, kind: type) -> None:
    judge = read(make(value))  # its binaries are views of its own memory
    body = judge.body
    found = body["p"] if isinstance(body, dict) else body[0] if isinstance(body, list) else body
    # what Java calls byte[] is as an object an array, as Qpid JMS writes and reads it
    assert type(found) is (proton.Array if kind is memoryview and make is ObjectMessage else kind)
    assert plain(found) == value


def test_bytes_within_a_list_or_map_are_binary_or_qpid_jms_would_refuse_the_message_s175() -> None:
    judge = read(ObjectMessage([b"x", {"k": b"y"}]))
    assert type(judge.body[0]) is type(judge.body[1]["k"]) is memoryview


def test_a_uuid_within_an_object_stays_one_s175() -> None:
    value = {UUID(int=7): [UUID(int=8)]}
    assert read(ObjectMessage(value)).body == value
    assert AmqpInbound(encode(ObjectMessage(value), "q")).to_message().body == value


@pytest.mark.parametrize("count", [1, 127, 128, 300])
def test_many_application_properties(count: int) -> None:
    message = Message()
    message.properties.update({f"p{i}": i for i in range(count)})
    assert read(message).properties == {f"p{i}": i for i in range(count)}


def test_sending_resets_a_bytes_message_s171() -> None:
    message = BytesMessage()
    message.write_int(1)
    encode(message, "q")
    assert message.read_int() == 1
    with pytest.raises(MessageNotWriteableException):
        message.write_int(2)


def test_sending_resets_a_stream_message_s174() -> None:
    message = StreamMessage([1])
    encode(message, "q")
    assert message.read_int() == 1
    with pytest.raises(MessageNotWriteableException):
        message.write_int(2)


def test_the_encoded_bytes_are_a_snapshot_s72() -> None:
    message = TextMessage("one")
    raw = encode(message, "q")
    message.text = "two"
    assert AmqpInbound(raw).to_message().body == "one"


@pytest.mark.parametrize(
    ("prepare", "named"),
    [
        (lambda m: setattr(m, "text", "\ud800"), "body"),
        (lambda m: m.properties.__setitem__("p", "\ud800"), "'p'"),
        (lambda m: setattr(m, "correlation_id", "ID:AMQP_UUID:x"), "ID:AMQP_UUID:x"),
        (lambda m: setattr(m, "message_id", "ID:AMQP_ULONG:x"), "ID:AMQP_ULONG:x"),
        (lambda m: setattr(m, "type", "\ud800"), "not Unicode"),
        (lambda m: setattr(m, "_user_id", "\ud800"), "not Unicode"),
    ],
)
def test_what_amqp_cannot_carry_is_a_format_error_that_names_it(prepare: Any, named: str) -> None:
    message = TextMessage("x")
    prepare(message)
    with pytest.raises(MessageFormatException, match=named):
        encode(message, "q")


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (MapMessage({"k": "\ud800"}), "field 'k'"),
        (StreamMessage(["\ud800"]), "body"),
        (ObjectMessage(["\ud800"]), "body"),
        (ObjectMessage(SerializedObject(b"x", "text/\xe9")), "text/\xe9"),
    ],
)
def test_a_body_that_amqp_cannot_carry_is_a_format_error_that_names_it(message: Message, named: str) -> None:
    with pytest.raises(MessageFormatException, match=named):
        encode(message, "q")


def test_a_foreign_body_is_sent_on_unmarked_so_that_it_keeps_its_kind_s166() -> None:
    plain = proton.Message(body={"a": [1, "x"]}, annotations={proton.symbol("x-opt-jms-msg-type"): proton.byte(0)})
    received = AmqpInbound(bytes(plain.encode())).to_message()
    judge = read(received)
    assert judge.body == {"a": [1, "x"]}
    assert "x-opt-jms-msg-type" not in marks(judge)


def types_of(value: Any) -> Any:
    """Return the Java types of a body, in its shape."""
    if isinstance(value, list):
        return [types_of(item) for item in value]
    if isinstance(value, dict):
        return {name: types_of(item) for name, item in value.items()}
    return "char" if isinstance(value, Char) else kind_of(value)


LAZY_SLOTS = [slot for slot in Headers.__slots__ if slot in _LOADERS and slot != "_delivery_time"]

# proton's messages end a string at the first NUL, as C does
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
PROPERTY_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**7), 2**7 - 1).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False),
    TEXT,
)
FIELDS = PROPERTY_VALUES | st.binary(max_size=300) | st.characters(max_codepoint=0xFFFF).map(Char)
OBJECTS = st.recursive(
    FIELDS | st.uuids(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.integers(0, 9), inner, max_size=4),
    max_leaves=10,
)
MILLISECONDS = st.integers(1, 2**62)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Messages as a producer may hand them to the codec."""
    message = draw(
        st.one_of(
            st.builds(Message),
            st.builds(
                TextMessage,
                st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=400),
            ),
            st.builds(BytesMessage, st.binary(max_size=400)),
            st.builds(MapMessage, st.dictionaries(TEXT.filter(bool), FIELDS, max_size=5)),
            st.builds(StreamMessage, st.lists(FIELDS, max_size=5)),
            st.builds(ObjectMessage, OBJECTS),
            st.builds(ObjectMessage, st.binary(max_size=400).map(SerializedObject)),
        )
    )
    maybe = st.none() | TEXT
    message._message_id = draw(st.none() | TEXT.map("ID:x".__add__))
    message._correlation_id = draw(st.none() | TEXT.map("c".__add__))
    message._type, message._group_id, message._reply_to_group_id = draw(maybe), draw(maybe), draw(maybe)
    message._user_id = draw(st.none() | TEXT.filter(bool))
    message._group_sequence = draw(st.none() | st.integers(-(2**31), 2**31 - 1))
    message._timestamp, message._expiration = draw(st.just(0) | MILLISECONDS), draw(st.just(0) | MILLISECONDS)
    message._priority, message._persistent = draw(st.integers(0, 9)), draw(st.booleans())
    kinds = st.sampled_from([Queue, Topic, TemporaryQueue, TemporaryTopic])
    names = st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"], exclude_characters="?"), min_size=1)
    destinations = st.builds(lambda kind, name: kind(name), kinds, names.filter(str.strip))
    message._destination, message._reply_to = draw(destinations), draw(st.none() | destinations)
    message._validate_names = False
    message.properties.update(draw(st.dictionaries(st.text("abcdef", min_size=1, max_size=9), PROPERTY_VALUES)))
    return message


@settings(deadline=None)
@given(messages(), st.integers(0, 2**32 - 1))
def test_proton_reads_every_field_we_write_s165(message: Any, ttl_ms: int) -> None:
    judge = read(message, message._destination.name, ttl_ms)
    assert judge.id == message._message_id
    assert judge.address == message._destination.name
    assert judge.reply_to == (None if message._reply_to is None else message._reply_to.name)
    assert (judge.correlation_id, judge.subject) == (message._correlation_id, message._type)
    assert (judge.durable, judge.priority) == (message._persistent, message._priority)
    assert round(judge.ttl * 1000) == ttl_ms
    assert round(judge.creation_time * 1000) == pytest.approx(message._timestamp, rel=1e-12)
    assert (judge.group_id, judge.reply_to_group_id) == (message._group_id, message._reply_to_group_id)
    assert judge.group_sequence == (message._group_sequence or 0) & 0xFFFFFFFF
    assert bytes(judge.user_id or b"").decode() == (message._user_id or "")
    assert (judge.properties or {}) == (message._properties or {})
    assert plain(judge.body) == message.body


@settings(deadline=None)
@given(messages(), st.integers(0, 2**32 - 1))
def test_our_own_codec_reads_every_field_we_write_s165(message: Any, ttl_ms: int) -> None:
    twin: Any = AmqpInbound(encode(message, message._destination.name, ttl_ms)).to_message()
    assert type(twin) is type(message)
    for slot in LAZY_SLOTS:
        assert getattr(twin, slot) == getattr(message, slot), slot
    assert twin.body == message.body
    assert types_of(twin.body) == types_of(message.body)
    assert twin._properties == (message._properties or {})
