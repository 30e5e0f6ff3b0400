"""The content of a broker URL as typed values.

A duration is in seconds, and ``None`` stands for a duration without a limit. A size is in bytes. A password is a
``Secret``, which is not printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyjmsack.uri.connection import ConnectionOptions
from pyjmsack.uri.failover import FailoverOptions
from pyjmsack.uri.option import (
    BOOLEAN,
    choice,
    option,
)
from pyjmsack.uri.profiles import PROFILES
from pyjmsack.uri.protocols import AmqpOptions, StompOptions
from pyjmsack.uri.transport import SCHEMES, Endpoint, TransportOptions

__all__ = ["BrokerUrl"]

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
    """A parsed broker URL. ``str(url)`` gives the addresses without the options.

    The URL of a single broker has one endpoint and no members. A ``failover:(...)`` URL has the scheme ``failover``,
    and each of its brokers is a member, which is a ``BrokerUrl`` of its own. The failover URL has the endpoints of all
    members. The failover URL and all its members have the same ``connection``.
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
        "broker", _BROKER, None, "the kind of broker, if the broker gives itself a wrong name", "S119"
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
        "refuse everything that this protocol and broker can do only with a weaker guarantee",
        "S88",
    )
    profile: str | None = option(
        "profile",
        choice({name: name for name in PROFILES}),
        None,
        "start from the defaults of another client; options in the URL override them",
        "pyjmsack",
    )

    @property
    def protocol(self) -> str:
        """The protocol: ``amqp`` or ``stomp``; or ``failover`` for a failover URL, because each member has its own
        protocol.
        """
        return "failover" if self.members else SCHEMES[self.scheme].protocol

    def __str__(self) -> str:
        if self.members:
            return f"failover:({','.join(map(str, self.members))})"
        return ",".join(str(endpoint) for endpoint in self.endpoints)
