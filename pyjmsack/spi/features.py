"""The table of the features that each protocol has at each broker.

The core refuses features by this table, and ``connection.capabilities`` and docs/features.md show it (S119).

If a feature is missing, the core refuses it before a request is sent to the broker. A feature that the client provides
in another, safe way is ``EMULATED``, and its note says how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["BROKERS", "FEATURES", "Capabilities", "Level", "Support", "broker_key", "features"]


class Level(str, Enum):
    """How a feature is provided: by the broker, by the client, or not at all."""

    NATIVE = "native"
    EMULATED = "emulated"
    REFUSED = "refused"


@dataclass(frozen=True)
class Support:
    """The way in which one feature is provided. ``note`` says how the feature is emulated or why it is refused. A
    note may be empty."""

    level: Level
    note: str = ""


_NATIVE = Support(Level.NATIVE)


def _emulated(note: str) -> Support:
    return Support(Level.EMULATED, note)


def _refused(note: str) -> Support:
    return Support(Level.REFUSED, note)


FEATURES: Final[Mapping[str, str]] = {
    "transacted-send": "sends of a transaction appear together at the commit",
    "transacted-receive": "received messages are acknowledged together with the sends of their transaction",
    "reject": "reject(): move one message to the dead-letter queue",
    "release": "release(): give one message back, uncounted",
    "modified-failed": "modify(): give one message back, counted",
    "undeliverable-here": "modify(undeliverable_here=True): do not deliver the message to this consumer again",
    "delivery-count": "JMSXDeliveryCount",
    "pull": "prefetch 0: one message per receive()",
    "browser": "queue browser",
    "selector": "message selector",
    "no-local": "no_local: do not deliver the messages of this connection to itself",
    "durable-subscription": "durable subscription",
    "shared-subscription": "shared subscription, durable or not",
    "temporary-destination": "temporary queue and topic",
    "delivery-delay": "delivery delay",
    "priority": "higher priority first",
    "time-to-live": "expiry at the broker",
    "message-groups": "JMSXGroupID keeps a group at one consumer",
    "exclusive-consumer": "consumer.exclusive",
    "consumer-priority": "consumer.priority",
    "retroactive-consumer": "consumer.retroactive",
    "pending-limit": "consumer.maximumPendingMessageLimit",
    "duplicate-detection": "a repeated send is stored once",
    "typed-properties": "properties keep their Java type",
}
"""The name of every feature, with a short explanation."""

BROKERS: Final[Mapping[str, str]] = {
    "artemis": "Artemis",
    "classic-5": "ActiveMQ Classic 5",
    "classic-6": "ActiveMQ Classic 6",
    "unknown": "another broker",
}
"""The name of each known kind of broker, by its key."""

_LOCAL = "the client keeps the message and delivers it again to the same consumer"
_UNCOUNTED_BY_STOMP = "the client counts, because STOMP carries no delivery count; the value is an estimate"
_NO_SHARED_CLASSIC = "ActiveMQ Classic gives every subscriber every message; use a virtual topic"
_NOT_KNOWN = "it is not known whether this broker has this feature"
_PRIORITY = "the broker orders messages by priority only if its queue policy has prioritizedMessages"
_SCHEDULER = "the broker needs schedulerSupport, which a client cannot see; if it is on, set broker.scheduler=true"

_ARTEMIS: Final = dict.fromkeys(FEATURES, _NATIVE) | {
    "exclusive-consumer": _refused("in Artemis this is a setting of the queue, and not of a consumer"),
    "retroactive-consumer": _refused("only ActiveMQ Classic has this feature, and only over STOMP"),
    "pending-limit": _refused(
        "only ActiveMQ Classic has this feature, and only over STOMP; the option is ignored with a warning"
    ),
}
"""The features of Artemis with both protocols. The tables of the other brokers list only the differences."""
_AMQP_ARTEMIS: Final = _ARTEMIS
_AMQP_CLASSIC: Final = _AMQP_ARTEMIS | {
    "reject": _emulated(
        "the client first copies a message that is not persistent to the dead-letter queue, because the broker would"
        " discard the message"
    ),
    "modified-failed": _emulated("the broker counts only until the consumer is closed, and has no limit of its own"),
    "undeliverable-here": _refused(
        "ActiveMQ Classic moves such a message to the dead-letter queue at once; use reject()"
    ),
    "shared-subscription": _refused(_NO_SHARED_CLASSIC),
    "delivery-delay": _refused(_SCHEDULER),
    "priority": _emulated(_PRIORITY),
    "exclusive-consumer": _refused("an AMQP client cannot ask ActiveMQ Classic for this feature"),
    "consumer-priority": _refused("an AMQP client cannot ask ActiveMQ Classic for this feature"),
    "duplicate-detection": _refused("ActiveMQ Classic has no duplicate detection for AMQP clients"),
}
_AMQP_UNKNOWN: Final = _AMQP_ARTEMIS | {
    "exclusive-consumer": _refused(_NOT_KNOWN),
    "consumer-priority": _refused(_NOT_KNOWN),
    "duplicate-detection": _refused(_NOT_KNOWN),
}
_STOMP_ARTEMIS: Final = _ARTEMIS | {
    "transacted-receive": _emulated(
        "this broker applies each ACK at once, so the client sends the ACKs when the broker has confirmed the commit"
    ),
    "reject": _emulated(
        "the client copies the message to the dead-letter queue and then acknowledges it, because NACK would lose it"
    ),
    "release": _emulated(_LOCAL),
    "modified-failed": _emulated(_LOCAL),
    "undeliverable-here": _refused("STOMP has no frame for this"),
    "delivery-count": _emulated(_UNCOUNTED_BY_STOMP),
    "pull": _emulated("a window of one message, which is acknowledged when it is handed out"),
    "browser": _refused("this broker ignores browser:true and would consume the queue; use AMQP"),
    "shared-subscription": _emulated("only durable ones with a client id, because Artemis has no others over STOMP"),
    "temporary-destination": _emulated("a queue with a random name, deleted by the broker when it is empty and unused"),
    "consumer-priority": _refused("no way to ask for this over STOMP is known"),
    "typed-properties": _emulated("STOMP carries strings only, so this library writes the types into a header"),
}
_STOMP_CLASSIC: Final = _STOMP_ARTEMIS | {
    "transacted-receive": _NATIVE,
    "reject": _emulated("NACK for persistent messages; the client first copies others to the dead-letter queue"),
    "browser": _NATIVE,
    "shared-subscription": _refused(_NO_SHARED_CLASSIC),
    "temporary-destination": _NATIVE,
    "delivery-delay": _refused(_SCHEDULER),
    "priority": _emulated(_PRIORITY),
    "exclusive-consumer": _NATIVE,
    "consumer-priority": _NATIVE,
    "retroactive-consumer": _NATIVE,
    "pending-limit": _NATIVE,
    "duplicate-detection": _refused("ActiveMQ Classic has no duplicate detection for STOMP clients"),
}
_UNKNOWN_OF_STOMP: Final = (
    "reject no-local durable-subscription shared-subscription delivery-delay priority message-groups"
    " duplicate-detection"
)
_STOMP_UNKNOWN: Final = _STOMP_ARTEMIS | {name: _refused(_NOT_KNOWN) for name in _UNKNOWN_OF_STOMP.split()}

_TABLE: Final[Mapping[tuple[str, str], Mapping[str, Support]]] = {
    ("amqp", "artemis"): _AMQP_ARTEMIS,
    ("amqp", "classic-5"): _AMQP_CLASSIC,
    ("amqp", "classic-6"): _AMQP_CLASSIC,
    ("amqp", "unknown"): _AMQP_UNKNOWN,
    ("stomp", "artemis"): _STOMP_ARTEMIS,
    ("stomp", "classic-5"): _STOMP_CLASSIC,
    ("stomp", "classic-6"): _STOMP_CLASSIC,
    ("stomp", "unknown"): _STOMP_UNKNOWN,
}


def features(protocol: str, broker: str, *, scheduler: bool = False) -> Mapping[str, Support]:
    """Return the features of ``protocol`` (``amqp`` or ``stomp``) at ``broker`` (a key of ``BROKERS``).

    ``scheduler`` is True if ActiveMQ Classic runs with ``schedulerSupport`` (``broker.scheduler=true``).
    """
    table = _TABLE[protocol, broker]
    return {**table, "delivery-delay": _NATIVE} if scheduler and broker.startswith("classic-") else table


def broker_key(product: str, version: str) -> str:
    """Return the key of the broker that gives this name and version in its first answer: the Open frame of AMQP, or the
    CONNECTED frame of STOMP (S119)."""
    name = product.lower()
    if "artemis" in name:
        return "artemis"
    if name.startswith(("activemq", "apache-activemq")):
        return "classic-5" if version.startswith("5.") else "classic-6"
    return "unknown"


class Capabilities(frozenset[str]):
    """The features that a connection has, native or emulated.

    The set also contains the names of the capabilities that an AMQP broker offers itself, such as ``DELAYED_DELIVERY``.
    ``in`` tells whether the connection has a feature. :meth:`support` tells how the feature works, or why it is
    missing.
    """

    features: Mapping[str, Support]

    def __new__(cls, table: Mapping[str, Support], offered: Iterable[str] = ()) -> Capabilities:
        """Make the set of one connection.

        Args:
            table: the features of the connection, from :func:`features`.
            offered: the names of the capabilities that the broker offers.
        """
        usable = (name for name, support in table.items() if support.level is not Level.REFUSED)
        made = super().__new__(cls, (*usable, *offered))
        made.features = table
        return made

    def support(self, feature: str) -> Support:
        """Return how a feature is provided.

        Args:
            feature: a name in ``pyjmsack.spi.features.FEATURES``, such as ``browser``.

        Raises:
            KeyError: there is no feature of that name.
        """
        return self.features[feature]
