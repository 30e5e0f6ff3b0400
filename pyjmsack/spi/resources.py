"""Descriptions of the sessions, producers, consumers and temporary destinations of a connection.

The descriptions are plain data, so that they can be used again after the loss of a connection (S103). Each has an
``id``, which is unique within a connection and by which providers find the resource.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.spi.features import Capabilities, features
from pyjmsack.types import AckMode

__all__ = [
    "ConnectionInfo",
    "ConnectionMetadata",
    "ConsumerInfo",
    "ProducerInfo",
    "SessionInfo",
    "Subscription",
    "TemporaryInfo",
]


@dataclass(eq=False)
class ConnectionInfo:
    """The client id, user name and password of a connection. ``repr`` does not show the password."""

    client_id: str
    explicit_client_id: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    resends: bool = False
    """Whether the client may send a message again after this connection was lost. If so, each message gets a duplicate
    mark before its first send, so that a broker that knows the mark drops the second copy (S106)."""


@dataclass(frozen=True)
class ConnectionMetadata:
    """The facts about a broker from its first answer: the Open frame of AMQP, or the CONNECTED frame of STOMP
    (S119)."""

    protocol: str
    broker_name: str
    broker_version: str
    provider_version: str
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(features("amqp", "unknown")))
    properties: Mapping[str, object] = field(default_factory=dict)
    broker: str = "unknown"
    """The key of the broker in ``pyjmsack.spi.features.BROKERS``."""
    url: str = ""
    """The address of the broker."""
    encrypted: bool = False
    """True if the connection uses TLS."""
    transaction_guarantee: str = "atomic"
    """The guarantee of a transaction on this connection: ``"atomic"``, or ``"at-least-once"`` if the broker
    acknowledges received messages separately from the sends (S88)."""


@dataclass(eq=False)
class SessionInfo:
    """A session. Its acknowledgement mode applies to all its consumers (S2)."""

    id: int
    ack_mode: AckMode

    @property
    def transacted(self) -> bool:
        """True if sends and acknowledgements belong to a transaction."""
        return self.ack_mode is AckMode.SESSION_TRANSACTED


@dataclass(eq=False)
class ProducerInfo:
    """A producer. If ``destination`` is ``None``, each send names its own destination (S67)."""

    id: int
    session_id: int
    destination: Destination | None
    presettled: bool = False


@dataclass(frozen=True)
class Subscription:
    """The named subscription of a consumer that receives from a topic (S141, S143)."""

    name: str
    durable: bool
    shared: bool
    number: int = 1
    """The number of this subscriber among the subscribers of one shared subscription on a connection. Each subscriber
    needs its own number, because each needs its own link name (S145)."""


@dataclass(eq=False)
class TemporaryInfo:
    """A temporary destination, which exists until it is deleted or its connection ends (S130)."""

    id: int
    kind: type[TemporaryQueue] | type[TemporaryTopic]


@dataclass(eq=False)
class ConsumerInfo:
    """A consumer or browser.

    ``prefetch`` is the number of messages that the broker sends in advance. With 0, the client asks for each message
    (S50).
    """

    id: int
    session_id: int
    destination: Destination
    prefetch: int
    selector: str | None = None
    no_local: bool = False
    browser: bool = False
    presettled: bool = False
    subscription: Subscription | None = None
    exclusive: bool = False
    """``consumer.exclusive``: only one consumer at a time gets messages of the queue."""
    priority: int | None = None
    """``consumer.priority``: the broker serves consumers with a higher number first."""
    retroactive: bool = False
    """``consumer.retroactive``: the consumer first gets older messages, which the recovery policy of the topic kept."""
    pending_limit: int = 0
    """``consumer.maximumPendingMessageLimit``: the number of messages beyond the prefetch that the broker keeps before
    it drops the oldest; 0 means that the broker decides."""
    expected_message_size: int = 4096
    """``consumer.expectedMessageSize``: the expected size of a message in bytes. It is used if the broker counts its
    window in bytes (S52)."""

    @property
    def source(self) -> Hashable:
        """The queue or the subscription. It is the same for all subscribers of a shared subscription."""
        named = self.subscription
        return self.destination, named if named is None else replace(named, number=1)
