"""A message with very many values is refused before they are made, because they take time and memory (S166)."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from pyjmsack.destination import Queue
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import ObjectMessage, SerializedObject, TextMessage, portable
from pyjmsack.providers.amqp import sections, wire
from pyjmsack.providers.amqp.body import charset_of
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.sections import LARGEST_PROPERTIES
from pyjmsack.providers.amqp.wire import MOST_VALUES, Described
from pyjmsack.providers.amqp.wire_types import Symbol, Timestamp, ULong
from pyjmsack.types import Byte

VALUE, SEQUENCE, DATA, APPLICATION_PROPERTIES = 0x77, 0x76, 0x75, 0x74
MANY = MOST_VALUES // 2 + 1
TOO_MANY = "more than 2,000,000 values"


def section(code: int, value: bytes) -> bytes:
    return bytes((0x00, 0x53, code)) + value


def zeros(count: int, constructor: int = 0xD0) -> bytes:
    """Return a list or map of zeros, each of which has one byte."""
    return struct.pack(">BII", constructor, count + 4, count) + b"\x43" * count


WITH_ID = section(0x73, b"\xc0\x05\x01\xa1\x02ID")


@pytest.mark.parametrize(
    "body",
    [
        section(VALUE, zeros(MOST_VALUES + 1)),
        section(VALUE, b"\xd1" + struct.pack(">II", MOST_VALUES + 18, 2) + b"\xa1\x01a" + zeros(MOST_VALUES + 2)),
        section(SEQUENCE, zeros(MANY)) * 2,
        section(DATA, zeros(MOST_VALUES + 1)),
    ],
    ids=["list", "list in a map", "two sequences", "list in data"],
)
def test_a_body_with_too_many_values_is_refused_s166(body: bytes) -> None:
    inbound = AmqpInbound(WITH_ID + body)
    with pytest.raises(MessageFormatException, match=TOO_MANY):
        inbound.to_message()
    assert inbound.unreadable


def test_the_identity_of_such_a_message_needs_no_values_s105(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = WITH_ID + section(SEQUENCE, zeros(MANY)) * 2
    monkeypatch.setitem(wire._READERS, 0x43, lambda *_: pytest.fail("a value was decoded"))
    assert AmqpInbound(payload).identity() == AmqpInbound(payload).identity() is not None


def test_a_long_text_is_one_value() -> None:
    text = struct.pack(">BI", 0xB1, MOST_VALUES + 1) + b"x" * (MOST_VALUES + 1)
    assert AmqpInbound(section(VALUE, text)).to_message().body == "x" * (MOST_VALUES + 1)


def test_an_array_of_bytes_is_one_value() -> None:
    count = MOST_VALUES + 1
    array = struct.pack(">BIIB", 0xF0, count + 5, count, 0x51) + bytes(count)
    assert AmqpInbound(section(VALUE, array)).to_message().body == bytes(count)


def test_a_message_with_too_many_properties_can_be_received_without_them() -> None:
    payload = section(APPLICATION_PROPERTIES, zeros(100_002, 0xD1)) + section(VALUE, b"\xa1\x01x")
    message = AmqpInbound(payload).to_message()
    assert message.body == "x"
    with pytest.raises(MessageFormatException, match="more than 100,000 values"):
        len(message.properties)


def test_a_portable_body_with_too_many_values_is_refused() -> None:
    with pytest.raises(MessageFormatException, match="more than the limit of 4,000,000"):
        portable.decode("application/vnd.pyjmsack.stream+json", f"[{'1,' * 4_000_000}1]")


def test_the_json_of_an_object_with_too_many_values_is_refused_when_it_is_read_s175() -> None:
    message = ObjectMessage(SerializedObject(b"[" + b"1," * 2_000_000 + b"1]", "application/json"))
    with pytest.raises(MessageFormatException):
        _ = message.object
    assert not message.is_body_assignable_to(list)


def test_an_object_that_was_prepared_is_read_once_and_then_copied_s175() -> None:
    message = ObjectMessage([1, [2]])
    message._prepare()
    first = message.object
    first[1].append(3)
    assert message.object == [1, [2]]
    message._prepare()
    message.object = [4]
    assert message.object == [4], "the prepared copy was of another object"


def as_before(value: Any) -> Any:
    """Return the form of a value whose ``repr`` is in the identities of messages and in the ledgers."""
    kind = type(value)
    if kind is dict:
        names = sorted(value) if all(isinstance(name, str) for name in value) else sorted(value, key=repr)
        return ["map", *[(type(name).__name__, name, as_before(value[name])) for name in names]]
    if kind is list:
        return [as_before(item) for item in value]
    if kind is Described:
        return "described", as_before(value.descriptor), as_before(value.value)
    return kind.__name__, value


ODD = [None, True, "it's", 'a "b"', "\n\0é\ud800", b"'\"\xff", 1.5, Byte(1), Symbol("s"), UUID(int=7), Timestamp(5), []]


@pytest.mark.parametrize(
    "value",
    [
        *ODD,
        {},
        ODD,
        {"a": ODD, "Z": {"b": [[1]], "": {}}},
        {1: "one", "1": 1, b"1": None, None: 2.0, Symbol("q"): 3},
        Described(ULong(5), {"k": [Described(Symbol("d"), [])]}),
        [Described(ULong(5), None)] * 2,
    ],
    ids=repr,
)
def test_the_identity_of_a_value_stays_as_ledgers_have_it_s105(value: Any) -> None:
    assert wire.told(value) == repr(as_before(value))


@pytest.mark.parametrize("mixed", [False, True])
def test_very_many_names_are_sorted_in_parts_and_give_the_same_identity_s105(
    mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one sort of a million names let no other thread run for a second."""
    monkeypatch.setattr(wire, "_SORTED_AT_ONCE", 10)
    names: list[Any] = [f"n{number * 7919 % 101}" for number in range(101)]
    if mixed:
        names[::3] = [Byte(number) for number in range(17)] + list(range(100, 117))
    value = dict.fromkeys(names, 1)
    at_once: list[int] = []

    def noted(part: list[Any], **how: Any) -> list[Any]:
        at_once.append(len(part))
        return sorted(part, **how)

    monkeypatch.setattr(wire, "sorted", noted, raising=False)
    assert wire.told(value) == repr(as_before(value))
    assert at_once
    assert max(at_once) <= 10


