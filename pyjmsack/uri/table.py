"""The option table, made from the declarations; the options known but not there yet; those that mean nothing here."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyjmsack.uri.kinds import BOOLEAN, BYTES_OR_SYSTEM, CREDIT, METADATA_KEY, MILLIS_AT_LEAST_1, Option
from pyjmsack.uri.model import BrokerUrl, DestinationOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "DESTINATION_OPTIONS",
    "DESTINATION_OPTIONS_LATER",
    "FAILOVER_PREFIX",
    "NESTED_PREFIX",
    "OPTIONS",
    "OPTIONS_LATER",
    "OPTION_PREFIXES",
    "ROWS",
    "build",
    "is_later",
    "is_meaningless",
    "nearest",
    "option_rows",
    "warn_meaningless",
]

FAILOVER_PREFIX: Final = "failover."
NESTED_PREFIX: Final = "nested."
S = TypeVar("S", bound="DataclassInstance")
logger = logging.getLogger("pyjmsack")


def option_rows(section: type[DataclassInstance], path: str = "") -> Iterator[Option]:
    """Yield the rows that a dataclass and the dataclasses in its fields declare, with the fields they set, each
    followed by its other spellings."""
    for member in fields(section):
        row = member.metadata.get(METADATA_KEY)
        if isinstance(row, Option):
            row = replace(row, targets=(path + member.name,))
            yield row
            yield from (replace(row, name=other, alias_of=row.name) for other in _other_spellings(row))
        elif isinstance(member.default_factory, type):
            yield from option_rows(member.default_factory, f"{path}{member.name}.")


def _other_spellings(row: Option) -> Iterator[str]:
    """The names in ``also``; what has the prefix ``failover.`` may go without it."""
    yield from row.also
    if row.name.startswith(FAILOVER_PREFIX):
        yield row.name.removeprefix(FAILOVER_PREFIX)
        yield from (FAILOVER_PREFIX + other for other in row.also)


def build(section: type[S], values: Mapping[str, Any], path: str = "", /, **given: Any) -> S:
    """Return the dataclass with ``values``, which are keyed by dotted path, in its fields and theirs."""
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
    "sets queuePrefetch, topicPrefetch, queueBrowserPrefetch and durableTopicPrefetch where they are not given",
    "Qpid JMS",
    targets=tuple(
        f"connection.prefetch_policy.{name}"
        for name in ("queue_prefetch", "topic_prefetch", "queue_browser_prefetch", "durable_topic_prefetch")
    ),
)

_OTHERS_OF_ACTIVEMQ: Final = (
    Option(
        "wireFormat.maxInactivityDuration",
        MILLIS_AT_LEAST_1,
        None,
        "sets amqp.idleTimeout and stomp.heartBeat where they are not given",
        "ActiveMQ Classic",
        targets=("amqp.idle_timeout", "stomp.heart_beat"),
    ),
    Option(
        "trace",
        BOOLEAN,
        None,
        "sets amqp.traceFrames and stomp.traceFrames where they are not given",
        "ActiveMQ Classic",
        targets=("amqp.trace_frames", "stomp.trace_frames"),
    ),
    Option(
        "socketBufferSize",
        BYTES_OR_SYSTEM,
        None,
        "sets transport.sendBufferSize and transport.receiveBufferSize where they are not given",
        "ActiveMQ Classic",
        targets=("transport.send_buffer_size", "transport.receive_buffer_size"),
    ),
)

# Options that set several fields come first: one that sets a field alone is applied after them and wins.
ROWS: Final[Mapping[str, Option]] = {
    row.name: row for row in (_ALL_PREFETCH, *_OTHERS_OF_ACTIVEMQ, *option_rows(BrokerUrl))
}
"""Every option of a broker URL that has a typed field, honoured or not."""

OPTIONS: Final[Mapping[str, Option]] = {name: row for name, row in ROWS.items() if row.later is None}
"""Every option of a broker URL that is honoured, by name, in the order in which they are applied."""

DESTINATION_OPTIONS: Final[Mapping[str, Option]] = {row.name: row for row in option_rows(DestinationOptions)}
"""Every option of a destination by name."""

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


def _later(prefix: str, names: str, hint: str = "") -> dict[str, str]:
    return {prefix + name: hint for name in names.split()}


OPTIONS_LATER: Final[Mapping[str, str]] = {
    **{name: row.later for name, row in ROWS.items() if row.later is not None},
    # Qpid JMS
    **_later("jms.", "tracing"),
    **_later("jms.deserializationPolicy.", "allowList denyList", "objects are read by registered codecs only"),
    "jms.useDaemonThread": "the thread of the blocking interface never keeps the process alive",
    "transport.soTimeout": "amqp.idleTimeout and stomp.heartBeat watch a silent broker",
    "transport.traceBytes": "they would hold the password; amqp.traceFrames and stomp.traceFrames do not",
    "transport.keyAlias": "stores with one private key are read",
    **_later("amqp.", "saslLayer allowNonSecureRedirects anonymousFallbackCacheSize anonymousFallbackCacheTimeout"),
    **_later("amqp.", "traceBytes traceFramesPayloadLimit sessionOutgoingWindow maxWriteBytesBeforeFlush"),
    **_later("sasl.options.", "configScope protocol serverName"),
    **_later("amqp.sasl.options.", "configScope protocol serverName"),
    # ActiveMQ Classic
    **_later("jms.prefetchPolicy.", "optimizeDurableTopicPrefetch maximumPendingMessageLimit"),
    "jms.redeliveryPolicy.preDispatchCheck": "",
    **_later("jms.", "useCompression maxInflatedDataSizeRatio useRetroactiveConsumer"),
    **_later("jms.", "exclusiveConsumer watchTopicAdvisories"),
    **_later("jms.", "consumerFailoverRedeliveryWaitPeriod checkForDuplicates auditDepth auditMaximumProducerNumber"),
    **_later("jms.", "nestedMapAndListEnabled strictCompliance"),
    "wireFormat.maxFrameSize": "amqp.maxFrameSize is the nearest",
    "soTimeout": "",
}
"""Options that a Java client knows and this one does not honour yet, with a hint; refused, never ignored."""

DESTINATION_OPTIONS_LATER: Final[Mapping[str, str]] = {
    **_later("consumer.", "retroactive dispatchAsync maximumPendingMessageLimit"),
}
"""Destination options that are known and not honoured yet."""

_LATER_PREFIXES: Final = ("transport.ws.", "jms.blobTransferPolicy.")
_MEANINGLESS: Final = frozenset(
    f"{prefix}{name}"
    for prefix, names in {
        "transport.": "useEpoll useKQueue useOpenSSL sharedEventLoopThreads",
        "amqp.": "provider.futureType",
        "provider.": "futureType",
        "jms.": "maxThreadPoolSize useDedicatedTaskRunner useVirtualThreadTaskRunner rmIdFromConnectionId"
        " objectMessageSerializationDefered trustAllPackages copyMessageOnSend alwaysSessionAsync dispatchAsync"
        " transactedIndividualAck",
        "wireFormat.": "version stackTraceEnabled tcpNoDelayEnabled cacheEnabled cacheSize tightEncodingEnabled"
        " sizePrefixDisabled maxFrameSizeEnabled host providerName providerVersion platformDetails"
        " includePlatformDetails maxInactivityDurationInitalDelay",
        "": "ioBufferSize",
    }.items()
    for name in names.split()
)
_warned: set[str] = set()


def is_later(name: str) -> bool:
    """Return True for a broker URL option that is known and not honoured yet."""
    return name in OPTIONS_LATER or name.startswith(_LATER_PREFIXES)


def is_meaningless(name: str) -> bool:
    """Return True for an option that tunes the Java virtual machine, or the inside of a Java client."""
    return name in _MEANINGLESS


def warn_meaningless(name: str) -> None:
    """Log, once for each name, that an option has no meaning in Python."""
    if name not in _warned:
        _warned.add(name)
        logger.warning("option %s has no meaning in Python and is ignored", name)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant: other letter case, missing or wrong prefix, or a misspelling."""
    folded = {candidate.lower(): candidate for candidate in known}
    wanted = name.lower()
    if wanted in folded:
        return folded[wanted]
    last = wanted.rpartition(".")[2]
    for tail in (wanted, last):
        for candidate, spelling in folded.items():
            if candidate.endswith("." + tail):
                return spelling
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None
