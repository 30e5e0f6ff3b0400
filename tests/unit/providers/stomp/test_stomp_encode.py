"""What STOMP cannot carry is refused, and not changed into a text."""

from __future__ import annotations

import pytest

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.stomp.encode import _properties


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", 1 << 64])
def test_a_property_that_stomp_cannot_carry_is_refused(value: object) -> None:
    """A sender over AMQP may choose it, and `pyjmsack move` and `import` send properties as they came. The Python form
    was sent as a text."""
    with pytest.raises(MessageFormatException):
        _properties({"name": value}, str)


def test_a_property_without_a_name_is_refused() -> None:
    with pytest.raises(MessageFormatException, match="without a name"):
        _properties({"": "x"}, str)


def test_properties_of_jms_are_sent() -> None:
    assert _properties({"a": None, "b": True, "c": 1, "d": 1.5, "e": "x"}, str).count("\n") == 6
