"""The options of the Artemis client for its connection factory, its connectors and its discovery groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    NO_DISCOVERY,
    NO_JAVA_OBJECTS,
    NO_XA,
    OF_JAVA,
    ONE_PASSWORD,
    SSL_CONTEXT,
    TRANSFORMER,
)

__all__ = ["ARTEMIS", "MESSAGE_SIZE"]

MESSAGE_SIZE: Final = 4096
"""The assumed size of a message in bytes. This size turns a window of the Java client, which counts bytes, into a
prefetch, which counts messages.
"""
_LARGE: Final = "AMQP and STOMP send a message of any size as it is; the broker decides which message is large"
_BATCH: Final = "acknowledgements are batched by the session's mode and prefetch (S39-S46)"
_UNCOMPRESSED: Final = "AMQP and STOMP have no compressed bodies"
_CLUSTER: Final = "this client takes the brokers from its failover:(...) URL and, over AMQP, from the broker"
_ACCEPTOR: Final = "it is an option of the broker's acceptor; a client has no use for it"
_HTTP: Final = "this client has no HTTP tunnel; amqpws:// and amqpwss:// go through HTTP proxies"
_SOCKS: Final = "SOCKS proxies are not supported; use amqpwss:// or a tunnel of the operating system"
_REVOKED: Final = "give an ssl.SSLContext with your revocation lists: ConnectionFactory(url, ssl_context=...)"


def _ha(text: str) -> Translation:
    if not as_boolean(text):
        return Translation(Fate.IGNORED, "the URL of a single broker already means false")
    return Translation(Fate.HONOURED, "put live and backup brokers into failover:(amqp://live,amqp://backup)")


def _consumer_window(text: str) -> Translation:
    size = int(text)
    if size < 0:
        return Translation(
            Fate.HONOURED, "-1 means no limit in Java; the replacement is the largest prefetch", {_PREFETCH: "32767"}
        )
    if size == 0:
        return Translation(Fate.HONOURED, "with both clients the consumer asks for each message", {_PREFETCH: "0"})
    messages = str(min(max(size // MESSAGE_SIZE, 1), 32767))
    why = (
        f"Java counts bytes, and this library counts messages: the number is for messages of {MESSAGE_SIZE} bytes;"
        " change it if your messages have another size"
    )
    return Translation(Fate.HONOURED, why, {_PREFETCH: messages})


_PREFETCH: Final = "jms.prefetchPolicy.all"


def _producer_window(text: str) -> Translation:
    size = max(int(text), 0)
    return Translation(
        Fate.HONOURED, "both options count bytes; -1 in Java is 0 in pyjmsack", {"jms.producerWindowSize": str(size)}
    )


def _block_on_acknowledge(text: str) -> Translation:
    value = "false" if as_boolean(text) else "true"
    return Translation(Fate.HONOURED, "the same setting with the opposite value", {"jms.forceAsyncAcks": value})


def _block_on_durable(text: str) -> Translation:
    if as_boolean(text):
        return Translation(Fate.IGNORED, "in pyjmsack a persistent send always waits for the broker")
    return Translation(
        Fate.BY_HAND,
        "without an answer nobody learns that a persistent message was lost; send_async() is as fast, and its future"
        " has the answer. jms.forceAsyncSend=true does the same as the Java client",
    )


def _block_on_non_durable(text: str) -> Translation:
    if as_boolean(text):
        return Translation(Fate.HONOURED, "every send waits for the broker", {"jms.forceSyncSend": "true"})
    return Translation(Fate.IGNORED, "in pyjmsack, too, a non-persistent send does not wait for an answer")


def _pre_acknowledge(text: str) -> Translation:
    if as_boolean(text):
        why = "messages are settled when they are sent: a crash loses messages that were not processed"
        return Translation(Fate.HONOURED, why, {"jms.presettlePolicy.presettleConsumers": "true"})
    return Translation(Fate.IGNORED, "false is also the default of pyjmsack")


def _prefixes(text: str) -> Translation:
    if as_boolean(text):
        options = {"jms.queuePrefix": "jms.queue.", "jms.topicPrefix": "jms.topic."}
        return Translation(
            Fate.HONOURED, "these options write the prefixes of Artemis 1.x and HornetQ before names", options
        )
    return Translation(Fate.IGNORED, "pyjmsack, too, writes no prefix before names")


def _multiplier(text: str) -> Translation:
    if float(text) <= 1:
        return Translation(Fate.HONOURED, "waits do not grow", {"failover.useReconnectBackOff": "false"})
    options = {"failover.useReconnectBackOff": "true", "failover.reconnectBackOffMultiplier": text}
    return Translation(Fate.HONOURED, "waits grow by this factor", options)


def _retry_interval(text: str) -> Translation:
    options = {"failover.initialReconnectDelay": text, "failover.reconnectDelay": text}
    return Translation(Fate.HONOURED, "pyjmsack has one option for the first wait and one for the later waits", options)


def _call_timeout(text: str) -> Translation:
    options = {"jms.requestTimeout": text, "jms.sendTimeout": text}
    return Translation(Fate.HONOURED, "in pyjmsack each send is a request of its own", options)


def _ttl(text: str) -> Translation:
    if int(text) <= 0:
        return Translation(
            Fate.HONOURED, "to switch the check off, Java has -1 and pyjmsack has 0", {"amqp.idleTimeout": "0"}
        )
    return Translation(
        Fate.HONOURED, "both ends tell each other over AMQP how long they wait", {"amqp.idleTimeout": text}
    )


def _ssl(text: str) -> Translation:
    scheme = "amqps:// is the scheme for TLS" if as_boolean(text) else "a URL without TLS is amqp://"
    return Translation(Fate.HONOURED, scheme)


def _store(ours: str) -> Callable[[str], Translation]:
    def decide(text: str) -> Translation:
        kind = text.strip().upper()
        if kind in ("PKCS12", "PEM"):
            return Translation(Fate.HONOURED, "", {ours: kind})
        if kind == "PEMCA":
            return Translation(Fate.HONOURED, "", {ours: "PEM"})
        return Translation(Fate.BY_HAND, f"Python reads no {kind} stores; {_KEYTOOL}")

    return decide


_KEYTOOL: Final = "convert it: keytool -importkeystore -srckeystore OLD -destkeystore new.p12 -deststoretype PKCS12"


def _compress(text: str) -> Translation:
    if as_boolean(text):
        return Translation(Fate.IGNORED, f"{_UNCOMPRESSED}: messages are sent as they are")
    return Translation(Fate.IGNORED, "this library always behaves like false")


def _xa(text: str) -> Translation:
    if "XA" in text.upper():
        return Translation(Fate.REFUSED, NO_XA)
    return Translation(Fate.IGNORED, "one ConnectionFactory makes connections for queues and topics")


_NETTY: Final = "it tunes Netty, the network library of the Java client"

_ROWS: Final = (
    # options of the connection factory
    *renamed({"clientID": "jms.clientID", "clientId": "jms.clientID"}),
    *renamed(
        {"user": "jms.username", "username": "jms.username", "password": "jms.password"},
        "a password in a URL can get into logs",
    ),
    *renamed({"maxRetryInterval": "failover.maxReconnectDelay", "reconnectAttempts": "failover.maxReconnectAttempts"}),
    *renamed({"failoverAttempts": "failover.maxReconnectAttempts"}),
    *renamed({"initialConnectAttempts": "failover.startupMaxReconnectAttempts"}),
    *renamed({"callFailoverTimeout": "failover.timeout"}, "a send that waits for a broker fails after this time"),
    *decided("retryInterval", "failover.reconnectDelay", "", _retry_interval),
    *decided("retryIntervalMultiplier", "failover.reconnectBackOffMultiplier", "", _multiplier),
    *decided("callTimeout", "jms.requestTimeout", "and jms.sendTimeout for sends", _call_timeout),
    *decided("connectionTTL", "amqp.idleTimeout", "stomp.heartBeat over STOMP", _ttl),
    *decided("connectionTtl", "amqp.idleTimeout", "stomp.heartBeat over STOMP", _ttl),
    *ignored("clientFailureCheckPeriod", "a silent broker is found by amqp.idleTimeout or stomp.heartBeat"),
    *decided("ha", "", "a failover:(...) URL lists live and backup brokers", _ha),
    *decided("consumerWindowSize", _PREFETCH, "Java counts bytes, and this option counts messages", _consumer_window),
    *decided("producerWindowSize", "jms.producerWindowSize", "", _producer_window),
    *ignored("confirmationWindowSize", "in a failover: URL every send is kept until the broker confirms it (S90)"),
    *decided(
        "blockOnAcknowledge", "jms.forceAsyncAcks", "the replacement has the opposite value", _block_on_acknowledge
    ),
    *decided("blockOnDurableSend", "", "persistent sends always wait for the broker", _block_on_durable),
    *decided("blockOnNonDurableSend", "jms.forceSyncSend", "", _block_on_non_durable),
    *decided("preAcknowledge", "jms.presettlePolicy.presettleConsumers", "", _pre_acknowledge),
    *decided("enable1xPrefixes", "jms.queuePrefix", "and jms.topicPrefix", _prefixes),
    *ignored("dupsOKBatchSize transactionBatchSize ackBatchSize", _BATCH),
    *ignored("cacheDestinations", "in pyjmsack a destination is a plain value that needs no cache"),
    *ignored("minLargeMessageSize cacheLargeMessagesClient", _LARGE),
    *decided("compressLargeMessage", "", _UNCOMPRESSED, _compress),
    *decided("compressLargeMessages", "", _UNCOMPRESSED, _compress),
    *ignored("compressionLevel", _UNCOMPRESSED),
    *refused(
        "consumerMaxRate producerMaxRate",
        "pyjmsack does not limit rates; the prefetch and jms.producerWindowSize bound the messages that are on their"
        " way",
    ),
    *by_hand("autoGroup groupID", 'set message.properties["JMSXGroupID"] before each send'),
    *refused("enableSharedClientID", "over AMQP the broker lets one connection at a time have a client id"),
    *ignored("useTopologyForLoadBalancing failoverOnInitialConnection failoverOnServerShutdown", _CLUSTER),
    *by_hand(
        "connectionLoadBalancingPolicyClassName loadBalancingPolicyClassName",
        "failover.randomize=true takes the brokers in random order; the default is the order of the URL",
    ),
    *ignored("useGlobalPools scheduledThreadPoolMaxSize threadPoolMaxSize flowControlThreadPoolMaxSize", OF_JAVA),
    *ignored("initialMessagePacketSize onMessageCloseTimeout ignoreJTA threadPools locatorConfig", OF_JAVA),
    *ignored("protocolManagerFactoryStr protocolManagerFactory", "the URL's scheme chooses the protocol"),
    *ignored(
        "deserializationBlackList deserializationWhiteList deserializationDenyList deserializationAllowList",
        NO_JAVA_OBJECTS,
    ),
    *by_hand(
        "incomingInterceptorList outgoingInterceptorList",
        TRANSFORMER,
    ),
    *by_hand("passwordCodec", "decode the password once, and keep it in the environment or a secret store"),
    *ignored("brokerURL", "the URL is an argument of ConnectionFactory"),
    *decided("type", "", "one ConnectionFactory makes all kinds of connections", _xa),
    *ignored("connectionFactoryType", "one ConnectionFactory makes all kinds of connections"),
    *ignored("name connectorName clusterConnection", "it names a part of the broker's configuration"),
    # options of TLS
    *decided("sslEnabled", "", "the scheme amqps://", _ssl),
    *renamed({"trustStorePath": "transport.trustStoreLocation", "keyStorePath": "transport.keyStoreLocation"}),
    *renamed({"trustStorePassword": "transport.trustStorePassword", "keyStorePassword": "transport.keyStorePassword"}),
    *renamed({"keyPassword": "transport.keyStorePassword"}, ONE_PASSWORD),
    *decided("trustStoreType", "transport.trustStoreType", "", _store("transport.trustStoreType")),
    *decided("keyStoreType", "transport.keyStoreType", "", _store("transport.keyStoreType")),
    *ignored("keyStoreProvider trustStoreProvider sslProvider sslAutoReload forceSSLParameters", OF_JAVA),
    *refused("keyStoreAlias", "a store must have only one private key; export the key that you need"),
    *renamed({"enabledCipherSuites": "transport.enabledCipherSuites"}),
    *renamed({"enabledProtocols": "transport.enabledProtocols", "verifyHost": "transport.verifyHost"}),
    *renamed({"trustAll": "transport.trustAll"}, "for tests only"),
    *by_hand("crlPath crcOptions ocspResponderURL trustManagerFactoryPlugin", _REVOKED),
    *by_hand("useDefaultSslContext sslContext", SSL_CONTEXT),
    *by_hand("sniHost", "TLS asks for the host of the URL; write the server name as the host of the URL"),
    *ignored("sslHandshakeTimeout handshake-timeout", "transport.connectTimeout bounds TCP and TLS together"),
    # options of TCP
    *renamed({"tcpNoDelay": "transport.tcpNoDelay", "localAddress": "transport.localAddress"}),
    *renamed({"tcpSendBufferSize": "transport.sendBufferSize", "localPort": "transport.localPort"}),
    *renamed({"tcpReceiveBufferSize": "transport.receiveBufferSize"}),
    *renamed(
        {"connect-timeout-millis": "transport.connectTimeout", "connectTimeoutMillis": "transport.connectTimeout"}
    ),
    *ignored("host port scheme", "host and port stand in the URL"),
    *ignored("useNio useEpoll useKQueue useNioGlobalWorkerPool useGlobalWorkerPool nioRemotingThreads", _NETTY),
    *ignored("remotingThreads batchDelay directDeliver writeBufferLowWaterMark writeBufferHighWaterMark", _NETTY),
    *ignored("quietPeriod shutdownTimeout", _NETTY),
    *refused("httpEnabled httpClientIdleTime httpClientIdleScanPeriod httpRequiresSessionId", _HTTP),
    *refused("httpUpgradeEnabled httpUpgradeEndpoint useServlet servletPath httpResponseTime http-enabled", _HTTP),
    *refused("httpServerScanPeriod activemqServerName proxyProtocolEnabled", _HTTP),
    *refused("socksEnabled socksHost socksPort socksVersion socksUsername socksPassword socksRemoteDNS", _SOCKS),
    *by_hand(
        "useInvm serverId",
        "no broker runs inside a Python process; pyjmsack.broker.EmbeddedArtemis starts a broker process",
    ),
    # options of acceptors, which are sometimes copied into the URL of a client
    *ignored("protocol protocols backlog connectionsAllowed needClientAuth wantClientAuth autoStart router", _ACCEPTOR),
    *ignored("stompConsumerCredits stompConsumerWindowSize stompEnableMessageId stomp-enable-message-id", _ACCEPTOR),
    *ignored("stompMinLargeMessageSize stomp-min-large-message-size stompMaxFramePayloadLength", _ACCEPTOR),
    *ignored("webSocketMaxFramePayloadLength webSocketEncoderType webSocketCompressionSupported", _ACCEPTOR),
    *ignored("connectionTtlMax connectionTtlMin heartBeatToConnectionTtlModifier disableStompServerHeader", _ACCEPTOR),
    *ignored("amqpCredits amqpLowCredits amqpMinLargeMessageSize amqpDuplicateDetection amqpIdleTimeout", _ACCEPTOR),
    *ignored(
        "saslMechanisms saslLoginConfigScope anycastPrefix multicastPrefix defaultMqttSessionExpiryInterval", _ACCEPTOR
    ),
    *ignored("supportAdvisory suppressInternalManagementObjects virtualTopicConsumerWildcards maxFrameSize", _ACCEPTOR),
    # options of discovery
    *refused(
        "refreshTimeout discoveryInitialWaitTimeout initialWaitTimeout localBindAddress localBindPort", NO_DISCOVERY
    ),
    *refused("groupAddress groupPort channelName file stopTimeout", NO_DISCOVERY),
)

ARTEMIS: Final[Mapping[str, JavaOption]] = {row.name: row for row in _ROWS}
"""The options of the Artemis client, each by its name."""
