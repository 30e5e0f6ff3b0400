"""Writes the records of a connection to its ledger."""

from __future__ import annotations

from time import time_ns

from pyjmsack.spi.ledger import Ledger, quoted, tail
from pyjmsack.spi.resources import ConnectionMetadata

__all__ = ["Recorder"]


class Recorder:
    """Writes the events of one connection to its ledger, and knows the values that all lines of the connection share.

    Args:
        ledger: the ledger of this connection.
        url: the URL of the broker, for the time before the connection is open.
    """

    def __init__(self, ledger: Ledger, url: str) -> None:
        self.ledger = ledger
        self._url = url
        self._closed = False
        self.metadata: ConnectionMetadata | None = None
        """The broker of the connection now. After a failover this is another object."""

    def tail(self, *values: object) -> str:
        """Return the last field of a ledger line: ``values``, then protocol, broker and connection id. A caller may
        keep the field while :attr:`metadata` stays the same object. A failover replaces this object.
        """
        metadata = self.metadata
        protocol = "" if metadata is None else metadata.protocol
        broker = (metadata.url if metadata is not None else "") or self._url
        return tail(*values, protocol, broker, self.ledger.connection_id) + "\n"

    def id_of(self, number: int) -> str:
        """Return the id of one of the connection's resources. No other connection has the same id."""
        return f"{self.ledger.connection_id}:{number}"

    def event(self, kind: str, detail: str = "") -> None:
        """Record an event: ``established``, ``interrupted``, ``restored``, ``failure`` or ``closed``. If the broker
        closed an object, the event is ``session_closed``, ``producer_closed`` or ``consumer_closed``.
        """
        self.ledger.event(f"{time_ns()},{quoted(kind)},{quoted(detail)},{self.tail()}")

    def close(self) -> None:
        """Record that the connection is closed, and close the ledger. This blocks. A second call has no effect."""
        if not self._closed:
            self._closed = True
            self.event("closed")
            self.ledger.close()
