"""Object messages: plain values, codecs, and what stays serialised (S164, S175)."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from pyjmsack import JsonCodec, register_object_codec
from pyjmsack.errors import MessageFormatException, MessageNotWriteableException
from pyjmsack.message import ObjectMessage, SerializedObject, codecs
from pyjmsack.types import Byte, Char, Float, Long

JAVA = "application/x-java-serialized-object"
JSON = "application/json"


class Upper:
    """A codec that can fail, and says what it was asked."""

    def encode(self, obj: Any) -> bytes:
        return bytes(obj.upper(), "ascii")

    def decode(self, data: bytes) -> Any:
        assert type(data) is bytes
        return data.decode("ascii")


@pytest.fixture
def upper() -> Iterator[str]:
    """The content type of a codec that takes up to 10 bytes."""
    register_object_codec("application/X-Upper; q=1", Upper(), max_bytes=10)
    yield "application/x-upper"
    del codecs._codecs["application/x-upper"]


PLAIN = [
    None,
    True,
    1,
    2**40,
    1.5,
    "text",
    b"bytes",
    Byte(1),
    Char("x"),
    Long(1),
    Float(1.5),
    UUID(int=7),
    [],
    {},
    [1, [2, {"a": [None]}]],
    {"a": 1, 2: [3], None: b"x"},
]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_are_objects_s175(value: Any) -> None:
    message = ObjectMessage(value)
    assert message.object == message.body == value
    assert type(message.object) is type(value)
    assert message.content_type is None


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 1j, 2**63, datetime(2024, 1, 1), Point(1), [object()], {"a": {1}}, {(1,): 2}, Float(1e300)],
)
def test_anything_else_is_refused_and_named_s175(value: Any) -> None:
    message = ObjectMessage("before")
    with pytest.raises(MessageFormatException, match="object"):
        message.object = value
    assert message.object == "before"


def test_a_list_within_itself_is_refused_s175() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(MessageFormatException, match="within each other"):
        ObjectMessage(endless)


def test_the_message_holds_a_copy_and_gives_out_copies_s175() -> None:
    original = {"a": [1]}
    message = ObjectMessage(original)
    original["a"].append(2)
    message.object["a"].append(3)
    assert message.object == {"a": [1]}
    assert ObjectMessage(OrderedDict(a=(1, 2))).object == {"a": [1, 2]}


def test_a_codec_writes_when_the_object_is_set_and_reads_when_it_is_asked_for_s175() -> None:
    original = {"a": [1.5, None]}
    message = ObjectMessage(original, JSON)
    original["a"].append(2)
    assert message.object == {"a": [1.5, None]}
    assert message.content_type == JSON
    assert isinstance(message._body, SerializedObject)
    assert message._body == b'{"a":[1.5,null]}'
    message.object = [1]
    assert message._body == b"[1]"
    message.content_type = None
    assert message._body == [1]
    message.clear_body()
    assert message.object is None


def test_codecs_are_found_without_case_and_parameters_s175(upper: str) -> None:
    message = ObjectMessage("abc", "Application/X-UPPER; q=2")
    assert message.object == "ABC"
    assert message.content_type == "Application/X-UPPER; q=2"
    assert isinstance(message._body, SerializedObject)


def test_what_a_codec_cannot_do_is_a_format_error_with_its_cause_s175(upper: str) -> None:
    with pytest.raises(MessageFormatException, match="cannot write a int") as caught:
        ObjectMessage(5, upper)
    assert isinstance(caught.value.__cause__, AttributeError)
    with pytest.raises(MessageFormatException, match="cannot read") as caught:
        _ = ObjectMessage(SerializedObject(b"\xff", upper)).object
    assert isinstance(caught.value.__cause__, UnicodeDecodeError)


def test_a_codec_is_given_no_more_than_it_was_registered_for_s175(upper: str) -> None:
    assert ObjectMessage(SerializedObject(b"x" * 10, upper)).object == "x" * 10
    message = ObjectMessage(SerializedObject(b"x" * 11, upper))
    with pytest.raises(MessageFormatException, match=r"11 bytes.*at most 10"):
        _ = message.object
    with pytest.raises(MessageFormatException):
        message.get_body(str)
    assert not message.is_body_assignable_to(str)


@pytest.mark.parametrize("value", [math.nan, {1, 2}, object(), "\ud800"])
def test_the_json_codec_writes_only_json_s175(value: Any) -> None:
    with pytest.raises(MessageFormatException, match=JSON):
        ObjectMessage(value, JSON)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_json_that_is_none_is_a_format_error_s175(data: bytes) -> None:
    with pytest.raises(MessageFormatException, match=JSON):
        _ = ObjectMessage(SerializedObject(data, JSON)).object


@pytest.mark.parametrize("content_type", [JAVA, "application/x-pickle", "application/x-python-pickle"])
def test_nothing_is_read_without_a_codec_least_of_all_pickle_s175(content_type: str) -> None:
    message = ObjectMessage(SerializedObject(b"\x80\x04N.", content_type))
    assert isinstance(message.object, SerializedObject)
    assert message.object == message.get_body(bytes) == b"\x80\x04N."
    assert message.content_type == content_type
    with pytest.raises(MessageFormatException, match=r"no codec is registered for.*application/json"):
        ObjectMessage("x", content_type)
    with pytest.raises(MessageFormatException, match="no codec can read its bytes"):
        message.content_type = JSON
    message.object = "plain"
    assert (message.object, message.content_type) == ("plain", None)


def test_a_serialised_object_is_of_java_unless_it_says_otherwise() -> None:
    form = SerializedObject(b"data")
    assert form.content_type == JAVA
    assert repr(form) == f"<SerializedObject, 4 bytes of {JAVA}>"
    twin = copy.deepcopy(SerializedObject(b"data", JSON))
    assert (twin, twin.content_type) == (b"data", JSON)


def test_the_typed_encoding_is_what_plain_values_have_s164() -> None:
    message = ObjectMessage([1])
    name = "JMS_AMQP_TYPED_ENCODING"
    assert message.properties[name] is True
    assert message.get_boolean_property(name)
    assert name not in list(message.properties)
    message.properties[name] = True
    with pytest.raises(MessageFormatException, match="content_type"):
        message.properties[name] = False
    message.content_type = JSON
    assert name not in message.properties
    assert not message.get_boolean_property(name)
    message.properties[name] = False
    message.set_string_property(name, "true")
    assert message._body == [1]
    java = ObjectMessage(SerializedObject(b"x"))
    with pytest.raises(MessageFormatException, match="no codec can read its bytes"):
        java.properties[name] = True


def test_a_read_only_object_cannot_be_changed_until_cleared_s163() -> None:
    message = ObjectMessage([1])
    message._body_readonly = True
    with pytest.raises(MessageNotWriteableException):
        message.object = 2
    with pytest.raises(MessageNotWriteableException):
        message.content_type = JSON
    message.clear_body()
    message.object = 2


def test_get_body_goes_by_the_object_s176() -> None:
    assert ObjectMessage({"a": 1}, JSON).get_body(dict) == {"a": 1}
    assert ObjectMessage(5).is_body_assignable_to(int)
    assert ObjectMessage(None).get_body(str) is None
    with pytest.raises(MessageFormatException, match="int, not str"):
        ObjectMessage(5).get_body(str)


@pytest.mark.parametrize(
    ("content_type", "codec", "limit", "error"),
    [
        ("json", JsonCodec(), 1, ValueError),
        ("", JsonCodec(), 1, ValueError),
        ("application/x", object(), 1, TypeError),
        ("application/x", JsonCodec(), 0, ValueError),
    ],
)
def test_a_wrong_registration_is_refused(content_type: str, codec: Any, limit: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected"):
        register_object_codec(content_type, codec, max_bytes=limit)
