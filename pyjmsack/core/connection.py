"""A connection: its life, its sessions, and who hears of its failures (S120-S129)."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from pyjmsack.core.recording import Recorder
from pyjmsack.core.remote_close import RemoteClose
from pyjmsack.core.runtime import Dispatcher, Runtime, all_called
from pyjmsack.core.session import Session
from pyjmsack.core.steps import Deadline, Steps, request, together
from pyjmsack.core.subscriptions import Subscriptions
from pyjmsack.core.temporaries import Temporaries
from pyjmsack.core.transformer import Transform, hook
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    JMSException,
    UnsupportedFeatureException,
)
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.demands import check_consumer, check_session, require
from pyjmsack.spi.ledger import Ledger
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata, ConsumerInfo, SessionInfo
from pyjmsack.types import AckMode
from pyjmsack.uri import BrokerUrl

__all__ = ["Connection"]

log = logging.getLogger("pyjmsack")
_UNNAMED = "setting the client id was given up, so the connection is not open; set the client id again, or close it"
T = TypeVar("T")


class Connection:
    """The core of one connection.

    Args:
        url: the parsed broker URL.
        runtime: how this face reaches the loop and runs user code.
        provider: not connected yet.
        info: who connects.
        ledger: is told of each send, delivery and event; ``None`` = nobody is.
    """

    def __init__(
        self,
        url: BrokerUrl,
        runtime: Runtime,
        provider: Provider,
        info: ConnectionInfo,
        ledger: Ledger | None = None,
    ) -> None:
        self.url = url
        self.options = url.connection
        self.runtime = runtime
        self.submit, self.submit_lazily = runtime.submit, runtime.submit_lazily
        self.provider = provider
        self.info = info
        self.recorder = None if ledger is None else Recorder(self, ledger)
        self.metadata: ConnectionMetadata | None = None
        self.failure: BaseException | None = None
        self.lost_generation = 0
        """Number of the last connection that was lost and rebuilt: what it delivered comes again (S95)."""
        self.started = False
        self.closed = False
        self.used = False
        """Whether anything was done that forbids a new client id (S122)."""
        self.sessions: dict[int, Session] = {}
        self.subscriptions = Subscriptions(self)
        self.temporaries = Temporaries(self)
        self.exception_listener: Callable[[JMSException], Any] | None = None
        self.listeners: list[Any] = []
        self._remote_closes: WeakValueDictionary[int, RemoteClose] = WeakValueDictionary()
        self.message_id_prefix = f"{self.options.connection_id_prefix}{uuid.uuid4()}"
        self._ids = itertools.count(1)
        self._events: Dispatcher | None = None
        self._closing: Completion[None] | None = None
        self._warns = False
        self._given_up = False
        """Whether a caller gave up while the connection was being opened under another client id."""
        self.max_frame_size = _max_frame_size(url)
        self.transformer: object | None = None
        self.transform_sent: Transform | None = None
        self.transform_received: Transform | None = None

    def set_transformer(self, transformer: object | None) -> None:
        """Let hooks replace messages from now on (S192).

        Raises:
            TypeError: it has none, or one that cannot be called here.
        """
        sent, received = hook(transformer, "producer_transform"), hook(transformer, "consumer_transform")
        self.transformer, self.transform_sent, self.transform_received = transformer, sent, received

    def next_id(self) -> int:
        """Return an id for a resource, unique on this connection."""
        return next(self._ids)

    @property
    def the_metadata(self) -> ConnectionMetadata:
        """What the broker said of itself; raises before the connection is open."""
        if self.metadata is None:
            raise IllegalStateException("the connection is not open")
        return self.metadata

    @property
    def usable(self) -> bool:
        """Whether ``check_open`` would pass."""
        return not self.closed and not self._given_up and self.failure is None

    def check_open(self) -> None:
        """Raise if it was closed, or lost (S125, S128)."""
        if self.closed:
            raise IllegalStateException("the connection is closed")
        if self._given_up:
            raise IllegalStateException(_UNNAMED)
        if self.failure is not None:
            raise _lost(self.failure)

    def require(self, feature: str) -> None:
        """Raise if this protocol and broker cannot honour a feature, before anything is asked of the broker (S119).

        Raises:
            UnsupportedFeatureException: the table of features says so, and why.
        """
        require(self.the_metadata, feature)

    def check_features(self, info: ConsumerInfo) -> None:
        """Raise if a consumer asks for what this protocol and broker cannot honour (S119, S144, S147)."""
        check_consumer(self.the_metadata, info)
        subscription = info.subscription
        if info.pending_limit and "pending-limit" not in self.the_metadata.capabilities:
            log.warning("%s: consumer.maximumPendingMessageLimit has no effect at this broker", info.destination.name)
        if subscription is not None and subscription.shared and info.no_local:
            raise UnsupportedFeatureException("no_local is not for shared subscriptions (S147)")

    # -- open ---------------------------------------------------------------------------------------------------

    def open(self) -> Steps[None]:
        """Connect and log in.

        Raises:
            JMSSecurityException, InvalidClientIDException, ConnectionLostException: the broker refused or is absent.
            RequestTimedOutException: it is silent for ``jms.connectTimeout`` (or ``transport.connectTimeout``).
        """
        done: Completion[ConnectionMetadata] = Completion()
        self.submit(self.provider.connect, self.info, self, done)
        try:
            what = f"opening a connection to {self.url}"
            # a failover URL limits each attempt, and the number of them
            timeout = None if self.url.members else self.options.connect_timeout
            self.metadata = yield from request(done, timeout, what, "jms.connectTimeout")
        except JMSException as error:
            self.submit(self.provider.abort, error)
            raise
        except BaseException:  # the caller gave up
            self.submit(self.provider.abort, ConnectionLostException("connecting was given up"))
            raise
        self.tell("on_connection_established", self._address())

    def set_client_id(self, client_id: str) -> Steps[None]:
        """Change the client id of a connection nobody used yet (S122).

        The broker knows a connection by the id of its Open frame, so the connection is opened anew under the new id.

        Raises:
            IllegalStateException: it was set before, or the connection was used.
            InvalidClientIDException: it is empty, or in use at the broker.
        """
        if self.closed or not self._given_up:
            self.check_open()
        if not isinstance(client_id, str) or not client_id.strip():
            raise InvalidClientIDException(f"client id {client_id!r}: expected a non-empty string (S122)")
        if self.info.explicit_client_id:
            raise IllegalStateException(f"the client id is already {self.info.client_id!r} and cannot change (S122)")
        if self.used or not self.options.await_client_id:
            raise IllegalStateException("the client id can be set only before the connection is used (S122)")
        closed: Completion[None] = Completion()
        self.submit(self.provider.close, closed)
        unnamed, self.info = self.info, ConnectionInfo(client_id, True, self.info.username, self.info.password)
        try:
            yield closed, self.options.close_timeout
            # one that did not answer must not be heard any more
            self.submit(self.provider.abort, IllegalStateException("the connection is opened anew"))
            yield from self.open()
        except JMSException as error:
            self.failure = error
            raise
        except BaseException:
            self.info, self._given_up = unnamed, True
            self.submit(self.provider.abort, IllegalStateException(_UNNAMED))
            raise
        self._given_up = False

    def create_session(self, ack_mode: int, transacted: bool | None) -> Steps[Session]:
        """Open a session (S1-S6).

        Raises:
            UnsupportedFeatureException: it would be transacted, this broker can keep that promise only in a weaker
                way, and the URL says ``strict=true`` (S88).
        """
        mode = AckMode.resolve(ack_mode, transacted)
        self.check_open()
        info = SessionInfo(self.next_id(), mode)
        check_session(self.the_metadata, info, strict=self.url.strict)
        self.used = True
        session = Session(self, info)
        try:
            yield from session.opened()
            done: Completion[None] = Completion()
            self.submit(self.provider.create_session, session.info, done)
            yield from self.request(done, "creating a session", self.provider.close_session, session.info.id)
        except BaseException:
            session.forget()
            raise
        self.sessions[session.info.id] = session
        session.update()
        return session

    def request(self, done: Completion[T], what: str, undo: Callable[..., None], number: int) -> Steps[T]:
        """Wait for the answer to a request, bounded by ``jms.requestTimeout``; in vain, close what it may yet open.

        The broker is told so when it has answered: the provider sees to that.
        """
        try:
            return (yield from self.await_answer(done, what))
        except BaseException:
            if done.error is None:
                self.submit(undo, number, Completion())
            raise

    def await_answer(self, done: Completion[T], what: str) -> Steps[T]:
        """Wait for the answer to a request that leaves nothing behind, bounded by ``jms.requestTimeout``."""
        return (yield from request(done, self.options.request_timeout, what, "jms.requestTimeout"))

    def warn_if_never_started(self) -> None:
        """A consumer was made: say so if the connection is still not started a while later, a beginner's trap."""
        delay = self.options.warn_about_unstarted_connection_timeout
        if delay is not None and not self.started and not self._warns:
            self._warns = True
            self.runtime.call_later(delay, self._warn_unstarted)

    def _warn_unstarted(self) -> None:
        self._warns = False
        if not self.started and not self.closed and self.failure is None:
            log.warning("%s has consumers but was not started: nothing arrives before connection.start()", self.url)

    def answer(self, done: Completion[None], what: str, timeout: float | None) -> Steps[None]:
        """Wait for the answer to a close; closing something that is lost, or a silent peer, is no error (S123)."""
        yield done, timeout
        if not done.done:
            log.warning("%s: no answer within jms.closeTimeout; going on", what)
        elif done.error is not None:
            log.debug("%s: %s", what, done.error)

    # -- start, stop --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let messages flow; again after a stop, without loss (S120)."""
        self.check_open()
        self.used = True
        if not self.started:
            self.started = True
            for session in [*self.sessions.values()]:
                session.update()

    def stop(self) -> Steps[None]:
        """Hand out nothing more, and wait for the listeners at work (S120).

        Raises:
            IllegalStateException: called from a message listener of this connection (S14).
        """
        self.check_open()
        self._check_not_in_listener("stop")
        self.started = False
        for session in [*self.sessions.values()]:
            session.update()
        for session in [*self.sessions.values()]:
            yield from session.handler_idle()

    def _check_not_in_listener(self, what: str) -> None:
        for session in [*self.sessions.values()]:
            if session.in_listener():
                raise IllegalStateException(f"a message listener may not {what} its own connection (S14)")
            session.check_not_in_callback(f"connection.{what}()")

    # -- close --------------------------------------------------------------------------------------------------

    def close(self) -> Steps[None]:
        """Close sessions and connection; idempotent, concurrent calls wait for the first (S123).

        Raises:
            IllegalStateException: called from a listener of this connection (S14, S74).
        """
        if self._closing is not None:
            if self._events is None or not self._events.running_here():  # else the first closer waits for this listener
                yield self._closing, self.options.close_timeout
            return
        self._check_not_in_listener("close")
        closing: Completion[None] = Completion()
        finished = False
        try:
            self._closing = closing
            deadline = Deadline(self.options.close_timeout)
            yield from together([session.close(deadline) for session in [*self.sessions.values()]], deadline)
            self.closed = True
            done: Completion[None] = Completion()
            self.submit(self.provider.close, done)
            yield from self.answer(done, f"closing the connection to {self.url}", deadline.remaining())
            self.submit(self.provider.abort, IllegalStateException("the connection is closed"))
            finished = True
            if self._events is not None:
                yield from all_called(self._events, deadline)
                self._events.close()
        finally:
            try:
                self.closed = True
                self.temporaries.end()
                if not finished:  # the caller gave up: drop it without waiting
                    self.submit(self.provider.abort, IllegalStateException("the connection is closed"))
            finally:
                closing.succeed()

    # -- failure ------------------------------------------------------------------------------------------------

    def on_failure(self, error: BaseException) -> None:
        """The provider lost the connection: everybody who waits is told, then the exception listener, once (S128)."""
        if self.closed or self.failure is not None:
            return
        self.failure = error
        self.temporaries.end()
        for session in [*self.sessions.values()]:
            for consumer in [*session.consumers.values()]:
                consumer.detached(error)
        self.tell("on_connection_failure", error)
        self.report(error)

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        """The connection is lost and is being rebuilt: callers go on waiting, and the exception listener is not told
        (S101, S109)."""
        self.lost_generation = generation
        for session in [*self.sessions.values()]:
            session.interrupted()
        self.tell("on_connection_interrupted", self._address())

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        """The connection is there again, with all that was open (S103, S109)."""
        self.metadata = metadata
        for session in [*self.sessions.values()]:
            session.restored()
        self.tell("on_connection_restored", self._address())

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        """A temporary destination works on, under the name that the new broker gave it (S133)."""
        self.temporaries.renamed(temporary_id, name)

    def remote_close(self, number: int, event: str) -> RemoteClose:
        """Return what tells the listeners if the broker closes a resource, which keeps it as long as it lives."""
        self._remote_closes[number] = remote_close = RemoteClose(self, event)
        return remote_close

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer, and not the connection (S109)."""
        remote_close = self._remote_closes.get(number)
        if remote_close is not None:
            remote_close.happened(error)

    def _address(self) -> str:
        """Return the address of the broker in use."""
        return (self.metadata.url if self.metadata is not None else "") or str(self.url)

    def report(self, error: BaseException) -> None:
        """Give an error that no caller waits for to the exception listener, on its own thread (S64, S126-S128)."""
        listener = self.exception_listener
        if listener is None:
            log.error("no exception listener is set for: %s", error)
            return
        jms = error if isinstance(error, JMSException) else JMSException(str(error))
        self._event_dispatcher().submit(partial(listener, jms))

    def tell(self, event: str, *arguments: object) -> None:
        """Call this method of each listener that has it, on their own thread; record the event."""
        if self.recorder is not None:
            failed = type(arguments[-1]).__name__ if isinstance(arguments[-1], BaseException) else ""
            self.recorder.event(event.removeprefix("on_").removeprefix("connection_"), failed)
        for listener in self.listeners:
            method = getattr(listener, event, None)
            if method is not None:
                self._event_dispatcher().submit(partial(method, *arguments))

    def add_listener(self, listener: object) -> None:
        """Tell ``listener`` of this connection's events, beginning with its establishment if that is past."""
        self.listeners.append(listener)
        method = getattr(listener, "on_connection_established", None)
        if method is not None and self.metadata is not None and self.failure is None:
            self._event_dispatcher().submit(partial(method, self._address()))

    def _event_dispatcher(self) -> Dispatcher:
        if self._events is None:
            self._events = self.runtime.dispatcher("pyjmsack-events")
        return self._events


def _max_frame_size(url: BrokerUrl) -> int | None:
    """Return the least ``wireFormat.maxFrameSize`` of the brokers: a message must pass at each of them."""
    streams = [member.transport for member in url.members or (url,)]
    limits = [stream.max_frame_size for stream in streams if stream.max_frame_size_enabled]
    return min((limit for limit in limits if limit is not None), default=None)


def _lost(cause: BaseException) -> JMSException:
    """Return an error of the caller's own for a connection that failed."""
    if isinstance(cause, JMSException):
        return cause.fresh()
    error = ConnectionLostException(str(cause))
    error.__cause__ = cause
    return error
