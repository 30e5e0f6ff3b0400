"""The types of the properties of a STOMP message, in a header that a stranger may have written."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.spi.stomp_names import BODY, TYPES, properties_of, sent_over_stomp


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


FRAME = {"destination": "q", "destination-type": "ANYCAST", "receipt": "1"}


@pytest.mark.parametrize(
    ("properties", "by_classic", "known"),
    [
        (FRAME | {"JMSXDeliveryCount": None}, False, True),
        ({"NATIVE_MESSAGE_ID": "ID:1"}, True, True),
        ({TYPES: "{}"}, False, True),
        ({BODY: "text"}, False, True),
        (FRAME, False, False),
        (FRAME | {"JMSXDeliveryCount": None, "destination": "other"}, False, False),
        ({"NATIVE_MESSAGE_ID": "ID:1"}, False, False),
        ({"NATIVE_MESSAGE_ID": "1"}, True, False),
        ({"NATIVE_MESSAGE_ID": 1}, True, False),
    ],
)
def test_a_message_counts_as_one_of_stomp_by_what_only_a_broker_writes(
    properties: dict[str, Any], by_classic: bool, known: bool
) -> None:
    """S160: an application may have properties with the names of headers, and gets them."""
    assert sent_over_stomp(properties, "q", by_classic=by_classic) is known
