"""Options of Java clients that change nothing here, each with the reason: they are accepted with one warning.

Only what can be ignored without breaking a promise is in this list; anything else is honoured or refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

__all__ = ["IGNORED", "IGNORED_OF_DESTINATIONS", "IGNORED_PREFIXES", "is_meaningless", "warn_meaningless"]

logger = logging.getLogger("pyjmsack")


def _all(prefix: str, names: str, reason: str) -> dict[str, str]:
    return {prefix + name: reason for name in names.split()}


def _failover(names: str, reason: str) -> dict[str, str]:
    """With the prefix, as Qpid JMS writes it, and without, as ActiveMQ does."""
    return _all("failover.", names, reason) | _all("", names, reason)


_JAVA: Final = "it tunes the Java virtual machine, or the inside of a Java client"
_RELAY: Final = "it is for brokers without an anonymous relay; Artemis and ActiveMQ Classic have one"
_BUFFERS: Final = "it sizes a buffer of the Java client; jms.producerWindowSize bounds what is unconfirmed"
_SILENCE: Final = "a silent broker is found by amqp.idleTimeout and stomp.heartBeat, not by the socket"
_NO_JAVA_OBJECTS: Final = "bytes are never made into Java objects; only registered codecs read objects (S175)"
_NO_PRODUCER: Final = "a transaction with sends of a closed producer is not replayed: its commit() raises (S107)"
_SPARES: Final = "no spare connections are kept: the next broker is connected to when it is needed"
_OPENWIRE: Final = "it is about OpenWire"

IGNORED: Final[Mapping[str, str]] = {
    **_all("transport.", "useEpoll useKQueue useOpenSSL sharedEventLoopThreads", _JAVA),
    **dict.fromkeys(("transport.soTimeout", "soTimeout"), _SILENCE),
    **dict.fromkeys(("amqp.provider.futureType", "provider.futureType", "ioBufferSize"), _JAVA),
    **_all("amqp.", "anonymousFallbackCacheSize anonymousFallbackCacheTimeout", _RELAY),
    **_all("amqp.", "sessionOutgoingWindow maxWriteBytesBeforeFlush", _BUFFERS),
    **_all("jms.", "maxThreadPoolSize useDedicatedTaskRunner useVirtualThreadTaskRunner rmIdFromConnectionId", _JAVA),
    **_all("jms.", "objectMessageSerializationDefered alwaysSessionAsync dispatchAsync", _JAVA),
    **_all("jms.", "trustAllPackages deserializationPolicy.allowList deserializationPolicy.denyList", _NO_JAVA_OBJECTS),
    "jms.copyMessageOnSend": "a send always takes a snapshot, so the message may be used again at once (S72)",
    "jms.transactedIndividualAck": "a transaction's messages are always acknowledged one by one",
    "jms.useCompression": "AMQP and STOMP have no compressed bodies: they are sent as they are",
    "jms.maxInflatedDataSizeRatio": "nothing is inflated here",
    "jms.strictCompliance": "the rules of JMS hold in any case",
    "jms.nestedMapAndListEnabled": "a map or list within a MapMessage is refused when it is set; use an ObjectMessage",
    "jms.watchTopicAdvisories": "the broker itself refuses what is sent to a deleted temporary destination (S68)",
    **_failover("backup backupPoolSize", _SPARES),
    **_failover("trackTransactionProducers", _NO_PRODUCER),
    **_failover("rebalanceUpdateURIs", "a broker lists others only when a connection is opened"),
    **_failover("reconnectSupported", "no broker sends a client elsewhere over AMQP or STOMP"),
    **_all("wireFormat.", "version stackTraceEnabled tcpNoDelayEnabled cacheEnabled cacheSize host", _OPENWIRE),
    **_all("wireFormat.", "tightEncodingEnabled sizePrefixDisabled platformDetails includePlatformDetails", _OPENWIRE),
    **_all("wireFormat.", "providerName providerVersion maxInactivityDurationInitalDelay", _OPENWIRE),
}
"""Every option of a broker URL that is accepted and ignored, with the reason."""

IGNORED_OF_DESTINATIONS: Final[Mapping[str, str]] = {
    "consumer.dispatchAsync": "it chooses a thread of an ActiveMQ broker",
}
"""The same for the options of destinations."""

IGNORED_PREFIXES: Final[Mapping[str, str]] = {"jms.blobTransferPolicy.": "there are no blob messages here"}
"""The same for all options that begin so."""

_warned: set[str] = set()


def is_meaningless(name: str) -> bool:
    """Return True for an option of a broker URL that is accepted and ignored."""
    return name in IGNORED or name.startswith((*IGNORED_PREFIXES,))


def warn_meaningless(name: str) -> None:
    """Log, once for each name, that an option is ignored, and why."""
    if name not in _warned:
        _warned.add(name)
        known = {**IGNORED, **IGNORED_OF_DESTINATIONS}
        reason = known.get(name) or next(text for start, text in IGNORED_PREFIXES.items() if name.startswith(start))
        logger.warning("option %s has no meaning in Python and is ignored: %s", name, reason)
