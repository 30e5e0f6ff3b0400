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
    """A session that owns its connection: whatever a session offers, and ``start``, ``stop`` and ``create_context``.

    The first consumer or browser starts the connection, unless ``auto_start`` is off.
    """

    auto_start: bool = True
    """Whether the first consumer or browser starts the connection."""

    def __init__(self, core: core_session.Session, connection: Connection, auto_start: bool, owner: bool) -> None:
        super().__init__(core, connection._core)
        self._connection = connection
        self._owner = owner
        self.auto_start = auto_start

    @classmethod
    async def open(
        cls, connection: Connection, ack_mode: int, *, auto_start: bool = True, owner: bool = True
    ) -> JMSContext:
        """Open the session of a new context."""
        try:
            core = await connection._run(connection._core.create_session(ack_mode, None))
        except BaseException:
            if owner:
                await connection.close()
            raise
        return cls(core, connection, auto_start, owner)

    @property
    def metadata(self) -> ConnectionMetadata:
        """What is known of the broker and its protocol."""
        return self._connection.metadata

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set; ``None`` for a generated one."""
        return self._connection.client_id

    def create_context(self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE) -> Opening[JMSContext]:
        """Return a context with a session of its own on the same connection, which this context keeps owning."""
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
        """Let messages flow."""
        await self._connection.start()

    async def stop(self) -> None:
        """Hand out no message until ``start``."""
        await self._connection.stop()

    async def close(self) -> None:
        """Close the session, and the connection if this context made it."""
        await super().close()
        if self._owner:
            await self._connection.close()

    async def __aenter__(self) -> JMSContext:
        return self
