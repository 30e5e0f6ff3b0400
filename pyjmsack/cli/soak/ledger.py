"""A record of sent and arrived messages, for a run of any length in little memory."""

from __future__ import annotations

from collections import deque

__all__ = ["Ledger", "Numbers"]

_REMEMBERED = 1000
_NAMED = 10
"""The largest number of lost messages that the report names."""


class Numbers:
    """A set of numbers from 0 on that arrive almost in order.

    The set keeps one limit, below which it has all numbers, and each single number above the limit.
    """

    def __init__(self) -> None:
        self._mark = 0
        self._above: set[int] = set()

    def add(self, number: int) -> bool:
        """Add a number, and return whether it is new."""
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
        """Return the numbers of this set that the other set does not have, in order."""
        return [n for n in (*range(other._mark, self._mark), *sorted(self._above)) if n not in other]


class Ledger:
    """The record of the sent and arrived messages of one flow.

    The text of a message is its number. Behind a relay, the text also has the number of the transaction, the place of
    the message in the transaction, and the number of messages in the transaction."""

    def __init__(self) -> None:
        self.confirmed = Numbers()
        self.received = Numbers()
        self.repeated = 0
        """How many numbers arrived more than once."""
        self.unconfirmed = 0
        """The number of sends that timed out. The message of such a send may have arrived or not."""
        self.rolled_back = self.in_doubt = 0
        """The number of transactions of the relay that failed, and of those that may have taken effect (S94)."""
        self._excused: set[int] = set()
        self._parts: dict[int, set[int]] = {}
        """For each transaction with missing messages: the places of the messages that arrived."""
        self._whole: deque[int] = deque(maxlen=_REMEMBERED)
        """The transactions that became complete most recently.

        If a message of one of them arrives again, the transaction does not count as incomplete.
        """

    def confirm(self, number: int) -> None:
        """Remember that the broker confirmed the message with this number."""
        self.confirmed.add(number)

    def excuse(self, number: int) -> None:
        """Remember that nobody knows whether the broker has the message with this number."""
        self.unconfirmed += 1
        if number not in self.received:
            self._excused.add(number)
        self.received.add(number)
        self.confirmed.add(number)

    def receive(self, text: str) -> None:
        """Remember that the message with this text arrived and was processed."""
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
        """The approximate number of messages that were confirmed and not received yet."""
        return len(self.confirmed) - len(self.received)

    @property
    def lost(self) -> int:
        """The number of messages that were confirmed and not received."""
        return len(self.confirmed.missing_in(self.received))

    @property
    def torn(self) -> int:
        """The number of transactions of which only a part arrived."""
        return len(self._parts)

    @property
    def arrived(self) -> bool:
        """Whether all confirmed messages arrived, and every transaction as a whole."""
        return len(self.received) >= len(self.confirmed) and not self.lost and not self.torn

    def problems(self, *, atomic: bool = True) -> list[str]:
        """Return the promises that were broken, as texts: messages were lost, came twice, or came only in part.

        Args:
            atomic: whether the received and the sent messages of a transaction take effect together. If they do not,
                it is not a problem that a message comes twice after a transacted session has moved it to another queue
                (S88).
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
