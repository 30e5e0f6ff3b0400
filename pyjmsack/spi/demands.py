"""Checks whether a broker has the features that a session or a consumer needs.

The checks are made when the session or consumer is created, and again after a failover (S119). This module also checks
the names to which producers send (S67), and tells whether a queue is the dead-letter queue (S118).
"""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.destination import Destination
from pyjmsack.errors import InvalidDestinationException, UnsupportedFeatureException
from pyjmsack.spi.features import FEATURES, Level
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, SessionInfo

__all__ = ["check_consumer", "check_session", "check_target", "is_dead_letter_queue", "require"]

_PATTERN: Final = re.compile(r"(?:^|\.)[#*](?:\.|$)")
"""Matches a name with a word that is a wildcard of Artemis, as in ``orders.#``."""
_SHOWN: Final = 80
"""The largest number of characters of a name in an error text."""


def require(metadata: ConnectionMetadata, feature: str) -> None:
    """Raise an error if this protocol and broker lack a feature. No request goes to the broker before this check
    (S119).

    Raises:
        UnsupportedFeatureException: the table of features says that the feature is missing. The text says why.
    """
    support = metadata.capabilities.support(feature)
    if support.level is Level.REFUSED:
        raise UnsupportedFeatureException(
            f"{FEATURES[feature]}: not available with this protocol and broker; {support.note}"
        )


def check_consumer(metadata: ConnectionMetadata, info: ConsumerInfo) -> None:
    """Raise an error if a consumer needs a feature that this protocol and broker lack (S119, S144, S147).

    Raises:
        UnsupportedFeatureException: the broker lacks a feature; see :func:`require`.
    """
    subscription = info.subscription
    asked = {
        "browser": info.browser,
        "no-local": info.no_local,
        "durable-subscription": subscription is not None and subscription.durable,
        "shared-subscription": subscription is not None and subscription.shared,
        "exclusive-consumer": info.exclusive,
        "consumer-priority": info.priority is not None,
        "retroactive-consumer": info.retroactive,
    }
    for feature, wanted in asked.items():
        if wanted:
            require(metadata, feature)


def check_session(metadata: ConnectionMetadata, info: SessionInfo, *, strict: bool) -> None:
    """Raise an error if the session is transacted, the URL says ``strict=true``, and this broker has no atomic
    transactions (S88).

    Raises:
        UnsupportedFeatureException: the transactions of this broker are not atomic.
    """
    guarantee = metadata.transaction_guarantee
    if strict and info.transacted and guarantee != "atomic":
        raise UnsupportedFeatureException(
            f"strict=true: a transaction of this protocol and broker is {guarantee}, not atomic (S88)"
        )


def check_target(broker: str, name: str) -> None:
    """Raise an error if nothing may be sent to this name (S67).

    Artemis refuses messages to ``orders.#``, but creates this queue first. From then on the queue gets a copy of each
    message to ``orders.…``, and nobody takes these copies. The name may come from the ``reply_to`` of a stranger.

    Args:
        broker: the key of the broker in ``pyjmsack.spi.features.BROKERS``.
        name: the broker's name of the destination.

    Raises:
        InvalidDestinationException: the name has wildcards, and the broker is Artemis.
    """
    if broker == "artemis" and _PATTERN.search(name.partition("::")[0]):
        raise InvalidDestinationException(
            f"nothing can be sent to {name[:_SHOWN]!r}: # and * are wildcards for consumers, and Artemis would create a"
            " queue that keeps a copy of each message to the names that match; expected a name without them (S67)"
        )


def is_dead_letter_queue(destination: Destination, name: str) -> bool:
    """Return True if ``destination`` is the dead-letter queue, whose name is ``name``.

    In Artemis, ``address::queue`` also names a queue, so only the part before ``::`` is compared.
    """
    return not destination.is_topic and destination.name.partition("::")[0] == name
