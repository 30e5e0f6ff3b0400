"""The option table, made from the declarations, and the options that are known and refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyjmsack.uri.kinds import BOOLEAN, BYTES_OR_SYSTEM, CREDIT, METADATA_KEY, MILLIS_AT_LEAST_1, Option, choice
from pyjmsack.uri.model import BrokerUrl, DestinationOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "DESTINATION_OPTIONS",
    "FAILOVER_PREFIX",
    "NESTED_PREFIX",
    "OPTIONS",
    "OPTION_PREFIXES",
    "REFUSED",
    "build",
    "nearest",
    "option_rows",
]

FAILOVER_PREFIX: Final = "failover."
NESTED_PREFIX: Final = "nested."
S = TypeVar("S", bound="DataclassInstance")


def option_rows(section: type[DataclassInstance], path: str = "") -> Iterator[Option]:
    """Yield the rows that a dataclass and the dataclasses in its fields declare, with the fields they set, each
    followed by its other spellings."""
    for member in fields(section):
        row = member.metadata.get(METADATA_KEY)
        if isinstance(row, Option):
            row = replace(row, targets=(path + member.name,))
            yield from _spellings(row)
        elif isinstance(member.default_factory, type):
            yield from option_rows(member.default_factory, f"{path}{member.name}.")


def _spellings(row: Option) -> Iterator[Option]:
    """Yield a row, then it under its other names: those in ``also``; and what has the prefix ``failover.`` may go
    without it."""
    yield row
    others = list(row.also)
    if row.name.startswith(FAILOVER_PREFIX):
        others += [row.name.removeprefix(FAILOVER_PREFIX), *(FAILOVER_PREFIX + other for other in row.also)]
    yield from (replace(row, name=other, alias_of=row.name) for other in others)


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
    "sets the prefetch of every kind of consumer where it is not given",
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
    Option(
        "failover.updateURIsSupported",
        choice({"true": "REPLACE", "false": "IGNORE"}),
        None,
        "true is failover.amqpOpenServerListAction=REPLACE, false IGNORE, where that is not given",
        "ActiveMQ Classic",
        targets=("failover.amqp_open_server_list_action",),
    ),
)

# Options that set several fields come first: one that sets a field alone is applied after them and wins.
OPTIONS: Final[Mapping[str, Option]] = {
    row.name: row
    for row in (
        _ALL_PREFETCH,
        *(spelling for row in _OTHERS_OF_ACTIVEMQ for spelling in _spellings(row)),
        *option_rows(BrokerUrl),
    )
}
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


def _all(prefix: str, names: str, hint: str) -> dict[str, str]:
    return {prefix + name: hint for name in names.split()}


_GSSAPI: Final = "Kerberos (GSSAPI) is not among the SASL mechanisms"
_ALIAS: Final = "stores with one private key are read"

REFUSED: Final[Mapping[str, str]] = {
    "transport.keyAlias": _ALIAS,
    **_all("sasl.options.", "configScope protocol serverName", _GSSAPI),
    **_all("amqp.sasl.options.", "configScope protocol serverName", _GSSAPI),
}
"""Options that a Java client knows and this one does not honour, with the reason; refused, never ignored."""


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
