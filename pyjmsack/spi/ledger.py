"""The interface between the core and a ledger: one line for each send and each delivery, written when its outcome is
known.

A line is CSV. Strings are quoted, an absent value is an empty field, and times are nanoseconds since 1970. The last
columns hardly change from line to line, so they are joined into one field, which saves two thirds of their cost.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["SEPARATOR", "Ledger", "quoted", "tail"]

SEPARATOR = "\x1f"
"""The separator between the columns in the last field of a line."""


class Ledger(Protocol):
    """Records the work of one connection. Any thread may call the methods, and they raise no error."""

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
        """Finish the files, and block until that is done."""
        ...


def quoted(text: str | None) -> str:
    """Return a string as a field of a line."""
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def tail(*values: object) -> str:
    """Return the last field of a line, which joins the columns that hardly change."""
    return quoted(SEPARATOR.join(str(value).replace(SEPARATOR, " ") for value in values))
