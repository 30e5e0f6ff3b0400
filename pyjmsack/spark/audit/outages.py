"""Finds the times without a broker from the events in the ledgers. The events are few, so this works without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["Outage", "find_outages", "phase_name", "unclosed"]

LIMIT = 50
"""The largest number of outages in a report. If there are more, the last one includes all later ones."""


@dataclass(frozen=True)
class Outage:
    """A time without a broker. It begins when the first connection notices the loss, and ends when the last connection
    is restored."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return (self.end - self.start).total_seconds()


def find_outages(events: Iterable[dict[str, Any]]) -> list[Outage]:
    """Return the outages in order. If the outages of several connections overlap, they become one outage.

    For a connection that was not restored, the outage ends at the next event ``established`` of any connection, or at
    the last event.

    Args:
        events: rows of the table ``events``.
    """
    ordered = sorted(events, key=lambda event: event["time"])
    spans = sorted(_spans(ordered), key=lambda span: span.start)
    merged: list[Outage] = []
    for span in spans:
        if merged and (span.start <= merged[-1].end or len(merged) == LIMIT):
            merged[-1] = Outage(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _spans(events: list[dict[str, Any]]) -> Iterable[Outage]:
    for position, event in enumerate(events):
        if event["kind"] in ("interrupted", "failure"):
            later = events[position + 1 :]
            yield Outage(event["time"], _end(event, later))


def _end(event: dict[str, Any], later: list[dict[str, Any]]) -> datetime:
    for other in later:
        own = other["connection_id"] == event["connection_id"]
        if (own and other["kind"] in ("restored", "failure")) or other["kind"] == "established":
            return other["time"]
    return (later[-1] if later else event)["time"]


def unclosed(events: Iterable[dict[str, Any]]) -> list[str]:
    """Return the connections that were not closed. The process of such a connection was killed, or the connection is
    still open, or its ledger stopped.
    """
    rows = [*events]
    closed = {event["connection_id"] for event in rows if event["kind"] == "closed"}
    return sorted({event["connection_id"] for event in rows} - closed)


def phase_name(phase: int, outages: int) -> str:
    """Return the name of a phase: 0 is before the first outage. For outage ``k``, counted from 0, ``2 k + 1`` is during
    the outage, and ``2 k + 2`` is after the outage.
    """
    if not outages:
        return "all"
    if phase == 0:
        return "before"
    return f"during outage {phase // 2 + 1}" if phase % 2 else f"after outage {phase // 2}"
