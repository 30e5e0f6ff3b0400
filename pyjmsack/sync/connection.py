"""The blocking factory and connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyjmsack.core import connection as core_connection
from pyjmsack.core.facade import ConnectionFacade
from pyjmsack.core.factory import FactoryFacade
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
    """Makes connections to one broker; see :class:`pyjmsack.core.factory.FactoryFacade` for the arguments."""

    def create_connection(self, username: str | None = None, password: str | None = None) -> Connection:
        """Connect and log in; the connection is open, and stopped, when this returns (S120).

        Args:
            username, password: instead of the factory's.

        Raises:
            JMSSecurityException: the login was refused.
            ConnectionLostException: the broker is absent.
            RequestTimedOutException: it is silent (``transport.connectTimeout``, ``jms.connectTimeout``).
        """
        ledger = self._open_ledger()
        thread = acquire()
        give_back: Callable[[], None] = thread.release
        try:
            provider = create_provider(self._url, AsyncioConnector(self._url, thread.loop, self._ssl_context))
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
            if runtime.keeper is not None:
                core.add_listener(runtime.keeper)
            runtime.run(core.open())
        except BaseException:
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
        """Return a connection and a session in one object, started by the first consumer (JMS 2.0 simplified API)."""
        from pyjmsack.sync.context import JMSContext

        return JMSContext(self.create_connection(username, password), ack_mode, auto_start=auto_start)


class Connection(ConnectionFacade):
    """A connection; it may be shared by threads, each with sessions of its own."""

    def __init__(self, core: core_connection.Connection, runtime: SyncRuntime) -> None:
        super().__init__(core)
        self._runtime = runtime
        self._run = runtime.run

    @property
    def client_id(self) -> str | None:
        """The client id that was given or set; ``None`` for a generated one. It can be set once, before the connection
        is used (S122).

        Raises (on setting):
            IllegalStateException: it is set, or the connection was used.
            InvalidClientIDException: it is empty, or in use at the broker.
        """
        info = self._core.channel.info
        return info.client_id if info.explicit_client_id else None

    @client_id.setter
    def client_id(self, value: str) -> None:
        self._run(self._core.set_client_id(value))

    def start(self) -> None:
        """Let messages flow to the consumers (S120)."""
        self._core.start()

    def stop(self) -> None:
        """Hand out no message until ``start``; waits for listeners at work (S120)."""
        self._run(self._core.stop())

    def create_session(self, ack_mode: int = AckMode.AUTO_ACKNOWLEDGE, *, transacted: bool | None = None) -> Session:
        """Return a session (S1-S6).

        Args:
            ack_mode: an :class:`AckMode` or its number.
            transacted: ``True`` forces a transacted session, ``None`` follows the mode.

        Raises:
            TypeError: ``ack_mode`` is a ``bool``, as in the Java call.
            JMSException: the mode is unknown, or contradicts ``transacted``.
        """
        return Session(self._run(self._core.create_session(ack_mode, transacted)), self._core)

    def close(self) -> None:
        """Close sessions and connection; idempotent; wakes blocked receivers, which get ``None`` (S123)."""
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
