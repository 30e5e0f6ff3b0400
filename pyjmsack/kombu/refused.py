"""Limits the damage of a bad message: the message becomes a dead letter, and the worker goes on.

A sender can write anything into a message. kombu makes dates, numbers and UUIDs of its JSON, and a worker of Celery
reads the headers and the body of a task. With a bad message both raise errors of many kinds, and such an error would
end the worker. The broker would then deliver the message again, so that it would end the next worker, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from kombu.exceptions import ContentDisallowed

from pyjmsack import InvalidDestinationException, JMSException, MessageFormatException, UnsupportedFeatureException

__all__ = ["NOT_A_TASK", "OF_THE_MESSAGE", "check_task", "is_worker", "reason"]

NOT_A_TASK: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    InvalidDestinationException,
)
"""The errors that Celery raises for a message whose parts have the wrong form. All other errors come from the worker
itself, such as its connection, its memory or its pool."""
OF_THE_MESSAGE: Final = (InvalidDestinationException, MessageFormatException, UnsupportedFeatureException)
"""The errors of a message that cannot be read or sent on, because its sender wrote something that this library refuses.
All other errors of this library may come from the connection or from the queue."""
_WORKER: Final = "celery.worker"
_LONGEST: Final = 200
_CELERYS_OWN: Final = frozenset(("_children", "get"))
"""The parts of Celery's object for a running task that Celery uses outside of the code that expects errors."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
"""Half a character, which nobody can write as bytes. Result backends write the id of a task as bytes."""


def is_worker(callback: Any) -> bool:
    """Return whether the messages of a consumer of kombu go to a worker of Celery.

    In a program with consumers of its own, an error of the callback leaves ``drain_events``, and the message stays
    unacknowledged, because the program itself has to decide what follows.

    Args:
        callback: the function that the consumer gave to ``basic_consume``.
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


def check_task(message: Any) -> None:
    """Decode the body of a message. Check the headers, and the part of the body, that a worker of Celery reads when a
    task already has a place in the pool.

    An error at that moment would not give the place back, and a few such tasks would stop a worker. With an ETA, or
    behind other tasks, the error would come where nobody can refuse the message. A worker acknowledges what it cannot
    decode, so such a message is refused here.

    Args:
        message: a message of kombu. Its ``accept`` is that of its consumer, because the worker gets the body that is
            decoded here.

    Raises:
        MessageFormatException: the body cannot be decoded, or the consumer does not accept its content type.
        ValueError: a header or this part has a wrong type.
    """
    headers = message.headers or {}
    body = _decoded(message)
    if "task" in headers and not (isinstance(body, Mapping) and "args" in body):
        _check_parts(body)
    elif isinstance(body, Mapping):  # a task of the first version of Celery's protocol has everything in its body
        headers = {**body, **headers} if "args" in body else body
    if not isinstance(headers, Mapping) or "task" not in headers:
        return
    _check_names(headers)
    limits = headers.get("timelimit")
    if limits and not (isinstance(limits, list | tuple) and len(limits) == 2 and all(map(_is_limit, limits))):
        raise ValueError(f"the header timelimit is {_kind(limits)}; expected a list of two numbers of seconds")
    stamps = headers.get("stamped_headers")
    if stamps and not (isinstance(stamps, list | tuple | str) and all(isinstance(name, str) for name in stamps)):
        raise ValueError(f"the header stamped_headers is {_kind(stamps)}; expected a list of names")
    if headers.get("stamps") and not isinstance(headers["stamps"], Mapping):
        raise ValueError(f"the header stamps is {_kind(headers['stamps'])}; expected names and values")


def _decoded(message: Any) -> Any:
    try:
        return message.payload
    except ContentDisallowed as error:
        raise MessageFormatException(f"ContentDisallowed: {error}") from None
    except Exception as error:  # kombu raises errors of many kinds, and their texts may contain the whole message
        raise MessageFormatException(f"the body cannot be decoded: {type(error).__name__}") from None


def _kind(value: object) -> str:
    """Return the type of a value for an error. Its text is not shown, because that of bytes takes four times their
    memory."""
    return f"of the type {type(value).__name__}"


def _check_names(headers: Mapping[str, Any]) -> None:
    """Check the headers by which the worker counts tasks and finds them again. They become keys of a mapping."""
    shadow = headers.get("shadow")
    if not (shadow is None or isinstance(shadow, str)):
        raise ValueError(f"the header shadow is {_kind(shadow)}; expected a name")
    task_id = headers.get("id")
    if not (isinstance(task_id, UUID) or (isinstance(task_id, str) and _SURROGATE.search(task_id) is None)):
        raise ValueError(f"the header id is {_kind(task_id)}; expected a text")
    _check_attributes(headers)


def _check_attributes(names: Mapping[str, Any]) -> None:
    """Check the attributes of Celery's object for a running task that Celery uses where its pool expects no error. The
    headers and the links become these attributes."""
    if hidden := _CELERYS_OWN & names.keys():
        raise ValueError(f"the header {min(hidden)} hides a part of Celery; expected another name")
    for name, fits in (("chain", _is_signature), ("errbacks", _is_named)):
        tasks = names.get(name)
        if tasks and not (isinstance(tasks, list | tuple) and all(map(fits, tasks))):
            raise ValueError(f"the header {name} is {_kind(tasks)}; expected a list of tasks")


def _is_signature(task: Any) -> bool:
    return isinstance(task, Mapping) and isinstance(task.get("options"), Mapping)


def _is_named(task: Any) -> bool:
    return isinstance(task, str | Mapping)


def _check_parts(body: Any) -> None:
    """Check the body of a task of the second version of Celery's protocol. Its third part names the tasks that follow,
    and the worker makes arguments of this part."""
    if isinstance(body, str | bytes | Mapping):  # the worker would take three characters or names for the three parts
        raise ValueError(f"the body is {_kind(body)}; expected a list of three parts")
    links = body[2] if isinstance(body, list | tuple) and len(body) == 3 else None
    if links and not (isinstance(links, Mapping) and all(isinstance(name, str) for name in links)):
        raise ValueError(f"the third part of the body is {_kind(links)}; expected names and values")
    if links:
        _check_attributes(links)
        if "id" in links:
            raise ValueError("the third part of the body has an id; expected the id in the headers")


def _is_limit(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return not math.isnan(float(value))  # the timer of the worker adds the limit to a time, which is a float
    except OverflowError:
        return False
