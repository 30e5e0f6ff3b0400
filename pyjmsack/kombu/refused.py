"""Limits the damage of a bad message: only this message is lost, and the worker and the messages behind it are not
harmed.

The sender chooses everything in a message. Some of it meets foreign code: kombu rebuilds dates, numbers and UUIDs out
of JSON, and a worker of Celery reads the headers and the body of a task. Both raise errors of many kinds. An error that
left the worker would end the worker. The broker would then deliver the message again, and end the next worker.
"""

from __future__ import annotations

from typing import Any, Final

from pyjmsack import InvalidDestinationException, JMSException

__all__ = ["NOT_A_TASK", "is_worker", "reason"]

NOT_A_TASK: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    InvalidDestinationException,
)
"""The errors of Celery about a task whose parts have the wrong form. Other errors belong to the worker: to its
connection, its memory, its pool."""
_WORKER: Final = "celery.worker"
_LONGEST: Final = 200


def is_worker(callback: Any) -> bool:
    """Return whether the messages of a consumer of kombu go to a worker of Celery.

    A program that has consumers of its own decides about its errors: there an error leaves ``drain_events``, and the
    message stays unacknowledged.

    Args:
        callback: what the consumer gave to ``basic_consume``.
    """
    consumer = getattr(callback, "__self__", None)
    handlers = [getattr(consumer, "on_message", None), *(getattr(consumer, "callbacks", None) or ())]
    return any(str(getattr(handler, "__module__", "")).startswith(_WORKER) for handler in handlers)


def reason(error: Exception) -> str:
    """Return why a message is refused, for the log.

    Only errors of this library are shown with their text, because the texts of other errors may contain the whole
    message.
    """
    name = type(error).__name__
    return f"{name}: {str(error)[:_LONGEST]}" if isinstance(error, JMSException) else name
