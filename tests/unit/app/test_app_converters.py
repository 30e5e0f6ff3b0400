"""Bodies to messages and back, without a broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from pyjmsack import BytesMessage, JsonConverter, MapMessage, MessageFormatException, TextMessage
from pyjmsack.app.typed import _PARSED, build


class Colour(Enum):
    RED = "red"


@dataclass
class Part:
    name: str
    price: Decimal


@dataclass
class Order:
    number: int
    parts: list[Part]
    at: datetime
    colour: Colour = Colour.RED
    notes: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Email:
    to: str


class Model:
    """Has the two methods by which a pydantic model is known."""

    def __init__(self, to: str) -> None:
        self.to = to

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if "to" not in value:
            raise ValueError("to: field required")
        return cls(value["to"])

    def model_dump(self, mode: str, by_alias: bool) -> dict[str, str]:
        assert (mode, by_alias) == ("json", True)
        return {"to": self.to}


ORDER = Order(7, [Part("bolt", Decimal("0.10"))], datetime(2026, 11, 22, tzinfo=timezone.utc), notes={"a": None})


def test_a_dataclass_with_all_kinds_of_fields_comes_back_equal() -> None:
    converter = JsonConverter()
    assert converter.from_message(converter.to_message(ORDER), Order) == ORDER


def test_the_type_property_names_the_class_in_both_directions() -> None:
    """As Spring's ``setTypeIdPropertyName("_type")`` and ``setTypeIdMappings``."""
    converter = JsonConverter("_type", {"hello.Email": Email, "shop.Order": Order})
    message = converter.to_message(Email("ann"))
    assert message.properties["_type"] == "hello.Email"
    assert converter.from_message(message, Any) == Email("ann")
    assert converter.from_message(message, Email) == Email("ann")
    assert converter.from_message(message, dict) == {"to": "ann"}


def test_a_message_of_another_type_than_the_annotation_is_refused() -> None:
    converter = JsonConverter("_type", {"hello.Email": Email, "shop.Order": Order})
    with pytest.raises(MessageFormatException, match="property '_type' of the message names the type Email, not Order"):
        converter.from_message(converter.to_message(Email("ann")), Order)


def test_a_message_can_name_known_classes_only() -> None:
    message = TextMessage("{}")
    message.properties["_type"] = "os.system"
    with pytest.raises(
        MessageFormatException, match=r"'os.system' of a message is unknown; expected one of: hello\.Email"
    ):
        JsonConverter("_type", {"hello.Email": Email}).from_message(message, Any)


def test_a_class_without_a_name_is_not_sent_where_the_receiver_needs_one() -> None:
    with pytest.raises(MessageFormatException, match="Order is not among the types"):
        JsonConverter("_type", {"hello.Email": Email}).to_message(ORDER)


def test_json_is_read_from_bytes_as_spring_sends_it() -> None:
    """``MappingJackson2MessageConverter`` writes bytes messages unless it is told otherwise."""
    assert JsonConverter().from_message(BytesMessage(b'{"to": "ann"}'), Email) == Email("ann")


def test_a_pydantic_model_is_validated_and_dumped_by_itself() -> None:
    converter = JsonConverter("_type", {"m": Model})
    message = converter.to_message(Model("ann"))
    assert converter.from_message(message, Model).to == "ann"
    message.text = "{}"
    with pytest.raises(MessageFormatException, match="Model refuses the values: to: field required"):
        converter.from_message(message, Model)


def test_real_pydantic_models_go_both_ways() -> None:
    pydantic = pytest.importorskip("pydantic")
    kind = pydantic.create_model("Real", to=(str, ...), at=(datetime, ...))
    converter = JsonConverter()
    body = kind(to="ann", at=ORDER.at)
    assert converter.from_message(converter.to_message(body), kind) == body


