"""The asyncio factory and connection."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pyjmsack.aio._face import SessionFace
from pyjmsack.aio._runtime import AioRuntime, Opening
from pyjmsack.aio.session import Session
from pyjmsack.core import connection as core_connection
from pyjmsack.core.facade import ConnectionFacade
from pyjmsack.core.factory import FactoryFacade
from pyjmsack.io.driver import AsyncioConnector
from pyjmsack.spi.registry import create_provider
from pyjmsack.types import AckMode

if TYPE_CHECKING:
    from pyjmsack.aio.context import JMSContext

__all__ = ["Connection", "ConnectionFactory"]


class ConnectionFactory(FactoryFacade):
    """Makes connections to one broker. The constructor checks all arguments, and does not connect.

    Args:
        url: the broker, such as ``amqp://localhost:5672?jms.sendTimeout=5000``. Options have their Java names and
            units.
        username, password: the login. They override ``jms.username`` and ``jms.password``.
        client_id: overrides ``jms.clientID``. If neither is given, a client id is generated.
        options: more URL options, by their Java names. They override the options in the URL.
        ledger: directory in which each connection records its sends, its deliveries and its events. The factories of
            several programs may share it. Needs ``pyjmsack[ledger]``. ``None`` records nothing.
        message_transformer: an object with ``producer_transform(message, destination)``, called before the headers of a
            message are set and the message is sent, and ``consumer_transform(message, destination)``, called before a
            message is handed out. One of the two may be missing. Each returns a message to use instead, or ``None`` to
            keep the message. Both are plain functions, not coroutine functions (S192).
        ssl_context: used for TLS schemes instead of a context made from the ``transport.*`` options.

    Raises:
        InvalidURLException: the URL or an option is wrong. The text names the nearest right spelling.
        InvalidClientIDException: the client id is empty (S122).
        TypeError: ``message_transformer`` has none of these functions, or one of its functions is not a plain function.
        UnsupportedFeatureException: this library does not support a scheme or an option; or the extra that a ledger or
            tracing needs is not installed.
    """

    def create_connection(self, username: str | None = None, password: str | None = None) -> Opening[Connection]:
        """Connect and log in. ``await`` the result, or use it in ``async with``. The new connection is stopped: no
        message is handed out before ``start()`` (S120).

        Args:
            username, password: the login, instead of the login of the factory. A password without a username is
                ignored.

        Raises:
            JMSSecurityException: the broker refused the login.
            InvalidClientIDException: the client id is in use at the broker (S122).
            ConnectionLostException: no broker answers at this address.
            RequestTimedOutException: the broker did not answer within ``transport.connectTimeout`` or
                ``jms.connectTimeout``.
        """
        return Opening(self._create_connection(username, password))

    async def _create_connection(self, username: str | None, password: str | None) -> Connection:
        ledger = self._open_ledger()
        try:
            loop = asyncio.get_running_loop()
            provider = create_provider(self._url, AsyncioConnector(self._url, loop, self._ssl_context))
            runtime = AioRuntime(loop, provider.flush)
            core = core_connection.Connection(
                self._url,
                runtime,
                provider,
                self._login(username, password),
                partial(SessionFace, runtime),
                transformer=self._transformer,
                ledger=ledger,
                tracing=self._create_tracing(),
            )
            await runtime.run(core.open())
        except BaseException:
            if ledger is not None:
                ledger.close()  # this blocks only for a moment, because there is next to nothing to write
            raise
        return Connection(core, runtime)

    def create_context(
        self,
        ack_mode: int = AckMode.AUTO_ACKNOWLEDGE,
        *,
        username: str | None = None,
        password: str | None = None,
        auto_start: bool = True,
    ) -> Opening[JMSContext]:
        """Return a connection and a session in one object: the simplified interface of JMS 2.0. ``await`` the result,
        or use it in ``async with``.

        Args:
            ack_mode: an :class:`AckMode` or its number. ``AckMode.SESSION_TRANSACTED`` makes the session transacted.
            username, password: the login, instead of the login of the factory. A password without a username is
                ignored.
            auto_start: whether the first consumer, browser or requestor starts the connection. If false, await
                ``start()``.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``.
            JMSException: the mode is unknown; or as for :meth:`create_connection`.
        """
        return Opening(self._create_context(ack_mode, username, password, auto_start))

    async def _create_context(
        self, ack_mode: int, username: str | None, password: str | None, auto_start: bool
    ) -> JMSContext:
        from pyjmsack.aio.context import JMSContext

        return await JMSContext.open(await self.create_connection(username, password), ack_mode, auto_start=auto_start)


class Connection(ConnectionFacade):
    """A connection, made by :meth:`ConnectionFactory.create_connection`. It belongs to the loop that made it."""

    def __init__(self, core: core_connection.Connection, runtime: AioRuntime) -> None:
        super().__init__(core)
        self._run = runtime.run
        self._away = runtime.away
        self._ending = runtime.ending

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set. ``None`` if the library generated the client id. :meth:`set_client_id`
        sets it."""
        info = self._core.channel.info
        return info.client_id if info.explicit_client_id else None

    async def set_client_id(self, value: str) -> None:
        """Set the client id, once, before the connection is used (S122). The connection is opened again, because a
        client sends its id only when it opens a connection.

        Args:
            value: the new client id, not empty.

        Raises:
            IllegalStateException: a client id was given or set before, or the connection was used.
            InvalidClientIDException: the client id is empty, or in use at the broker.
        """
        await self._run(self._core.set_client_id(value))

    async def start(self) -> None:
        """Let messages flow to the consumers (S120). A second call has no effect.

        Raises:
            IllegalStateException: the connection is closed.
        """
        self._core.start()

    async def stop(self) -> None:
        """Hand out no more messages until ``start``, and wait until the running listeners have finished (S120).

        Raises:
            IllegalStateException: the connection is closed, or the caller is a listener of this connection (S14).
        """
        await self._run(self._core.stop())

    def create_session(
        self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE, *, transacted: bool | None = None
    ) -> Opening[Session]:
        """Return a session (S1-S6). ``await`` the result, or use it in ``async with``.

        Args:
            ack_mode: an :class:`AckMode` or its number.
            transacted: ``True`` makes a transacted session, whatever ``ack_mode`` is. ``None`` leaves the choice to
                ``ack_mode``. ``False`` with ``AckMode.SESSION_TRANSACTED`` is an error.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``. In Java the first argument is a ``boolean``; here it is the mode.
            JMSException: the mode is unknown, or contradicts ``transacted``.
            UnsupportedFeatureException: the session is transacted, the transactions of this broker are not atomic, and
                the URL has ``strict=true`` (S88).
            IllegalStateException: the connection is closed.
        """
        return Opening(self._create_session(ack_mode, transacted))

    async def _create_session(self, ack_mode: int, transacted: bool | None) -> Session:
        return Session(await self._run(self._core.create_session(ack_mode, transacted)), self._core)

    async def close(self) -> None:
        """Close the sessions and the connection. Tasks that wait in ``receive`` get ``None`` (S123). A second call has
        no effect.

        Raises:
            IllegalStateException: the caller is a listener of this connection (S14, S74).
        """
        try:
            await self._run(self._core.close())
        finally:
            if self._core.closed:
                self._ending.close()
            if self._core.closed and self._core.recorder is not None:
                await asyncio.shield(self._away(self._core.recorder.close))

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
