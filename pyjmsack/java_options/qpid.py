"""The options of Qpid JMS that ``pyjmsack.uri`` does not know by the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.java_options.model import JavaOption, by_hand, ignored, refused

__all__ = ["QPID"]

_JAVA: Final = "it tunes the inside of the Java client"
_OBJECTS: Final = "bytes are never made into Java objects; only registered codecs read objects (S175)"
_LIMITS: Final = "what a peer sends is always decoded within limits"
_DISCOVERY: Final = "no brokers are looked for by multicast; list them: failover:(amqp://a,amqp://b)"

_ROWS: Final = (
    *ignored("jms.deserializationPolicy.whiteList jms.deserializationPolicy.blackList", _OBJECTS),
    *ignored("jms.deserializationPolicy", _OBJECTS),
    *ignored("jms.clientIdGenerator jms.connectionIdGenerator jms.remoteURI", _JAVA),
    *ignored("jms.messageIDPolicy.messageIDBuilder", "jms.messageIDPolicy.messageIDType chooses it"),
    *by_hand("jms.exceptionListener", "set connection.exception_listener"),
    *by_hand("jms.sslContext", "give your own: ConnectionFactory(url, ssl_context=...)"),
    *by_hand(
        "jms.extension jms.tracer", "a transformer sees each message: ConnectionFactory(url, message_transformer=...)"
    ),
    *by_hand("jms.prefetchPolicy", "jms.prefetchPolicy.*"),
    *by_hand("jms.redeliveryPolicy", "jms.redeliveryPolicy.*"),
    *by_hand("jms.presettlePolicy", "jms.presettlePolicy.*"),
    *by_hand("jms.messageIDPolicy", "jms.messageIDPolicy.messageIDType"),
    *by_hand("transport.sslContextOverride", "give your own: ConnectionFactory(url, ssl_context=...)"),
    *refused("transport.proxyHandlerSupplier", "no proxies; use amqpwss:// or a tunnel of the operating system"),
    *ignored("amqp.maxDecodeDepth amqp.zeroWidthArrayElementLimit amqp.maxTransfersPerDelivery", _LIMITS),
    *ignored("amqp.transportScheme amqp.providerScheme", _JAVA),
    *refused("discovery.factory discovery.discovered factory", _DISCOVERY),
)

QPID: Final[Mapping[str, JavaOption]] = {row.name: row for row in _ROWS}
"""What Qpid JMS has besides the rows of ``pyjmsack.uri``."""
