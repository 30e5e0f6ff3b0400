"""Reasons that the tables of several Java clients, or other modules, use."""

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
NO_BROKER_INSIDE: Final = "no broker runs inside a Python process; pyjmsack.broker starts a broker process"
NO_DISCOVERY: Final = "this client does not search for brokers by multicast; list them: failover:(amqp://a,amqp://b)"
NO_JAVA_OBJECTS: Final = "bytes are never made into Java objects; only registered codecs read objects (S175)"
NO_POOL: Final = "no pool is needed, because one connection carries any number of sessions"
NO_XA: Final = "this library has no XA transactions; use a local transaction and an outbox table"
OF_JAVA: Final = "it tunes the inside of the Java client"
OF_OPENWIRE: Final = "it is for the OpenWire protocol, which this client does not speak"
ONE_BROKER: Final = (
    "this client sends a message to one broker; to send to several brokers, open a connection for each broker"
)
ONE_PASSWORD: Final = "this client needs one password for the store and its key"  # noqa: S105 - it is no password
SSL_CONTEXT: Final = "give an ssl.SSLContext of your own: ConnectionFactory(url, ssl_context=...)"
TRANSFORMER: Final = "a transformer sees each message: ConnectionFactory(url, message_transformer=...)"
