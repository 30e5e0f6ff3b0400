"""Names, values, conversions and reserved names of properties (S160-S164)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pyjmsack.errors import IllegalStateException, MessageFormatException, MessageNotWriteableException
from pyjmsack.message import BytesMessage, Message, TextMessage
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Outcome, Short

WANTED = ("boolean", "byte", "short", "int", "long", "float", "double", "string")
STORED: dict[str, Any] = {
    "boolean": True,
    "byte": Byte(7),
    "short": Short(7),
    "int": Int(7),
    "long": Long(7),
    "float": Float(7.5),
    "double": Double(7.5),
}
ALLOWED = {
    "boolean": {"boolean": True, "string": "true"},
    "byte": {"byte": 7, "short": 7, "int": 7, "long": 7, "string": "7"},
    "short": {"short": 7, "int": 7, "long": 7, "string": "7"},
    "int": {"int": 7, "long": 7, "string": "7"},
    "long": {"long": 7, "string": "7"},
    "float": {"float": 7.5, "double": 7.5, "string": "7.5"},
    "double": {"double": 7.5, "string": "7.5"},
}


def test_the_text_of_a_number_is_the_number_whatever_its_type() -> None:
    """``str()`` gave ``Long(7)``, also in what Artemis notes on a dead letter."""
    assert [str(STORED[name]) for name in ("byte", "short", "int", "long", "float", "double")] == [
        *"7777",
        "7.5",
        "7.5",
    ]


class Ack:
    """An acknowledger that writes down what it was asked."""

    def __init__(self, allows_outcome: bool = True) -> None:
        self.allows_outcome = allows_outcome
        self.calls: list[Any] = []

    def acknowledge(self, message: Message) -> str:
        self.calls.append(message._ack_type)
        return "acknowledged"

    def settle(self, message: Message, outcome: Outcome) -> str:
        self.calls.append(outcome)
        return "settled"


def read(message: Message, wanted: str, name: str = "p") -> Any:
    return getattr(message, f"get_{wanted}_property")(name)


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("stored", STORED)
def test_every_cell_of_the_conversion_table_s162(stored: str, wanted: str) -> None:
    message = Message()
    message.properties["p"] = STORED[stored]
    if wanted in ALLOWED[stored]:
        result = read(message, wanted)
        assert result == ALLOWED[stored][wanted]
        assert type(result) in (bool, int, float, str)
    else:
        with pytest.raises(MessageFormatException, match=rf"'p' has the type {stored}.*as {wanted}"):
            read(message, wanted)


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        ("boolean", "TRUE", True),
        ("boolean", "true", True),
        ("boolean", "yes", False),
        ("boolean", "", False),
        ("byte", "-128", -128),
        ("byte", "+127", 127),
        ("short", "-32768", -32768),
        ("int", "2147483647", 2**31 - 1),
        ("long", "-9223372036854775808", -(2**63)),
        ("float", "0.1", 0.10000000149011612),
        ("float", "1e300", math.inf),
        ("float", "-1e300", -math.inf),
        ("double", " 1.5e3 ", 1500.0),
        ("double", "1.5d", 1.5),
        ("double", ".5", 0.5),
        ("double", "-Infinity", -math.inf),
        ("string", "x", "x"),
    ],
)
def test_strings_are_parsed_as_java_does_s162(wanted: str, text: str, value: Any) -> None:
    message = Message()
    message.properties["p"] = text
    assert read(message, wanted) == value


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("byte", "128"),
        ("byte", ""),
        ("short", "32768"),
        ("int", "2147483648"),
        ("int", "1_000"),
        ("int", " 1"),
        ("int", "1.0"),
        ("int", "٣"),
        ("long", "9223372036854775808"),
        ("long", "9" * 10_000),
        ("float", "one"),
        ("double", ""),
        ("double", "1_0.0"),
        ("double", "nan"),
        ("double", "inf"),
    ],
)
def test_text_that_is_no_such_number_is_a_format_error_and_a_value_error_s162(wanted: str, text: str) -> None:
    message = Message()
    message.properties["p"] = text
    with pytest.raises(ValueError, match=f"expected a text that is a number of type {wanted}") as caught:
        read(message, wanted)
    assert caught.type is MessageFormatException


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("wanted", WANTED)
def test_none_and_missing_read_as_false_or_none_or_fail_s162(wanted: str, present: bool) -> None:
    message = Message()
    if present:
        message.properties["p"] = None
    if wanted in ("boolean", "string"):
        assert read(message, wanted) is (False if wanted == "boolean" else None)
    else:
        with pytest.raises(MessageFormatException, match="is missing or None"):
            read(message, wanted)
    assert message.property_exists("p") is present
    assert message.get_object_property("p") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Float(0.1), "0.1"),
        (Float(1e10), "10000000000.0"),
        (Float(3.4028234663852886e38), "3.4028235e+38"),  # Float.MAX_VALUE; fewer digits are too large for 32 bits
        (Float(-3.4028234663852886e38), "-3.4028235e+38"),
        (Float(1.401298464324817e-45), "1e-45"),
        (Float(-0.0), "-0.0"),
        (Float(16777217.0), "16777216.0"),
        (0.1, "0.1"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (False, "false"),
        (Long(-5), "-5"),
    ],
)
def test_values_read_as_text_s162(value: Any, text: str) -> None:
    message = Message()
    message.properties["p"] = value
    assert message.get_string_property("p") == text


def test_a_float_beyond_32_bits_reads_as_infinity_s162() -> None:
    """Only a program that goes around the setters can store such a number. The getter raised OverflowError."""
    message = Message()
    message._properties = {"p": Float(-1e300)}
    assert message.get_string_property("p") == "-Infinity"


@pytest.mark.parametrize("name", ["a", "_a", "$a", "aB1$_", "null", "JMS_vendor", "größe", "class"])
def test_java_identifiers_are_names_s160(name: str) -> None:
    message = Message()
    message.properties[name] = 1
    assert dict(message.properties) == {name: 1}


BAD_NAMES = [
    "1a",
    "a-b",
    "a b",
    "a.b",
    "NULL",
    "TRUE",
    "FALSE",
    "NOT",
    "AND",
    "OR",
    "BETWEEN",
    "LIKE",
    "IN",
    "IS",
    "ESCAPE",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_other_names_are_refused_unless_validation_is_off_s160(name: str) -> None:
    message = Message()
    with pytest.raises(MessageFormatException, match="expected a"):
        message.properties[name] = 1
    message._validate_names = False
    message.properties[name] = 1
    assert message.properties[name] == 1


@pytest.mark.parametrize("name", ["", None, 5])
@pytest.mark.parametrize("validate", [True, False])
def test_empty_and_none_are_refused_even_with_validation_off_s160(name: Any, validate: bool) -> None:
    message = Message()
    message._validate_names = validate
    with pytest.raises(MessageFormatException, match="non-empty string"):
        message.properties[name] = 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "int"),
        (-(2**31), "int"),
        (2**31 - 1, "int"),
        (2**31, "long"),
        (-(2**63), "long"),
    ],
)
def test_a_bare_int_is_an_int_if_32_bits_hold_it_else_a_long_s161(value: int, kind: str) -> None:
    message = Message()
    message.properties["p"] = value
    assert message.get_long_property("p") == value
    if kind == "int":
        assert message.get_int_property("p") == value
    else:
        with pytest.raises(MessageFormatException):
            message.get_int_property("p")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, b"x", [1], {}, object(), 1j, Float(1e300)])
def test_values_without_a_jms_type_are_refused_and_named_s161(value: Any) -> None:
    message = Message()
    with pytest.raises(MessageFormatException, match="'p'"):
        message.properties["p"] = value
    assert "p" not in message.properties


def test_a_char_becomes_a_string_and_foreign_numbers_become_plain_s161() -> None:
    class Colour(int):
        pass

    message = Message()
    message.properties.update({"c": Char("x"), "e": Colour(3), "f": 1.5})
    assert [type(value) for value in message.properties.values()] == [str, int, float]


@pytest.mark.parametrize(
    ("setter", "good", "bad"),
    [
        ("boolean", True, 1),
        ("byte", 127, 128),
        ("short", -32768, 32768),
        ("int", 2**31 - 1, 2**31),
        ("long", 2**63 - 1, 2**63),
        ("float", 1.5, "1.5"),
        ("double", 1, None),
        ("string", "x", 1),
        ("int", 5, True),
        ("float", 3.0e38, 3.0e39),
    ],
)
def test_typed_setters_keep_the_type_and_refuse_others_s161(setter: str, good: Any, bad: Any) -> None:
    message = Message()
    getattr(message, f"set_{setter}_property")("p", good)
    assert read(message, setter) == pytest.approx(good)
    with pytest.raises(MessageFormatException):
        getattr(message, f"set_{setter}_property")("p", bad)


def test_object_and_string_setters_take_none_s161() -> None:
    message = Message()
    message.set_object_property("o", None)
    message.set_string_property("s", None)
    assert dict(message.properties) == {"o": None, "s": None}


def test_delivery_count_is_readable_unlisted_and_not_writeable_s164() -> None:
    message = Message()
    message._redelivery_count = 2
    assert message.properties["JMSXDeliveryCount"] == message.delivery_count == 3
    assert message.get_int_property("JMSXDeliveryCount") == 3
    assert "JMSXDeliveryCount" in message.properties
    assert dict(message.properties) == {}
    with pytest.raises(MessageNotWriteableException):
        message.properties["JMSXDeliveryCount"] = 1


@pytest.mark.parametrize(
    ("name", "slot", "value"),
    [
        ("JMSXGroupID", "_group_id", "g"),
        ("JMSXGroupSeq", "_group_sequence", 5),
        ("JMSXUserID", "_user_id", "u"),
        ("JMS_AMQP_TTL", "_amqp_ttl", 1000),
        ("JMS_AMQP_REPLY_TO_GROUP_ID", "_reply_to_group_id", "r"),
    ],
)
def test_reserved_names_live_in_the_header_and_are_listed_when_set_s164(name: str, slot: str, value: Any) -> None:
    message = Message()
    assert name not in message.properties
    message.properties[name] = value
    assert getattr(message, slot) == value
    assert dict(message.properties) == {name: value}
    del message.properties[name]
    assert getattr(message, slot) is None
    with pytest.raises(KeyError):
        message.properties[name]
    message.properties[name] = value
    message.clear_properties()
    assert dict(message.properties) == {}


def test_reserved_names_convert_their_value_s164() -> None:
    message = Message()
    message.properties["JMSXGroupSeq"] = "12"
    assert message.get_int_property("JMSXGroupSeq") == 12
    with pytest.raises(MessageFormatException, match="JMSXGroupSeq"):
        message.properties["JMSXGroupSeq"] = "twelve"
    for ttl in (-1, 2**32):
        with pytest.raises(MessageFormatException, match="JMS_AMQP_TTL"):
            message.properties["JMS_AMQP_TTL"] = ttl


def test_typed_encoding_is_for_object_messages_only_s164() -> None:
    for message in (Message(), TextMessage(), BytesMessage()):
        with pytest.raises(MessageFormatException, match="object message"):
            message.properties["JMS_AMQP_TYPED_ENCODING"] = True
        assert "JMS_AMQP_TYPED_ENCODING" not in message.properties


@pytest.mark.parametrize("name", ["JMSMessageID", "JMSPriority", "JMSReplyTo", "JMSType", "JMSDeliveryTime"])
def test_header_fields_are_no_properties(name: str) -> None:
    message = Message()
    with pytest.raises(MessageFormatException, match=r"set message\."):
        message.properties[name] = "x"


def test_ack_type_is_writeable_on_a_received_message_where_the_mode_has_outcomes_s38() -> None:
    message = Message()
    message._properties_readonly = True
    message._ack = ack = Ack()
    message.properties["JMS_AMQP_ACK_TYPE"] = 3
    assert message._ack_type == message.properties["JMS_AMQP_ACK_TYPE"] == 3
    assert dict(message.properties) == {}
    assert message.acknowledge() == "acknowledged"
    assert ack.calls == [3]
    del message.properties["JMS_AMQP_ACK_TYPE"]
    assert message._ack_type is None


@pytest.mark.parametrize("ack", [None, Ack(allows_outcome=False)])
def test_ack_type_is_illegal_in_other_modes_s38(ack: Any) -> None:
    message = Message()
    message._ack = ack
    with pytest.raises(IllegalStateException, match="JMS_AMQP_ACK_TYPE"):
        message.properties["JMS_AMQP_ACK_TYPE"] = 1


def test_properties_of_a_received_message_are_read_only_until_cleared_s163() -> None:
    message = Message()
    message.properties["p"] = 1
    message._properties_readonly = True
    with pytest.raises(MessageNotWriteableException, match="'q'"):
        message.properties["q"] = 1
    with pytest.raises(MessageNotWriteableException):
        del message.properties["p"]
    with pytest.raises(MessageNotWriteableException):
        message.set_string_property("JMSXGroupID", "g")
    message.clear_properties()
    message.properties["q"] = 1
    assert dict(message.properties) == {"q": 1}


def test_properties_are_a_mutable_mapping() -> None:
    message = Message()
    assert len(message.properties) == 0
    message.properties.update(a=1, b="x")
    assert list(message.properties) == ["a", "b"]
    assert message.properties.pop("a") == 1
    assert message.properties == {"b": "x"}
    with pytest.raises(KeyError):
        del message.properties["a"]
    assert repr(message.properties) == "Properties({'b': 'x'})"
    with pytest.raises(KeyError):
        Message().properties["a"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["1" * 1_000_000 + "x", "1." + "1" * 1_000_000 + "x", "1e" + "1" * 1_000_000 + "x"])
def test_a_long_text_that_is_no_number_is_refused_at_once(text: str) -> None:
    """A sender chooses the text. The pattern tried all ways to cut it, with all threads of the process waiting: 16 KB
    took 20 s."""
    message = TextMessage()
    message.properties["p"] = text
    with pytest.raises(MessageFormatException):
        message.get_double_property("p")
    with pytest.raises(MessageFormatException):
        message.get_float_property("p")


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("1.", 1.0), (".5", 0.5), ("1.5e3D", 1500.0), ("-0f", 0.0), ("+1E-2d", 0.01)]
)
def test_each_form_of_a_java_number_is_read(text: str, number: float) -> None:
    message = TextMessage()
    message.properties["p"] = text
    assert message.get_double_property("p") == number


@pytest.mark.parametrize("text", [".", "", "1e", "e1", "1..", "1.2.3", "f"])
def test_what_java_reads_as_no_number_is_none(text: str) -> None:
    message = TextMessage()
    message.properties["p"] = text
    with pytest.raises(MessageFormatException):
        message.get_double_property("p")
