"""Checks whether a broker has the features that a session or a consumer needs.

The checks are made when the session or consumer is created, and again after a failover (S119). This module also tells
whether a queue is the dead-letter queue (S118).
"""

from __future__ import annotations

from pyjmsack.destination import Destination
from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.spi.features import FEATURES, Level
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, ProducerInfo, SessionInfo
from pyjmsack.spi.spellings import check_destination_name

__all__ = ["check_consumer", "check_producer", "check_session", "is_dead_letter_queue", "require"]


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
    """Raise an error if a consumer needs a feature that this protocol and broker lack (S119, S144, S147), or if this
    broker would treat the name of its destination differently (S67).

    Raises:
        UnsupportedFeatureException: the broker lacks a feature; see :func:`require`.
        InvalidDestinationException: see ``check_destination_name``.
    """
    check_destination_name(info.destination, metadata)
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


def check_producer(metadata: ConnectionMetadata, info: ProducerInfo) -> None:
    """Raise an error if this broker would treat the name of the producer's destination differently (S67).

    Raises:
        InvalidDestinationException: see ``check_destination_name``.
    """
    if info.destination is not None:
        check_destination_name(info.destination, metadata)


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


def is_dead_letter_queue(destination: Destination, name: str) -> bool:
    """Return True if ``destination`` is the dead-letter queue, whose name is ``name``.

    In Artemis, ``address::queue`` also names a queue, so only the part before ``::`` is compared.
    """
    return not destination.is_topic and destination.name.partition("::")[0] == name
