"""Asks the broker whether a queue exists before a command looks into the queue, because a look into a missing queue
would create the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import click

from pyjmsack import (
    Connection,
    ConnectionLostException,
    Destination,
    JMSException,
    Queue,
    Topic,
    UnsupportedFeatureException,
)
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.managing import opened_manager, remark
from pyjmsack.cli.options import Command, Login
from pyjmsack.cli.terminal import amount
from pyjmsack.management import ManagementDeniedError, Manager, QueueStatus, UnknownQueueError

__all__ = [
    "Checked",
    "OutOfSight",
    "check_queue",
    "check_target",
    "create_option",
    "destination_of",
    "left_behind",
    "out_of_sight",
    "queue_name",
    "target_by",
    "target_on_demand",
    "unchecked_target",
]

_LOOK = 100
"""The largest number of messages that are counted with a browser after the work."""


def create_option(command: Command) -> Command:
    """Add ``--create`` as the argument ``create``, for a command that sends to a queue TARGET."""
    return click.option("--create", is_flag=True, help="Create TARGET if the broker has no such queue.")(command)


def destination_of(status: QueueStatus, given: str | None = None) -> Destination:
    """Return the destination that puts a message into exactly this queue.

    Artemis sends to addresses. A queue may have another name than its address, such as the queue of a subscription.
    Artemis confirms a message for the name of such a queue, or of the wrong kind, and drops it (docs/broker-facts.md).

    Args:
        status: the state of the queue.
        given: the name as the user gave it, perhaps with options. ``None`` means a name without options.
    """
    if status.multicast:
        return Topic._literal(f"{status.address}::{status.name}")
    if status.address not in ("", status.name):
        return Queue._literal(f"{status.address}::{status.name}")
    return Queue._literal(status.name) if given is None else Queue(given)


def queue_name(manager: Manager, given: str) -> str:
    """Return the name of a queue for its broker: without options, and on Artemis without the address.

    On ActiveMQ Classic the colons of ``address::queue`` are a part of the name.
    """
    name = Queue(given).name
    if "::" in name and manager.broker().product == "artemis":
        return name.rpartition("::")[2]
    return name


def target_by(manager: Manager, target: str, *, create: bool) -> Destination:
    """Check that the target queue exists, because a broker may create a queue for a misspelt name, and store the
    messages there. Return the destination that puts messages into this queue.

    Raises:
        UnknownQueueError: the broker has no such queue, and ``create`` is false.
        Failure: the target is ``address::queue``, and the broker has the queue at another address, or shall create it.
    """
    name = queue_name(manager, target)
    address = Queue(target).name.removesuffix(name).removesuffix("::")
    try:
        status = manager.queue(name)
    except UnknownQueueError as error:
        if not create:
            raise UnknownQueueError(f"{error}; give --create to create the queue", error.nearest) from None
        if address:
            raise Failure(f"TARGET {target}: --create creates no queue with an address of another name") from None
        manager.create_queue(name)
        return Queue(target)
    if address and address != status.address:
        raise Failure(f"TARGET {target}: the queue {name} belongs to the address {status.address}, not to {address}")
    return destination_of(status, target)


def check_target(
    connection: Connection, login: Login, jolokia: str | None, target: str, *, create: bool
) -> Destination:
    """Check the target queue, as :func:`target_by` does, and return the destination for it. If the user may not manage
    the broker, this function checks nothing, because only the management of the broker knows the names.

    Raises:
        Failure: see :func:`target_by` and :func:`unchecked_target`.
    """
    if jolokia is not None or connection.metadata.broker == "artemis":
        try:
            with opened_manager(login, jolokia) as manager:
                return target_by(manager, target, create=create)
        except (ManagementDeniedError, UnsupportedFeatureException):
            pass
    return unchecked_target(connection, target)


def unchecked_target(connection: Connection, target: str) -> Destination:
    """Return the destination for a target whose name nobody may check.

    Raises:
        Failure: the target is ``address::queue`` on Artemis, which would drop the messages if there is no such queue or
            if the queue is of another kind.
    """
    place = Queue(target)
    if "::" in place.name and connection.metadata.broker == "artemis":
        raise Failure(
            f"TARGET {target}: nobody may ask Artemis about the queue, and Artemis would lose the messages if it is the"
            " queue of a topic, or is missing; use a user who may manage the broker"
        )
    return place


def target_on_demand(connection: Connection, login: Login, target: str) -> Destination:
    """Return the destination for a target that the broker may create for the first message. If nobody can ask Artemis
    about the target, print a remark.

    Raises:
        Failure: the target is ``address::queue`` on Artemis, which has no such queue, or nobody may ask about it.
        ConnectionLostException: the broker is gone.
        JMSException: the target is ``address::queue`` on Artemis, and the manager cannot ask.
    """
    name = Queue(target).name
    if connection.metadata.broker != "artemis":
        return Queue(target)
    try:
        with opened_manager(login, None) as manager:
            return destination_of(manager.queue(name.rpartition("::")[2]), target)
    except UnknownQueueError as error:
        if "::" in name:
            raise Failure(f"TARGET {target}: {error}") from None
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        _remark_unchecked(unchecked_target(connection, target), error)
    except ConnectionLostException:
        raise
    except JMSException as error:
        if "::" in name:  # Artemis would drop the messages if this is not the place of a queue
            raise
        _remark_unchecked(Queue(target), error)
    return Queue(target)


def _remark_unchecked(place: Destination, error: JMSException) -> None:
    remark(f"The name of the queue {place.name} is not checked, because {str(error).rstrip('.')}.")


class Checked:
    """The result of the check whether a queue with this name exists.

    Args:
        queue: the name of the queue.
        reason: why the check was not possible; ``None`` if the queue exists.
        before: the state of the queue at the check; ``None`` if nobody can ask.
        look: asks the broker for the state of the queue now.
    """

    def __init__(
        self,
        queue: str,
        reason: str | None = None,
        before: QueueStatus | None = None,
        look: Callable[[], QueueStatus] | None = None,
    ) -> None:
        self._queue = queue
        self._reason = reason
        self._before = before
        self._look = look
        self.messages = None if before is None else before.messages
        """How many messages the queue had, or ``None`` if the broker did not say."""

    def warn_if_empty(self, seen: int) -> None:
        """Print that the name may be wrong, if no message was seen and the name could not be checked."""
        if self._reason is not None and not seen:
            remark(f"It is not known whether the queue {self._queue} exists, because {self._reason}.")

    def out_of_sight(self, *, earlier: bool = True) -> OutOfSight | None:
        """Return the messages of the queue that are out of sight now. Return ``None`` if there are none, or if the
        broker does not say.

        Args:
            earlier: whether to return the messages of the time of the check if there are none now. A browser does not
                show them even if they came back since, but a consumer would have received them.
        """
        if self._look is None or self._before is None:
            return None
        states = [self._before] if earlier else []
        with suppress(UnknownQueueError):  # somebody deleted the queue, or Artemis did because the queue is empty
            states.insert(0, self._look())
        return out_of_sight(*states, by="browser")


class OutOfSight(NamedTuple):
    """Messages of a queue that a command could not see."""

    number: int
    """How many there are. 0 if nobody can know."""
    why: str
    """A text with their number and the reason."""


_By: TypeAlias = Literal["browser", "broker", "consumer"]


def out_of_sight(*states: QueueStatus, by: _By, known: int | None = None) -> OutOfSight | None:
    """Return the messages of a queue that a command could not see. Return ``None`` if there are none.

    A command that copies or empties the queue says so, because the user may destroy the messages of the queue
    afterwards. The messages come back into the queue when a consumer closes, or when their time has come. If the broker
    counts the messages wrongly, nobody knows their number, and the command says this.

    Args:
        states: the states of the queue, the latest first. The first one with messages out of sight counts.
        by: how the command got the messages: a browser showed them, the broker moved them, or a consumer received them.
            ActiveMQ Classic shows and moves also the messages that are with consumers; Artemis does not. Artemis moves
            also the messages that wait for the time of their delivery.
        known: how many messages the command left and tells of otherwise. Given by a command that tried to take all
            messages, so that what the queue has besides is counted, too. A broker need not send all messages to a
            consumer, because messages that it cannot convert use up the credit.
    """
    found = [next(filter(None, (_out_of_sight(each, by) for each in states)), None)]
    if known is not None and states:
        found.append(_not_taken(states[0], known))
    found.append(next(filter(None, map(_wrongly_counted, states)), None))
    told = [each for each in found if each is not None]
    return OutOfSight(sum(each.number for each in told), ". ".join(each.why for each in told)) if told else None


def _wrongly_counted(status: QueueStatus) -> OutOfSight | None:
    if status.delivering is not None:
        return None
    why = (
        f"The broker's count of the messages of {status.name} that are with consumers is below zero, so it is wrong,"
        " and nobody can know whether messages are with consumers, which may give them back"
    )
    return OutOfSight(0, why)


def _not_taken(status: QueueStatus, known: int) -> OutOfSight | None:
    rest = status.messages - (status.delivering or 0) - (status.scheduled or 0) - known
    why = f"{status.name} has {rest:,} more: they did not come to this command, or are new"
    return OutOfSight(rest, why) if rest > 0 else None


def _out_of_sight(status: QueueStatus, by: _By) -> OutOfSight | None:
    artemis = status.scheduled is not None
    delivering = (status.delivering or 0) if artemis or by == "consumer" else 0
    scheduled = 0 if status.scheduled is None or by == "broker" else status.scheduled
    parts = []
    if delivering:
        verb, them = ("is", "it") if delivering == 1 else ("are", "them")
        parts.append(f"{amount(delivering)} of {status.name} {verb} with consumers, which may give {them} back")
    if scheduled:
        wait = "waits for the time of its" if scheduled == 1 else "wait for the time of their"
        parts.append(f"{amount(scheduled)} of {status.name} {wait} delivery")
    why = f"{' and '.join(parts)}, where this command could not see them"
    return OutOfSight(delivering + scheduled, why) if parts else None


def left_behind(
    login: Login,
    jolokia: str | None,
    queue: str,
    selector: str | None,
    known: int,
    *,
    by: Literal["broker", "consumer"],
) -> OutOfSight | None:
    """Return the messages that are still in a queue after a command took all that it could. Return ``None`` if there
    are none, or if nobody can know.

    Args:
        login: how to connect. The command has closed its own connection, because a broker refuses a second connection
            with the same client id.
        jolokia: URL of Jolokia, for ActiveMQ Classic.
        queue, selector: what the command took.
        known: the number of messages that the command received and left.
        by: how the command took the messages; see :func:`out_of_sight`.
    """
    every = known if by == "consumer" and selector is None else None
    try:
        return out_of_sight(_status_of(login, jolokia, queue), by=by, known=every)
    except UnknownQueueError:  # Artemis deletes an empty queue that it made on demand
        return None
    except (ManagementDeniedError, UnsupportedFeatureException):
        pass
    with login.factory().create_connection() as connection:
        several = set("*>,") & set(Queue(queue).name)  # a browser shows one queue, and no pattern of queues
        if not connection.metadata.broker.startswith("classic") or several:
            return None
        connection.start()
        with connection.create_session() as session, session.create_browser(Queue(queue), selector) as browser:
            left = sum(1 for _ in islice(browser, known + _LOOK)) - known
    if left <= 0:
        return None
    number = f"{left:,} or more" if left == _LOOK else f"{left:,}"
    why = f"{queue} still has {number} of the messages: they are with consumers, which may give them back, or are new"
    return OutOfSight(left, why)


def _status_of(login: Login, jolokia: str | None, queue: str) -> QueueStatus:
    """Ask the broker for the state of a queue, over a connection of its own."""
    with opened_manager(login, jolokia) as manager:
        return manager.queue(queue_name(manager, queue))


def check_queue(connection: Connection, login: Login, jolokia: str | None, queue: str) -> Checked:
    """Check that a queue exists, because a broker that creates queues on demand would create one for a misspelt name.

    Args:
        connection: an open connection, which says what kind of broker this is.
        login: makes the connection for management.
        jolokia: URL of Jolokia, for ActiveMQ Classic.
        queue: the name of the queue, perhaps ``address::queue`` on Artemis, and perhaps with options.

    Raises:
        UnknownQueueError: the broker has no such queue. The text has the nearest names.
    """
    kind = connection.metadata.broker
    if jolokia is None and kind != "artemis":
        what = (
            "ActiveMQ Classic lists its queues through --jolokia only"
            if kind.startswith("classic")
            else "this broker is unknown"
        )
        return Checked(queue, what)
    look = partial(_status_of, login, jolokia, queue)
    try:
        return Checked(queue, before=look(), look=look)
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        return Checked(queue, str(error))
