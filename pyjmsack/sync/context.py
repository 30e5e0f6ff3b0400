"""The simplified interface of JMS 2.0, blocking: a connection and a session in one object."""

from __future__ import annotations

from pyjmsack.destination import Queue
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.sync.connection import Connection
from pyjmsack.sync.consumer import QueueBrowser
from pyjmsack.sync.session import Session
from pyjmsack.types import AckMode

__all__ = ["JMSContext"]


class JMSContext(Session):
    """A connection and a session in one object. It has all methods of a session, and ``start``, ``stop`` and
    ``create_context``.

    The first consumer, browser or requestor starts the connection, unless ``auto_start`` is false.
    :meth:`ConnectionFactory.create_context` makes a context.

    Args:
        connection: the connection to use.
        ack_mode: the :class:`AckMode` of the session, or its number.
        auto_start: whether the first consumer, browser or requestor starts the connection.
        owner: whether ``close()`` closes the connection, too.
    """

    auto_start: bool = True
    """Whether the first consumer, browser or requestor starts the connection."""

    def __init__(self, connection: Connection, ack_mode: int, *, auto_start: bool = True, owner: bool = True) -> None:
        try:
            core = connection._run(connection._core.create_session(ack_mode, None))
        except BaseException:
            if owner:
                connection.close()
            raise
        super().__init__(core, connection._core)
        self._connection = connection
        self._owner = owner
        self.auto_start = auto_start

    @property
    def metadata(self) -> ConnectionMetadata:
        """The facts about the broker and its protocol."""
        return self._connection.metadata

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set. ``None`` if the library generated the client id."""
        return self._connection.client_id

    def create_context(self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE) -> JMSContext:
        """Return one more context, with a session of its own on the same connection. The new context does not close the
        connection when it is closed.

        Args:
            ack_mode: the :class:`AckMode` of the new session, or its number.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``.
            JMSException: the mode is unknown.
            IllegalStateException: the connection is closed.
        """
        return JMSContext(self._connection, ack_mode, auto_start=self.auto_start, owner=False)

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Return a browser, which looks at the messages of a queue and takes none (S134). Start the connection if
        ``auto_start`` is true.

        Args:
            queue: the queue to look at.
            selector: as for :meth:`Session.create_consumer`.

        Raises:
            UnsupportedFeatureException: this broker would take the messages out of the queue (Artemis over STOMP).
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: ``queue`` is not a destination, was deleted, or is a temporary queue of another
                connection.
        """
        browser = super().create_browser(queue, selector)
        self._auto_start()
        return browser

    def _auto_start(self) -> None:
        """Start the connection, if ``auto_start`` is true."""
        if self.auto_start:
            self._connection.start()

    def start(self) -> None:
        """Let messages flow to the consumers (S120).

        Raises:
            IllegalStateException: the connection is closed.
        """
        self._connection.start()

    def stop(self) -> None:
        """Hand out no more messages until ``start``, and wait until the running listeners have finished (S120).

        Raises:
            IllegalStateException: the connection is closed, or the caller is a listener of this connection (S14).
        """
        self._connection.stop()

    def close(self) -> None:
        """Close the session. If this context made the connection, close the connection, too."""
        super().close()
        if self._owner:
            self._connection.close()

    def __enter__(self) -> JMSContext:
        return self
