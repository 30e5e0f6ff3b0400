"""Prepares a received message to be sent again, with the same body, properties and headers."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pyjmsack import (
    Destination,
    InvalidDestinationException,
    JMSException,
    Message,
    MessageFormatException,
    UnsupportedFeatureException,
)

__all__ = [
    "DUPLICATE_ID",
    "check_whole",
    "died_of_age",
    "first_destination",
    "lossy",
    "renewed",
    "send_options",
    "unsendable",
]

DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property by which Artemis recognises the second copy of a send."""
_UNSENDABLE = (MessageFormatException, UnsupportedFeatureException)
"""The errors of a send that mean that this one message cannot be sent. A stranger may have written a value that this
protocol cannot carry, or a property that this broker would ignore."""
_OF_THE_DELIVERY = {"JMSXDeliveryCount", "JMS_AMQP_ACK_TYPE", "dlqDeliveryFailureCause", DUPLICATE_ID}
_SOON = 0.001
"""The time to live, in seconds, for the copy of a message that has just expired. The broker then handles the copy as
expired, too."""


def unsendable(error: JMSException, message: Message) -> bool:
    """Return whether an error of a send means that this one message cannot be sent.

    A ``reply_to`` may be one that this broker must not get (S67). Errors of the broker about the destination of the
    send have a code.
    """
    if isinstance(error, _UNSENDABLE):
        return True
    refused_here = isinstance(error, InvalidDestinationException) and error.error_code is None
    return refused_here and message.reply_to is not None


def renewed(message: Message, duplicate_id: str | None = None) -> Message:
    """Prepare ``message`` to be sent again, and return the same message. ``duplicate_id`` is its new duplicate id.

    The properties of its last delivery are dropped. Its old duplicate id is dropped too, because the broker remembers
    the id and would drop the message without an error. The other properties stay as they came, because over AMQP a
    sender may choose names and values that no program of JMS can set.

    Raises:
        MessageFormatException: see :func:`check_whole`.
    """
    check_whole(message)
    message._properties = {
        name: value for name, value in (message._properties or {}).items() if name not in _OF_THE_DELIVERY
    }
    message._properties_readonly = False
    if duplicate_id is not None:
        message.properties[DUPLICATE_ID] = duplicate_id
    return message


def check_whole(message: Message) -> None:
    """Refuse a message whose content the broker may have left out, because a copy would be a message without content.

    Raises:
        MessageFormatException: the content may be missing.
    """
    fault = lossy(message)
    if fault is not None:
        raise MessageFormatException(fault)


def lossy(message: Message) -> str | None:
    """Return a sentence that says why the broker may have left out the content of a message, or ``None``."""
    if message._delivery is None or not message._delivery.lossy:
        return None
    return (
        f"a client of another protocol sent {message.message_id}, and over STOMP the broker may have left"
        " out its content, because it may be a map, a stream or an object; use amqp://"
    )


def first_destination(message: Message) -> Destination | None:
    """Return the destination that the sender named. If the broker does not say this destination, return the one that
    the message was received from, or ``None``.
    """
    return message._delivery.original_destination() or message.destination


def died_of_age(message: Message, source: str) -> bool:
    """Return whether the message expired before the broker moved it to the queue ``source``, where it is a dead letter.

    ActiveMQ Classic keeps the expiry time in such a dead letter. Call this as soon as the message is received, because
    a message that expires afterwards would look the same.
    """
    sent_to = first_destination(message)
    moved = sent_to is not None and sent_to.name != source
    return moved and message.expiration is not None and message.expiration <= datetime.now(timezone.utc)


def send_options(message: Message, *, expires: bool = True) -> dict[str, Any]:
    """Return the arguments of ``send()`` that keep delivery mode, priority and the moment of expiry.

    Args:
        message: the received message.
        expires: ``False`` for a dead letter that expired, because its copy would expire at once and become a dead
            letter again.
    """
    options: dict[str, Any] = {"delivery_mode": message.delivery_mode, "priority": message.priority}
    if expires and message.expiration is not None:
        left = (message.expiration - datetime.now(timezone.utc)).total_seconds()
        options["time_to_live"] = max(left, _SOON)
    return options
