"""What the commands of dead letters remember is bounded, whatever the producers and the broker write into them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from pyjmsack import Queue
from pyjmsack.cli import transfer
from pyjmsack.cli.dlq import command
from pyjmsack.cli.dlq.groups import MOST_GROUPS, Groups
from pyjmsack.cli.dlq.letters import Choice, place_of
from pyjmsack.cli.errors import Failure

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


def test_a_group_knows_its_number_its_oldest_and_its_newest_letter() -> None:
    groups = Groups()
    for hours in (3, -2, None, 1):
        groups.add("orders", "boom", None if hours is None else NOON + timedelta(hours=hours))
    groups.add("bills", "", None)
    assert groups.total == 5
    assert groups.rows() == [
        ("bills", 1, None, None, ""),
        ("orders", 4, "2026-01-01T10:00:00+00:00", "2026-01-01T15:00:00+00:00", "boom"),
    ]


def test_causes_without_number_share_one_group_beyond_the_limit() -> None:
    """A cause may name the message."""
    groups = Groups()
    for number in range(MOST_GROUPS + 500):
        groups.add("orders", f"message {number} failed", NOON)
    groups.add("orders", "message 3 failed", NOON)
    rows = groups.rows()
    assert len(rows) == MOST_GROUPS + 1
    assert [row[1] for row in rows if row[4] == "(more origins and causes)"] == [500]
    assert [row[1] for row in rows if row[4] == "message 3 failed"] == [2]
    assert groups.total == sum(row[1] for row in rows)


def test_a_purge_does_not_hold_letters_without_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not meant are held until the session closes."""
    monkeypatch.setattr(transfer, "_MOST_LEFT", 3)
    fitting = [SimpleNamespace(properties={"_AMQ_ORIG_QUEUE": "orders"}, acknowledge=MagicMock())]
    others: list[Any] = [SimpleNamespace(properties={"_AMQ_ORIG_QUEUE": "bills"}) for _ in range(10)]
    letters: Any = MagicMock(queue="DLQ", choice=Choice(origin="orders"))
    session = letters.connection.create_session.return_value.__enter__.return_value
    session.create_consumer.return_value.receive_nowait.side_effect = [*fitting, *others]
    with pytest.raises(Failure, match=r"1 dead letter removed. The rest was not .* more than 3 messages .* --selector"):
        command._destroy(letters, 5)
    fitting[0].acknowledge.assert_called_once_with()


@pytest.mark.parametrize(
    ("noted", "place"),
    [
        ("orders?consumer.x=1", "orders?consumer.x=1"),
        ("a,b", "a,b"),
        (" ", None),
        ([1], None),
        (5, None),
        ("topic://prices", None),
        ("activemq.management", None),
        ("activemq.management::x", None),
    ],
)
def test_a_letter_goes_back_to_a_queue_with_exactly_the_name_that_is_noted(noted: object, place: str | None) -> None:
    """On Classic a sender may choose the property. An option behind a question mark was obeyed. At its address for
    management Artemis would carry out an order."""
    message: Any = SimpleNamespace(properties={"_AMQ_ORIG_QUEUE": noted}, destination=None, _delivery=MagicMock())
    message._delivery.original_destination.return_value = None
    found = place_of(message, "DLQ")
    assert found == (None if place is None else Queue._literal(place))
    assert found is None or found.options == {}
