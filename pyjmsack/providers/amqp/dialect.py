"""The differences between brokers that use AMQP: names of queues and topics, outcomes, and features (S119)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyjmsack.destination import Destination
from pyjmsack.selector.artemis import amqp_topic_filter
from pyjmsack.spi.features import Level, Support, features
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.spi.spellings import check_target
from pyjmsack.types import Outcome

__all__ = ["AmqpDialect", "dialect_of"]

_PAGE = 200
"""Classic reads a queue by this number of messages. In a transaction, or before the first acknowledgement, Classic sent
the next ones only after 30 seconds, although there was credit. New credit makes Classic read on at once."""
_OFFERED = {"delivery-delay": "DELAYED_DELIVERY", "shared-subscription": "SHARED-SUBS"}
"""The features that a broker announces by a capability in its Open frame. The value is the name of the capability."""


@dataclass(frozen=True)
class AmqpDialect:
    """The properties in which one broker differs from others.

    ``refusal`` is the outcome for a message that the client refuses, because the message is beyond its redelivery
    limit, has expired, or cannot be decoded.
    """

    broker: str
    queue_prefix: str
    topic_prefix: str
    refusal: Outcome = Outcome.MODIFIED_FAILED_UNDELIVERABLE
    takes_back: bool = True
    """Whether a link can still be used after a message was taken back while it was being sent (AMQP 1.0 2.6.14)."""
    dead_letters: str = "DLQ"
    """The name of the dead-letter queue, which gets rejected messages."""
    discards: bool = False
    """Whether the broker discards a rejected message that is not persistent."""
    page: int | None = None
    """The number of messages of a queue after which the broker may wait for more credit or an acknowledgement before it
    sends the next ones. ``None`` means that the broker sends as many as there is credit for."""
    checks_nested: bool = False
    """Whether the broker would end the connection because of some values in the lists and maps of a property."""
    answers_early: bool = False
    """Whether the broker may answer a drain before the first frame of a large message, and then owes this message."""

    def address(self, destination: Destination) -> str:
        """Return the broker's name for a destination. The name of a temporary destination is not changed, because the
        broker itself chose it."""
        if destination.is_temporary:
            return destination.name
        return (self.topic_prefix if destination.is_topic else self.queue_prefix) + destination.name

    def target(self, destination: Destination) -> str:
        """Return the broker's name for a destination of messages.

        Raises:
            InvalidDestinationException: nothing may be sent to this name; see ``check_target``.
        """
        address = self.address(destination)
        check_target(self.broker, address)
        return address

    def selector(self, info: ConsumerInfo) -> str | None:
        """Return the text of the selector of a consumer for this broker. ``None`` if the consumer has no selector.

        Artemis puts the selector of a topic on the queue of the subscription, as a filter of its own. In this filter
        the JMS headers have other names, and an unknown name selects nothing.
        """
        if info.selector is None or self.broker != "artemis" or not info.destination.is_topic:
            return info.selector
        return amqp_topic_filter(info.selector, no_local=info.no_local)

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return the outcome that this broker has to get when the core wants ``outcome``."""
        return self.refusal if outcome is Outcome.MODIFIED_FAILED_UNDELIVERABLE else outcome

    def features(self, offered: Collection[str], *, scheduler: bool) -> Mapping[str, Support]:
        """Return the features of this broker.

        Args:
            offered: the capabilities that the broker offers in its Open frame.
            scheduler: the value of ``broker.scheduler``.
        """
        table = dict(features("amqp", self.broker, scheduler=scheduler))
        for feature, word in _OFFERED.items():
            if word not in offered and table[feature].level is not Level.REFUSED:
                table[feature] = Support(Level.REFUSED, f"the broker does not offer {word}")
        return table


def dialect_of(broker: str, announced: Mapping[str, object], queue_prefix: str, topic_prefix: str) -> AmqpDialect:
    """Return the dialect of a broker.

    Args:
        broker: the key of the broker (``pyjmsack.spi.features.BROKERS``).
        announced: the properties in the Open frame of the broker. ActiveMQ Classic announces its prefixes there.
            Without the prefix for topics, Classic would take the name of a topic for the name of a queue.
        queue_prefix: the user's prefix for queues, which follows the broker's prefix (``jms.queuePrefix``).
        topic_prefix: the user's prefix for topics, which follows the broker's prefix (``jms.topicPrefix``).
    """
    classic = broker.startswith("classic-")
    own_queues = str(announced.get("queue-prefix", "queue://" if classic else ""))
    own_topics = str(announced.get("topic-prefix", "topic://" if classic else ""))
    # Classic moves a message with either outcome to the dead-letter queue, and REJECTED is the plainer name
    refusal = Outcome.REJECTED if classic else Outcome.MODIFIED_FAILED_UNDELIVERABLE
    dead_letters = "ActiveMQ.DLQ" if classic else "DLQ"
    queues, topics = own_queues + queue_prefix, own_topics + topic_prefix
    page = _PAGE if classic else None
    return AmqpDialect(broker, queues, topics, refusal, not classic, dead_letters, classic, page, classic, not classic)
