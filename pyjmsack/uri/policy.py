"""The policies for prefetch, redelivery and presettlement. A policy is an object that cannot be changed and that
answers one question.

The other options of a connection, such as limits, are in ``uri/connection.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf
from typing import Final

from pyjmsack.destination import Destination
from pyjmsack.loggers import get_logger
from pyjmsack.types import Outcome
from pyjmsack.uri.option import (
    BOOLEAN,
    COUNT_OR_UNLIMITED,
    CREDIT,
    MILLIS_FROM_0,
    MILLIS_OR_FOREVER,
    PENDING_LIMIT,
    integer,
    number,
    option,
    outcomes,
)

__all__ = [
    "OPTIMIZED_SHARE",
    "PrefetchPolicy",
    "PresettlePolicy",
    "RedeliveryPolicy",
    "check_pattern",
    "matches",
    "most_specific",
    "prefetch_for",
]

OPTIMIZED_SHARE: Final = 0.65
"""The share of the prefetch at which a batch of acknowledgements is sent, if ``jms.optimizeAcknowledge`` is on
(S40).
"""

logger = get_logger("pyjmsack")


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """The number of messages that the broker may send to a consumer before the caller asks for them (S49). With 0 the
    consumer asks the broker for each message (S50).
    """

    queue_prefetch: int = option("jms.prefetchPolicy.queuePrefetch", CREDIT, "1000", "prefetch of queue consumers")
    topic_prefetch: int = option("jms.prefetchPolicy.topicPrefetch", CREDIT, "1000", "prefetch of topic consumers")
    queue_browser_prefetch: int = option(
        "jms.prefetchPolicy.queueBrowserPrefetch", CREDIT, "1000", "prefetch of queue browsers"
    )
    durable_topic_prefetch: int = option(
        "jms.prefetchPolicy.durableTopicPrefetch", CREDIT, "1000", "prefetch of durable subscribers"
    )
    optimize_durable_topic_prefetch: int | None = option(
        "jms.prefetchPolicy.optimizeDurableTopicPrefetch",
        CREDIT,
        None,
        "prefetch of durable subscribers in AUTO sessions; if not set, durableTopicPrefetch counts",
        "ActiveMQ Classic",
    )
    maximum_pending_message_limit: int = option(
        "jms.prefetchPolicy.maximumPendingMessageLimit",
        PENDING_LIMIT,
        "0",
        "STOMP to ActiveMQ Classic: how many messages beyond its prefetch the broker keeps for a slow subscriber of a"
        " topic before the broker drops the oldest; with 0 the broker decides; elsewhere the option has no effect, and"
        " a warning is logged once",
        "ActiveMQ Classic",
    )
    max_prefetch_size: int = option(
        "jms.prefetchPolicy.maxPrefetchSize",
        CREDIT,
        "32767",
        "a larger prefetch is cut to this, and a warning is logged",
    )

    def for_destination(
        self,
        destination: Destination,
        given: int | None = None,
        *,
        durable: bool = False,
        browser: bool = False,
        auto: bool = False,
    ) -> int:
        """Return the prefetch of a consumer, in messages, cut to ``max_prefetch_size``.

        Args:
            destination: the queue or topic.
            given: the prefetch from the option of the destination. ``None`` if the destination has no such option.
            durable: whether the consumer has a durable subscription.
            browser: whether the consumer is a browser.
            auto: whether the session of the consumer is in AUTO mode.
        """
        if given is not None:
            return self.clip(given)
        if durable and auto and self.optimize_durable_topic_prefetch is not None:
            return self.clip(self.optimize_durable_topic_prefetch)
        if destination.is_topic:
            return self.clip(self.durable_topic_prefetch if durable else self.topic_prefetch)
        return self.clip(self.queue_browser_prefetch if browser else self.queue_prefetch)

    def clip(self, prefetch: int) -> int:
        """Return ``prefetch`` cut to ``max_prefetch_size``. A cut is logged once for each pair of values.

        Args:
            prefetch: the prefetch, in messages.
        """
        if prefetch > self.max_prefetch_size:
            _log_clipped(prefetch, self.max_prefetch_size)
        return min(prefetch, self.max_prefetch_size)


def prefetch_for(messages_per_second: float, ack_interval: float) -> int:
    """Return a prefetch for ``jms.optimizeAcknowledge``. With this prefetch, a batch of acknowledgements is full after
    about ``ack_interval`` seconds (S58).

    A batch is full when it has 0.65 of the prefetch (S40). With a smaller prefetch the batch is full sooner. With a
    larger prefetch ``jms.optimizeAcknowledgeTimeOut`` may end before the batch is full::

        f"orders?consumer.prefetchSize={prefetch_for(2000, 0.1)}"

    Args:
        messages_per_second: the number of messages that one consumer processes in a second.
        ack_interval: the time between two acknowledgements, in seconds. After a crash, the broker delivers again the
            messages that were consumed in this time.

    Returns:
        The prefetch in messages, at least 1.

    Raises:
        ValueError: an argument is not above 0, or not finite.
    """
    for name, value in (("messages_per_second", messages_per_second), ("ack_interval", ack_interval)):
        if not 0 < value < inf:
            raise ValueError(f"{name} {value!r}: expected a finite number above 0")
    return ceil(messages_per_second * ack_interval / OPTIMIZED_SHARE)


@lru_cache(maxsize=128)
def _log_clipped(prefetch: int, maximum: int) -> None:
    """Log that a prefetch was cut to the maximum, once for each pair of values, because a program may open thousands of
    consumers.
    """
    logger.warning("prefetch %d is cut to %d (jms.prefetchPolicy.maxPrefetchSize)", prefetch, maximum)


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Decides whether a message was delivered too often, which outcome such a message gets, and how long a redelivery
    waits.
    """

    max_redeliveries: int | None = option(
        "jms.redeliveryPolicy.maxRedeliveries",
        COUNT_OR_UNLIMITED,
        "-1",
        "refuse a message that was redelivered more often than this number; 0 accepts no redelivery, -1 means no limit",
        also="jms.redeliveryPolicy.maximumRedeliveries",
    )
    outcome: Outcome = option(  # noqa: RUF009 - it returns dataclasses.field()
        "jms.redeliveryPolicy.outcome",
        outcomes(*Outcome),
        "MODIFIED_FAILED_UNDELIVERABLE",
        "the outcome of a message that was redelivered more often than maxRedeliveries allows. ACCEPTED discards the"
        " message. The program may never have had this message, because lost connections count as deliveries, unless"
        " preDispatchCheck is false and the session is transacted",
    )

    initial_redelivery_delay: float = option(
        "jms.redeliveryPolicy.initialRedeliveryDelay",
        MILLIS_FROM_0,
        "0",
        "wait before the first redelivery",
        "S115",
    )
    redelivery_delay: float = option(
        "jms.redeliveryPolicy.redeliveryDelay",
        MILLIS_FROM_0,
        "0",
        "wait before later redeliveries",
        "S115",
    )
    use_exponential_back_off: bool = option(
        "jms.redeliveryPolicy.useExponentialBackOff",
        BOOLEAN,
        "false",
        "whether each wait is longer than the one before",
        "S115",
    )
    back_off_multiplier: float = option(
        "jms.redeliveryPolicy.backOffMultiplier",
        number(1, 1000),
        "5.0",
        "factor by which each wait is longer than the one before",
        "S115",
    )
    maximum_redelivery_delay: float | None = option(
        "jms.redeliveryPolicy.maximumRedeliveryDelay",
        MILLIS_OR_FOREVER,
        "-1",
        "longest wait, if waits grow; the wait is never shorter than redeliveryDelay",
        "S115",
    )
    use_collision_avoidance: bool = option(
        "jms.redeliveryPolicy.useCollisionAvoidance", BOOLEAN, "false", "vary waits at random", "S115"
    )
    collision_avoidance_percent: int = option(
        "jms.redeliveryPolicy.collisionAvoidancePercent",
        integer(0, 100, "percent"),
        "15",
        "the largest random change of a wait, up or down",
        "S115",
    )

    pre_dispatch_check: bool = option(
        "jms.redeliveryPolicy.preDispatchCheck",
        BOOLEAN,
        "true",
        "false: a transacted session checks the number of redeliveries only for messages that come again after"
        " a rollback of their own connection",
        "S113",
    )

    @property
    def delays(self) -> bool:
        """Whether a redelivery has to wait."""
        return self.initial_redelivery_delay > 0 or self.redelivery_delay > 0

    def exceeded(self, redeliveries: int) -> bool:
        """Return whether a message was redelivered too often to be handed out again.

        Args:
            redeliveries: the number of redeliveries of the message.
        """
        return self.max_redeliveries is not None and redeliveries > self.max_redeliveries


