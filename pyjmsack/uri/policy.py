"""Prefetch, redelivery and presettlement as frozen objects that answer one question each."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache

from pyjmsack.destination import Destination
from pyjmsack.types import Outcome
from pyjmsack.uri.kinds import BOOLEAN, COUNT_OR_UNLIMITED, CREDIT, option, outcomes

__all__ = ["PrefetchPolicy", "PresettlePolicy", "RedeliveryPolicy"]

logger = logging.getLogger("pyjmsack")


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """How many messages the broker may send ahead to one consumer (S49); 0 means pull, one by one (S50)."""

    queue_prefetch: int = option("jms.prefetchPolicy.queuePrefetch", CREDIT, "1000", "prefetch of queue consumers")
    topic_prefetch: int = option("jms.prefetchPolicy.topicPrefetch", CREDIT, "1000", "prefetch of topic consumers")
    queue_browser_prefetch: int = option(
        "jms.prefetchPolicy.queueBrowserPrefetch", CREDIT, "1000", "prefetch of queue browsers"
    )
    durable_topic_prefetch: int = option(
        "jms.prefetchPolicy.durableTopicPrefetch", CREDIT, "1000", "prefetch of durable subscribers"
    )
    max_prefetch_size: int = option(
        "jms.prefetchPolicy.maxPrefetchSize", CREDIT, "32767", "larger prefetch values are cut to this, with a log line"
    )

    def for_destination(self, destination: Destination, *, durable: bool = False, browser: bool = False) -> int:
        """Return the prefetch, in messages, of a consumer that gave no value of its own, cut to the maximum."""
        if destination.is_topic:
            return self.clip(self.durable_topic_prefetch if durable else self.topic_prefetch)
        return self.clip(self.queue_browser_prefetch if browser else self.queue_prefetch)

    def clip(self, prefetch: int) -> int:
        """Return ``prefetch`` cut to ``max_prefetch_size``; also for values that a destination gives."""
        if prefetch > self.max_prefetch_size:
            _log_clipped(prefetch, self.max_prefetch_size)
        return min(prefetch, self.max_prefetch_size)


@lru_cache(maxsize=128)
def _log_clipped(prefetch: int, maximum: int) -> None:
    """Say it once for each pair of values: consumers may be opened by the thousand."""
    logger.warning("prefetch %d is cut to %d (jms.prefetchPolicy.maxPrefetchSize)", prefetch, maximum)


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """When a message has come back too often, and what the broker is told then."""

    max_redeliveries: int | None = option(
        "jms.redeliveryPolicy.maxRedeliveries",
        COUNT_OR_UNLIMITED,
        "-1",
        "refuse a message redelivered more often than this; 0 accepts no redelivery, -1 has no limit",
        also="jms.redeliveryPolicy.maximumRedeliveries",
    )
    outcome: Outcome = option(  # noqa: RUF009 - it returns dataclasses.field()
        "jms.redeliveryPolicy.outcome",
        outcomes(*Outcome),
        "MODIFIED_FAILED_UNDELIVERABLE",
        "what the broker is told about such a message",
    )

    def exceeded(self, redeliveries: int) -> bool:
        """Return True when a message that came back ``redeliveries`` times must not reach the application."""
        return self.max_redeliveries is not None and redeliveries > self.max_redeliveries


@dataclass(frozen=True, slots=True)
class PresettlePolicy:
    """Which links settle before they know the outcome: at most once, nothing to acknowledge."""

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
        """Return True when a producer sends settled; ``None`` is a producer that names no destination."""
        if self.presettle_all or self.presettle_producers:
            return True
        if destination is None:
            return False
        if transacted and self.presettle_transacted_producers:
            return True
        return self.presettle_topic_producers if destination.is_topic else self.presettle_queue_producers

    def consumer(self, destination: Destination, transacted: bool) -> bool:
        """Return True when the broker settles what it sends; never in a transacted session (S37)."""
        if transacted:
            return False
        if self.presettle_all or self.presettle_consumers:
            return True
        return self.presettle_topic_consumers if destination.is_topic else self.presettle_queue_consumers
