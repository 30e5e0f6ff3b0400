"""The interface between the core and a tracing library: what the core tells of sends, deliveries and transactions.

A tracing belongs to one connection. ``pyjmsack.otel`` has the one for OpenTelemetry. All methods are called on the
caller's side, never on the I/O loop, because they run code of the user: samplers, span processors and exporters. They
may raise: the core (``core/tracing.py``) logs the error, and the message goes its way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from pyjmsack.destination import Destination
from pyjmsack.message import Message
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo

__all__ = ["ConsumerTracing", "Operation", "Processing", "Sent", "Tracing", "create", "install"]


class Operation(Protocol):
    """One operation under way."""

    def end(self, error: BaseException | None = None, at: int | None = None) -> None:
        """The operation is over.

        Args:
            error: why it failed; ``None`` = it did not.
            at: nanoseconds since 1970; ``None`` = now.
        """
        ...


class Processing(Operation, Protocol):
    """A listener at work on a message. The context of its span is the current one until :meth:`leave`."""

    def leave(self) -> None:
        """Make the earlier context the current one; on the thread, or in the task, that began."""
        ...


class Sent(NamedTuple):
    """What a send begins with."""

    operation: Operation | None
    """To be ended when the broker has answered; ``None`` = nobody wants to know."""
    properties: dict[str, Any] | None
    """The properties of the message with the context of the span among them; ``None`` = those of the message."""


class ConsumerTracing(Protocol):
    """What one consumer tells."""

    def receive(self, message: Message, since: int | None, *, accepts: bool) -> None:
        """A call of ``receive`` is about to return this message.

        Args:
            message: it is not acknowledged yet.
            since: when the call began, in nanoseconds since 1970; ``None`` = it did not wait.
            accepts: whether the session acknowledges the message now.
        """
        ...

    def receive_failed(self, error: BaseException, since: int) -> None:
        """A call of ``receive`` raises."""
        ...

    def process(self, message: Message, *, received: bool = False) -> Processing:
        """A listener gets this message now.

        Args:
            received: whether :meth:`receive` was called for it, so that it is counted already.
        """
        ...

    def settle(self, name: str, message: Message) -> Operation | None:
        """A message gets its outcome: ``accept``, ``release``, ``modify`` or ``reject``."""
        ...

    def acknowledge(self, name: str, inbounds: Sequence[Inbound]) -> Operation | None:
        """Several messages get their outcome together."""
        ...


class Tracing(Protocol):
    """What one connection tells."""

    def leads_to(self, metadata: ConnectionMetadata, client_id: str) -> None:
        """The connection is open, or open again, at this broker."""
        ...

    def send(self, message: Message, destination: Destination, *, bound: bool) -> Sent:
        """A message was stamped, and is encoded next.

        Args:
            message: what is sent.
            destination: where to.
            bound: whether that is the producer's only destination.
        """
        ...

    def consumer(self, info: ConsumerInfo) -> ConsumerTracing:
        """Return what a new consumer tells."""
        ...

    def transaction(self, name: str, count: int) -> Operation | None:
        """``commit`` or ``rollback`` of a transaction with ``count`` messages begins."""
        ...


Factory = Callable[[], Tracing]
_installed: list[Factory] = []


def install(factory: Factory | None) -> None:
    """Let ``factory`` make the tracing of each new connection; ``None`` = connections have none."""
    _installed[:] = [] if factory is None else [factory]


def create() -> Tracing | None:
    """Return the tracing of a new connection; ``None`` if none is installed."""
    return _installed[0]() if _installed else None
