"""A connection: its opening and closing, its sessions, and the listeners that get its failures (S120-S129)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyjmsack.core.channel import UNNAMED, Channel, State
from pyjmsack.core.recorder import Recorder
from pyjmsack.core.runtime import Runtime
from pyjmsack.core.session import Session, SessionFace
from pyjmsack.core.steps import Deadline, Steps, answered, ended, give_up, together
from pyjmsack.core.subscriptions import Subscriptions
from pyjmsack.core.temporaries import Temporaries
from pyjmsack.core.tracing import Traces
from pyjmsack.core.transformer import Transforms
from pyjmsack.destination import Destination
from pyjmsack.errors import ConnectionLostException, IllegalStateException, InvalidClientIDException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.spi.completion import Completion, all_answered
from pyjmsack.spi.demands import check_session
from pyjmsack.spi.ledger import Ledger
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata, SessionInfo
from pyjmsack.spi.tracing import Tracing
from pyjmsack.types import AckMode, ConnectionState
from pyjmsack.uri import BrokerUrl

__all__ = ["Connection"]

log = get_logger("pyjmsack")


class Connection:
    """The core of one connection.

    Args:
        url: the parsed broker URL.
        runtime: how this face reaches the loop and runs user code.
        provider: speaks the protocol; not connected yet.
        info: client id and login.
        face: makes the object that serves a session in this face.
        transformer: an object with hooks that replace messages (S192).
        ledger: records each send, delivery and event. ``None`` means that there is no ledger.
        tracing: makes spans of sends and deliveries. ``None`` means that there are no spans.

    Raises:
        TypeError: the transformer has no hook, or one of its hooks is not a plain function.
    """

    def __init__(
        self,
        url: BrokerUrl,
        runtime: Runtime,
        provider: Provider,
        info: ConnectionInfo,
        face: Callable[[Session], SessionFace],
        *,
        transformer: object | None = None,
        ledger: Ledger | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.recorder = None if ledger is None else Recorder(ledger, str(url))
        traces = None if tracing is None else Traces(tracing, runtime)
        self.channel = Channel(url, runtime, provider, info, Transforms(transformer), self.recorder, traces)
        self.events = self.channel.events
        self.sessions: dict[int, Session] = {}
        self._face = face
        self._subscriptions = Subscriptions(self.channel)
        self.temporaries = Temporaries(self.channel, self._has_consumer_of)
        self._used = False
        """Whether the connection was used. After that, the client id cannot be changed any more (S122)."""
        self._closing: Completion[None] | None = None
        self._warns = False
        self._interrupted = False
        """True while the connection is lost and failover looks for a broker (S101)."""

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self.channel.state is State.CLOSED

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""
        channel = self.channel
        if channel.state is State.CLOSED:
            return ConnectionState.CLOSED
        if self._closing is not None:
            return ConnectionState.CLOSING
        if channel.state is State.FAILED:
            return ConnectionState.FAILED
        if channel.state is State.UNNAMED or channel.metadata is None:
            return ConnectionState.CONNECTING
        return ConnectionState.INTERRUPTED if self._interrupted else ConnectionState.CONNECTED

    def _has_consumer_of(self, destination: Destination) -> bool:
        sessions = [*self.sessions.values()]
        consumers = (consumer for session in sessions for consumer in [*session.consumers.values()])
        return any(not consumer.closed and consumer.info.destination == destination for consumer in consumers)

    # -- open ---------------------------------------------------------------------------------------------------

    def open(self) -> Steps[None]:
        """Connect and log in.

        Raises:
            JMSSecurityException, InvalidClientIDException, ConnectionLostException: the broker refuses the login, or
                cannot be reached.
            RequestTimedOutException: the broker does not answer within ``jms.connectTimeout`` (or
                ``transport.connectTimeout``).
        """
        channel, provider = self.channel, self.channel.provider
        done: Completion[ConnectionMetadata] = Completion()
        channel.submit(provider.connect, channel.info, self, done)
        # no deadline with a failover URL, because its options limit each attempt and the number of attempts
        deadline = Deadline(None if channel.url.members else channel.options.connect_timeout, "jms.connectTimeout")
        try:
            channel.leads_to((yield from answered(done, deadline, f"opening a connection to {channel.url}")))
        except JMSException as error:
            channel.submit(provider.abort, error)
            raise
        except BaseException:  # the caller gave up, for example by Ctrl-C
            channel.submit(provider.abort, ConnectionLostException("the caller gave up opening the connection"))
            raise
        self.events.tell("on_connection_established", channel.address)

    def set_client_id(self, client_id: str) -> Steps[None]:
        """Change the client id of a connection that was not used yet (S122).

        The connection is opened again with the new id, because a client sends its id only when it opens a connection.

        Raises:
            IllegalStateException: the id was set before, or the connection was used.
            InvalidClientIDException: the id is empty, or another connection to the broker has it.
        """
        channel, provider = self.channel, self.channel.provider
        if channel.state is not State.UNNAMED:
            channel.check_open()
        if not isinstance(client_id, str) or not client_id.strip():
            raise InvalidClientIDException(f"client id {client_id!r}: expected a non-empty string (S122)")
        if channel.info.explicit_client_id:
            raise IllegalStateException(f"the client id is already {channel.info.client_id!r} and cannot change (S122)")
        if self._used or not channel.options.await_client_id:
            raise IllegalStateException("the client id can be set only before the connection is used (S122)")
        closed: Completion[None] = Completion()
        channel.submit(provider.close, closed)
        unnamed = channel.info
        channel.info = ConnectionInfo(client_id, True, unnamed.username, unnamed.password)
        try:
            yield closed, channel.options.close_timeout
            # because a provider that did not answer in time must not report anything about the old connection later
            channel.submit(
                provider.abort, IllegalStateException("the connection is being opened again with its new client id")
            )
            yield from self.open()
        except JMSException as error:
            channel.failure, channel.state = error, State.FAILED
            raise
        except BaseException:
            channel.info, channel.state = unnamed, State.UNNAMED
            channel.submit(provider.abort, IllegalStateException(UNNAMED))
            raise
        channel.state = State.OPEN

    def create_session(self, ack_mode: int, transacted: bool | None) -> Steps[Session]:
        """Open a session (S1-S6).

        Raises:
            UnsupportedFeatureException: the session is transacted, the transactions of this broker are not atomic, and
                the URL has ``strict=true`` (S88).
        """
        mode = AckMode.resolve(ack_mode, transacted)
        channel, provider = self.channel, self.channel.provider
        channel.check_open()
        info = SessionInfo(channel.next_id(), mode)
        check_session(channel.the_metadata, info, strict=channel.url.strict)
        self._used = True
        session = Session(
            channel,
            info,
            self._subscriptions,
            self.temporaries,
            self._face,
            lambda number: self.sessions.pop(number, None),
            self._warn_if_never_started,
        )
        done: Completion[None] = Completion()
        try:  # before the request leaves, because Ctrl-C may come at any step
            yield from session.memory.opened()
            channel.submit(provider.create_session, info, done)
            yield from answered(done, channel.deadline(), "creating a session")
            self.sessions[info.id] = session
            session.update()
            return session
        except BaseException:
            if done.error is None:
                self.sessions.pop(info.id, None)
                channel.submit(provider.close_session, info.id, Completion())
            session.memory.close()
            raise

    def _warn_if_never_started(self) -> None:
        """Log a warning if the connection is still not started when ``jms.warnAboutUnstartedConnectionTimeout`` is
        over. Called when a consumer was made.
        """
        delay = self.channel.options.warn_about_unstarted_connection_timeout
        if delay is not None and not self.channel.started and not self._warns:
            self._warns = True
            self.channel.runtime.call_later(delay, self._warn_unstarted)

    def _warn_unstarted(self) -> None:
        self._warns = False
        if not self.channel.started and self.channel.usable:
            url = self.channel.url
            log.warning("%s has consumers but was not started: nothing arrives before connection.start()", url)

    # -- start, stop --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let messages flow, for the first time or after a stop. A stop loses no message (S120)."""
        self.channel.check_open()
        self._used = True
        if not self.channel.started:
            self.channel.started = True
            for session in [*self.sessions.values()]:
                session.update()

    def stop(self) -> Steps[None]:
        """Hand out no more messages, and wait until the running listeners have finished (S120).

        Raises:
            IllegalStateException: called from a message listener of this connection, or from a task that a listener
                started, and this listener did not end within ``jms.closeTimeout`` (S14).
        """
        self.channel.check_open()
        self._check_not_in_listener("stop")
        self.channel.started = False
        for session in [*self.sessions.values()]:
            session.update()
        deadline = Deadline(self.channel.options.close_timeout) if self._started_by_listener() else Deadline(None)
        for session in [*self.sessions.values()]:
            yield from session.dispatchers.idle(deadline)
        if self._started_by_listener():
            raise IllegalStateException(
                "the connection is stopped, but the message listener that started this task is still running, perhaps"
                " because the listener waits for this task (S14)"
            )

    def _started_by_listener(self) -> bool:
        return any(session.dispatchers.started_here() for session in [*self.sessions.values()])

    def _check_not_in_listener(self, what: str) -> None:
        for session in [*self.sessions.values()]:
            if session.dispatchers.running_here():
                raise IllegalStateException(f"a message listener may not {what} its own connection (S14)")
            session.check_not_in_callback(f"connection.{what}()")

    # -- close --------------------------------------------------------------------------------------------------

    def close(self) -> Steps[None]:
        """Close the sessions and the connection.

        A second call has no effect, and concurrent calls wait for the first (S123).

        Raises:
            IllegalStateException: called from a listener of this connection (S14, S74).
        """
        channel = self.channel
        if self._closing is not None:
            if not self.events.running_here():  # a listener must not wait here, because the first caller waits for it
                yield self._closing, channel.options.close_timeout
            return
        self._check_not_in_listener("close")
        closing: Completion[None] = Completion()
        finished, sessions = False, [*self.sessions.values()]
        try:
            self._closing = closing
            deadline = Deadline(channel.options.close_timeout)
            yield from together([session.close(deadline) for session in sessions], deadline)
            channel.state = State.CLOSED
            done: Completion[None] = Completion()
            channel.submit(channel.provider.close, done)
            yield from ended(done, deadline, f"closing the connection to {channel.url}")
            channel.submit(channel.provider.abort, IllegalStateException("the connection is closed"))
            finished = True
            yield from self.events.close(deadline)
            if channel.traces is not None:
                yield from channel.traces.close(deadline)
        finally:
            try:
                self._over(sessions, finished)
            finally:
                closing.succeed()

    def _over(self, sessions: list[Session], finished: bool) -> None:
        """Note that the connection is closed. If the caller gave up before, end the sessions and the connection without
        waiting."""
        channel = self.channel
        try:
            if not finished:
                for session in sessions:
                    give_up(session.close())  # also a second time: Ctrl-C may have ended the first close at any line
        finally:
            channel.state = State.CLOSED
            self.events.let_end()
            self.temporaries.end()
            if not finished:
                channel.submit(channel.provider.abort, IllegalStateException("the connection is closed"))

    # -- called by the provider, on the loop --------------------------------------------------------------------

    def on_failure(self, error: BaseException) -> None:
        """Remember that the provider lost the connection for good. Calls that wait for a message get the error. After
        that, the connection listeners and the exception listener are called, once (S128).
        """
        channel = self.channel
        if self.closed or channel.failure is not None:
            return
        channel.failure = error
        if channel.state is State.OPEN:
            channel.state = State.FAILED
        self.temporaries.end()
        for session in [*self.sessions.values()]:
            for consumer in [*session.consumers.values()]:
                consumer.detached(error)
        self.events.tell("on_connection_failure", error)
        self.events.report(error)

    def on_leaving(self, done: Completion[None]) -> None:
        """Send the acknowledgements that wait in batches or in the queue of commands, because the connection is about
        to leave a broker that still works (S43). Some acknowledgements wait until their messages are in the guard's
        file. ``done`` succeeds after these acknowledgements, too, are sent.
        """
        sessions = [*self.sessions.values()]
        for session in sessions:
            session.leaving()
        self.channel.runtime.run_queued()
        files = [session.memory.file for session in sessions if session.memory.file is not None]

        def behind_the_next() -> None:
            if files:
                files.pop().add((), behind_the_next)
            else:
                done.succeed()

        behind_the_next()

    def finish(self, done: Completion[None]) -> None:
        """Let ``done`` succeed when the broker has the acknowledgements and has answered each send so far. Called on
        the loop, because the program is ending. The consumers go on, because another function for the end of the
        program may use them.
        """
        sessions = [*self.sessions.values()]
        waits = [producer.window.when_answered for session in sessions for producer in [*session.producers.values()]]
        _all_over([self._hand_over_acknowledgements, *waits], done)

    def _hand_over_acknowledgements(self, done: Completion[None]) -> None:
        """Give the acknowledgements to the provider, and drain the consumers. The broker answers a drain after it has
        read the acknowledgements before it. ActiveMQ Classic drops those that it has not read when it cannot write
        another message to the ended program.

        Consumers without acknowledgements (S36) are left alone. Their drain would bring settled messages that nobody
        takes any more.
        """

        def drain(_: object) -> None:
            deliver = self.channel.started and not self._interrupted
            sessions = [*self.sessions.values()] if deliver else []
            infos = [consumer.info for session in sessions for consumer in [*session.consumers.values()]]
            drained = [info.id for info in infos if info.prefetch and not (info.browser or info.presettled)]
            _all_over([partial(self._drain_once, number) for number in drained], done)

        given: Completion[None] = Completion()
        given.add_callback(drain)
        self.on_leaving(given)

    def _drain_once(self, number: int, done: Completion[None]) -> None:
        """Drain a consumer, and let it get messages again."""
        provider = self.channel.provider
        done.add_callback(lambda _: provider.start_consumer(number))
        provider.drain(number, done)

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        """Remember that the connection is lost and is being restored.

        Callers go on waiting, and the exception listener gets no error (S101, S109).
        """
        self.channel.lost_generation = generation
        self._interrupted = True
        for session in [*self.sessions.values()]:
            session.interrupted()
        self.events.tell("on_connection_interrupted", self.channel.address)

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        """Remember that the connection is restored, with everything that was open (S103, S109)."""
        self.channel.leads_to(metadata)
        self._interrupted = False
        for session in [*self.sessions.values()]:
            session.restored()
        self.events.tell("on_connection_restored", self.channel.address)

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        """Change the name of a temporary destination, because the new broker chose another name (S133)."""
        self.temporaries.renamed(temporary_id, name)

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        """Call the listeners, because the broker closed a session or a producer, but not the connection (S109)."""
        self.events.resource_closed(number, error)

    def add_listener(self, listener: object) -> None:
        """Add a listener for the events of this connection. If the connection is open, call its
        ``on_connection_established``.
        """
        channel = self.channel
        established = channel.metadata is not None and channel.failure is None
        self.events.add(listener, channel.address if established else None)


def _all_over(waits: Sequence[Callable[[Completion[None]], None]], done: Completion[None]) -> None:
    """Let ``done`` succeed when all that is waited for is over, in success or failure."""
    asked: list[Completion[None]] = [Completion() for _ in waits]
    all_answered(asked).add_callback(lambda _: done.succeed())
    for wait, over in zip(waits, asked, strict=True):
        wait(over)
