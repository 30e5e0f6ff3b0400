"""Descriptors of what a connection holds.

They are plain data without handles, so that a provider that lost its connection can be given the same ones again, in
order (S103). ``id`` is unique within a connection; providers route by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyjmsack.destination import Destination
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.types import AckMode

__all__ = ["ConnectionInfo", "ConnectionMetadata", "ConsumerInfo", "ProducerInfo", "SessionInfo"]


@dataclass(eq=False)
class ConnectionInfo:
    """Who connects. The password is kept out of ``repr``."""

    client_id: str
    explicit_client_id: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ConnectionMetadata:
    """What the broker said of itself in its Open or CONNECTED frame (S119)."""

    protocol: str
    broker_name: str
    broker_version: str
    provider_version: str
    capabilities: frozenset[str] = frozenset()
    properties: Mapping[str, object] = field(default_factory=dict)


@dataclass(eq=False)
class SessionInfo:
    """A session; its mode is shared by all its consumers (S2)."""

    id: int
    ack_mode: AckMode

    @property
    def transacted(self) -> bool:
        """True if sends and acknowledgements belong to a transaction."""
        return self.ack_mode is AckMode.SESSION_TRANSACTED


@dataclass(eq=False)
class ProducerInfo:
    """A producer; without a destination it is anonymous (S67)."""

    id: int
    session_id: int
    destination: Destination | None
    presettled: bool = False


@dataclass(eq=False)
class ConsumerInfo:
    """A consumer or browser. ``prefetch`` counts messages; 0 means pull (S50)."""

    id: int
    session_id: int
    destination: Destination
    sink: InboundSink
    prefetch: int
    selector: str | None = None
    no_local: bool = False
    browser: bool = False
    presettled: bool = False
