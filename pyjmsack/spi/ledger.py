"""What the core tells a ledger: lines, one per send and per delivery, when its outcome is known.

A line is CSV. Strings are quoted, an absent value is nothing at all, times are nanoseconds since 1970. The last columns
hardly change from line to line, so they are one field, which costs a third.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["SEPARATOR", "Ledger", "quoted", "tail"]

SEPARATOR = "\x1f"
"""Between the columns that the last field of a line holds."""


class Ledger(Protocol):
    """Keeps what one connection did. Its methods may be called from any thread and raise nothing."""

    connection_id: str

    def send(self, line: str, /) -> None:
        """Keep the outcome of a send: message id, duplicate id, number, time sent, time answered, outcome, transaction,
        and the tail: producer, destination, protocol, broker, connection."""
        ...

    def receive(self, line: str, /) -> None:
        """Keep the outcome of a delivery: message id, ordinal, time received, time settled, delivery count, 1 if it was
        delivered before, outcome, transaction, and the tail: consumer, destination, ack mode, protocol, broker,
        connection."""
        ...

    def event(self, line: str, /) -> None:
        """Keep an event of the connection: time, kind, detail, and the tail: protocol, broker, connection."""
        ...

    def close(self) -> None:
        """Nothing more comes. Blocks until the files are finished."""
        ...


def quoted(text: str | None) -> str:
    """Return a string as a field of a line."""
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def tail(*values: object) -> str:
    """Return the columns that hardly change, as the last field of a line."""
    return quoted(SEPARATOR.join(str(value).replace(SEPARATOR, " ") for value in values))
