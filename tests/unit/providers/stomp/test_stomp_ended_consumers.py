"""Which consumers are told that Artemis ended one of them, because it cannot convert a message for it (S101)."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.providers.stomp.errors import ConsumerEnded
from pyjmsack.providers.stomp.receiver import end_consumers


class Receiver:
    """A receiver, and its own subscriptions."""

    def __init__(self, address: str, selector: str | None, number: bytes | None = None) -> None:
        self.address = address
        self.source = (address, selector, None)
        self.subscriptions = self
        self._number = number
        self.told: list[bool] = []

    def holds(self, number: bytes) -> bool:
        """Say whether the last message came from the consumer with this number."""
        return number == self._number

    def ended(self, certain: bool) -> None:
        """Take the news."""
        self.told.append(certain)


@pytest.mark.parametrize(
    ("receivers", "names", "told"),
    [
        ([("q", None, b"7"), ("q", None, None), ("n", None, None)], ("q", "q::q"), [True, True, False]),
        ([("q", None, None), ("q", None, None), ("n", None, None)], ("q", "q::q"), [True, True, False]),
        ([("q", "a", b"7"), ("q", "b", None), ("q", "a", None)], ("q", "q::q"), [True, False, True]),
        ([("q", "a", None), ("q", "b", None)], ("q", "q::q"), [False, False]),
        ([("q", "a", b"8"), ("q", "b", b"9")], ("q", "q::q"), [False, False]),
        ([("q", None, b"7"), ("n", None, None)], (), [True, False]),
        ([("q", None, None), ("n", None, None)], (), [False, False]),
    ],
)
def test_only_consumers_that_would_get_the_same_message_are_told_s101(
    receivers: list[Any], names: tuple[str, ...], told: list[bool]
) -> None:
    """A consumer with another selector is innocent. If it may be the one that was ended, nobody is told."""
    made = [Receiver(*arguments) for arguments in receivers]
    end_consumers(ConsumerEnded(b"7", names), made)  # type: ignore[arg-type]  # the parts that are used
    assert [bool(receiver.told) for receiver in made] == told
