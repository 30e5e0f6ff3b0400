"""Reasons that several Java clients share, or that other modules use too."""

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
NO_DISCOVERY: Final = "this client does not search for brokers by multicast; list them: failover:(amqp://a,amqp://b)"
NO_JAVA_OBJECTS: Final = "bytes are never made into Java objects; only registered codecs read objects (S175)"
NO_POOL: Final = "no pool is needed, because one connection carries any number of sessions here"
NO_XA: Final = "there are no XA transactions here; use a local transaction and an outbox table"
OF_JAVA: Final = "it tunes the inside of the Java client"
OF_OPENWIRE: Final = "it is about OpenWire"
ONE_BROKER: Final = "a message goes to one broker here; open a connection for each broker and send to all of them"
ONE_PASSWORD: Final = "the store and its key must have the same password here"  # noqa: S105 - it is no password
SSL_CONTEXT: Final = "give an ssl.SSLContext of your own: ConnectionFactory(url, ssl_context=...)"
TRANSFORMER: Final = "a transformer sees each message: ConnectionFactory(url, message_transformer=...)"
