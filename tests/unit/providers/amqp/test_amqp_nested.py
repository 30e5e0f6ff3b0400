"""Lists and maps in properties that ActiveMQ Classic cannot write are refused before they end the connection (S160)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from pyjmsack.errors import MessageFormatException
from pyjmsack.message import TextMessage
from pyjmsack.providers.amqp.dialect import dialect_of
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.wire import MAX_DEPTH
from pyjmsack.providers.amqp.wire_types import Described, OpaqueDecimal, Symbol, Timestamp, UByte, ULong
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

TAKEN = [
    None, True, 1, 1 << 40, 1.5, "x", "x" * 70_000, Byte(1), Short(1), Int(1), Long(1), Float(1), Double(1), Char("x"),
    [], {}, {"": 1}, {"\u00e4" * 32_767: 1},
]  # fmt: skip
REFUSED = [
    (b"x", "a value of type bytes"),
    (OpaqueDecimal(bytes(16)), "a value of type OpaqueDecimal"),
    (ULong(1 << 63), "a value of type ULong"),
    (UByte(1), "a value of type UByte"),
    (Symbol("x"), "a value of type Symbol"),
    (Timestamp(5), "a value of type Timestamp"),
    (UUID(int=5), "a value of type UUID"),
    (Described(Symbol("x"), 1), "a value of type Described"),
    ({1: 2}, "a key of type int"),
    ({None: 2}, "a key of type NoneType"),
    ({b"x": 2}, "a key of type bytes"),
    ({Symbol("x"): 2}, "a key of type Symbol"),
    ({"x" * 65_536: 1}, "a key with 65,536 bytes"),
    ({"\0" * 32_768: 1}, "a key with 65,536 bytes"),
    ({"a": 1, "b": {"\u00e4" * 32_768: 1}}, "a key with 65,536 bytes"),
]


def holding(held: Any) -> TextMessage:
    message = TextMessage("x")
    message._properties = {"ordinary": 1, "held": held}
    return message


@pytest.mark.parametrize("wrap", [lambda value: [1, value], lambda value: {"a": 1, "b": [{"c": value}]}])
@pytest.mark.parametrize(("value", "found"), REFUSED)
def test_what_ends_the_connection_to_classic_is_refused_at_any_depth(wrap: Any, value: Any, found: str) -> None:
    message = holding(wrap(value))
    with pytest.raises(MessageFormatException, match=f"^property 'held' contains {found}, for which") as raised:
        encode(message, "q", checks_nested=True)
    assert len(str(raised.value)) < 500
    encode(message, "q")


@pytest.mark.parametrize("value", TAKEN)
def test_what_classic_can_write_inside_of_a_list_or_map_is_sent(value: Any) -> None:
    for held in (value, [value], {"a": value}, [{"a": [value]}]):
        assert encode(holding(held), "q", checks_nested=True) == encode(holding(held), "q")


@pytest.mark.parametrize("value", [value for value, _ in REFUSED if not isinstance(value, dict)])
def test_a_property_that_is_no_list_and_no_map_is_sent_whatever_its_type_is(value: Any) -> None:
    assert encode(holding(value), "q", checks_nested=True) == encode(holding(value), "q")


@pytest.mark.parametrize("value", [Decimal(1), 1 << 64, "\ud800"])
def test_what_amqp_itself_cannot_carry_has_the_error_of_the_encoder(value: Any) -> None:
    deep: Any = value
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    for held in ([value], deep):
        with pytest.raises(MessageFormatException, match=r"^property 'held': "):
            encode(holding(held), "q", checks_nested=True)


def test_only_classic_is_asked_to_take_less_than_amqp_can_carry() -> None:
    checked = {broker: dialect_of(broker, {}, "", "").checks_nested for broker in ("classic-5", "classic-6", "artemis")}
    assert checked == {"classic-5": True, "classic-6": True, "artemis": False}
