"""The types of the properties of a STOMP message, in a header that a stranger may have written."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.spi.stomp_names import TYPES, properties_of


@pytest.mark.parametrize(
    "types",
    ["", "{", "[1]", '"ab"', "5", "[" * 10_000, '{"a":{}}', '{"a":"blob"}', 5, 1.5, True, b"{}", [1], {"a": "int"}],
    ids=lambda types: f"{type(types).__name__} {str(types)[:12]}",
)
def test_types_that_this_library_did_not_write_leave_the_properties_as_they_are(types: Any) -> None:
    """S161: the properties of the message were unreadable, over AMQP with a ``TypeError``."""
    assert properties_of({"a": "5", "b": 3, TYPES: types}) == {"a": "5", "b": 3}


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 1 << 70])
def test_a_number_that_does_not_fit_its_type_stays_a_string(number: int) -> None:
    """S161: an int of 71 bits could not be sent again."""
    assert properties_of({"a": str(number), TYPES: '{"a":"int"}'}) == {"a": str(number)}
