"""The origin and the cause of a dead letter, and the choice of dead letters by options."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from pyjmsack import Connection, Message, MessageFormatException, Queue
from pyjmsack.cli.resending import first_destination

__all__ = ["Choice", "cause_of", "choice_of", "dead_letter_queue", "origin_of", "place_of"]

_ORIGIN = "_AMQ_ORIG_QUEUE"
_EXPIRED = "_AMQ_ACTUAL_EXPIRY"
_CAUSE = "dlqDeliveryFailureCause"
_ARTEMIS_CAUSES = {"expired": f"{_EXPIRED} IS NOT NULL", "failed": f"{_EXPIRED} IS NULL"}


def dead_letter_queue(connection: Connection, given: str | None) -> str:
    """Return the queue of dead letters: the given one, or the broker's default."""
    return given or ("ActiveMQ.DLQ" if connection.metadata.broker.startswith("classic") else "DLQ")


def origin_of(message: Message, queue: str) -> str | None:
    """Return the queue that a message of the dead-letter queue ``queue`` came from, or ``None`` if nothing says so.

    Artemis adds a property with the name of the queue. ActiveMQ Classic keeps the destination that the sender named.
    Over STOMP, ActiveMQ Classic writes this destination into a header of its own.
    """
    noted = _note(message, _ORIGIN)
    if noted:
        return noted
    sent_to = first_destination(message)
    return None if sent_to is None or sent_to.is_topic or sent_to.name == queue else sent_to.name


def place_of(message: Message, queue: str) -> Queue | None:
    """Return the destination to which a dead letter is sent back.

    For a dead letter of a subscription on Artemis, this is the queue of the subscription, not the topic.
    """
    origin = origin_of(message, queue)
    if origin is None or origin.startswith("topic://"):  # a topic would hand the letter to each of its subscribers
        return None
    address = _note(message, "_AMQ_ORIG_ADDRESS")
    return Queue._literal(origin if address in ("", origin) else f"{address}::{origin}")


def _note(message: Message, name: str) -> str:
    """Return the text of a property that the broker adds to a dead letter.

    Return an empty text if the property is missing, if its value is not text, or if the properties cannot be decoded.
    The broker writes only text, so any other value comes from the sender.
    """
    try:
        value = message.properties.get(name)
    except MessageFormatException:  # nobody can read the properties
        return ""
    return value if isinstance(value, str) and value.strip() else ""


def cause_of(message: Message) -> str:
    """Return why the broker gave up the message, or an empty text if the broker does not say why. Artemis says only
    whether the message expired.
    """
    if _note(message, _ORIGIN):
        return "expired" if _note(message, _EXPIRED) else "failed"
    return " ".join(_note(message, _CAUSE).split())


@dataclass(frozen=True)
class Choice:
    """The choice of dead letters: a selector for the broker, and conditions that only this process can check."""

    selector: str | None = None
    origin: str | None = None
    cause: str | None = None

    @property
    def choosy(self) -> bool:
        """Whether this process has to check messages that the selector lets through."""
        return self.origin is not None or self.cause is not None

    def fits(self, message: Message, queue: str) -> bool:
        """Whether a message of the dead-letter queue ``queue`` is chosen."""
        if self.origin is not None and origin_of(message, queue) != self.origin:
            return False
        return self.cause is None or self.cause.lower() in cause_of(message).lower()


def choice_of(
    artemis: bool, selector: str | None, origin: str | None, cause: str | None, older_than: float | None
) -> Choice:
    """Return which dead letters the options of the command choose.

    A selector of Artemis can check all options. A selector of ActiveMQ Classic cannot check the origin and the cause,
    so this process checks them.

    Raises:
        UsageError: on Artemis ``--cause`` is neither ``expired`` nor ``failed``.
    """
    parts = [f"({selector})"] if selector else []
    if older_than is not None:
        parts.append(f"JMSTimestamp < {int((time.time() - older_than) * 1000)}")
    if artemis and origin is not None:
        parts.append(f"{_ORIGIN} = '{origin.replace(chr(39), chr(39) * 2)}'")
    if artemis and cause is not None:
        if cause not in _ARTEMIS_CAUSES:
            raise click.UsageError(
                f"--cause {cause!r}: Artemis notes only whether a message expired; use expired or failed"
            )
        parts.append(_ARTEMIS_CAUSES[cause])
    text = " AND ".join(parts) or None
    return Choice(text) if artemis else Choice(text, origin, cause)
