"""Numbers of Artemis that are below zero, because it could not convert messages for a consumer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from pyjmsack.cli.stat import _FORMATS
from pyjmsack.management.artemis import _consumer, _queue


def row(**numbers: int) -> dict[str, Any]:
    """Return a queue as Artemis lists it."""
    names = "messageCount deliveringCount consumerCount messagesAdded messagesAcked messagesExpired messagesKilled"
    zeros = dict.fromkeys([*names.split(), "scheduledCount"], 0)
    return {"name": "DLQ", "address": "DLQ", "paused": False, "durable": True, "temporary": False} | zeros | numbers


@pytest.mark.parametrize(
    ("counts", "known"), [((-9, -18), (9, None)), ((440, -1), (441, None)), ((7, 0), (7, 0)), ((7, 3), (7, 3))]
)
def test_a_count_below_zero_is_unknown_and_does_not_lower_the_number_of_messages(
    counts: tuple[int, int], known: tuple[int, int | None]
) -> None:
    """Artemis adds the wrong count to the number of messages, so a monitor of a dead-letter queue was silent."""
    status = _queue(row(messageCount=counts[0], deliveringCount=counts[1]))
    assert (status.messages, status.delivering) == known


@pytest.mark.parametrize(("count", "known"), [(-1, None), (0, 0), (3, 3)])
def test_the_count_of_a_consumer_is_unknown_too(count: int, known: int | None) -> None:
    assert _consumer({"messagesInTransit": count}).delivering == known


@pytest.mark.parametrize(
    ("format_name", "shown"), [("table", " - "), ("json", '"delivering": null'), ("prometheus", "_messages{")]
)
def test_no_command_shows_a_count_below_zero(capsys: pytest.CaptureFixture[str], format_name: str, shown: str) -> None:
    _FORMATS[format_name]([asdict(_queue(row(messageCount=-9, deliveringCount=-18)))])
    out = capsys.readouterr().out
    assert shown in out
    assert "-18" not in out
    assert "-9" not in out
    assert "queue_delivering{" not in out
