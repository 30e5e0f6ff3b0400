"""Hooks that replace a message before it is sent and after it was received (S192)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import JMSException
from pyjmsack.message import Message, to_message

__all__ = ["Transform", "Transforms", "hook", "received"]

Transform = Callable[[Message, Destination], Message]
_HOOKS = ("producer_transform", "consumer_transform")
_INHERITED = ("message_id", "correlation_id", "reply_to")


def hook(transformer: object | None, name: str) -> Transform | None:
    """Return one hook of a transformer as a function that always returns a message.

    Raises:
        TypeError: the transformer has no hook at all; or the hook of this name is a coroutine function, or is not
            callable.
    """
    if transformer is None:
        return None
    if not any(hasattr(transformer, known) for known in _HOOKS):
        raise TypeError(f"message_transformer: expected an object with {' or '.join(_HOOKS)}, not {transformer!r}")
    transform = getattr(transformer, name, None)
    if transform is None:
        return None
    if not callable(transform) or inspect.iscoroutinefunction(transform):
        raise TypeError(f"message_transformer: {name} must be a plain function, in pyjmsack.aio too")
    return _complete(transform)


class Transforms:
    """The hooks of one connection; they may be replaced at any time.

    Args:
        transformer: an object with hooks, or ``None``.

    Raises:
        TypeError: the object has no hook, or one of its hooks is not a plain function.
    """

    __slots__ = ("received", "sent", "transformer")

    def __init__(self, transformer: object | None) -> None:
        self.set(transformer)

    def set(self, transformer: object | None) -> None:
        """Replace the hooks from now on.

        Raises:
            TypeError: as for the constructor; the old hooks stay.
        """
        sent, received = hook(transformer, "producer_transform"), hook(transformer, "consumer_transform")
        self.transformer, self.sent, self.received = transformer, sent, received


def _complete(transform: Callable[[Message, Destination], Any]) -> Transform:
    def replaced(message: Message, destination: Destination) -> Message:
        result = transform(message, destination)
        if result is None or result is message:
            return message
        new = to_message(result)
        for header in _INHERITED:  # otherwise requests would lose their replies
            if getattr(new, header) is None:
                setattr(new, header, getattr(message, header))
        return new

    return replaced


def received(transform: Transform, message: Message, destination: Destination) -> Message:
    """Return the message that a hook makes of a received message.

    Raises:
        JMSException: the hook raised. The cause is chained.
    """
    try:
        return transform(message, destination)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise JMSException(f"consumer_transform raised for a message of {destination.name}: {what}") from error
