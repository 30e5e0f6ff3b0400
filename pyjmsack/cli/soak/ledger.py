"""A record of sent and arrived messages, for any length of time in little memory."""

from __future__ import annotations

from collections import deque

__all__ = ["Ledger", "Numbers"]

_REMEMBERED = 1000
_NAMED = 10
"""Lost messages that are named."""


class Numbers:
    """A set of numbers from 0 on that come almost in order: all below a mark, and single ones above."""

    def __init__(self) -> None:
        self._mark = 0
        self._above: set[int] = set()

    def add(self, number: int) -> bool:
        """Add one, and return whether it is new."""
        if number in self:
            return False
        self._above.add(number)
        while self._mark in self._above:
            self._above.remove(self._mark)
            self._mark += 1
        return True

    def __contains__(self, number: int) -> bool:
        return number < self._mark or number in self._above

    def __len__(self) -> int:
        return self._mark + len(self._above)

    def missing_in(self, other: Numbers) -> list[int]:
        """Return those of these that the other has not, in order."""
        return [n for n in (*range(other._mark, self._mark), *sorted(self._above)) if n not in other]


class Ledger:
    """The books of one flow.

    A text is a number; behind a relay also its transaction, its place in that one, and how many that one sent."""

    def __init__(self) -> None:
        self.confirmed = Numbers()
        self.received = Numbers()
        self.repeated = 0
        """Numbers that arrived more than once."""
        self.unconfirmed = 0
        """Sends that timed out: each may have arrived or not."""
        self.rolled_back = self.in_doubt = 0
        """Transactions of the relay that failed, and those of them that may have taken effect (S94)."""
        self._excused: set[int] = set()
        self._parts: dict[int, set[int]] = {}
        """Places that arrived of transactions of which others are missing."""
        self._whole: deque[int] = deque(maxlen=_REMEMBERED)
        """Transactions that arrived last. A message of these that is delivered again tears nothing."""

    def confirm(self, number: int) -> None:
        """The broker has confirmed it."""
        self.confirmed.add(number)

    def excuse(self, number: int) -> None:
        """Nobody knows whether the broker has it."""
        self.unconfirmed += 1
        if number not in self.received:
            self._excused.add(number)
        self.received.add(number)
        self.confirmed.add(number)

    def receive(self, text: str) -> None:
        """It was handled."""
        number, *transaction = map(int, text.split())
        if number in self._excused:
            self._excused.remove(number)
        elif not self.received.add(number):
            self.repeated += 1
        if transaction:
            self._collect(*transaction)

    def _collect(self, transaction: int, place: int, size: int) -> None:
        if transaction in self._whole:
            return
        parts = self._parts.setdefault(transaction, set())
        parts.add(place)
        if len(parts) == size:
            del self._parts[transaction]
            self._whole.append(transaction)

    @property
    def in_flight(self) -> int:
        """Confirmed and not received yet, about."""
        return len(self.confirmed) - len(self.received)

    @property
    def lost(self) -> int:
        """Confirmed and not received."""
        return len(self.confirmed.missing_in(self.received))

    @property
    def torn(self) -> int:
        """Transactions of which a part arrived."""
        return len(self._parts)

    @property
    def arrived(self) -> bool:
        """Whether all that was confirmed is there, and no transaction in parts."""
        return len(self.received) >= len(self.confirmed) and not self.lost and not self.torn

    def problems(self, *, atomic: bool = True) -> list[str]:
        """Return the broken promises, in words.

        Args:
            atomic: whether receipts and sends of a transaction take effect together; if not, a repetition behind a
                relay is no problem (S88).
        """
        repeated = self.repeated if atomic else 0
        missing = self.confirmed.missing_in(self.received)
        named = ", ".join([str(number) for number in missing[:_NAMED]] + ["..."] * (len(missing) > _NAMED))
        findings = (
            (len(missing), f"lost (numbers {named})"),
            (repeated, "doubled"),
            (self.torn, "transactions torn"),
        )
        return [f"{count:,} {what}" for count, what in findings if count]
