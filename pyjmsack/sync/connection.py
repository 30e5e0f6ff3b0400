"""The blocking factory and connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyjmsack.core import connection as core_connection
from pyjmsack.core.facade import ConnectionFacade
from pyjmsack.core.factory import FactoryFacade
from pyjmsack.errors import ConnectionLostException
from pyjmsack.io.driver import AsyncioConnector
from pyjmsack.io.thread import acquire
from pyjmsack.spi.registry import create_provider
from pyjmsack.sync._face import SessionFace
from pyjmsack.sync._runtime import SyncRuntime
from pyjmsack.sync.session import Session
from pyjmsack.types import AckMode

if TYPE_CHECKING:
    from pyjmsack.sync.context import JMSContext

__all__ = ["Connection", "ConnectionFactory"]


class ConnectionFactory(FactoryFacade):
    """Makes connections to one broker. The constructor checks all arguments, and does not connect.

    >>> ConnectionFactory("amqp://localhost:5672", username="artemis", password="secret")
    ConnectionFactory('amqp://localhost:5672')

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
            keep the message (S192).
        ssl_context: used for TLS schemes instead of a context made from the ``transport.*`` options.

    Raises:
        InvalidURLException: the URL or an option is wrong. The text names the nearest right spelling.
        InvalidClientIDException: the client id is empty (S122).
        TypeError: ``message_transformer`` has none of these functions, or one of its functions is not a plain function.
        UnsupportedFeatureException: this library does not support a scheme or an option; or the extra that a ledger or
            tracing needs is not installed.
    """

    def create_connection(self, username: str | None = None, password: str | None = None) -> Connection:
        """Connect and log in. The new connection is stopped: no message is handed out before ``start()`` (S120).

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
        ledger = self._open_ledger()
        give_back: Callable[[], None] | None = None
        try:
            thread = acquire()
            give_back = thread.release
            connector = AsyncioConnector(self._url, thread.loop, self._ssl_context)
            provider = create_provider(self._url, connector)
            keeps_process = not self._url.connection.use_daemon_thread
            runtime = SyncRuntime(thread, provider.flush, keeps_process=keeps_process)
            give_back = runtime.close
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
            runtime.tell_lost = partial(_lose, core)
            runtime.finish, runtime.unwritten = core.finish, lambda: connector.unwritten
            if runtime.keeper is not None:
                core.add_listener(runtime.keeper)
            runtime.run(core.open())
        except BaseException:
            if give_back is not None:
                give_back()
            if ledger is not None:
                ledger.close()
            raise
        return Connection(core, runtime)

    def create_context(
        self,
        ack_mode: int = AckMode.AUTO_ACKNOWLEDGE,
        *,
        username: str | None = None,
        password: str | None = None,
        auto_start: bool = True,
    ) -> JMSContext:
        """Return a connection and a session in one object: the simplified interface of JMS 2.0.

        Args:
            ack_mode: an :class:`AckMode` or its number. ``AckMode.SESSION_TRANSACTED`` makes the session transacted.
            username, password: the login, instead of the login of the factory. A password without a username is
                ignored.
            auto_start: whether the first consumer, browser or requestor starts the connection. If false, call
                ``start()``.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``.
            JMSException: the mode is unknown; or as for :meth:`create_connection`.
        """
        from pyjmsack.sync.context import JMSContext

        return JMSContext(self.create_connection(username, password), ack_mode, auto_start=auto_start)


def _lose(core: core_connection.Connection, error: ConnectionLostException) -> None:
    """End a connection whose loop has ended. Each caller that waits for an answer or a message gets the error."""
    try:
        core.on_failure(error)
    finally:
        core.channel.provider.abort(error)


class Connection(ConnectionFacade):
    """A connection, made by :meth:`ConnectionFactory.create_connection`. Threads may share it. Each thread needs
    sessions of its own.
    """

    def __init__(self, core: core_connection.Connection, runtime: SyncRuntime) -> None:
        super().__init__(core)
        self._runtime = runtime
        self._run = runtime.run

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set. ``None`` if the library generated the client id. The client id can be
        set once, before the connection is used (S122). Then the connection is opened again, because a client sends its
        id only when it opens a connection.

        Raises (on setting):
            IllegalStateException: the id was given or set before, or the connection was used.
            InvalidClientIDException: the id is empty, or in use at the broker.
        """
        info = self._core.channel.info
        return info.client_id if info.explicit_client_id else None

    @client_id.setter
    def client_id(self, value: str) -> None:
        self._run(self._core.set_client_id(value))

    def start(self) -> None:
        """Let messages flow to the consumers (S120). A second call has no effect.

        Raises:
            IllegalStateException: the connection is closed.
        """
        self._core.start()

    def stop(self) -> None:
        """Hand out no more messages until ``start``, and wait until the running listeners have finished (S120).

        Raises:
            IllegalStateException: the connection is closed, or the caller is a listener of this connection (S14).
        """
        self._run(self._core.stop())

    def create_session(self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE, *, transacted: bool | None = None) -> Session:
        """Return a session (S1-S6).

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
        return Session(self._run(self._core.create_session(ack_mode, transacted)), self._core)

    def close(self) -> None:
        """Close the sessions and the connection. Callers that wait in ``receive`` get ``None`` (S123). A second call
        has no effect.

        Raises:
            IllegalStateException: the caller is a listener of this connection (S14, S74).
        """
        try:
            self._run(self._core.close())
        finally:
            if self._core.closed:
                self._runtime.close()
                if self._core.recorder is not None:
                    self._core.recorder.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
