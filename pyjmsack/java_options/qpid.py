"""The options of Qpid JMS that ``pyjmsack.uri`` does not know by the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.java_options.model import JavaOption, by_hand, ignored, refused
from pyjmsack.java_options.reasons import (
    EXCEPTION_LISTENER,
    NO_DISCOVERY,
    NO_JAVA_OBJECTS,
    OF_JAVA,
    SSL_CONTEXT,
    TRANSFORMER,
)

__all__ = ["QPID"]

_LIMITS: Final = "this library always decodes the bytes of a peer within limits"

_ROWS: Final = (
    *ignored("jms.deserializationPolicy.whiteList jms.deserializationPolicy.blackList", NO_JAVA_OBJECTS),
    *ignored("jms.deserializationPolicy", NO_JAVA_OBJECTS),
    *ignored("jms.clientIdGenerator jms.connectionIdGenerator jms.remoteURI", OF_JAVA),
    *ignored(
        "jms.messageIDPolicy.messageIDBuilder", "jms.messageIDPolicy.messageIDType chooses the form of message ids"
    ),
    *by_hand("jms.exceptionListener", EXCEPTION_LISTENER),
    *by_hand("jms.sslContext", SSL_CONTEXT),
    *by_hand("jms.extension jms.tracer", TRANSFORMER),
    *by_hand("jms.prefetchPolicy", "jms.prefetchPolicy.*"),
    *by_hand("jms.redeliveryPolicy", "jms.redeliveryPolicy.*"),
    *by_hand("jms.presettlePolicy", "jms.presettlePolicy.*"),
    *by_hand("jms.messageIDPolicy", "jms.messageIDPolicy.messageIDType"),
    *by_hand("transport.sslContextOverride", SSL_CONTEXT),
    *refused(
        "transport.proxyHandlerSupplier",
        "proxies are not supported; use amqpwss:// or a tunnel of the operating system",
    ),
    *ignored("amqp.maxDecodeDepth amqp.zeroWidthArrayElementLimit amqp.maxTransfersPerDelivery", _LIMITS),
    *ignored("amqp.transportScheme amqp.providerScheme", OF_JAVA),
    *refused("discovery.factory discovery.discovered factory", NO_DISCOVERY),
)

QPID: Final[Mapping[str, JavaOption]] = {row.name: row for row in _ROWS}
"""The options of Qpid JMS that are not rows of ``pyjmsack.uri``."""