def large_property(text: bytes) -> bytes:
    entry = b"\xa1\x03big\xb1" + struct.pack(">I", len(text)) + text
    return b"\xd1" + struct.pack(">II", 4 + len(entry), 2) + entry


OBJECT = section(0x72, b"\xc1\x17\x02\xa3\x12x-opt-jms-msg-type\x51\x01")
JSON = section(0x73, b"\xc0\x19\x07" + b"\x40" * 6 + b"\xa3\x10application/json")


@pytest.mark.parametrize(
    ("payload", "quick"),
    [
        (section(VALUE, b"\xa1\x01x"), True),
        (section(DATA, b"\xa0\x01x") * 2, True),
        (JSON + section(DATA, b"\xa0\x02{}"), True),
        (OBJECT + JSON + section(DATA, b"\xa0\x02{}"), False),
        (section(VALUE, zeros(999)), True),
        (section(SEQUENCE, zeros(400)) * 2, True),
        (section(VALUE, zeros(1000)), False),
        (section(SEQUENCE, zeros(1000)), False),
        (section(SEQUENCE, zeros(600)) * 2, False),
        (section(DATA, zeros(1000)), False),
        (section(VALUE, b"\xd0\x00\x10\x00\x09\x00\x00\x00\x01\xb1\x00\x10\x00\x00" + b"a" * (1 << 20)), False),
        (section(APPLICATION_PROPERTIES, zeros(1000, 0xD1)) + section(VALUE, b"\xa1\x01x"), False),
        (section(APPLICATION_PROPERTIES, large_property(b"x" * (1 << 16))) + section(VALUE, b"\xa1\x01x"), False),
        (section(APPLICATION_PROPERTIES, b"\xc1\x02\x02\x3f") + section(VALUE, zeros(1000)), False),
        (b"\x00", False),
    ],
    ids=[
        "text",
        "bytes",
        "JSON as text",
        "JSON as object",
        "short list",
        "short sequences",
        "list",
        "sequence",
        "sequences",
        "list in data",
        "over 1 MiB",
        "properties",
        "large property",
        "malformed properties",
        "no message",
    ],
)
def test_only_text_and_bytes_and_few_values_are_decoded_on_a_loop_s166(payload: bytes, quick: bool) -> None:
    assert AmqpInbound(payload).quick is quick


