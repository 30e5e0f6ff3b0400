"""Reasons that hold for options of several Java clients, or for files around them."""

from __future__ import annotations

from typing import Final

__all__ = [
    "EXCEPTION_LISTENER",
    "NO_BROKER_INSIDE",
    "NO_DISCOVERY",
    "NO_JAVA_OBJECTS",
    "NO_POOL",
    "NO_XA",
    "OF_JAVA",
    "OF_OPENWIRE",
    "ONE_BROKER",
    "ONE_PASSWORD",
    "SSL_CONTEXT",
    "TRANSFORMER",
]

EXCEPTION_LISTENER: Final = "set connection.exception_listener"
NO_BROKER_INSIDE: Final = "no broker runs inside a Python process; pyjmsack.broker starts one"
NO_DISCOVERY: Final = "no brokers are looked for by multicast; list them: failover:(amqp://a,amqp://b)"
NO_JAVA_OBJECTS: Final = "bytes are never made into Java objects; only registered codecs read objects (S175)"
NO_POOL: Final = "one connection carries any number of sessions here, so that no pool is needed"
NO_XA: Final = "there are no XA transactions here; use a local transaction and an outbox table"
OF_JAVA: Final = "it tunes the inside of the Java client"
OF_OPENWIRE: Final = "it is about OpenWire"
ONE_BROKER: Final = "a message goes to one broker here; open a connection for each broker and send to all of them"
ONE_PASSWORD: Final = "one password opens store and key here"  # noqa: S105 - says something about passwords
SSL_CONTEXT: Final = "give your own: ConnectionFactory(url, ssl_context=...)"
TRANSFORMER: Final = "a transformer sees each message: ConnectionFactory(url, message_transformer=...)"
