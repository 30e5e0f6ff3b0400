"""The simplified interface of JMS 2.0, asyncio: a connection and a session in one object."""

from __future__ import annotations

from pyjmsack.aio._runtime import Opening
from pyjmsack.aio.connection import Connection
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.aio.requestor import Requestor
from pyjmsack.aio.session import Session
from pyjmsack.core import session as core_session
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.requestor import Requestor as CoreRequestor
from pyjmsack.core.steps import Steps
from pyjmsack.destination import Queue
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.types import AckMode

__all__ = ["JMSContext"]


class JMSContext(Session):
    """A connection and a session in one object. It has all methods of a session, and ``start``, ``stop`` and
    ``create_context``.

    The first consumer, browser or requestor starts the connection, unless ``auto_start`` is false. A context is made by
    :meth:`ConnectionFactory.create_context`.
    """

    auto_start: bool = True
    """Whether the first consumer, browser or requestor starts the connection."""

    def __init__(self, core: core_session.Session, connection: Connection, auto_start: bool, owner: bool) -> None:
        super().__init__(core, connection._core)
        self._connection = connection
        self._owner = owner
        self.auto_start = auto_start

    @classmethod
    async def open(
        cls, connection: Connection, ack_mode: int, *, auto_start: bool = True, owner: bool = True
    ) -> JMSContext:
        """Open a session on a connection, and return both as a context.

        Args:
            connection: the connection to use.
            ack_mode: the :class:`AckMode` of the session, or its number.
            auto_start: whether the first consumer, browser or requestor starts the connection.
            owner: whether ``close()`` closes the connection, too. If true, and if the session cannot be opened, this
                call closes the connection.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``.
            JMSException: the mode is unknown.
            IllegalStateException: the connection is closed.
        """
        try:
            core = await connection._run(connection._core.create_session(ack_mode, None))
        except BaseException:
            if owner:
                await connection.close()
            raise
        return cls(core, connection, auto_start, owner)

    @property
    def metadata(self) -> ConnectionMetadata:
        """The facts about the broker and its protocol."""
        return self._connection.metadata

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set. ``None`` if the library generated the client id."""
        return self._connection.client_id

    def create_context(self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE) -> Opening[JMSContext]:
        """Return one more context, with a session of its own on the same connection. The new context does not close the
        connection when it is closed.

        Args:
            ack_mode: the :class:`AckMode` of the new session, or its number.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``.
            JMSException: the mode is unknown.
            IllegalStateException: the connection is closed.
        """
        return Opening(JMSContext.open(self._connection, ack_mode, auto_start=self.auto_start, owner=False))

    async def _consumer(self, steps: Steps[Consumer]) -> MessageConsumer:
        consumer = await super()._consumer(steps)
        await self._auto_start()
        return consumer

    async def _requestor(self, steps: Steps[CoreRequestor]) -> Requestor:
        requestor = await super()._requestor(steps)
        await self._auto_start()
        return requestor

    async def _create_browser(self, queue: Queue, selector: str | None) -> QueueBrowser:
        browser = await super()._create_browser(queue, selector)
        await self._auto_start()
        return browser

    async def _auto_start(self) -> None:
        if self.auto_start:
            await self._connection.start()

    async def start(self) -> None:
        """Let messages flow to the consumers (S120).

        Raises:
            IllegalStateException: the connection is closed.
        """
        await self._connection.start()

    async def stop(self) -> None:
        """Hand out no more messages until ``start``, and wait until the running listeners have finished (S120).

        Raises:
            IllegalStateException: the connection is closed, or the caller is a listener of this connection (S14).
        """
        await self._connection.stop()

    async def close(self) -> None:
        """Close the session. If this context made the connection, close the connection, too."""
        await super().close()
        if self._owner:
            await self._connection.close()

    async def __aenter__(self) -> JMSContext:
        return self
