"""The schemes in the broker URLs of Java clients, with the facts that choose the replacement for each scheme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyjmsack.java_options.reasons import NO_DISCOVERY, ONE_BROKER

__all__ = ["JAVA_SCHEMES", "JavaScheme"]


@dataclass(frozen=True, slots=True)
class JavaScheme:
    """A scheme of a Java URL."""

    says: str
    """The meaning of the scheme in words, such as a protocol."""
    tls: bool = False
    websocket: bool = False
    why_not: str = ""
    """The reason why no scheme of this library replaces the scheme, and the next step for the user. Empty if there is a
    replacement.
    """


_INSIDE: Final = (
    "no broker runs inside a Python process: give the URL of a broker process; tests start one with pyjmsack.broker"
)

JAVA_SCHEMES: Final[Mapping[str, JavaScheme]] = {
    "tcp": JavaScheme("OpenWire or the Artemis core protocol"),
    "netty": JavaScheme("the Artemis core protocol"),
    "nio": JavaScheme("OpenWire"),
    "auto": JavaScheme("OpenWire"),
    "auto+nio": JavaScheme("OpenWire"),
    "ssl": JavaScheme("OpenWire or the Artemis core protocol over TLS", tls=True),
    "nio+ssl": JavaScheme("OpenWire over TLS", tls=True),
    "auto+ssl": JavaScheme("OpenWire over TLS", tls=True),
    "auto+nio+ssl": JavaScheme("OpenWire over TLS", tls=True),
    "tls": JavaScheme("a protocol over TLS", tls=True),
    "amqp": JavaScheme("AMQP 1.0"),
    "amqps": JavaScheme("AMQP 1.0 over TLS", tls=True),
    "amqp+nio": JavaScheme("AMQP 1.0"),
    "amqp+ssl": JavaScheme("AMQP 1.0 over TLS", tls=True),
    "amqp+nio+ssl": JavaScheme("AMQP 1.0 over TLS", tls=True),
    "amqpws": JavaScheme("AMQP 1.0 in a WebSocket", websocket=True),
    "amqpwss": JavaScheme("AMQP 1.0 in a WebSocket over TLS", tls=True, websocket=True),
    "ws": JavaScheme("a protocol in a WebSocket", websocket=True),
    "wss": JavaScheme("a protocol in a WebSocket over TLS", tls=True, websocket=True),
    "stomp": JavaScheme("STOMP"),
    "stomp+nio": JavaScheme("STOMP"),
    "stomp+ssl": JavaScheme("STOMP over TLS", tls=True),
    "stomp+nio+ssl": JavaScheme("STOMP over TLS", tls=True),
    "http": JavaScheme("OpenWire over HTTP", why_not="amqpws:// goes through HTTP proxies"),
    "https": JavaScheme("OpenWire over HTTP", tls=True, why_not="amqpwss:// goes through HTTP proxies"),
    "vm": JavaScheme("a broker inside the Java process", why_not=_INSIDE),
    "peer": JavaScheme("a broker inside the Java process", why_not=_INSIDE),
    "invm": JavaScheme("a broker inside the Java process", why_not=_INSIDE),
    "udp": JavaScheme("a way to find brokers", why_not=NO_DISCOVERY),
    "jgroups": JavaScheme("a way to find brokers", why_not=NO_DISCOVERY),
    "multicast": JavaScheme("a way to find brokers", why_not=NO_DISCOVERY),
    "zeroconf": JavaScheme("a way to find brokers", why_not=NO_DISCOVERY),
    "discovery": JavaScheme("a way to find brokers", why_not=NO_DISCOVERY),
    "fanout": JavaScheme("sending to several brokers", why_not=ONE_BROKER),
    "mqtt": JavaScheme("MQTT", why_not="a JMS client does not speak MQTT; use the broker's AMQP port"),
    "mqtts": JavaScheme("MQTT", tls=True, why_not="a JMS client does not speak MQTT; use the broker's AMQP port"),
    "mqtt+ssl": JavaScheme("MQTT", tls=True, why_not="a JMS client does not speak MQTT; use the broker's AMQP port"),
    "mqtt+nio": JavaScheme("MQTT", why_not="a JMS client does not speak MQTT; use the broker's AMQP port"),
}
"""The schemes by name. The schemes of composite URLs, such as failover:, static: and masterslave:, are not in this
table, because a composite URL names several brokers.
"""