def test_properties_that_cannot_be_decoded_are_decoded_once_s166(monkeypatch: pytest.MonkeyPatch) -> None:
    """A property that is no text at its last byte cost as much time for each property that the program read."""
    payload = section(APPLICATION_PROPERTIES, large_property(b"\xed\xa0\xbd\xed\xb8\x80" * 100 + b"\xff"))
    inbound = AmqpInbound(payload + section(VALUE, b"\xa1\x01x"))
    inbound.to_message(Queue("q"))
    with pytest.raises(MessageFormatException, match="not UTF-8") as first:
        inbound.load_properties()
    monkeypatch.delattr(sections, "read_application_properties")
    with pytest.raises(MessageFormatException) as second:
        inbound.load_properties()
    assert str(second.value) == str(first.value)


def test_a_long_text_among_the_header_fields_is_utf_8_only_s166() -> None:
    """Modified UTF-8 takes a hundred times as long to decode, and a requestor decodes these fields on the I/O loop."""
    text = b"\xed\xa0\xbd\xed\xb8\x80" * 100
    fields = b"\x40" * 3 + b"\xb1" + struct.pack(">I", len(text)) + text
    payload = section(0x73, b"\xd0" + struct.pack(">II", 4 + len(fields), 4) + fields)
    with pytest.raises(MessageFormatException, match="properties section"):
        AmqpInbound(payload + section(VALUE, b"\xa1\x01x")).to_message(Queue("q"))


def long_subject(size: int) -> bytes:
    subject = b"\xb1" + struct.pack(">I", size) + b"x" * size
    fields = b"\x40" * 3 + subject
    return section(0x73, b"\xd0" + struct.pack(">II", 4 + len(fields), 4) + fields)


def test_headers_of_more_than_a_mebibyte_are_refused_when_they_come_and_when_they_are_sent_s166() -> None:
    """A loop decodes them: 10 MB of half characters in a subject stopped one for 6 s."""
    fits = AmqpInbound(long_subject(LARGEST_PROPERTIES - 17) + section(VALUE, b"\xa1\x01x"))
    assert len(fits.to_message(None).type or "") == LARGEST_PROPERTIES - 17
    with pytest.raises(MessageFormatException, match="properties section: 1,048,577 bytes, expected at most 1,048,576"):
        AmqpInbound(long_subject(LARGEST_PROPERTIES - 16) + section(VALUE, b"\xa1\x01x")).to_message(None)
    message = TextMessage("x")
    message.type = "x" * LARGEST_PROPERTIES
    with pytest.raises(MessageFormatException, match="the headers of the message have"):
        encode(message, "q")


def test_a_long_content_type_names_no_character_set() -> None:
    """The expression for a type of 90 MB stopped all threads of the process for 6 s."""
    assert charset_of("text/plain; charset=utf-8" + " " * 999) == "utf-8"
    assert charset_of("text/plain; charset=utf-8" + " " * 1000) is None
