"""Counts dead letters by origin and cause, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["MOST_GROUPS", "Groups"]

MOST_GROUPS = 1000
_OTHERS = "(more origins and causes)"


@dataclass
class _Group:
    """The number of dead letters with one origin and one cause, and their oldest and newest time stamp."""

    messages: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None

    def add(self, sent: datetime | None) -> None:
        self.messages += 1
        if sent is not None:
            self.oldest = sent if self.oldest is None else min(self.oldest, sent)
            self.newest = sent if self.newest is None else max(self.newest, sent)


class Groups:
    """Counts dead letters by origin and cause. Beyond a limit, all further groups count as one group, because there may
    be as many causes as letters: a cause may contain a message id.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self.total = 0

    def add(self, origin: str, cause: str, sent: datetime | None) -> None:
        """Count a dead letter in the group of its origin and its cause."""
        key = origin, cause
        if key not in self._groups and len(self._groups) >= MOST_GROUPS:
            key = "", _OTHERS
        self._groups.setdefault(key, _Group()).add(sent)
        self.total += 1

    def rows(self) -> list[tuple[str, int, str | None, str | None, str]]:
        """Return a sorted row for each group: origin, number, time of the oldest and newest letter, and cause."""
        found = sorted(self._groups.items(), key=lambda item: item[0])
        return [(origin, one.messages, _iso(one.oldest), _iso(one.newest), cause) for (origin, cause), one in found]


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
