"""The options of ``failover:(...)`` URLs. Qpid JMS writes these options with the prefix ``failover.``, and ActiveMQ
Classic writes them without this prefix. This library takes both forms of each option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pyjmsack.uri.option import (
    BOOLEAN,
    COUNT_OR_UNLIMITED,
    MILLIS_FROM_0,
    MILLIS_OR_DEFAULT,
    MILLIS_OR_FOREVER,
    Kind,
    choice,
    integer,
    number,
    option,
)

__all__ = ["DuplicateGuard", "FailoverOptions"]

_ACTIVEMQ: Final = "ActiveMQ Classic"


class DuplicateGuard(NamedTuple):
    """The place where the guard remembers the ids of processed messages. ``store`` is ``memory``, ``none`` or
    ``sqlite``. With ``sqlite``, ``path`` is the path of the file. Otherwise ``path`` is empty.
    """

    store: str
    path: str = ""


def _duplicate_guard(text: str) -> DuplicateGuard:
    store, colon, path = text.partition(":")
    guard = DuplicateGuard(store.lower(), path)
    if (
        guard.store not in ("memory", "none", "sqlite")
        or bool(path) != (guard.store == "sqlite")
        or colon != ":" * bool(path)
    ):
        raise ValueError
    return guard


_GUARD: Final = Kind("choice", "one of memory, none, sqlite:PATH", _duplicate_guard)


def _file(text: str) -> str:
    scheme, separator, path = text.strip().partition("://")
    if separator and scheme.lower() != "file":
        raise ValueError
    path = path if separator else text.strip()
    if not path:
        raise ValueError
    return path


def _uris(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class FailoverOptions:
    """The ``failover.*`` options. Durations are in seconds."""

    initial_reconnect_delay: float = option(
        "failover.initialReconnectDelay",
        MILLIS_FROM_0,
        "0",
        "wait before the first attempt to reconnect, and before the second attempt to connect at the start",
    )
    reconnect_delay: float = option(
        "failover.reconnectDelay", MILLIS_FROM_0, "10", "wait between later rounds over all brokers"
    )
    max_reconnect_delay: float | None = option(
        "failover.maxReconnectDelay",
        MILLIS_OR_DEFAULT,
        "-1",
        "longest wait, if waits grow; -1 means 750 ms, or 30 s if attempts are limited or reconnectDelay is longer",
        "pyjmsack",
    )
    use_reconnect_back_off: bool = option(
        "failover.useReconnectBackOff",
        BOOLEAN,
        "true",
        "each wait is longer than the one before, from the second round on",
        also="useExponentialBackOff",
    )
    reconnect_back_off_multiplier: float = option(
        "failover.reconnectBackOffMultiplier",
        number(1, 1000),
        "2.0",
        "factor by which each wait is longer than the one before",
        also="reconnectDelayExponent",
    )
    max_reconnect_attempts: int | None = option(
        "failover.maxReconnectAttempts",
        COUNT_OR_UNLIMITED,
        "-1",
        "rounds over all brokers before the client gives up; 0 never reconnects, -1 means no limit",
    )
    startup_max_reconnect_attempts: int | None = option(
        "failover.startupMaxReconnectAttempts",
        COUNT_OR_UNLIMITED,
        "-1",
        "rounds over all brokers for the first connection; with -1, failover.maxReconnectAttempts is the limit",
    )
    warn_after_reconnect_attempts: int | None = option(
        "failover.warnAfterReconnectAttempts",
        COUNT_OR_UNLIMITED,
        "10",
        "a warning is logged each time after this number of rounds, at most once in 10 s; 0 or -1 logs no warning",
    )
    randomize: bool = option(
        "failover.randomize", BOOLEAN, "false", "try the brokers in random order; with false in the order of the URL"
    )
    timeout: float | None = option(
        "failover.timeout",
        MILLIS_OR_FOREVER,
        "-1",
        "how long a send may wait for a broker before it fails; 0 or -1 means no limit",
        _ACTIVEMQ,
    )
    amqp_open_server_list_action: str = option(
        "failover.amqpOpenServerListAction",
        choice({"REPLACE": "REPLACE", "ADD": "ADD", "IGNORE": "IGNORE"}),
        "REPLACE",
        "use of the list of brokers that a broker sends in its Open frame",
    )
    first_send_survives: bool = option(
        "failover.firstSendSurvives",
        BOOLEAN,
        "true",
        "a transaction whose only work is an unanswered send survives a lost connection; with false the transaction"
        " fails, as in Qpid JMS",
        "S92, S93",
    )
    duplicate_guard: DuplicateGuard = option(  # noqa: RUF009 - it returns dataclasses.field()
        "failover.duplicateGuard",
        _GUARD,
        "memory",
        "where the ids of processed messages are kept; a message that comes again is acknowledged and skipped",
        "S105",
    )
    duplicate_guard_size: int = option(
        "failover.duplicateGuardSize", integer(1, 2**31 - 1), "65536", "ids remembered for each session", "S105"
    )
    track_messages: bool = option(
        "failover.trackMessages",
        BOOLEAN,
        "false",
        "no effect with either value, because a send without an answer is always repeated after the connection was"
        " lost",
        _ACTIVEMQ,
        also="replayAsyncSends",
    )
    max_cache_size: int = option(
        "failover.maxCacheSize",
        integer(0, 2**31 - 1, "bytes"),
        "131072",
        "no effect with any value, because the send window (jms.producerWindowSize) bounds the kept messages",
        _ACTIVEMQ,
        also="replayAsyncSendsCacheSize",
    )
    priority_backup: bool = option(
        "failover.priorityBackup",
        BOOLEAN,
        "false",
        "go back to a preferred broker when it is there again",
        _ACTIVEMQ,
    )
    priority_uris: tuple[str, ...] = option(
        "failover.priorityURIs",
        Kind("list", "a comma-separated list of addresses", _uris),
        "",
        "the preferred brokers, comma-separated and without options; empty prefers the first broker",
        _ACTIVEMQ,
    )
    transaction_replay: bool = option(
        "failover.transactionReplay",
        BOOLEAN,
        "false",
        "repeat an open transaction at the next broker, instead of failing the transaction",
        "S107",
    )
    update_uris_url: str | None = option(
        "failover.updateURIsURL",
        Kind("text", "the path of a file, or file:// and its path", _file),
        None,
        "a file with more brokers, comma-separated and without options, read before each round; each of them gets the"
        " options of the first broker in the URL",
        _ACTIVEMQ,
    )
