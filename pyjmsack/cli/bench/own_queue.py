"""The queue of a run: makes a name that no other queue has, and removes the queue with its messages."""

from __future__ import annotations

import uuid
from contextlib import suppress

from pyjmsack import InvalidDestinationException, JMSException, Queue, UnsupportedFeatureException
from pyjmsack.cli.errors import explain
from pyjmsack.cli.managing import opened_manager, remark
from pyjmsack.cli.options import Login
from pyjmsack.management import ManagementDeniedError

__all__ = ["PREFIX", "own_name", "remove_queues"]

PREFIX = "pyjmsack.bench."
_WAIT = 1.0
"""Seconds to wait for a message that a closed consumer gives back."""


def own_name() -> str:
    """Return a name for the queue of a run that no other queue has."""
    return f"{PREFIX}{uuid.uuid4().hex[:12]}"


def remove_queues(login: Login, jolokia: str | None, names: list[str]) -> list[str]:
    """Delete queues with their messages. Return the queues that may still have messages.

    If the user may not manage the broker, this function only empties the queues, and prints a line that says so.
    ActiveMQ Classic then keeps the empty queues.
    """
    left = list(names)
    try:
        _delete(login, jolokia, left)
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        _empty(login, left, error)
    except JMSException as error:
        remark(f"The queues {', '.join(left)} stay: {explain(error)}. Empty each of them: pyjmsack purge NAME.")
    return left


def _delete(login: Login, jolokia: str | None, left: list[str]) -> None:
    with opened_manager(login, jolokia) as manager:
        while left:
            with suppress(InvalidDestinationException):  # the broker deleted the empty queue itself
                manager.delete_queue(left[-1])
            left.pop()


def _empty(login: Login, left: list[str], reason: JMSException) -> None:
    empty = list(left)
    try:
        with login.factory().create_connection() as connection, connection.create_session() as session:
            connection.exception_listener = lambda error: None  # receive() raises the same error
            connection.start()
            while left:
                with session.create_consumer(Queue(left[-1])) as consumer:
                    while consumer.receive(_WAIT) is not None or consumer.receive_nowait() is not None:
                        pass
                left.pop()
    except JMSException as error:
        remark(f"The queues {', '.join(left)} stay: {explain(error)}. Empty each of them: pyjmsack purge NAME.")
        return
    remark(f"Emptied {', '.join(empty)}. The broker may keep each empty queue, because {reason}.")