@dataclass(frozen=True, slots=True)
class PresettlePolicy:
    """Decides which links are presettled. A message of a presettled link is delivered at most once, and nobody
    acknowledges it.
    """

    presettle_all: bool = option(
        "jms.presettlePolicy.presettleAll", BOOLEAN, "false", "all producers, and all consumers outside transactions"
    )
    presettle_producers: bool = option("jms.presettlePolicy.presettleProducers", BOOLEAN, "false", "all producers")
    presettle_topic_producers: bool = option(
        "jms.presettlePolicy.presettleTopicProducers", BOOLEAN, "false", "producers on a topic"
    )
    presettle_queue_producers: bool = option(
        "jms.presettlePolicy.presettleQueueProducers", BOOLEAN, "false", "producers on a queue"
    )
    presettle_transacted_producers: bool = option(
        "jms.presettlePolicy.presettleTransactedProducers", BOOLEAN, "false", "producers of transacted sessions"
    )
    presettle_consumers: bool = option(
        "jms.presettlePolicy.presettleConsumers", BOOLEAN, "false", "all consumers outside transactions"
    )
    presettle_topic_consumers: bool = option(
        "jms.presettlePolicy.presettleTopicConsumers", BOOLEAN, "false", "consumers on a topic outside transactions"
    )
    presettle_queue_consumers: bool = option(
        "jms.presettlePolicy.presettleQueueConsumers", BOOLEAN, "false", "consumers on a queue outside transactions"
    )

    def producer(self, destination: Destination | None, transacted: bool) -> bool:
        """Return whether the messages of a producer are presettled. The producer does not learn the outcome of
        presettled messages.

        Args:
            destination: the destination of the producer. ``None`` if each send names its destination.
            transacted: whether the session of the producer is transacted.
        """
        if self.presettle_all or self.presettle_producers:
            return True
        if destination is None:
            return False
        if transacted and self.presettle_transacted_producers:
            return True
        return self.presettle_topic_producers if destination.is_topic else self.presettle_queue_producers

    def consumer(self, destination: Destination, transacted: bool) -> bool:
        """Return whether the broker settles the messages for a consumer when it sends them. The result is ``False`` for
        a transacted session (S37).

        Args:
            destination: the queue or topic of the consumer.
            transacted: whether the session of the consumer is transacted.
        """
        if transacted:
            return False
        if self.presettle_all or self.presettle_consumers:
            return True
        return self.presettle_topic_consumers if destination.is_topic else self.presettle_queue_consumers


