"""The JSON form of map, stream and object bodies keeps every Java type (S172, S174, S175)."""

from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjmsack.errors import MessageFormatException
from pyjmsack.message import MapMessage, Message, ObjectMessage, SerializedObject, StreamMessage, TextMessage
from pyjmsack.message.portable import CONTENT_TYPES, decode, encode, is_portable
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

MAP, STREAM, OBJECT = (CONTENT_TYPES[kind] for kind in (2, 4, 1))

VALUES: list[tuple[Any, Any, type]] = [
    (None, None, type(None)),
    (True, True, bool),
    ("ä\0\ud800😀", "ä\0\ud800😀", str),
    (Byte(-1), {"byte": -1}, Byte),
    (Short(1), {"short": 1}, Short),
    (1, {"int": 1}, int),
    (Int(1), {"int": 1}, int),
    (Long(1), {"long": 1}, Long),
    (2**40, {"long": 2**40}, Long),
    (-(2**63), {"long": -(2**63)}, Long),
    (Float(1.5), {"float": 1.5}, Float),
    (1.5, {"double": 1.5}, float),
    (Double(1.5), {"double": 1.5}, float),
    (math.inf, {"double": "Infinity"}, float),
    (Float(-math.inf), {"float": "-Infinity"}, Float),
    (Char("x"), {"char": "x"}, Char),
    (b"\0\1", {"bytes": "AAE="}, bytes),
]
DEEP: list[tuple[Any, Any, type]] = [
    (UUID(int=7), {"uuid": str(UUID(int=7))}, UUID),
    ([Byte(1), [None]], {"list": [{"byte": 1}, {"list": [None]}]}, list),
    ({1: {"a": Short(2)}}, {"map": [[{"int": 1}, {"map": [["a", {"short": 2}]]}]]}, dict),
    (SerializedObject(b"\0\1"), {"serialized": ["application/x-java-serialized-object", "AAE="]}, SerializedObject),
]


@pytest.mark.parametrize(("value", "tagged", "kind"), VALUES)
def test_each_type_of_jms_has_its_tag(value: Any, tagged: Any, kind: type) -> None:
    """S172: and comes back as it was, from each of the three bodies."""
    bodies: list[tuple[Message, str, Any, Any]] = [
        (MapMessage({"k": value}), MAP, {"k": tagged}, lambda body: body["k"]),
        (StreamMessage([value]), STREAM, [tagged], lambda body: body[0]),
        (ObjectMessage(value), OBJECT, tagged, lambda body: body),
    ]
    for message, content_type, document, part in bodies:
        named, text = encode(message)
        assert named == content_type
        assert json.loads(text) == document
        assert text.isascii()
        assert text.isprintable()
        wire_type, body = decode(content_type, text)
        assert wire_type == message.wire_type
        assert part(body) == value
        assert type(part(body)) is kind


@pytest.mark.parametrize(("value", "tagged", "kind"), DEEP)
def test_objects_may_be_deep_or_serialised(value: Any, tagged: Any, kind: type) -> None:
    """S175."""
    content_type, text = encode(ObjectMessage(value))
    assert json.loads(text) == tagged
    assert decode(content_type, text) == (1, value)
    assert type(decode(content_type, text)[1]) is kind


def test_nan_survives() -> None:
    """S172."""
    (value,) = decode(*encode(StreamMessage([math.nan])))[1]
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("content_type", "text", "named"),
    [
        ("application/json", "{}", "application/json"),
        (MAP, "", "map"),
        (MAP, "[]", "expected a dict"),
        (STREAM, "{}", "expected a list"),
        (STREAM, "[[5]]", "expected a JSON value"),
        (STREAM, f"[{2**63}]", "does not fit"),
        (STREAM, '[{"byte":1,"int":1}]', "expected a JSON value"),
        (STREAM, '[{"ubyte":1}]', "unknown type 'ubyte'"),
        (STREAM, '[{"byte":128}]', "does not fit"),
        (STREAM, '[{"int":2147483648}]', "does not fit"),
        (STREAM, '[{"long":true}]', "expected a int"),
        (STREAM, '[{"double":"1"}]', "expected a float"),
        (STREAM, '[{"char":"ab"}]', "UTF-16"),
        (STREAM, '[{"bytes":"a"}]', "cannot be read"),
        (OBJECT, '{"uuid":"x"}', "cannot be read"),
        (OBJECT, '{"map":[[null]]}', "cannot be read"),
        (OBJECT, '{"map":[[{"list":[]},1]]}', "cannot be read"),
        (OBJECT, '{"map":[[{"list":[]},null]]}', "cannot be read"),
        (OBJECT, '{"double":1' + "0" * 400 + "}", "cannot be read"),
        (OBJECT, '{"int":' + "1" * 5000 + "}", "cannot be read"),
        (OBJECT, '{"list":[' * 100_000, "cannot be read"),
    ],
)
def test_what_is_no_such_body_is_a_format_error_that_says_why(content_type: str, text: str, named: str) -> None:
    """S166."""
    with pytest.raises(MessageFormatException, match=named):
        decode(content_type, text)


def test_only_map_stream_and_object_messages_have_the_form() -> None:
    """S165."""
    for message in (Message(), TextMessage("x")):
        with pytest.raises(MessageFormatException, match="cannot be written as JSON"):
            encode(message)


def test_the_content_type_may_have_parameters_and_capitals() -> None:
    """S166."""
    assert decode(MAP.upper() + "; charset=utf-8", "{}") == (2, {})
    assert is_portable(MAP.upper() + ";x=y")
    assert not is_portable("application/vnd.pyjmsack+json")


def test_bare_numbers_are_read_by_the_rule_of_python_values() -> None:
    """S161."""
    _, found = decode(STREAM, f"[5, {2**31}, 1.5]")
    assert [(value, type(value)) for value in found] == [(5, int), (2**31, Long), (1.5, float)]


SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.text(),
    st.binary(max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(Float),
    st.characters(max_codepoint=0xFFFF).map(Char),
)
DEEPER = st.recursive(
    SIMPLE | st.uuids(), lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner)
)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1), SIMPLE), st.lists(SIMPLE), DEEPER)
def test_any_body_comes_back(fields: dict[str, Any], values: list[Any], obj: Any) -> None:
    """S172, S174, S175."""
    assert decode(*encode(MapMessage(fields))) == (2, fields)
    assert decode(*encode(StreamMessage(values))) == (4, values)
    assert decode(*encode(ObjectMessage(obj))) == (1, obj)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.floats() | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["byte", "bytes", "char", "map", "list", "uuid", "serialized", "double"]), inner
            )
        ),
    )
)
def test_any_json_is_a_body_or_a_format_error(document: Any) -> None:
    """S166."""
    for content_type in CONTENT_TYPES.values():
        try:
            decode(content_type, json.dumps(document))
        except MessageFormatException:
            continue
