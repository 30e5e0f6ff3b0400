"""Asks the broker whether a queue exists before a command looks into the queue, because a look into a missing queue
would create the queue.
"""

from __future__ import annotations

from contextlib import suppress

import click

from pyjmsack import Connection, Queue, UnsupportedFeatureException
from pyjmsack.cli.managing import opened_manager, remark
from pyjmsack.cli.options import Command, Login
from pyjmsack.management import ManagementDeniedError, Manager, UnknownQueueError

__all__ = ["Checked", "check_queue", "check_target", "create_option", "target_by"]


def create_option(command: Command) -> Command:
    """Add ``--create`` as the argument ``create``, for a command that sends to a queue TARGET."""
    return click.option("--create", is_flag=True, help="Create TARGET if the broker has no such queue.")(command)


def target_by(manager: Manager, target: str, *, create: bool) -> None:
    """Check that the target queue exists, because a broker may create a queue for a misspelt name, and store the
    messages there.

    Raises:
        UnknownQueueError: the broker has no such queue, and ``create`` is false.
    """
    if create:
        manager.create_queue(target)
        return
    try:
        manager.queue(Queue(target).name.rpartition("::")[2])
    except UnknownQueueError as error:
        raise UnknownQueueError(f"{error}; give --create to create the queue", error.nearest) from None


def check_target(connection: Connection, login: Login, jolokia: str | None, target: str, *, create: bool) -> None:
    """Check that the target queue exists, as :func:`target_by` does. If the user may not manage the broker, this
    function checks nothing, because only the management of the broker knows the names.
    """
    if jolokia is None and connection.metadata.broker != "artemis":
        return
    with suppress(ManagementDeniedError, UnsupportedFeatureException), opened_manager(login, jolokia) as manager:
        target_by(manager, target, create=create)


class Checked:
    """The result of the check whether a queue with this name exists."""

    def __init__(self, queue: str, reason: str | None = None, messages: int | None = None) -> None:
        self._queue = queue
        self._reason = reason
        self.messages = messages
        """How many messages the queue had, or ``None`` if the broker did not say."""

    def warn_if_empty(self, seen: int) -> None:
        """Print that the name may be wrong, if no message was seen and the name could not be checked."""
        if self._reason is not None and not seen:
            remark(f"It is not known whether the queue {self._queue} exists, because {self._reason}.")


def check_queue(connection: Connection, login: Login, jolokia: str | None, queue: str) -> Checked:
    """Check that a queue exists, because a broker that creates queues on demand would create one for a misspelt name.

    Args:
        connection: an open connection, which says what kind of broker this is.
        login: makes the connection for management.
        jolokia: URL of Jolokia, for ActiveMQ Classic.
        queue: the name of the queue. In ``address::queue`` this is the part behind the colons.

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
    try:
        with opened_manager(login, jolokia) as manager:
            status = manager.queue(Queue(queue).name.rpartition("::")[2])
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        return Checked(queue, str(error))
    return Checked(queue, messages=status.messages)