@pytest.mark.parametrize(
    ("text", "wanted", "why"),
    [
        ('{"to": 1}', Email, "'to' of Email: expected str, not int"),
        ("{}", Email, "Email needs 'to'"),
        ("[]", Email, "expected Email, not list"),
        ("nonsense", Email, "cannot be read as JSON"),
        ("true", int, "expected int, not bool"),
        ('["a"]', list[int], r"the body\[0\]: expected int, not str"),
        ('"blue"', Colour, "expected Colour, not str"),
        ('"soon"', datetime, "expected datetime, not str"),
        ("[" * 100_000, list, "cannot be read as JSON"),
        ("9" * 400, float, "expected float, not int"),
        ('{"a": [1, [2]]}', dict[str, set[Any]], "the body, 'a': .*unhashable"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_place(text: str, wanted: Any, why: str) -> None:
    with pytest.raises(MessageFormatException, match=why):
        JsonConverter().from_message(TextMessage(text), wanted)


@pytest.mark.parametrize(
    ("message", "wanted", "body"),
    [
        (TextMessage("plain"), Any, "plain"),
        (TextMessage('{"a": 1}'), Any, {"a": 1}),
        (TextMessage("{no json"), Any, "{no json"),
        (TextMessage('{"a": 1}'), str, '{"a": 1}'),
        (TextMessage('{"a": 1}'), dict, {"a": 1}),
        (TextMessage("[1, 2]"), tuple[int, int], (1, 2)),
        (TextMessage("3"), int | None, 3),
        (TextMessage("3"), float, 3.0),
        (TextMessage("null"), int | None, None),
        (BytesMessage(b"\xff"), bytes, b"\xff"),
        (BytesMessage(b"\xff"), Any, b"\xff"),
        (MapMessage({"to": "ann"}), Email, Email("ann")),
    ],
)
def test_the_annotation_decides_what_a_body_becomes(message: Any, wanted: Any, body: Any) -> None:
    assert JsonConverter().from_message(message, wanted) == body


def test_a_number_that_is_too_large_for_one_type_is_tried_as_the_next() -> None:
    """It was an OverflowError, after which no other type was tried."""
    assert JsonConverter().from_message(TextMessage("9" * 400), float | int) == int("9" * 400)


def test_elements_of_a_set_that_share_a_hash_are_refused_before_they_cost_time() -> None:
    """20,000 such numbers, half a megabyte, held up a worker for ten seconds, and in asyncio all workers."""
    many = [number * ((1 << 61) - 1) for number in range(20_000)]
    for wanted in (set[int], frozenset[int], set[Any]):
        with pytest.raises(MessageFormatException, match="expected at most 16 elements of a set with the same hash"):
            JsonConverter().from_message(TextMessage(str(many)), wanted)
    assert JsonConverter().from_message(TextMessage(str([*many[:16], *[5] * 100])), set[int]) == {*many[:16], 5}


@pytest.mark.parametrize("body", [float("nan"), {1: 2}, object(), {"a": {1, "x"} and object()}])
def test_a_body_without_a_form_in_json_is_refused(body: object) -> None:
    with pytest.raises(MessageFormatException):
        JsonConverter().to_message(body)


def test_a_body_that_contains_itself_is_refused() -> None:
    body: list[Any] = []
    body.append(body)
    with pytest.raises(MessageFormatException, match="expected at most 64 levels"):
        JsonConverter().to_message(body)


def test_unknown_names_are_ignored_so_that_a_sender_may_add_fields() -> None:
    assert JsonConverter().from_message(TextMessage('{"to": "ann", "cc": "bob"}'), Email) == Email("ann")


@dataclass
class Left:
    child: Left | Right


@dataclass
class Right:
    child: Left | Right


def test_a_nested_body_of_several_possible_types_is_refused_before_it_costs_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each level doubled the work: a body of 300 bytes held up a worker for hours."""
    monkeypatch.setattr("pyjmsack.app.typed._MOST_TRIED", 1000)
    body = '{"child": ' * 30 + "5" + "}" * 30
    with pytest.raises(MessageFormatException, match="more than 1,000 values, beyond those in the body"):
        JsonConverter().from_message(TextMessage(body), Left)


@dataclass
class Numbers:
    values: list[Counted]
    text: Decimal = Decimal(0)


@dataclass
class Plus:
    left: Plus | Minus | Numbers
    right: Plus | Minus | Numbers


@dataclass
class Minus:
    left: Plus | Minus | Numbers
    right: Plus | Minus | Numbers


class Counted(Enum):
    """An enumeration that counts how often a value becomes one of its members."""

    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Counted:
        BUILT.append(value)
        return cls.ONE


BUILT: list[object] = []


def nested(leaf: object, depth: int) -> Any:
    """Return a body that fits no class, so that ``leaf`` is built twice for each level."""
    for _ in range(depth):
        leaf = {"left": leaf, "right": 0}
    return leaf


@pytest.mark.parametrize(("size", "depth"), [(2000, 9), (2000, 40), (50, 12), (1, 20)])
def test_all_values_that_are_built_in_tries_count(size: int, depth: int) -> None:
    """Only the tries counted, not the values in them: 6 kB made the loop of an app stand still for seconds."""
    BUILT.clear()
    with pytest.raises(MessageFormatException, match="more than 100,000 values, beyond those in the body"):
        build(Plus, nested({"values": [2] * size}, depth))
    assert len(BUILT) <= 100_000 + 3 * depth + size


def test_a_long_text_that_is_read_in_tries_counts_more_than_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try looks at the whole text."""
    seen: list[int] = []

    def read(text: str) -> Decimal:
        seen.append(len(text))
        return Decimal(1)

    monkeypatch.setitem(_PARSED, Decimal, read)
    with pytest.raises(MessageFormatException, match="more than 100,000 values, beyond those in the body"):
        build(Plus, nested({"values": [], "text": "1" * 100_000}, 20))
    assert sum(seen) < 16 * 110_000 + 100_000


def test_a_large_body_without_repeated_work_is_read() -> None:
    assert build(list[int | str], ["a"] * 300_000) == ["a"] * 300_000
    assert build(list[Numbers | Email], [{"to": "ann"}] * 150_000) == [Email("ann")] * 150_000


class Key(str):
    """A key that must not be written into a text."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError("the text of a place was made without an error")


def test_the_places_of_values_become_text_in_an_error_only() -> None:
    """Otherwise a message of 2 MB, one long key with a long list, took 15 s, and one of 20 MB took half an hour."""
    inner = {Key("inner"): [1, 2]}
    assert build(dict[str, list[int]], inner) == inner
    assert build(dict[str, dict[str, list[int]]], {Key("outer"): inner}) == {"outer": inner}


def test_an_error_shows_the_place_and_the_start_of_a_long_key() -> None:
    with pytest.raises(MessageFormatException) as raised:
        build(dict[str, list[Part]], {"k" * 1_000_000: [{"name": 5, "price": "1"}]})
    text = str(raised.value)
    assert text.endswith("kk…'[0], 'name' of Part: expected str, not int")
    assert len(text) < 300


def test_an_error_shows_the_start_of_a_long_reason() -> None:
    """The reason of pydantic lists each wrong value of a message."""

    class Wrong(Model):
        @classmethod
        def model_validate(cls, value: Any) -> Wrong:
            raise ValueError("x" * 1_000_000)

    with pytest.raises(MessageFormatException, match=r"Wrong refuses the values: x+…$") as raised:
        build(Wrong, {})
    assert len(str(raised.value)) < 2000


@dataclass
class Invoice:
    amount: Decimal
    factor: float = 1.0
    anything: Any = None


WRITTEN = [
    ('{"amount": 12.30}', Invoice(Decimal("12.30"))),
    ('{"amount": 12345678901234567890.12}', Invoice(Decimal("12345678901234567890.12"))),
    ('{"amount": -3}', Invoice(Decimal(-3))),
    ('{"amount": "1.20"}', Invoice(Decimal("1.20"))),
    ('{"amount": 1E+3, "factor": 0.5}', Invoice(Decimal("1E+3"), 0.5)),
]


@pytest.mark.parametrize(("text", "invoice"), WRITTEN)
def test_a_decimal_is_read_from_a_number_without_loss(text: str, invoice: Invoice) -> None:
    """Jackson writes a BigDecimal as a number. A float between would lose digits."""
    found = JsonConverter().from_message(TextMessage(text), Invoice)
    assert found == invoice
    assert str(found.amount) == str(invoice.amount)


def test_other_numbers_beside_a_decimal_are_plain_floats() -> None:
    text = '{"amount": 1, "factor": 0.5, "anything": {"a": [1.5]}}'
    found = JsonConverter().from_message(TextMessage(text), Invoice)
    assert type(found.factor) is float
    assert type(found.anything["a"][0]) is float


@pytest.mark.parametrize("value", ["true", "null", "1e99999999999999999999", "NaN"])
def test_a_decimal_is_a_number_or_its_text(value: str) -> None:
    with pytest.raises(MessageFormatException, match="expected Decimal"):
        JsonConverter().from_message(TextMessage(f'{{"amount": {value}}}'), Invoice)


INSTANTS = [
    ("2026-11-23T19:00:00Z", 0),
    ("2026-11-23T19:00:00.123Z", 123_000),
    ("2026-11-23T19:00:00.123456789Z", 123_456),
    ("2026-11-23T19:00:00+00:00", 0),
]


@pytest.mark.parametrize(("text", "microseconds"), INSTANTS)
def test_a_time_is_read_as_java_writes_an_instant(text: str, microseconds: int) -> None:
    found = JsonConverter().from_message(TextMessage(f'"{text}"'), datetime)
    assert found == datetime(2026, 11, 23, 19, 0, 0, microseconds, timezone.utc)


@pytest.mark.parametrize("wanted", [str, Any])
def test_a_string_of_jackson_is_read_without_its_quotes(wanted: Any) -> None:
    """Jackson writes JSON for a ``String`` too. The quotes were a part of the text."""
    converter = JsonConverter("_type", {})
    message = TextMessage('"done \\"now\\""')
    assert converter.from_message(message, wanted) == '"done \\"now\\""', "no type: the text stays as it is"
    message.properties["_type"] = "java.lang.String"
    assert converter.from_message(message, wanted) == 'done "now"'


def test_a_map_of_java_is_read_whatever_class_it_had() -> None:
    """Jackson names the class of the object, such as java.util.HashMap, for which nobody writes a mapping."""
    message = TextMessage('{"a": 1}')
    message.properties["_type"] = "java.util.ImmutableCollections$Map1"
    converter = JsonConverter("_type", {})
    assert converter.from_message(message, dict) == {"a": 1}
    assert converter.from_message(message, Any) == {"a": 1}


def test_json_with_more_values_than_the_limit_is_refused() -> None:
    """A few megabytes of brackets fill the memory with gigabytes of lists."""
    few = JsonConverter(max_values=3)
    assert few.from_message(TextMessage("[1,2,3]"), list) == [1, 2, 3]
    with pytest.raises(MessageFormatException, match="4 values, more than the limit of 3"):
        few.from_message(TextMessage("[1,2,3,4]"), list)
    with pytest.raises(ValueError, match="max_values is 0; expected at least 1"):
        JsonConverter(max_values=0)
