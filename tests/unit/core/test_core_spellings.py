"""Names that would damage the store of ActiveMQ Classic are refused before they are sent (S67)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack.core.spellings import LONGEST_STORED, check_storable
from pyjmsack.errors import InvalidDestinationException

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