def check_pattern(pattern: str) -> None:
    """Raise ``ValueError`` if the text is not a pattern of destination names; see :func:`matches`."""
    parts = _parts(pattern)
    if not all(parts) or ">" in parts[:-1]:
        raise ValueError


def matches(pattern: str, destination: Destination) -> bool:
    """Return whether the name of a destination fits a pattern.

    A name has parts, with dots between them. As in ActiveMQ, ``*`` stands for one part, and ``>`` at the end stands for
    any number of parts. A pattern that begins with ``queue://`` fits queues only, and a pattern that begins with
    ``topic://`` fits topics only.
    """
    kind, separator, _ = pattern.partition("://")
    if separator and (kind == "topic") != destination.is_topic:
        return False
    parts, name = _parts(pattern), destination.name.split(".")
    if parts[-1] == ">":
        parts = parts[:-1]
        name = name[: len(parts)]
    return len(parts) == len(name) and all(part in ("*", own) for part, own in zip(parts, name, strict=True))


def most_specific(patterns: Iterable[str]) -> list[str]:
    """Return the patterns in order. The most specific pattern comes first.

    The patterns are compared part by part, from left to right. A name is more specific than ``*``, and ``*`` is more
    specific than ``>``.
    """
    rank = {">": 0, "*": 1}
    return sorted(
        patterns, key=lambda text: ([rank.get(part, 2) for part in _parts(text)], "://" in text), reverse=True
    )


def _parts(pattern: str) -> list[str]:
    for kind in ("queue://", "topic://"):
        pattern = pattern.removeprefix(kind)
    return pattern.split(".")
