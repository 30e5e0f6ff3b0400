"""The interface between the core and a ledger, which has one line for each send and each delivery.

A line is written when the outcome is known. The line is CSV: strings are quoted, an absent value is an empty field, and
times are nanoseconds since 1970. The last columns hardly change from line to line. So they are joined into one field,
the tail, because one field is written in a third of the time that the columns take.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["LARGEST_COUNT", "SEPARATOR", "Ledger", "quoted", "tail"]

SEPARATOR = "\x1f"
"""The separator between the columns in the last field of a line."""

LARGEST_COUNT = (1 << 31) - 1
"""The largest number that the column of the delivery count holds. The sender of a message may choose a larger count
over AMQP; then the ledger has this number, because a reader refuses a part with a row that does not fit."""


class Ledger(Protocol):
    """Records the sends and deliveries of one connection. Any thread may call the methods, and they raise no error."""

    connection_id: str

    def send(self, line: str, /) -> None:
        """Record the outcome of a send.

        The columns are message id, duplicate id, number, time sent, time answered, outcome and transaction. The last
        field of the line, the tail, joins producer, destination, protocol, broker and connection.
        """
        ...

    def receive(self, line: str, /) -> None:
        """Record the outcome of a delivery.

        The columns are message id, ordinal, time received, time settled, delivery count, 1 if the message was delivered
        before, outcome and transaction. The last field of the line, the tail, joins consumer, destination,
        ack mode, protocol, broker and connection.
        """
        ...

    def event(self, line: str, /) -> None:
        """Record an event of the connection.

        The columns are time, kind and detail. The last field of the line, the tail, joins protocol, broker and
        connection.
        """
        ...

    def close(self) -> None:
        """Finish the files, and wait until they are complete."""
        ...


def quoted(text: str | None) -> str:
    """Return a string as a quoted field of a line. ``None`` gives an empty field."""
    return "" if text is None else '"' + text.replace('"', '""') + '"'


def tail(*values: object) -> str:
    """Return the tail of a line: one field that joins the columns that hardly change."""
    return quoted(SEPARATOR.join(str(value).replace(SEPARATOR, " ") for value in values))
