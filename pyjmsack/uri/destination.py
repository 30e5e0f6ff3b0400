"""The options after the name of a destination, such as ``orders?consumer.prefetchSize=10``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyjmsack.destination import Destination
from pyjmsack.errors import InvalidDestinationException
from pyjmsack.uri.option import (
    BOOLEAN,
    NAME,
    PENDING_LIMIT,
    Option,
    choice,
    did_you_mean,
    first_of,
    integer,
    option,
    parse_values,
)
from pyjmsack.uri.table import IGNORED_OF_DESTINATIONS, build, option_rows, warn_meaningless

__all__ = ["DESTINATION_OPTIONS", "DestinationOptions", "parse_destination_options"]

_ACTIVEMQ: Final = "ActiveMQ Classic"


@dataclass(frozen=True, slots=True)
class DestinationOptions:
    """The options after the name of a destination, for one consumer or producer. If an option is ``None``, the options
    of the connection factory decide (S49).
    """

    prefetch: int | None = option(
        "consumer.prefetchSize", integer(0, 2**31 - 1, "messages"), None, "prefetch of this consumer", "S11, S49"
    )
    allow_pull_listener: bool = option(
        "consumer.allowPullListener", BOOLEAN, "false", "allow a listener with prefetch 0", "S9"
    )
    selector: str | None = option("consumer.selector", NAME, None, "selector, if the call gives none", _ACTIVEMQ)
    no_local: bool | None = option(
        "consumer.noLocal", BOOLEAN, None, "skip messages sent by this connection", _ACTIVEMQ
    )
    exclusive: bool | None = option(
        "consumer.exclusive", BOOLEAN, None, "only one consumer of the queue gets messages at a time", _ACTIVEMQ
    )
    retroactive: bool | None = option(
        "consumer.retroactive",
        BOOLEAN,
        None,
        "begin with the messages that a topic's recovery policy has kept; no meaning for a queue",
        _ACTIVEMQ,
    )
    maximum_pending_message_limit: int | None = option(
        "consumer.maximumPendingMessageLimit",
        PENDING_LIMIT,
        None,
        "as jms.prefetchPolicy.maximumPendingMessageLimit",
        _ACTIVEMQ,
    )
    priority: int | None = option(
        "consumer.priority",
        integer(0, 127),
        None,
        "the broker serves consumers with a higher priority first",
        _ACTIVEMQ,
    )
    expected_message_size: int = option(
        "consumer.expectedMessageSize",
        integer(1, 2**31 - 1, "bytes"),
        "4096",
        "assumed size of a message if the broker's window is in bytes (STOMP on Artemis)",
        "S52",
    )
    window_size: int | None = option(
        "producer.windowSize",
        integer(0, 2**31 - 1, "bytes"),
        None,
        "largest number of unconfirmed bytes of a producer; then the next send waits; 0 means no limit",
        "S65",
    )
    duplicate_detection: bool | None = option(
        "producer.duplicateDetection",
        choice({"auto": None, "true": True, "false": False}),
        "auto",
        "give each send a duplicate mark, by which Artemis drops a second copy; auto: in failover URLs, at Artemis;"
        " true is refused at Classic",
        "S106",
    )


DESTINATION_OPTIONS: Final[Mapping[str, Option]] = {row.name: row for row in option_rows(DestinationOptions)}
"""The options of destinations, each by its name."""


def parse_destination_options(destination: Destination) -> DestinationOptions:
    """Return the typed options of a destination. These options override the options of the connection factory (S49).

    The Java clients ignore an option that does not start with ``consumer.`` or ``producer.``, such as
    ``customer.prefetchSize``. For this library such an option is an error.

    Args:
        destination: the queue or topic. This function reads its ``options``.

    Raises:
        InvalidDestinationException: an option is unknown, or its value is not allowed, such as a negative prefetch
            (S11).
    """
    given = destination.options
    unknown = [name for name in given if name not in DESTINATION_OPTIONS and name not in IGNORED_OF_DESTINATIONS]
    if unknown:
        known = (*DESTINATION_OPTIONS, *IGNORED_OF_DESTINATIONS)
        listed = first_of(unknown, partial(did_you_mean, known=known))
        raise InvalidDestinationException(f"destination {destination.name}: unknown option {listed}")
    for name in given:
        if name in IGNORED_OF_DESTINATIONS:
            warn_meaningless(name)
    return build(DestinationOptions, parse_values(given, DESTINATION_OPTIONS, InvalidDestinationException))
