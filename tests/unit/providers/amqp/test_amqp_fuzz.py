"""AMQP 1.0 messages of proton, whole and damaged, against our decoder (S159, S166)."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyjmsack.destination import Queue, Topic
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import MapMessage, StreamMessage
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import _LOADERS, AmqpInbound
from pyjmsack.types import Byte, Char, Float, Int, Long, Short

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-128, 127).map(proton.byte),
    st.integers(0, 2**32 - 1).map(proton.uint),
    st.floats(allow_nan=False),
    TEXT,
    st.binary(max_size=300),
    st.uuids(),
    st.integers(0, 2**60).map(proton.timestamp),
)
BODIES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=10
)
IDS = st.one_of(st.none(), TEXT.map("ID:x".__add__), st.uuids(), st.integers(0, 2**64 - 1).map(proton.ulong))
SECONDS = st.integers(0, 2**33)


@st.composite
def foreign(draw: st.DrawFn) -> proton.Message:
    """Messages of a sender that knows nothing of JMS, or of one that does."""
    message = proton.Message(
        body=draw(BODIES),
        inferred=draw(st.booleans()),
        durable=draw(st.booleans()),
        priority=draw(st.integers(0, 255)),
        ttl=draw(st.integers(0, 10**6)),
        delivery_count=draw(st.integers(0, 2**32 - 1)),
        id=draw(IDS),
        correlation_id=draw(IDS),
        user_id=draw(TEXT).encode(),
        address=draw(st.none() | TEXT),
        subject=draw(st.none() | TEXT),
        reply_to=draw(st.none() | TEXT),
        expiry_time=draw(SECONDS),
        creation_time=draw(SECONDS),
        group_id=draw(st.none() | TEXT),
        group_sequence=draw(st.integers(0, 2**32 - 1)),
        reply_to_group_id=draw(st.none() | TEXT),
        properties=draw(st.none() | st.dictionaries(TEXT, SIMPLE, max_size=5)),
    )
    if draw(st.booleans()):
        message.content_type = draw(st.sampled_from(["application/json", "text/plain", "image/png"]))
    names = st.sampled_from(["x-opt-jms-msg-type", "x-opt-jms-dest", "x-opt-jms-reply-to", "x-other"])
    marks = draw(st.dictionaries(names.map(proton.symbol), st.integers(-2, 6).map(proton.byte), max_size=3))
    message.annotations = marks or None
    return message


def same(ours: Any, theirs: Any) -> bool:
    """Whether a value of ours equals one of proton's, which has binaries as views, and UUIDs where JMS has text."""
    if isinstance(theirs, memoryview):
        return isinstance(ours, bytes) and ours == bytes(theirs)
    if isinstance(theirs, UUID):
        return ours in (theirs, str(theirs))
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(same(ours[key], value) for key, value in theirs.items())
    return bool(ours == theirs)


@settings(deadline=None)
@given(foreign())
def test_we_read_every_field_that_proton_writes(source: proton.Message) -> None:
    raw = bytes(source.encode())
    try:
        message: Any = AmqpInbound(raw).to_message(Queue("c"))
    except MessageFormatException:  # binary called text, by its mark or its content type
        assert isinstance(source.body, bytes)
        assert source.content_type != "image/png" or source.annotations
        return
    judge = proton.Message()
    judge.decode(raw)
    assert (message._persistent, message._priority) == (judge.durable, min(judge.priority, 9))
    assert message._redelivery_count == judge.delivery_count
    assert message._timestamp == round(judge.creation_time * 1000)
    assert message._expiration == round(judge.expiry_time * 1000)
    assert (message._type, message._group_id) == (judge.subject, judge.group_id)
    assert message._reply_to_group_id == judge.reply_to_group_id
    assert (message._group_sequence or 0) & 0xFFFFFFFF == judge.group_sequence
    assert message._user_id == (bytes(judge.user_id).decode() or None)
    assert message._correlation_id == (None if judge.correlation_id is None else message._correlation_id)
    assert same(message._properties, judge.properties or {})
    body = message._body
    assert same(body.encode() if isinstance(body, str) and isinstance(source.body, bytes) else body, judge.body) or (
        body in (b"", {}, []) and judge.body is None
    )


