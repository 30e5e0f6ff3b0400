"""The interface between the core and a tracing library: the core reports sends, deliveries and transactions to it.

A tracing object takes these reports for one connection. ``pyjmsack.otel`` has the tracing objects for OpenTelemetry.
The core never calls the methods of a tracing object on the I/O loop, because they run code of the user: samplers, span
processors and exporters. The methods may raise an error. Then the core (``core/tracing.py``) logs the error, and the
message is sent or delivered as usual.
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
    """One operation that has begun and not ended, such as a send, a commit or an acknowledgement."""

    def end(self, error: BaseException | None = None, at: int | None = None) -> None:
        """End the operation.

        Args:
            error: the error with which the operation failed. ``None`` means that it succeeded.
            at: the time of the end in nanoseconds since 1970. ``None`` means now.
        """
        ...


class Processing(Operation, Protocol):
    """The operation of a listener that processes a message.

    The context of its span is the current context until :meth:`leave` is called.
    """

    def leave(self) -> None:
        """Make the context from before the operation current again.

        Called by the thread or task that began the operation.
        """
        ...


class Sent(NamedTuple):
    """The result of :meth:`Tracing.send`: the operation of a send, and the properties to send."""

    operation: Operation | None
    """The operation, which the core ends when the broker has answered. ``None`` means that no report of the answer is
    needed."""
    properties: dict[str, Any] | None
    """The properties of the message together with the context of the span. ``None`` means that the message keeps its
    own properties."""


class ConsumerTracing(Protocol):
    """Takes the reports of one consumer."""

    def receive(self, message: Message, since: int | None, *, accepts: bool) -> None:
        """Report that a call of ``receive`` is about to return this message.

        Args:
            message: the message, which is not acknowledged yet.
            since: when the call began, in nanoseconds since 1970. ``None`` means that the call did not wait.
            accepts: whether the session acknowledges the message now.
        """
        ...

    def receive_failed(self, error: BaseException, since: int) -> None:
        """Report that a call of ``receive`` raises ``error``. The call began at ``since`` (nanoseconds since 1970)."""
        ...

    def process(self, message: Message, *, received: bool = False) -> Processing:
        """Report that a listener gets this message now, and return the operation of the listener.

        Args:
            received: whether :meth:`receive` was called for the message before. In this case the message is counted
                already.
        """
        ...

    def settle(self, name: str, message: Message) -> Operation | None:
        """Report that a message gets its outcome, named ``accept``, ``release``, ``modify`` or ``reject``."""
        ...

    def acknowledge(self, name: str, inbounds: Sequence[Inbound]) -> Operation | None:
        """Report that several messages get the outcome ``name`` together."""
        ...


class Tracing(Protocol):
    """Takes the reports of one connection."""

    def leads_to(self, metadata: ConnectionMetadata, client_id: str) -> None:
        """Report that the connection is open at this broker, for the first time or after a failover."""
        ...

    def send(self, message: Message, destination: Destination, *, bound: bool) -> Sent:
        """Report that a message is about to be encoded and sent. Its id and other headers are already set.

        Args:
            message: the message.
            destination: the destination to which it is sent.
            bound: whether this is the only destination to which the producer can send.
        """
        ...

    def consumer(self, info: ConsumerInfo) -> ConsumerTracing:
        """Return the object that takes the reports of a new consumer."""
        ...

    def transaction(self, name: str, count: int) -> Operation | None:
        """Report that a ``commit`` or ``rollback`` (``name``) of a transaction with ``count`` messages begins."""
        ...


Factory = Callable[[], Tracing]
_installed: list[Factory] = []


def install(factory: Factory | None) -> None:
    """Let ``factory`` make the tracing object of each new connection. ``None`` means that new connections are not
    traced."""
    _installed[:] = [] if factory is None else [factory]


def create() -> Tracing | None:
    """Return the tracing object of a new connection, or ``None`` if no factory is installed."""
    return _installed[0]() if _installed else None
