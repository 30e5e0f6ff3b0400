"""The origin and the cause of a dead letter, and the choice of dead letters by options."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass

import click

from pyjmsack import (
    Connection,
    Destination,
    Message,
    MessageFormatException,
    Queue,
    UnsupportedFeatureException,
)
from pyjmsack.cli.existing import destination_of
from pyjmsack.cli.managing import opened_manager
from pyjmsack.cli.options import Login
from pyjmsack.cli.resending import first_destination
from pyjmsack.management import ManagementDeniedError, Manager, UnknownQueueError
from pyjmsack.management.artemis import ADDRESS as MANAGEMENT

__all__ = ["Choice", "Places", "cause_of", "choice_of", "dead_letter_queue", "origin_of", "place_of"]

_MOST_PLACES = 1024
"""The largest number of queues about which the answer of the broker is remembered."""
_ORIGIN = "_AMQ_ORIG_QUEUE"
_ADDRESS = "_AMQ_ORIG_ADDRESS"
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
    """Return the queue that a dead letter came from, or ``None`` if nothing says so, if only a topic is known, or if a
    letter says that it came from the address at which Artemis takes orders of management.
    """
    origin = origin_of(message, queue)
    if origin is None or origin.startswith("topic://"):  # a topic would hand the letter to each of its subscribers
        return None
    if origin.partition("::")[0] == MANAGEMENT:  # a stranger wrote the letter, and Artemis would carry out its order
        return None
    return Queue._literal(origin)


class Places:
    """The destinations to which the dead letters of one queue are sent back.

    Artemis sends to addresses, and confirms and drops a message for a queue that does not exist at this address, or
    that is the queue of a subscription and is named as an ordinary one. So Artemis is asked about each queue. Use this
    object in a ``with`` statement, because all questions go over one connection.

    Args:
        login: how to connect.
        queue: the dead-letter queue.
        artemis: whether the broker is Artemis.
    """

    def __init__(self, login: Login, queue: str, *, artemis: bool) -> None:
        self._login = login
        self._queue = queue
        self._artemis = artemis
        self._opened = ExitStack()
        self._manager: Manager | None = None
        self._known: OrderedDict[tuple[str, str], Destination | None] = OrderedDict()
        self._unknown: set[object] = set()
        """The letters for which nothing says where they came from. This is a set, because a letter may be asked for
        twice: a transaction that cannot move a letter is rolled back. A command leaves 10,000 letters at most."""
        self._missing: set[object] = set()
        """The letters whose queue is not there, or is not known to be there."""

    def __enter__(self) -> Places:
        return self

    def __exit__(self, *exc: object) -> None:
        self._opened.close()

    def of(self, message: Message) -> Destination | None:
        """Return the destination of one letter, or ``None`` if the letter must stay."""
        place = place_of(message, self._queue)
        if place is None:
            self._unknown.add(_name_of(message))
            return None
        if not self._artemis or not _note(message, _ORIGIN):
            return place
        found = self._found(place, _note(message, _ADDRESS))
        if found is None:
            self._missing.add((_name_of(message), place.name))
        return found

    @property
    def left(self) -> int:
        """How many letters must stay."""
        return len(self._unknown) + len(self._missing)

    def reasons(self) -> list[str]:
        """Return how many letters stay, and why. The list is empty if no letter stays."""
        reasons = []
        if self._unknown:
            reasons.append(f"{len(self._unknown):,} stay in {self._queue}, because nothing says where they came from")
        if self._missing:
            reasons.append(
                f"{len(self._missing):,} stay in {self._queue}, because the name of their queue is not its address, and"
                " the queue does not exist any more, or this user may not ask about it: Artemis would lose them"
            )
        return reasons

    def _found(self, place: Queue, address: str) -> Destination | None:
        """Return the destination for a queue of Artemis. The broker is asked once about each queue."""
        key = place.name, address
        if key not in self._known:
            if len(self._known) >= _MOST_PLACES:
                self._known.popitem(last=False)
            self._known[key] = self._asked(place, address)
        return self._known[key]

    def _asked(self, place: Queue, address: str) -> Destination | None:
        try:
            if self._manager is None:
                self._manager = self._opened.enter_context(opened_manager(self._login, None))
            return destination_of(self._manager.queue(place.name))
        except (ManagementDeniedError, UnknownQueueError, UnsupportedFeatureException):
            # the broker creates a queue on demand only if the address has the same name
            return place if address in ("", place.name) else None


def _name_of(message: Message) -> object:
    """Return a value that is the same whenever this message is delivered. A message without an id has no such value."""
    return id(message) if message.message_id is None else (message.message_id, message.timestamp)


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
