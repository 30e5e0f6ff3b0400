"""What a broker URL says, typed: durations in seconds (``None`` = no limit), sizes in bytes, secrets hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyjmsack.uri.amqp import AmqpOptions
from pyjmsack.uri.connection import ConnectionOptions
from pyjmsack.uri.failover import FailoverOptions
from pyjmsack.uri.kinds import (
    BOOLEAN,
    NAME,
    PENDING_LIMIT,
    choice,
    integer,
    option,
)
from pyjmsack.uri.profiles import PROFILES
from pyjmsack.uri.scheme import SCHEMES, Endpoint
from pyjmsack.uri.stomp import StompOptions
from pyjmsack.uri.transport import TransportOptions

__all__ = ["BrokerUrl", "DestinationOptions"]

_ACTIVEMQ: Final = "ActiveMQ Classic"
_BROKER = choice(
    {
        "artemis": "artemis",
        "activemq": "classic-6",
        "activemq5": "classic-5",
        "activemq6": "classic-6",
        "classic": "classic-6",
        "classic-5": "classic-5",
        "classic-6": "classic-6",
        "unknown": "unknown",
    }
)


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """A broker URL, parsed; ``str`` gives the addresses alone.

    The URL of a single broker has one endpoint and no members. A ``failover:(...)`` URL has the scheme ``failover``,
    its brokers as members, each with options of its own, and the endpoints of all; members share its ``connection``.
    """

    scheme: str
    endpoints: tuple[Endpoint, ...]
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    amqp: AmqpOptions = field(default_factory=AmqpOptions)
    stomp: StompOptions = field(default_factory=StompOptions)
    transport: TransportOptions = field(default_factory=TransportOptions)
    failover: FailoverOptions = field(default_factory=FailoverOptions)
    members: tuple[BrokerUrl, ...] = ()
    broker: str | None = option(
        "broker", _BROKER, None, "what the broker is, when what it says of itself is not to be believed", "S119"
    )
    scheduler: bool = option(
        "broker.scheduler",
        BOOLEAN,
        "false",
        "the broker is an ActiveMQ Classic with schedulerSupport, which a client cannot see: allow delivery delays",
        "S157",
    )
    strict: bool = option(
        "strict",
        BOOLEAN,
        "false",
        "refuse what this pair of protocol and broker can honour only in a weaker way",
        "S88",
    )
    profile: str | None = option(
        "profile",
        choice({name: name for name in PROFILES}),
        None,
        "start from the defaults of another client; options that are given win",
        "pyjmsack",
    )

    @property
    def protocol(self) -> str:
        """``amqp``, ``stomp``, or ``failover``, whose members have one each."""
        return "failover" if self.members else SCHEMES[self.scheme].protocol

    def __str__(self) -> str:
        if self.members:
            return f"failover:({','.join(map(str, self.members))})"
        return ",".join(str(endpoint) for endpoint in self.endpoints)


@dataclass(frozen=True, slots=True)
class DestinationOptions:
    """Options written after a destination's name, for this consumer only; ``None`` leaves it to the factory (S49)."""

    prefetch: int | None = option(
        "consumer.prefetchSize", integer(0, 2**31 - 1, "messages"), None, "prefetch of this consumer", "S11, S49"
    )
    allow_pull_listener: bool = option(
        "consumer.allowPullListener", BOOLEAN, "false", "allow a listener with prefetch 0", "S9"
    )
    selector: str | None = option("consumer.selector", NAME, None, "selector, when the call gives none", _ACTIVEMQ)
    no_local: bool | None = option(
        "consumer.noLocal", BOOLEAN, None, "skip messages sent by this connection", _ACTIVEMQ
    )
    exclusive: bool | None = option(
        "consumer.exclusive", BOOLEAN, None, "one consumer of the queue at a time", _ACTIVEMQ
    )
    retroactive: bool | None = option(
        "consumer.retroactive",
        BOOLEAN,
        None,
        "begin with what a topic's recovery policy has kept; has no meaning for a queue",
        _ACTIVEMQ,
    )
    maximum_pending_message_limit: int | None = option(
        "consumer.maximumPendingMessageLimit",
        PENDING_LIMIT,
        None,
        "as jms.prefetchPolicy.maximumPendingMessageLimit",
        _ACTIVEMQ,
    )
    priority: int | None = option(
        "consumer.priority", integer(0, 127), None, "consumers with a higher one are served first", _ACTIVEMQ
    )
    expected_message_size: int = option(
        "consumer.expectedMessageSize",
        integer(1, 2**31 - 1, "bytes"),
        "4096",
        "what a message counts where the broker's window is in bytes (STOMP on Artemis)",
        "S52",
    )
    window_size: int | None = option(
        "producer.windowSize",
        integer(0, 2**31 - 1, "bytes"),
        None,
        "bytes that a producer may have sent and not confirmed before the next send waits; 0 = no limit",
        "S65",
    )
    duplicate_detection: bool | None = option(
        "producer.duplicateDetection",
        choice({"auto": None, "true": True, "false": False}),
        "auto",
        "mark each send so that Artemis drops a repetition; auto does it in failover URLs, when the broker is Artemis",
        "S106",
    )
