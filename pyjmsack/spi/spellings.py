"""Refuses names and properties that this broker would accept without error and treat differently, or that would damage
the broker.
"""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.destination import Destination
from pyjmsack.errors import InvalidDestinationException, MessageFormatException, UnsupportedFeatureException
from pyjmsack.message import Message
from pyjmsack.spi.resources import ConnectionMetadata

__all__ = [
    "LONGEST_TEXT",
    "ORDERS",
    "check_composite",
    "check_destination_name",
    "check_message",
    "check_orders",
    "check_storable",
    "check_target",
    "check_texts",
]

_ARTEMIS_TIME: Final = "_AMQ_SCHED_DELIVERY"
_REPEATED: Final = ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")
_DELAYED: Final = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME")
_OF_ARTEMIS: Final = ("_AMQ_BRIDGE_DUP", "_AMQ_ROUTE_TO", "_AMQ_ROUTING_TYPE", "_AMQ_SCALEDOWN_TO")
"""Properties that Artemis uses itself. Over STOMP it ends the connection if it cannot read their values."""
_INGRESS: Final = "_AMQ_INGRESS_TIMESTAMP"
"""The time at which Artemis got the message. Over STOMP Artemis takes any text. It later fails to convert a text that
is no number for a receiver over AMQP, and never gives back the credit of this receiver (docs/interop.md)."""
ORDERS: Final = frozenset((_ARTEMIS_TIME, *_DELAYED, *_REPEATED, *_OF_ARTEMIS, _INGRESS))
"""Properties by which a Java program asks a broker to deliver a message later or again, and others that a broker obeys.
"""
LONGEST_STORED: Final = 65_000
"""The largest number of bytes of a name that is sent to ActiveMQ Classic. In its store, the length of a name and a few
more bytes must fit into 16 bits."""
LONGEST_TEXT: Final = 65_535
"""The largest number of bytes of the name of a property, of a correlation id, a type and a group id that are sent to
ActiveMQ Classic. Classic writes the length in 16 bits. It ends the connection if a name does not fit. If another of
these texts does not fit, it answers that it rejects the message, and delivers the message all the same."""
_WIDEST: Final = 6
"""The largest number of bytes of one character in the store. The store writes a character beyond 16 bits as two parts
of three bytes each."""
_SHOWN: Final = 40
_PATTERN: Final = re.compile(r"(?:^|[./:])[#*](?:[./:]|$)")
"""Matches a name with a word that is a wildcard of Artemis, as in ``orders.#``. The word may also stand behind a
prefix, ``queue://#``."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LEAST: Final = {_INGRESS: -1 << 63}
"""The smallest value of a number, if it is not 0."""
_LARGEST: Final = {"AMQ_SCHEDULED_REPEAT": (1 << 31) - 1}
"""The largest value of a number, if it is not that of a ``long`` of Java."""
_CRON: Final = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
"""The fields of ``AMQ_SCHEDULED_CRON``, each with its smallest and its largest number."""
_LONGEST_CRON: Final = 1_000
"""The largest number of characters of ``AMQ_SCHEDULED_CRON``."""
_CRON_PART: Final = re.compile(r"(?:[*?]|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?", re.ASCII)
_DELAY: Final = "give send(..., delivery_delay=SECONDS), or set producer.delivery_delay"


def check_orders(message: Message, metadata: ConnectionMetadata) -> None:
    """Refuse a property that asks for a later delivery, if this broker would deliver at once. Refuse a property for
    which this broker would end the connection, or stop receivers, because it obeys the property and cannot read the
    value.

    Raises:
        UnsupportedFeatureException: the property has no effect here. The text says what to do instead.
        MessageFormatException: the broker cannot read the value.
    """
    properties = message._properties or {}
    stomp = metadata.protocol.startswith("STOMP")
    for name in sorted(ORDERS.intersection(properties)):
        if name in _OF_ARTEMIS:
            if stomp and metadata.broker == "artemis":
                raise MessageFormatException(
                    f"property {name!r} is for the use of ActiveMQ Artemis itself, which may end the connection when a"
                    " client sends it over STOMP; leave it out (S160)"
                )
            continue
        if name == _INGRESS:
            if stomp and metadata.broker == "artemis":
                _check_order(name, properties[name], "Artemis could not convert the message for receivers over AMQP")
            continue
        if _has_effect(name, metadata):
            if stomp:
                _check_order(name, properties[name])
            continue
        instead = "send the message again yourself, because this broker does not repeat messages"
        if name not in _REPEATED:
            instead = f"{_DELAY} instead"
        raise UnsupportedFeatureException(
            f"property {name!r} has no effect over {metadata.protocol} on {metadata.broker}, and the message would be"
            f" delivered at once; {instead}"
        )


def _has_effect(name: str, metadata: ConnectionMetadata) -> bool:
    if metadata.broker == "artemis":
        return name in _DELAYED and metadata.protocol.startswith("STOMP")
    # ActiveMQ Classic, if its scheduler is on, reads all these properties except the one of Artemis
    return name != _ARTEMIS_TIME or not metadata.broker.startswith("classic")


def _check_order(name: str, value: object, harm: str = "the broker would end the connection over STOMP") -> None:
    """Refuse a value that does harm, because over STOMP the broker gets the value as a text and cannot read it."""
    if name == "AMQ_SCHEDULED_CRON":
        _check_cron(name, value)
        return
    least, largest = _LEAST.get(name, 0), _LARGEST.get(name, (1 << 63) - 1)
    text = value if isinstance(value, str) else str(value)  # ``True`` and ``1.5`` are no numbers of this form
    if _NUMBER.fullmatch(text) is None or not least <= int(text) <= largest:
        raise MessageFormatException(
            f"property {name!r} is {str(value)[:_SHOWN]!r}, and {harm}; expected a number from {least:,} to"
            f" {largest:,} (S160)"
        )


def _check_cron(name: str, value: object) -> None:
    fields = value.split() if isinstance(value, str) and len(value) <= _LONGEST_CRON else []
    if len(fields) == len(_CRON):
        wrong = [what for field, what in zip(fields, _CRON, strict=True) if not _is_cron(field, what[1], what[2])]
    else:
        wrong = [*_CRON]
    if wrong:
        expected = ", ".join(f"{what} {least}-{most}" for what, least, most in wrong)
        raise MessageFormatException(
            f"property {name!r} is {str(value)[:_SHOWN]!r}, and the broker would end the connection over STOMP;"
            f" expected five fields of numbers, such as '*/15 8-17 * * 1-5', with {expected} (S160)"
        )


def _is_cron(field: str, least: int, most: int) -> bool:
    """Return whether a field has numbers in these limits, such as ``*``, ``5``, ``1-5``, ``1,3`` or ``*/15``."""
    for part in field.split(","):
        found = _CRON_PART.fullmatch(part)
        if found is None:
            return False
        first, last, step = found.groups()
        if first is not None and not least <= int(first) <= int(last or first) <= most:
            return False
        if step is not None and (int(step) == 0 or (first is not None and last is None)):
            return False
    return True


def check_destination_name(destination: Destination, metadata: ConnectionMetadata | None) -> None:
    """Refuse a destination whose name this broker would treat differently, or could not store (S67).

    Raises:
        InvalidDestinationException: see :func:`check_composite` and :func:`check_storable`.
    """
    check_composite(destination, metadata)
    check_storable("the destination", destination.name, metadata)


def check_message(message: Message, metadata: ConnectionMetadata) -> None:
    """Refuse a message that was made for another broker, if this broker would treat it differently, or could not take
    it.

    Raises:
        JMSException: see :func:`check_orders`, :func:`check_texts` and :func:`check_storable`.
    """
    check_orders(message, metadata)
    check_texts(message, metadata)
    if message._reply_to is not None:
        check_storable("the reply-to", message._reply_to.name, metadata)


def check_composite(destination: Destination, metadata: ConnectionMetadata | None) -> None:
    """Refuse a text that names several destinations, such as ``a,b``, if the broker does not understand such a text.
    ActiveMQ's client allows this form.

    Raises:
        InvalidDestinationException: this broker would take the whole text as one name, or lose a part of it.
    """
    if metadata is None or not destination._several:
        return
    name = destination.name
    parts = ", ".join(repr(part.strip()) for part in name.split(","))
    if metadata.broker == "artemis":
        why = "ActiveMQ Artemis has no composite destinations, and would take this text as one name"
    elif metadata.broker.startswith("classic") and metadata.protocol.startswith("STOMP") and "://" in name:
        why = "ActiveMQ Classic loses a part with a scheme in a composite destination over STOMP"
    else:
        return
    raise InvalidDestinationException(
        f"{name!r}: {why}; send to each of {parts} in one transaction, or consume from each;"
        f" if the comma belongs to the name, give {type(destination).__name__}({name!r}) instead of the text"
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
    address, *queue = name.split("::")
    # with an empty address, or three parts, Artemis takes another part for the address
    checked = address if address and len(queue) == 1 else name
    if broker == "artemis" and _PATTERN.search(checked):
        raise InvalidDestinationException(
            f"nothing can be sent to {name[:_SHOWN]!r}: # and * are wildcards for consumers, and Artemis would create a"
            " queue that keeps a copy of each message to the names that match; expected a name without them (S67)"
        )


def check_storable(what: str, name: str, metadata: ConnectionMetadata | None) -> None:
    """Refuse a name that ActiveMQ Classic cannot write into its store.

    The broker would refuse the name only after the damage: either nobody could create a destination until the broker is
    restarted, or the broker would end. The name may come from a stranger, in the ``reply_to`` of a request.

    Args:
        what: the kind of the name, for the error text.
        name: the name.
        metadata: describes the broker. ``None`` means that nothing is known of the broker.

    Raises:
        InvalidDestinationException: the name is too long.
    """
    if metadata is None or not metadata.broker.startswith("classic"):
        return
    size = _written_size(name)
    if size > LONGEST_STORED:
        raise InvalidDestinationException(
            f"{what} {name[:_SHOWN]!r}... has at least {size:,} bytes, and more than {LONGEST_STORED:,} would damage"
            " the store of ActiveMQ Classic (S67)"
        )


def check_texts(message: Message, metadata: ConnectionMetadata) -> None:
    """Refuse a message with a text that is too long for ActiveMQ Classic: a correlation id, a type, a group id, or the
    name of a property, for which Classic would end the connection, which others may use.

    Raises:
        MessageFormatException: the text is too long.
    """
    if not metadata.broker.startswith("classic"):
        return
    for name in message._properties or ():
        _check_text("the name of the property", name)
    _check_text("the correlation id", message._correlation_id)
    _check_text("the type", message._type)
    _check_text("the group id", message._group_id)


def _check_text(what: str, text: str | None) -> None:
    if text is not None and (size := _written_size(text)) > LONGEST_TEXT:
        raise MessageFormatException(
            f"{what} {text[:_SHOWN]!r}... has at least {size:,} bytes, and ActiveMQ Classic takes at most"
            f" {LONGEST_TEXT:,} (S160)"
        )


def _written_size(text: str) -> int:
    """Return the number of bytes that ActiveMQ Classic writes for a text. Counting takes time, so return 0 for a text
    that is certainly short enough, and the number of characters of a text that is certainly too long.
    """
    if len(text) > LONGEST_TEXT:
        return len(text)
    if len(text) * _WIDEST <= LONGEST_STORED:
        return 0
    plain = len(text.encode("utf-8", "surrogatepass"))
    return plain + text.count("\0") + 2 * sum(each > "\uffff" for each in text)
