"""Collects the table of all options, and lists the options that are refused or ignored.

To add an option, add a field to the dataclass of its group. This module finds the field. The groups are ``jms.*`` in
``uri/connection.py``, ``transport.*`` in ``uri/transport.py``, ``amqp.*`` and ``stomp.*`` in ``uri/protocols.py``, and
``failover.*`` in ``uri/failover.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyjmsack.loggers import get_logger
from pyjmsack.uri.model import BrokerUrl
from pyjmsack.uri.option import BOOLEAN, BYTES_OR_SYSTEM, CREDIT, METADATA_KEY, MILLIS_AT_LEAST_1, Option, choice

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
from pyjmsack.java_options.reasons import NO_JAVA_OBJECTS, OF_OPENWIRE

__all__ = [
    "FAILOVER_PREFIX",
    "IGNORED",
    "IGNORED_OF_DESTINATIONS",
    "IGNORED_PREFIXES",
    "NESTED_PREFIX",
    "OPTIONS",
    "OPTION_PREFIXES",
    "REFUSED",
    "build",
    "is_meaningless",
    "option_rows",
    "warn_meaningless",
]

FAILOVER_PREFIX: Final = "failover."
NESTED_PREFIX: Final = "nested."
S = TypeVar("S", bound="DataclassInstance")


def option_rows(section: type[DataclassInstance], path: str = "") -> Iterator[Option]:
    """Yield the option rows of a dataclass and of the dataclasses in its fields. Each row names the field that it sets.
    After a row come the rows for the other names of the same option."""
    for member in fields(section):
        row = member.metadata.get(METADATA_KEY)
        if isinstance(row, Option):
            row = replace(row, targets=(path + member.name,))
            yield from _spellings(row)
        elif isinstance(member.default_factory, type):
            yield from option_rows(member.default_factory, f"{path}{member.name}.")


def _spellings(row: Option) -> Iterator[Option]:
    """Yield a row, and then the same row under each other name of the option, which ``also`` lists. An option with the
    prefix ``failover.`` also has its name without this prefix.
    """
    yield row
    others = list(row.also)
    if row.name.startswith(FAILOVER_PREFIX):
        others += [row.name.removeprefix(FAILOVER_PREFIX), *(FAILOVER_PREFIX + other for other in row.also)]
    yield from (replace(row, name=other, alias_of=row.name) for other in others)


def build(section: type[S], values: Mapping[str, Any], path: str = "", /, **given: Any) -> S:
    """Return an instance of ``section`` that has the ``values`` in its fields and in the fields of nested dataclasses.

    Args:
        section: the class, which is a dataclass.
        values: the values of fields. A key is the dotted path of a field.
        path: the path before the names of the fields of ``section``.
        **given: values of fields of ``section``, by name.
    """
    for member in fields(section):
        here = path + member.name
        if isinstance(member.default_factory, type):
            given[member.name] = build(member.default_factory, values, f"{here}.")
        elif here in values:
            given[member.name] = values[here]
    return section(**given)


_ALL_PREFETCH: Final = Option(
    "jms.prefetchPolicy.all",
    CREDIT,
    None,
    "sets the prefetch of every kind of consumer that has no prefetch option of its own",
    "Qpid JMS",
    targets=tuple(
        f"connection.prefetch_policy.{name}"
        for name in (
            "queue_prefetch",
            "topic_prefetch",
            "queue_browser_prefetch",
            "durable_topic_prefetch",
            "optimize_durable_topic_prefetch",
        )
    ),
)

_OTHERS_OF_ACTIVEMQ: Final = (
    Option(
        "wireFormat.maxInactivityDuration",
        MILLIS_AT_LEAST_1,
        None,
        "sets amqp.idleTimeout and stomp.heartBeat, if they are not given",
        "ActiveMQ Classic",
        targets=("amqp.idle_timeout", "stomp.heart_beat"),
    ),
    Option(
        "trace",
        BOOLEAN,
        None,
        "sets amqp.traceFrames and stomp.traceFrames, if they are not given",
        "ActiveMQ Classic",
        targets=("amqp.trace_frames", "stomp.trace_frames"),
    ),
    Option(
        "socketBufferSize",
        BYTES_OR_SYSTEM,
        None,
        "sets transport.sendBufferSize and transport.receiveBufferSize, if they are not given",
        "ActiveMQ Classic",
        targets=("transport.send_buffer_size", "transport.receive_buffer_size"),
    ),
    Option(
        "failover.updateURIsSupported",
        choice({"true": "REPLACE", "false": "IGNORE"}),
        None,
        "sets failover.amqpOpenServerListAction, if it is not given: true is REPLACE, false is IGNORE",
        "ActiveMQ Classic",
        targets=("failover.amqp_open_server_list_action",),
    ),
)

# Options that set several fields come first. An option that sets only one field is applied later, so its value wins.
OPTIONS: Final[Mapping[str, Option]] = {
    row.name: row
    for row in (
        _ALL_PREFETCH,
        *(spelling for row in _OTHERS_OF_ACTIVEMQ for spelling in _spellings(row)),
        *option_rows(BrokerUrl),
    )
}
"""Each option of a broker URL that has an effect, by its name. The options are applied in the order of this table."""

OPTION_PREFIXES: Final = (
    "jms.",
    "transport.",
    "amqp.",
    "stomp.",
    "failover.",
    "nested.",
    "discovery.",
    "wireFormat.",
    "provider.",
)


def _all(prefix: str, names: str, reason: str) -> dict[str, str]:
    return {prefix + name: reason for name in names.split()}


_GSSAPI: Final = "Kerberos (GSSAPI) is not among the SASL mechanisms"
_ALIAS: Final = "a store must have only one private key; export the key that you need into a store of its own"

REFUSED: Final[Mapping[str, str]] = {
    "transport.keyAlias": _ALIAS,
    **_all("sasl.options.", "configScope protocol serverName", _GSSAPI),
    **_all("amqp.sasl.options.", "configScope protocol serverName", _GSSAPI),
}
"""Options of Java clients that this library refuses, with the reason."""


# -- options that change nothing -------------------------------------------------------------------------------------


logger = get_logger("pyjmsack")


def _failover(names: str, reason: str) -> dict[str, str]:
    """Return each name twice: with the prefix ``failover.``, as in Qpid JMS, and without the prefix, as in ActiveMQ."""
    return _all("failover.", names, reason) | _all("", names, reason)


_JAVA: Final = "it tunes the Java virtual machine, or the inside of a Java client"
_RELAY: Final = "it is for brokers without a link for sends to any destination; Artemis and ActiveMQ Classic have one"
_BUFFERS: Final = "it sets the size of a buffer of the Java client; jms.producerWindowSize bounds unconfirmed messages"
_SILENCE: Final = "a silent broker is found by amqp.idleTimeout and stomp.heartBeat, not by the socket"
_NO_PRODUCER: Final = "a transaction with sends of a closed producer is not replayed: its commit() raises (S107)"
_SPARES: Final = "the client keeps no spare connections, and connects to the next broker when it needs that broker"

IGNORED: Final[Mapping[str, str]] = {
    **_all("transport.", "useEpoll useKQueue useOpenSSL sharedEventLoopThreads", _JAVA),
    **dict.fromkeys(("transport.soTimeout", "soTimeout"), _SILENCE),
    **dict.fromkeys(("amqp.provider.futureType", "provider.futureType", "ioBufferSize"), _JAVA),
    **_all("amqp.", "anonymousFallbackCacheSize anonymousFallbackCacheTimeout", _RELAY),
    **_all("amqp.", "sessionOutgoingWindow maxWriteBytesBeforeFlush", _BUFFERS),
    **_all("jms.", "maxThreadPoolSize useDedicatedTaskRunner useVirtualThreadTaskRunner rmIdFromConnectionId", _JAVA),
    **_all("jms.", "objectMessageSerializationDefered alwaysSessionAsync dispatchAsync", _JAVA),
    **_all("jms.", "trustAllPackages deserializationPolicy.allowList deserializationPolicy.denyList", NO_JAVA_OBJECTS),
    "jms.copyMessageOnSend": "a send always copies the message, and the program may change the message at once (S72)",
    "jms.transactedIndividualAck": "a transaction's messages are always acknowledged one by one",
    "jms.useCompression": "AMQP and STOMP have no compressed bodies, therefore bodies are sent as they are",
    "jms.maxInflatedDataSizeRatio": "the client inflates no bodies, because AMQP and STOMP have no compressed bodies",
    "jms.strictCompliance": "the rules of JMS hold in any case",
    "jms.nestedMapAndListEnabled": "a map or list within a MapMessage is refused when it is set; use an ObjectMessage",
    "jms.watchTopicAdvisories": "the broker itself refuses a message to a deleted temporary destination (S68)",
    **_failover("backup backupPoolSize", _SPARES),
    **_failover("trackTransactionProducers", _NO_PRODUCER),
    **_failover("rebalanceUpdateURIs", "a broker names other brokers only when a connection is opened"),
    **_failover("reconnectSupported", "no broker tells a client over AMQP or STOMP to reconnect to another broker"),
    **_all("wireFormat.", "version stackTraceEnabled tcpNoDelayEnabled cacheEnabled cacheSize host", OF_OPENWIRE),
    **_all(
        "wireFormat.", "tightEncodingEnabled sizePrefixDisabled platformDetails includePlatformDetails", OF_OPENWIRE
    ),
    **_all("wireFormat.", "providerName providerVersion maxInactivityDurationInitalDelay", OF_OPENWIRE),
}
"""Each option of a broker URL that is accepted and ignored, with the reason."""

IGNORED_OF_DESTINATIONS: Final[Mapping[str, str]] = {
    "consumer.dispatchAsync": "it chooses a thread of an ActiveMQ broker",
}
"""Each option of a destination that is accepted and ignored, with the reason."""

IGNORED_PREFIXES: Final[Mapping[str, str]] = {"jms.blobTransferPolicy.": "this library has no blob messages"}
"""Prefixes of options that are accepted and ignored, with the reason."""

_warned: set[str] = set()


def is_meaningless(name: str) -> bool:
    """Return whether an option of a broker URL is accepted and ignored."""
    return name in IGNORED or name.startswith((*IGNORED_PREFIXES,))


def warn_meaningless(name: str) -> None:
    """Log a warning that an option is ignored, with the reason. The warning is logged only once for each option."""
    if name not in _warned:
        _warned.add(name)
        known = {**IGNORED, **IGNORED_OF_DESTINATIONS}
        reason = known.get(name) or next(text for start, text in IGNORED_PREFIXES.items() if name.startswith(start))
        logger.warning("option %s has no meaning in Python and is ignored: %s", name, reason)
