"""Names that would damage the store of ActiveMQ Classic are refused before they are sent (S67)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack.core.spellings import LONGEST_NAME, LONGEST_STORED, check_names, check_storable
from pyjmsack.errors import InvalidDestinationException, MessageFormatException
from pyjmsack.message import TextMessage

CLASSIC: Any = SimpleNamespace(broker="classic-6")


@pytest.mark.parametrize(
    ("character", "size"), [("a", 1), ("\0", 2), ("\u00e4", 2), ("\u20ac", 3), ("\ud800", 3), ("\U0001f600", 6)]
)
def test_a_name_is_counted_in_the_bytes_that_the_store_writes(character: str, size: int) -> None:
    fits = character * (LONGEST_STORED // size)
    check_storable("the destination", fits, CLASSIC)
    with pytest.raises(InvalidDestinationException, match=r"the destination .* has 65,\d\d\d bytes") as raised:
        check_storable("the destination", fits + character * 2, CLASSIC)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("broker", ["artemis", "unknown", None])
def test_other_brokers_take_names_of_any_length(broker: str | None) -> None:
    metadata: Any = broker and SimpleNamespace(broker=broker)
    check_storable("the destination", "a" * 100_000, metadata)


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("\u00e4", 2), ("\U00010400", 6)])
def test_a_property_whose_name_ends_the_connection_to_classic_is_refused(character: str, size: int) -> None:
    """S160: one message costs itself alone."""
    message = TextMessage("x")
    message.properties[character * (LONGEST_NAME // size)] = 1
    check_names(message, CLASSIC)
    message.properties[character * (LONGEST_NAME // size + 1)] = 1
    with pytest.raises(MessageFormatException, match=r"the name of the property .* has 65,\d\d\d bytes") as raised:
        check_names(message, CLASSIC)
    assert len(str(raised.value)) < 500
    artemis: Any = SimpleNamespace(broker="artemis")
    check_names(message, artemis)
