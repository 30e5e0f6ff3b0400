"""The options of the ActiveMQ Classic client that ``pyjmsack.uri`` does not know by the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.java_options.model import (
    Fate,
    JavaOption,
    Translation,
    as_boolean,
    by_hand,
    decided,
    ignored,
    refused,
    renamed,
)
from pyjmsack.java_options.reasons import (
    EXCEPTION_LISTENER,
    NO_BROKER_INSIDE,
    NO_DISCOVERY,
    NO_JAVA_OBJECTS,
    NO_XA,
    OF_JAVA,
    OF_OPENWIRE,
    ONE_BROKER,
    ONE_PASSWORD,
    SSL_CONTEXT,
)

__all__ = ["ACTIVEMQ"]

_JMX: Final = "it shows the inside of a Java process by JMX; amqp.traceFrames=true logs frames"


def _inactivity(text: str) -> Translation:
    if int(text) > 0:
        return Translation(Fate.HONOURED, "", {"wireFormat.maxInactivityDuration": text})
    why = (
        "0 switches the check off, as amqp.idleTimeout=0 does over AMQP; over STOMP heart-beats cannot be switched off"
    )
    return Translation(Fate.HONOURED, why, {"amqp.idleTimeout": "0"})


def _monitor(text: str) -> Translation:
    if as_boolean(text):
        return Translation(Fate.IGNORED, "this library always behaves like true")
    return Translation(Fate.HONOURED, "false switches the check for silent brokers off", {"amqp.idleTimeout": "0"})


def _send_timeout(text: str) -> Translation:
    value = text if int(text) > 0 else "-1"
    return Translation(
        Fate.HONOURED,
        "Java writes 0 for no limit, and pyjmsack writes -1" if value == "-1" else "",
        {"jms.sendTimeout": value},
    )


def _request_timeout(text: str) -> Translation:
    value = text if int(text) > 0 else "-1"
    return Translation(
        Fate.HONOURED,
        "Java writes 0 for no limit, and pyjmsack writes -1" if value == "-1" else "",
        {"jms.requestTimeout": value},
    )


def _dispatch(text: str) -> Translation:
    return Translation(Fate.IGNORED, "each session with a listener has its own dispatcher")


_ROWS: Final = (
    *renamed({"jms.userName": "jms.username", "jms.user": "jms.username"}, "or an argument of ConnectionFactory"),
    *decided("jms.sendTimeout", "jms.sendTimeout", "", _send_timeout),
    *decided("jms.requestTimeout", "jms.requestTimeout", "", _request_timeout),
    *decided("wireFormat.maxInactivityDuration", "amqp.idleTimeout", "or stomp.heartBeat", _inactivity),
    *decided("useInactivityMonitor", "amqp.idleTimeout", "", _monitor),
    *ignored("useKeepAlive", "heart-beats are part of AMQP and STOMP"),
    *ignored(
        "wireFormat.maxInactivityDurationInitalDelay wireFormat.maxInactivityDurationInitialDelay",
        "heart-beats begin with the connection",
    ),
    *ignored("jms.optimizedMessageDispatch jms.brokerURL jms.statsEnabled jms.rejectedTaskHandler", OF_JAVA),
    *ignored("jms.sessionTaskRunner jms.clientIdGenerator jms.connectionIdGenerator jms.properties", OF_JAVA),
    *ignored("jms.optimizeDurableSubscription jms.useBeanPropertyNames", OF_JAVA),
    *ignored("jms.trustedPackages jms.trustAllPackages", NO_JAVA_OBJECTS),
    *by_hand("jms.exceptionListener", EXCEPTION_LISTENER),
    *by_hand("jms.clientInternalExceptionListener", "set connection.exception_listener; read the log of pyjmsack"),
    *by_hand("jms.transportListener", "connection.add_connection_listener reports interruptions"),
    *by_hand("jms.transformer", "ConnectionFactory(url, message_transformer=...)"),
    *by_hand("jms.redeliveryPolicy jms.redeliveryPolicyMap", "jms.redeliveryPolicy.* and jms.redeliveryPolicy[name].*"),
    *by_hand("jms.prefetchPolicy", "jms.prefetchPolicy.*"),
    *by_hand(
        "jms.blobTransferPolicy",
        "this library has no blob messages; keep large files in a store, and send their address",
    ),
    *by_hand(
        "jms.redeliveryPolicy.destination jms.redeliveryPolicy.queue", "jms.redeliveryPolicy[NAME].maxRedeliveries"
    ),
    *by_hand("jms.redeliveryPolicy.topic", "jms.redeliveryPolicy[topic://NAME].maxRedeliveries"),
    *ignored("jms.prefetchPolicy.inputStreamPrefetch", "this library has no stream messages that span several sends"),
    *refused("jms.xaAckMode", NO_XA),
    # options of the TCP stream below OpenWire
    *ignored("daemon useLocalHost closeAsync minmumWireFormatVersion", OF_JAVA),
    *ignored("jmxPort logWriterName dynamicManagement startLogging", _JMX),
    *ignored(
        "keepAliveResponseRequired threadName stackSize maximumConnections maximumConnectionsAllowedToHandle", OF_JAVA
    ),
    *ignored("backlog transportLoggerSupport useQueueForAccept", "it is an option of the broker's connector"),
    *by_hand(
        "diffServ typeOfService", "transport.trafficClass is the whole byte, which is the DiffServ code point times 4"
    ),
    *renamed({"verifyHostName": "transport.verifyHost", "socket.verifyHostName": "transport.verifyHost"}),
    *renamed({"transport.verifyHostName": "transport.verifyHost", "localPort": "transport.localPort"}),
    *renamed({"transport.enabledProtocols": "transport.enabledProtocols"}),
    *renamed({"socket.enabledProtocols": "transport.enabledProtocols"}),
    *renamed({"socket.enabledCipherSuites": "transport.enabledCipherSuites"}),
    *renamed({"socket.tcpNoDelay": "transport.tcpNoDelay", "socket.keepAlive": "transport.tcpKeepAlive"}),
    *ignored(
        "needClientAuth wantClientAuth transport.needClientAuth socket.needClientAuth",
        "the broker decides whether a client needs a certificate",
    ),
    *ignored("wireFormat.type wireFormat wireFormat.preferedWireFormatInfo", OF_OPENWIRE),
    # options of ActiveMQ's SSL connection factory
    *renamed({"jms.keyStore": "transport.keyStoreLocation", "jms.trustStore": "transport.trustStoreLocation"}),
    *renamed({"jms.keyStorePassword": "transport.keyStorePassword"}),
    *renamed({"jms.keyStoreKeyPassword": "transport.keyStorePassword"}, ONE_PASSWORD),
    *renamed({"jms.trustStorePassword": "transport.trustStorePassword"}),
    *renamed({"jms.keyStoreType": "transport.keyStoreType", "jms.trustStoreType": "transport.trustStoreType"}),
    *by_hand("jms.keyAndTrustManagers", SSL_CONTEXT),
    # options of failover, discovery and fan-out
    *by_hand("nestedExtraQueryOptions", "write each option after the parentheses, as nested.NAME=VALUE"),
    *refused("fanOutQueues minAckCount", ONE_BROKER),
    *refused(
        "discovery.maxReconnectDelay discovery.initialReconnectDelay discovery.useExponentialBackOff", NO_DISCOVERY
    ),
    *refused("discovered.keepAlive group joinNetworkInterface networkInterface discoveryAgent", NO_DISCOVERY),
    # options of a broker inside the Java process
    *by_hand(
        "broker.persistent broker.useJmx broker.useShutdownHook broker.schedulerSupport create waitForStart marshal",
        "no broker runs inside a Python process; pyjmsack.broker.EmbeddedActiveMQ starts a broker process",
    ),
    *by_hand("broker.brokerName async", NO_BROKER_INSIDE),
)

ACTIVEMQ: Final[Mapping[str, JavaOption]] = {row.name: row for row in _ROWS}
"""The options of the ActiveMQ Classic client that are not rows of ``pyjmsack.uri``, or whose values have another
meaning in ``pyjmsack.uri``.
"""
