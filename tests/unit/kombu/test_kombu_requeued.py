"""What a connection of kombu remembers of the messages that it gave back."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

from pyjmsack.kombu.connection import REMEMBERED, Connection


class Remembering(Connection):
    """A connection without a broker."""

    def __init__(self) -> None:
        self._requeued = OrderedDict()
        self.closed = True

    def settle(self, delivery: Any, outcome: str) -> None:
        """Do nothing."""


def message(message_id: str | None) -> Any:
    return SimpleNamespace(message_id=message_id, redelivered=False)


def test_a_requeued_message_is_known_by_few_bytes_whatever_its_id() -> None:
    """A sender chooses the id: a thousand ids of a megabyte were a gigabyte."""
    connection = Remembering()
    for number in range(REMEMBERED + 1):
        connection.requeue(SimpleNamespace(message=message(f"{number}" + "x" * 1000)))  # type: ignore[arg-type]
    connection.requeue(SimpleNamespace(message=message(None)))  # type: ignore[arg-type]
    assert [len(str(kept)) <= 20 for kept in connection._requeued] == [True] * REMEMBERED
    assert connection.came_before(message("1" + "x" * 1000))
    assert not connection.came_before(message("0" + "x" * 1000))
    assert not connection.came_before(message(None))