def exhaust(payload: bytes) -> None:
    """Ask a message for everything; anything but a format error escapes."""
    inbound = AmqpInbound(payload)
    inbound.expired(0)
    try:
        message: Any = inbound.to_message(Topic("c"))
    except MessageFormatException:
        return
    assert repr(message)
    assert isinstance(message.delivery_count, int)
    for slot in _LOADERS:
        getattr(message, slot)
    try:
        repr(message.body)
        dict(message.properties)
    except MessageFormatException:
        return
    encode(message, "again")


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(foreign(), st.data())
def test_mutated_messages_raise_nothing_but_format_errors_and_take_no_time_s166(
    source: proton.Message, data: st.DataObject
) -> None:
    payload = bytearray(source.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(payload) - 1))
        action = data.draw(st.sampled_from(["set", "delete", "insert", "cut"]))
        if action == "set":
            payload[position] = data.draw(st.integers(0, 255))
        elif action == "insert":
            payload[position:position] = data.draw(st.binary(max_size=6))
        elif len(payload) > 1:
            del payload[position : position + 1 if action == "delete" else len(payload)]
            payload = payload or bytearray(1)
    exhaust(bytes(payload))


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_random_bytes_raise_nothing_but_format_errors_s166(payload: bytes) -> None:
    exhaust(payload)
    exhaust(b"\x00\x53\x73" + payload)
    exhaust(b"\x00\x53\x77" + payload)


def test_a_huge_nested_body_is_refused_for_its_depth_s166() -> None:
    raw = b"\x40"
    for _ in range(20_000):
        raw = struct.pack(">BII", 0xD0, len(raw) + 4, 1) + raw
    with pytest.raises(MessageFormatException, match="nested"):
        AmqpInbound(b"\x00\x53\x77" + raw).to_message()


JMS_TYPES: dict[type, tuple[type, st.SearchStrategy[Any]]] = {
    # proton's class of a value: ours in a field or property, and what the value may be
    type(None): (type(None), st.none()),
    bool: (bool, st.booleans()),
    proton.byte: (Byte, st.integers(-(2**7), 2**7 - 1)),
    proton.short: (Short, st.integers(-(2**15), 2**15 - 1)),
    proton.int32: (int, st.integers(-(2**31), 2**31 - 1)),
    int: (Long, st.integers(-(2**63), 2**63 - 1)),
    proton.ubyte: (Short, st.integers(0, 2**8 - 1)),
    proton.ushort: (Int, st.integers(0, 2**16 - 1)),
    proton.uint: (Long, st.integers(0, 2**32 - 1)),
    proton.ulong: (Long, st.integers(0, 2**63 - 1)),
    proton.timestamp: (Long, st.integers(-(2**63), 2**63 - 1)),
    proton.float32: (Float, st.floats(width=32, allow_nan=False)),
    float: (float, st.floats(allow_nan=False)),
    proton.char: (Char, st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])),
    proton.symbol: (str, st.text(st.characters(min_codepoint=33, max_codepoint=126))),
    str: (str, TEXT),
    bytes: (bytes, st.binary(max_size=300)),
    UUID: (str, st.uuids()),
}


@st.composite
def typed(draw: st.DrawFn) -> tuple[Any, type]:
    """A value as proton writes it, and the type that it has for JMS."""
    theirs = draw(st.sampled_from(list(JMS_TYPES)))
    ours, values = JMS_TYPES[theirs]
    value = draw(values)
    return (value if value is None or isinstance(value, theirs) else theirs(value)), ours


def is_free(name: str) -> bool:
    """Whether a property of this name means nothing to JMS, Artemis or Classic, which adds ``scheduledJobId``."""
    return bool(name) and not name.startswith(("JMS", "_AMQ_")) and name != "scheduledJobId"


@settings(deadline=None)
@given(st.dictionaries(TEXT.filter(is_free), typed(), max_size=6))
def test_values_of_proton_have_their_java_type_in_each_place_s166(given_values: dict[str, tuple[Any, type]]) -> None:
    """The other direction: each of our messages, read by proton, is in the tests of ``encode``."""
    values = {name: value for name, (value, _) in given_values.items()}
    kinds = {name: kind for name, (_, kind) in given_values.items()}
    scalars = {name: value for name, value in values.items() if not isinstance(value, bytes)}
    fields: Any = AmqpInbound(bytes(proton.Message(body=values, properties=scalars).encode())).to_message()
    sequence = proton.Message(body=list(values.values()), inferred=True)
    stream: Any = AmqpInbound(bytes(sequence.encode())).to_message()
    assert (type(fields), type(stream)) == (MapMessage, StreamMessage)
    assert same(fields.body, values)
    assert same(stream.body, list(values.values()))
    assert {name: type(value) for name, value in fields.items()} == kinds
    assert [type(value) for value in stream] == list(kinds.values())
    assert {name: type(value) for name, value in fields.properties.items()} == {name: kinds[name] for name in scalars}
    encode(fields, "again")
    encode(stream, "again")
