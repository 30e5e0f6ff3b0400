"""Finds the transaction that a send joins: the transaction of the listener that calls the sender."""

from __future__ import annotations

import os
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CURRENT", "Joined", "Recorder", "Sends"]


class Sends(Protocol):
    """A producer of either face, or a :class:`Recorder` in a test."""

    def send(self, message: object, destination: Any = None, **how: Any) -> Any:
        """Send a message. The call is a step (``steps.py``)."""


@dataclass
class Joined:
    """A running listener, and the producer that sends in the listener's transaction."""

    app: object
    """The app of the listener. The sender of another app does not join the transaction."""
    producer: Sends
    here: object
    """The id of the thread that may use the session; ``None`` in asyncio."""
    over: bool = False
    """True if sends do not join a transaction. Either there is no transaction, or the listener has already ended."""
    listener: object = None
    """The listener itself."""
    done: bool = False
    """Whether the worker has finished with the message. Until then the listener must not wait for a stop, because the
    stop waits for the worker."""

    process: int = field(default_factory=os.getpid)
    """The process of the listener. A child made by ``fork`` in a listener inherits this object."""

    def works_for(self, app: object, here: object) -> bool:
        """Return whether this listener, or its ``on_error``, belongs to ``app`` and is at work on the thread ``here``.
        In asyncio ``here`` is ``None``.
        """
        return not self.done and self.app is app and self.here == here and self.process == os.getpid()


@dataclass
class Recorder:
    """Takes the place of a producer while a test calls a listener. Nothing is sent."""

    sent: list[tuple[str, Any]]

    def send(self, message: object, destination: Any = None, **how: Any) -> None:
        """Remember a message and the name of its destination."""
        self.sent.append((destination.name, message))


CURRENT: ContextVar[Joined | None] = ContextVar("pyjmsack.app", default=None)
"""The listener that runs in the current thread or task; ``None`` outside of a listener."""
