"""The names to which a producer may send (S67)."""

from __future__ import annotations

import pytest

from pyjmsack.errors import InvalidDestinationException
from pyjmsack.spi.demands import check_target


@pytest.mark.parametrize("name", ["#", "*", "a.#", "#.a", "a.*.b", "a.#::q"])
def test_artemis_gets_no_message_for_a_pattern_s67(name: str) -> None:
    with pytest.raises(InvalidDestinationException, match="wildcards for consumers"):
        check_target("artemis", name)
    check_target("classic-6", name)  # sends to each queue that matches
    check_target("unknown", name)


@pytest.mark.parametrize("name", ["a", "a#", "a.#b", "*a", "a::#", "a::b.*", "##"])
def test_other_names_are_left_to_the_broker_s67(name: str) -> None:
    """Artemis itself refuses some of them, unless wildcards are switched off there."""
    check_target("artemis", name)


def test_the_error_shows_the_beginning_of_a_long_name_s67() -> None:
    with pytest.raises(InvalidDestinationException) as raised:
        check_target("artemis", "a" * 1_000_000 + ".#")
    assert len(str(raised.value)) < 400
