"""``JsonConverter(camel_case=True)``: fields have the names that Jackson gives those of Java; keys stay as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from pyjmsack import JsonConverter, MapMessage, MessageFormatException, TextMessage
from pyjmsack.app.names import camel

CAMEL = JsonConverter(camel_case=True)


class Unit(Enum):
    PER_PIECE = "per_piece"


@dataclass
class OrderLine:
    unit_price: Decimal
    unit: Unit = Unit.PER_PIECE


@dataclass
class CustomerOrder:
    order_id: str
    order_lines: list[OrderLine]
    first_line: OrderLine | None = None
    free_notes: dict[str, str] = field(default_factory=dict)
    lines_by_sku: dict[str, OrderLine] = field(default_factory=dict)
    class_: str = "A"


ORDER = CustomerOrder(
    "o-1",
    [OrderLine(Decimal("0.10"))],
    OrderLine(Decimal(2)),
    {"gift_card": "yes"},
    {"bell_red": OrderLine(Decimal(3))},
    "B",
)
WRITTEN = {
    "orderId": "o-1",
    "orderLines": [{"unitPrice": "0.10", "unit": "per_piece"}],
    "firstLine": {"unitPrice": "2", "unit": "per_piece"},
    "freeNotes": {"gift_card": "yes"},
    "linesBySku": {"bell_red": {"unitPrice": "3", "unit": "per_piece"}},
    "class": "B",
}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("order_id", "orderId"),
        ("id", "id"),
        ("orderId", "orderId"),
        ("class_", "class"),
        ("_id", "_id"),
        ("line_2", "line2"),
        ("order__id", "orderId"),
        ("a_b_c", "aBC"),
        ("html_URL", "htmlURL"),
        ("__", "__"),
    ],
)
def test_a_name_in_camel_case(name: str, key: str) -> None:
    assert camel(name) == key


def test_dataclasses_are_written_and_read_at_all_depths() -> None:
    message = CAMEL.to_message(ORDER)
    assert json.loads(message.body) == WRITTEN
    assert CAMEL.from_message(message, CustomerOrder) == ORDER


def test_a_mapping_in_which_a_dataclass_is_keeps_its_own_keys() -> None:
    body = {"first_order": OrderLine(Decimal(1)), "free_text": {"a_b": 1}}
    assert json.loads(CAMEL.to_message(body).body) == {
        "first_order": {"unitPrice": "1", "unit": "per_piece"},
        "free_text": {"a_b": 1},
    }
    assert CAMEL.from_message(TextMessage('{"a_b": 1}'), dict) == {"a_b": 1}


def test_only_the_name_in_camel_case_is_read() -> None:
    with pytest.raises(MessageFormatException, match="OrderLine needs 'unitPrice', which is missing"):
        CAMEL.from_message(TextMessage('{"unit_price": 1}'), OrderLine)
    with pytest.raises(MessageFormatException, match="'unitPrice' of OrderLine: expected Decimal"):
        CAMEL.from_message(TextMessage('{"unitPrice": []}'), OrderLine)


def test_a_map_message_is_read_as_well() -> None:
    assert CAMEL.from_message(MapMessage({"unitPrice": "1.5"}), OrderLine) == OrderLine(Decimal("1.5"))


def test_without_the_option_names_stay() -> None:
    assert json.loads(JsonConverter().to_message(ORDER.first_line).body) == {"unit_price": "2", "unit": "per_piece"}
    assert repr(CAMEL) == "JsonConverter(None, [], camel_case=True)"


@dataclass
class Clash:
    order_id: int
    orderId: int = 0  # noqa: N815 - the name of Java beside that of Python


@dataclass
class Around:
    inner: list[Clash]


@pytest.mark.parametrize("kind", [Clash, Around])
def test_two_fields_with_one_name_are_refused(kind: type) -> None:
    text = "Clash: the fields 'order_id' and 'orderId' would both be 'orderId' in camelCase; rename one of them"
    with pytest.raises(ValueError, match=text):
        JsonConverter("_type", {"x": kind}, camel_case=True)
    with pytest.raises(MessageFormatException, match=text):
        CAMEL.to_message(Around([Clash(1)]))
    with pytest.raises(MessageFormatException, match=text):
        CAMEL.from_message(TextMessage('{"orderId": 1}'), Clash)
    JsonConverter("_type", {"x": kind})


# -- pydantic --------------------------------------------------------------------------------------------------------

pydantic = pytest.importorskip("pydantic")


class Line(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    unit_price: int
    line_no: int = pydantic.Field(default=0, alias="no")


class Circle(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    kind: Literal["circle"] = "circle"
    inner_radius: int


class Square(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    kind: Literal["square"] = "square"
    edge_length: int


class Lines(pydantic.RootModel):  # type: ignore[misc, name-defined]
    root: list[Line]


class Shop(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    model_config = pydantic.ConfigDict(extra="allow")

    shop_lines: list[Line]
    best_line: Line | None = None
    by_name: dict[str, Line] | None = None
    pair_of: tuple[int, OrderLine] | None = None
    root_lines: Lines | None = None
    shape_of: Annotated[Circle | Square, pydantic.Field(discriminator="kind")] | None = None

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def line_count(self) -> int:
        return len(self.shop_lines)


SHOP = Shop(
    shop_lines=[Line(unit_price=1, no=7)],
    best_line=Line(unit_price=2),
    by_name={"red_bell": Line(unit_price=3)},
    pair_of=(1, OrderLine(Decimal(4))),
    root_lines=Lines([Line(unit_price=5)]),
    shape_of=Square(edge_length=6),
)
SHOP_WRITTEN = {
    "shopLines": [{"unitPrice": 1, "no": 7}],
    "bestLine": {"unitPrice": 2, "no": 0},
    "byName": {"red_bell": {"unitPrice": 3, "no": 0}},
    "pairOf": [1, {"unitPrice": "4", "unit": "per_piece"}],
    "rootLines": [{"unitPrice": 5, "no": 0}],
    "shapeOf": {"kind": "square", "edgeLength": 6},
    "lineCount": 1,
}


def test_a_model_is_written_by_its_aliases_also_without_the_option() -> None:
    """A receiver by the same class reads by aliases, and so does the Java service for which they were given."""
    line = Line(unit_price=1, no=7)
    message = JsonConverter().to_message(line)
    assert json.loads(message.body) == {"unit_price": 1, "no": 7}
    assert JsonConverter().from_message(message, Line) == line


def test_models_are_written_and_read_at_all_depths() -> None:
    message = CAMEL.to_message(SHOP)
    assert json.loads(message.body) == SHOP_WRITTEN
    del SHOP_WRITTEN["lineCount"]  # an extra value, if a Shop reads it
    assert CAMEL.from_message(TextMessage(json.dumps(SHOP_WRITTEN)), Shop) == SHOP


def test_an_extra_value_of_a_model_keeps_its_name_and_is_refused_in_a_clash() -> None:
    extra = Shop(shop_lines=[], some_thing=1)
    assert json.loads(CAMEL.to_message(extra).body)["some_thing"] == 1
    with pytest.raises(MessageFormatException, match="two of the values would be 'shopLines'"):
        CAMEL.to_message(Shop(shop_lines=[], shopLines=1))


def test_the_name_in_python_is_no_name_of_a_model_either() -> None:
    with pytest.raises(MessageFormatException, match=r"Line refuses the values: [^:]*\sunit_price"):
        CAMEL.from_message(TextMessage('{"unit_price": 1}'), Line)


def test_an_alias_that_is_the_name_of_another_field_is_refused() -> None:
    kind = pydantic.create_model("Twice", order_id=(int, ...), other=(int, pydantic.Field(alias="orderId")))
    with pytest.raises(ValueError, match="Twice: the fields 'order_id' and 'other' would both be 'orderId'"):
        JsonConverter("_type", {"x": kind}, camel_case=True)


def test_a_body_that_fits_no_class_of_a_union_says_so() -> None:
    with pytest.raises(MessageFormatException):
        CAMEL.from_message(TextMessage('{"shopLines": [], "shapeOf": {"kind": "ring"}}'), Shop)


class Tree(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    left_side: Tree | Bush | None = None


class Bush(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    left_side: Tree | Bush | None = None


def test_a_nested_body_of_several_possible_models_is_refused_before_it_costs_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyjmsack.app.typed._MOST_TRIED", 1000)
    for depth in (20, 200):
        text = '{"leftSide": ' * depth + "5" + "}" * depth
        with pytest.raises(MessageFormatException, match="more than 1,000 values, beyond those in the body"):
            CAMEL.from_message(TextMessage(text), Tree)


def test_any_value_may_be_any_value() -> None:
    kind = pydantic.create_model("Loose", any_thing=(Any, ...))
    found = CAMEL.from_message(TextMessage('{"anyThing": {"a_b": [{"cD": 1}]}}'), kind)
    assert found.any_thing == {"a_b": [{"cD": 1}]}
