"""Asks the broker whether a queue exists before a command looks into it, because looking would create it."""

from __future__ import annotations

from pyjmsack import Connection, Queue, UnsupportedFeatureException
from pyjmsack.cli.managing import opened_manager, remark
from pyjmsack.cli.options import Login
from pyjmsack.management import ManagementDeniedError

__all__ = ["Checked", "check_queue"]


class Checked:
    """The result of a check of a queue's name."""

    def __init__(self, queue: str, reason: str | None = None) -> None:
        self._queue = queue
        self._reason = reason

    def warn_if_empty(self, seen: int) -> None:
        """Print that the name may be wrong, if no message was seen and the name could not be checked."""
        if self._reason is not None and not seen:
            remark(f"Whether the queue {self._queue} exists is not known, because {self._reason}.")


def check_queue(connection: Connection, login: Login, jolokia: str | None, queue: str) -> Checked:
    """Check that a queue exists. A broker that creates queues on demand would create a misspelt one.

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
            manager.queue(Queue(queue).name.rpartition("::")[2])
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        return Checked(queue, str(error))
    return Checked(queue)
