"""Fields of map and stream messages: values, conversions, states (S163, S172-S174). One text for both classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjmsack.errors import (
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
)
from pyjmsack.message import MapMessage, Message, StreamMessage
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

KINDS = ("boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes")
STORED: dict[str, Any] = {
    "boolean": True,
    "byte": Byte(7),
    "short": Short(7),
    "char": Char("7"),
    "int": 7,
    "long": Long(7),
    "float": Float(7.5),
    "double": 7.5,
    "bytes": b"7",
}
ALLOWED: dict[str, dict[str, Any]] = {
    "boolean": {"boolean": True, "string": "true"},
    "byte": {"byte": 7, "short": 7, "int": 7, "long": 7, "string": "7"},
    "short": {"short": 7, "int": 7, "long": 7, "string": "7"},
    "char": {"char": "7", "string": "7"},
    "int": {"int": 7, "long": 7, "string": "7"},
    "long": {"long": 7, "string": "7"},
    "float": {"float": 7.5, "double": 7.5, "string": "7.5"},
    "double": {"double": 7.5, "string": "7.5"},
    "bytes": {"bytes": b"7"},
}
PARSED: list[tuple[str, str, Any]] = [
    ("true", "boolean", True),
    ("TRUE", "boolean", True),
    ("yes", "boolean", False),
    ("-128", "byte", -128),
    ("128", "byte", None),
    ("32767", "short", 32767),
    ("32768", "short", None),
    ("-2147483648", "int", -(2**31)),
    ("2147483648", "int", None),
    ("9223372036854775807", "long", 2**63 - 1),
    ("9223372036854775808", "long", None),
    ("1.5", "long", None),
    ("", "int", None),
    ("1.5", "float", 1.5),
    (" 1e3 ", "double", 1000.0),
    ("NaN?", "double", None),
    ("x", "char", None),
    ("x", "bytes", None),
    ("x", "string", "x"),
]
NONE: dict[str, Any] = {"boolean": False, "string": None, "bytes": None}
"""What reading ``None`` gives; as any other type it is a format error."""

Read = Callable[[Any, str], Any]


def read_from_map(value: Any, wanted: str) -> Any:
    message = MapMessage({"0": value})
    return getattr(message, f"get_{wanted}")("0")


def read_from_stream(value: Any, wanted: str) -> Any:
    """Read, and check that a failed read leaves the cursor (S174)."""
    message = StreamMessage([value])
    message.reset()
    try:
        return getattr(message, f"read_{wanted}")()
    except MessageFormatException:
        assert message.read_object() == value
        raise


BOTH = pytest.mark.parametrize("read", [read_from_map, read_from_stream])


@BOTH
@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("stored", STORED)
def test_every_cell_of_the_conversion_table_s173(read: Read, stored: str, wanted: str) -> None:
    value = STORED[stored]
    if wanted not in ALLOWED[stored]:
        with pytest.raises(MessageFormatException, match=rf"has the type {stored}.*as {wanted}"):
            read(value, wanted)
        return
    result = read(value, wanted)
    assert result == ALLOWED[stored][wanted]
    assert type(result) is (Char if wanted == "char" else type(ALLOWED[stored][wanted]))


@BOTH
@pytest.mark.parametrize(("text", "wanted", "value"), PARSED)
def test_text_is_parsed_s173(read: Read, text: str, wanted: str, value: Any) -> None:
    if value is None:
        with pytest.raises(MessageFormatException, match="0"):
            read(text, wanted)
    else:
        assert read(text, wanted) == value


@BOTH
@pytest.mark.parametrize("wanted", KINDS)
def test_none_is_false_or_none_but_no_number_s173(read: Read, wanted: str) -> None:
    if wanted in NONE:
        assert read(None, wanted) is NONE[wanted]
    else:
        with pytest.raises(MessageFormatException, match=wanted):
            read(None, wanted)


VALUES: list[tuple[str, Any, Any, type]] = [
    ("boolean", False, False, bool),
    ("byte", -128, -128, Byte),
    ("short", -32768, -32768, Short),
    ("char", "x", "x", Char),
    ("int", 2**31 - 1, 2**31 - 1, Int),
    ("long", 1, 1, Long),
    ("float", 0.1, 0.10000000149011612, Float),
    ("double", 0.1, 0.1, float),
    ("double", 1, 1.0, float),
    ("string", "", "", str),
    ("string", None, None, type(None)),
    ("bytes", b"", b"", bytes),
    ("bytes", bytearray(b"x"), b"x", bytes),
    ("bytes", None, None, type(None)),
    ("object", None, None, type(None)),
    ("object", True, True, bool),
    ("object", 1, 1, int),
    ("object", Byte(1), 1, Byte),
    ("object", Short(1), 1, Short),
    ("object", Int(1), 1, Int),
    ("object", Long(1), 1, Long),
    ("object", Float(0.1), 0.10000000149011612, Float),
    ("object", Double(0.1), 0.1, Double),
    ("object", Char("x"), "x", Char),
    ("object", memoryview(b"x"), b"x", bytes),
]


@pytest.mark.parametrize(("setter", "given", "held", "kind"), VALUES)
def test_each_setter_keeps_its_java_type_s172(setter: str, given: Any, held: Any, kind: type) -> None:
    fields, stream = MapMessage(), StreamMessage()
    getattr(fields, f"set_{setter}")("k", given)
    getattr(stream, f"write_{setter}")(given)
    stream.reset()
    for found in (fields.get_object("k"), fields["k"], stream.read_object()):
        assert found == held
        assert type(found) is kind


REFUSED: list[tuple[str, Any]] = [
    ("boolean", 1),
    ("byte", 128),
    ("byte", "1"),
    ("short", 32768),
    ("char", "xy"),
    ("char", None),
    ("char", 5),
    ("int", 2**31),
    ("int", True),
    ("int", 1.5),
    ("long", 2**63),
    ("float", 1e300),
    ("float", "1"),
    ("double", None),
    ("string", b"x"),
    ("bytes", "x"),
    ("object", 2**63),
    ("object", object()),
    ("object", [1]),
    ("object", {"a": 1}),
    ("object", {1}),
]


@pytest.mark.parametrize(("setter", "value"), REFUSED)
def test_what_is_no_such_value_is_refused_and_changes_nothing_s172(setter: str, value: Any) -> None:
    fields, stream = MapMessage({"k": 1}), StreamMessage([1])
    with pytest.raises(MessageFormatException):
        getattr(fields, f"set_{setter}")("k", value)
    with pytest.raises(MessageFormatException):
        getattr(stream, f"write_{setter}")(value)
    assert fields.body == {"k": 1}
    assert stream.body == [1]


def test_bytes_are_copied_s172() -> None:
    data = bytearray(b"one")
    fields, stream = MapMessage({"k": data}), StreamMessage([data])
    data[:] = b"two"
    assert fields["k"] == stream.body[0] == b"one"


# -- map ---------------------------------------------------------------------------------------------------------------


def test_a_map_message_is_a_mutable_mapping_s172() -> None:
    message = MapMessage([("a", 1)])
    message.update(b=2.5, c=None)
    assert (len(message), list(message), message.names) == (3, ["a", "b", "c"], ["a", "b", "c"])
    assert "c" in message
    assert message.item_exists("c")
    assert not message.item_exists("d")
    assert message.get("d", 5) == 5
    assert message.pop("b") == 2.5
    del message["a"]
    assert message.body == dict(message) == {"c": None}
    with pytest.raises(KeyError):
        message["a"]
    assert message.get_object("a") is None
    assert message.get_boolean("a") is False
    with pytest.raises(MessageFormatException, match="'a' is missing"):
        message.get_int("a")


def test_an_empty_map_message_is_a_message_and_equal_to_itself_only() -> None:
    """Or ``while message := consumer.receive(1)`` would end there."""
    message = MapMessage()
    assert message
    assert message != MapMessage()
    assert message == message
    assert len({message, MapMessage()}) == 2


@pytest.mark.parametrize("name", ["", None, 5, b"x"])
def test_a_name_in_a_map_is_a_text_that_is_not_empty_s172(name: Any) -> None:
    message = MapMessage()
    with pytest.raises(MessageFormatException, match="non-empty"):
        message[name] = 1
    with pytest.raises(MessageFormatException, match="non-empty"):
        MapMessage({name: 1})
    message["any name: 1st, NULL"] = 1


@pytest.mark.parametrize("items", [5, "text", [1, 2]])
def test_only_mappings_make_a_map_message(items: Any) -> None:
    with pytest.raises(MessageFormatException, match="expected a mapping"):
        MapMessage(items)


def test_the_body_given_out_is_a_copy_s169() -> None:
    fields, stream = MapMessage({"a": 1}), StreamMessage([1])
    fields.body["b"] = 2
    stream.body.append(2)
    assert fields.body == {"a": 1}
    assert stream.body == [1]


# -- stream ------------------------------------------------------------------------------------------------------------


def readable(*values: Any) -> StreamMessage:
    message = StreamMessage(values)
    message.reset()
    return message


def test_a_new_stream_is_write_only_until_reset_s174() -> None:
    message = StreamMessage([1])
    reads = [getattr(message, f"read_{kind}") for kind in (*KINDS, "object")]
    for read in (*reads, lambda: next(iter(message))):
        with pytest.raises(MessageNotReadableException):
            read()
    message.reset()
    assert message.read_int() == 1
    writes = [getattr(message, f"write_{kind}") for kind in (*KINDS, "object")]
    for write in writes:
        with pytest.raises(MessageNotWriteableException):
            write(STORED["boolean"])
    message.clear_body()
    message.write_int(2)
    with pytest.raises(MessageNotReadableException):
        message.read_int()


@pytest.mark.parametrize("kind", [*KINDS, "object"])
def test_past_the_end_of_a_stream_is_eof_s174(kind: str) -> None:
    message = readable(1)
    message.read_object()
    for _ in range(2):
        with pytest.raises(MessageEOFException):
            getattr(message, f"read_{kind}")()
    message.reset()
    assert message.read_object() == 1


def test_iterating_reads_what_is_left_s174() -> None:
    message = readable(1, "x", None)
    assert message.read_int() == 1
    assert list(message) == ["x", None]
    assert list(message) == []
    message.reset()
    assert list(message) == message.body == [1, "x", None]


@pytest.mark.parametrize(
    ("field", "lengths", "results"),
    [
        (b"abcde", [None], [b"abcde"]),
        (b"abcde", [10], [b"abcde"]),
        (b"abcde", [2, 2, 2], [b"ab", b"cd", b"e"]),
        (b"abcde", [2, None], [b"ab", b"cde"]),
        (b"abcd", [2, 2, 2], [b"ab", b"cd", None]),
        (b"abcd", [4, 1], [b"abcd", None]),
        (b"abcd", [4, None], [b"abcd", b""]),
        (b"abcd", [0, 5], [b"", b"abcd"]),
        (b"", [3], [b""]),
        (b"", [None], [b""]),
        (None, [3], [None]),
        (None, [None], [None]),
    ],
)
def test_bytes_may_be_read_in_parts_s174(field: Any, lengths: list[int | None], results: list[bytes | None]) -> None:
    message = readable(field, "next")
    assert [message.read_bytes(length) for length in lengths] == results
    assert message.read_string() == "next"


@pytest.mark.parametrize("kind", [kind for kind in (*KINDS, "object") if kind != "bytes"])
@pytest.mark.parametrize("length", [2, 5])
def test_bytes_read_in_part_block_other_reads_until_finished_s174(kind: str, length: int) -> None:
    """Also where all was read, but nothing said that it was the end."""
    message = readable(b"abcde", 1)
    message.read_bytes(length)
    with pytest.raises(MessageFormatException, match="in part"):
        getattr(message, f"read_{kind}")()
    assert message.read_bytes(10) == (b"cde" if length == 2 else None)
    assert message.read_int() == 1


def test_reset_forgets_a_partial_read_s174() -> None:
    message = readable(b"abc")
    message.read_bytes(1)
    message.reset()
    assert message.read_object() == b"abc"


def test_read_bytes_of_another_type_or_a_negative_length_leaves_the_cursor_s174() -> None:
    message = readable("x")
    with pytest.raises(MessageFormatException, match="as bytes"):
        message.read_bytes(1)
    with pytest.raises(MessageFormatException, match="-1"):
        message.read_bytes(-1)
    assert message.read_string() == "x"


@pytest.mark.parametrize("items", [5, "text", b"bytes"])
def test_only_lists_make_a_stream_message(items: Any) -> None:
    with pytest.raises(MessageFormatException, match="expected a list"):
        StreamMessage(items)


# -- both --------------------------------------------------------------------------------------------------------------


def test_a_read_only_body_can_be_read_not_written_until_cleared_s163() -> None:
    fields, stream = MapMessage({"a": 1}), StreamMessage([1])
    writes: list[tuple[Message, Callable[[], Any]]] = [
        (fields, lambda: fields.set_int("a", 2)),
        (fields, lambda: fields.update(b=2)),
        (fields, lambda: fields.pop("a")),
        (fields, lambda: fields.clear()),
        (stream, lambda: stream.write_int(2)),
    ]
    for message, write in writes:
        message._body_readonly, message._locked = True, False
        with pytest.raises(MessageNotWriteableException, match="clear_body"):
            write()
        message._body_readonly, message._locked = False, True
        with pytest.raises(MessageNotWriteableException, match="completion listener"):
            write()
        with pytest.raises(MessageNotWriteableException, match="completion listener"):
            message.clear_body()
    fields._locked = stream._locked = False
    assert fields.get_int("a") == 1
    fields.clear_body()
    stream.clear_body()
    assert (fields.body, stream.body) == ({}, [])
    fields["b"] = 1
    stream.write_int(1)


def test_get_body_is_a_dict_or_a_list_s176() -> None:
    fields, stream = MapMessage({"a": 1}), StreamMessage([1])
    assert fields.get_body(dict) == {"a": 1}
    assert stream.get_body(list) == [1]
    for message, kind in ((fields, dict), (stream, list)):
        assert message.is_body_assignable_to(kind)
        assert not message.is_body_assignable_to(str)
        with pytest.raises(MessageFormatException, match="not str"):
            message.get_body(str)


@settings(deadline=None)
@given(st.floats(allow_nan=True) | st.integers(-(2**63), 2**63 - 1) | st.booleans())
def test_any_value_read_as_text_is_read_back_as_the_same(value: Any) -> None:
    """S173: the two conversions are each other's inverse."""
    kind = {float: "double", int: "long", bool: "boolean"}[type(value)]
    text = MapMessage({"k": value}).get_string("k")
    again = getattr(MapMessage({"k": text}), f"get_{kind}")("k")
    assert again == value or (math.isnan(again) and math.isnan(value))
