"""A connection's way to its ledger."""

from __future__ import annotations

from time import time_ns

from pyjmsack.spi.ledger import Ledger, quoted, tail
from pyjmsack.spi.resources import ConnectionMetadata

__all__ = ["Recorder"]


class Recorder:
    """Knows what all lines of one connection have in common.

    Args:
        ledger: of this connection.
        url: of the broker, until the connection says where it leads.
    """

    def __init__(self, ledger: Ledger, url: str) -> None:
        self.ledger = ledger
        self._url = url
        self._closed = False
        self.metadata: ConnectionMetadata | None = None
        """The broker of the connection now. After a failover this is another object."""

    def tail(self, *values: object) -> str:
        """Return the last field of a line: these columns, and where the connection leads now. Whoever writes many lines
        keeps it as long as ``metadata`` is the same."""
        metadata = self.metadata
        protocol = "" if metadata is None else metadata.protocol
        broker = (metadata.url if metadata is not None else "") or self._url
        return tail(*values, protocol, broker, self.ledger.connection_id) + "\n"

    def id_of(self, number: int) -> str:
        """Return the id of one of the connection's resources, unlike any other connection's."""
        return f"{self.ledger.connection_id}:{number}"

    def event(self, kind: str, detail: str = "") -> None:
        """``established``, ``interrupted``, ``restored``, ``failure`` or ``closed``; for what the broker closed
        ``session_closed``, ``producer_closed`` or ``consumer_closed``."""
        self.ledger.event(f"{time_ns()},{quoted(kind)},{quoted(detail)},{self.tail()}")

    def close(self) -> None:
        """The connection is closed. Blocks; idempotent."""
        if not self._closed:
            self._closed = True
            self.event("closed")
            self.ledger.close()
