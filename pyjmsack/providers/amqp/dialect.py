"""What differs between brokers that speak AMQP: names of nodes, outcomes, and what they can honour (S119)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyjmsack.destination import Destination
from pyjmsack.spi.features import Level, Support, features
from pyjmsack.types import Outcome

__all__ = ["AmqpDialect", "dialect_of"]

_OFFERED = {"delivery-delay": "DELAYED_DELIVERY", "shared-subscription": "SHARED-SUBS"}
"""Features that a broker honours only if it offers this word."""


@dataclass(frozen=True)
class AmqpDialect:
    """How to speak to one broker.

    ``refusal`` is the outcome for a message that the client will not have: one beyond its redelivery limit, expired, or
    not decodable.
    """

    broker: str
    queue_prefix: str
    topic_prefix: str
    refusal: Outcome = Outcome.MODIFIED_FAILED_UNDELIVERABLE
    takes_back: bool = True
    """Whether the broker goes on with a link after a message that was aborted (AMQP 1.0 2.6.14)."""
    dead_letters: str = "DLQ"
    """The queue of rejected messages."""
    discards: bool = False
    """Whether the broker discards a rejected message that is not persistent."""

    def address(self, destination: Destination) -> str:
        """Return the name of a node; that of a temporary one is the broker's own."""
        if destination.is_temporary:
            return destination.name
        return (self.topic_prefix if destination.is_topic else self.queue_prefix) + destination.name

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return the outcome to send where the core wants ``outcome``."""
        return self.refusal if outcome is Outcome.MODIFIED_FAILED_UNDELIVERABLE else outcome

    def features(self, offered: Collection[str], *, scheduler: bool) -> Mapping[str, Support]:
        """Return what can be honoured here, by what the broker offers in its Open and by ``broker.scheduler``."""
        table = dict(features("amqp", self.broker, scheduler=scheduler))
        for feature, word in _OFFERED.items():
            if word not in offered and table[feature].level is not Level.REFUSED:
                table[feature] = Support(Level.REFUSED, f"the broker does not offer {word}")
        return table


def dialect_of(broker: str, announced: Mapping[str, object], queue_prefix: str, topic_prefix: str) -> AmqpDialect:
    """Return the dialect of a broker.

    Args:
        broker: its key (``pyjmsack.spi.features.BROKERS``).
        announced: the properties of its Open. ActiveMQ Classic announces its prefixes. Without the prefix of topics it
            would take the name of a topic for that of a queue.
        queue_prefix: the user's, after the broker's (``jms.queuePrefix``).
        topic_prefix: likewise (``jms.topicPrefix``).
    """
    classic = broker.startswith("classic-")
    own_queues = str(announced.get("queue-prefix", "queue://" if classic else ""))
    own_topics = str(announced.get("topic-prefix", "topic://" if classic else ""))
    # modified(undeliverable-here) sends to the dead-letter queue there, as rejected says more plainly
    refusal = Outcome.REJECTED if classic else Outcome.MODIFIED_FAILED_UNDELIVERABLE
    dead_letters = "ActiveMQ.DLQ" if classic else "DLQ"
    queues, topics = own_queues + queue_prefix, own_topics + topic_prefix
    return AmqpDialect(broker, queues, topics, refusal, not classic, dead_letters, classic)
