"""The AMQP 1.0 provider: the core's verbs on one proton engine. Everything runs on the loop."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any, cast

import proton
from proton import symbol

from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import IllegalStateException, JMSException, JMSSecurityException
from pyjmsack.message import Message
from pyjmsack.providers.amqp.deadletter import DeadLetters
from pyjmsack.providers.amqp.dialect import Dialect, dialect_of
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.engine import AmqpEngine
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.subscription import AmqpLookup, durable_link_name, link_name, still_there
from pyjmsack.providers.amqp.temporary import AmqpTemporary
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Encoder, Inbound, Outbound, generations
from pyjmsack.spi.features import Capabilities, Level, broker_key
from pyjmsack.spi.provider import ProviderListener
from pyjmsack.spi.resources import (
    ConnectionInfo,
    ConnectionMetadata,
    ConsumerInfo,
    ProducerInfo,
    SessionInfo,
    TemporaryInfo,
)
from pyjmsack.types import Outcome
from pyjmsack.uri import BrokerUrl, parse_destination_options

__all__ = ["AmqpProvider"]

_DESIRED = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
_EXCLUSIVE_CLIENT_ID = "sole-connection-for-container"
_REFUSED = "amqp:connection-establishment-failed"
_NUDGE = 0.01
"""Seconds without an answer to an End after which Artemis is made to look: it keeps every second answer to itself until
another frame comes, or its own timer after up to 2 s (docs/broker-facts.md, 13)."""


class AmqpProvider:
    """One connection to one broker."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        self._url = url
        self._connector = connector
        self.generation = 0
        self._engine: AmqpEngine | None = None
        self._info: ConnectionInfo | None = None
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None
        self._closing: Completion[None] | None = None
        self._sessions: dict[int, AmqpSession] = {}
        self._ending: dict[int, AmqpSession] = {}
        """Sessions whose End is not answered yet."""
        self._senders: dict[int, AmqpSender] = {}
        self._receivers: dict[int, AmqpReceiver] = {}
        self._temporaries: dict[int, AmqpTemporary] = {}
        self._lookups = count(1)
        self._transacted: dict[int, AmqpSession] = {}
        self._dirty: list[AmqpReceiver] = []
        self._dialect = self._find_dialect({})
        self._marks_repetitions = False
        self._dead_letters: DeadLetters | None = None

    # -- connection ---------------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, then SASL, Open and Begin.

        The Begin is there for its answer: a broker that refuses the login or the client id sends an Open first, so
        that only what follows tells whether the connection is really open.
        """
        self._info, self._listener, self._opening = info, listener, done
        self.generation = next(generations)
        amqp = self._url.amqp
        if not amqp.sasl_layer and info.username is not None:
            self._opening = None
            done.fail(JMSSecurityException("amqp.saslLayer=false leaves no way to send the user name that was given"))
            return
        engine = self._engine = AmqpEngine(
            self,
            self._sasl if amqp.sasl_layer else None,
            trace=amqp.trace_frames_payload_limit if amqp.trace_frames else None,
            trace_bytes=self._url.transport.trace_bytes,
        )
        self._connector.connect(self._url.endpoints[0], engine, self._not_connected)

    def _not_connected(self, error: Exception) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)

    def _sasl(self, encrypted: bool) -> SaslClient:
        info = self._the_info
        return SaslClient(
            info.username,
            info.password,
            external=encrypted and self._has_certificate,
            allowed=self._url.amqp.sasl_mechanisms,
            hostname=self._hostname,
        )

    @property
    def _hostname(self) -> str:
        vhost = self._url.amqp.vhost
        return self._url.endpoints[0].host if vhost is None else vhost

    @property
    def _has_certificate(self) -> bool:
        """Whether to offer EXTERNAL; an ``ssl.SSLContext`` cannot be asked for its certificate, so the URL says it."""
        named = "EXTERNAL" in (name.upper() for name in self._url.amqp.sasl_mechanisms)
        return named or self._url.transport.key_store_location is not None

    @property
    def _the_info(self) -> ConnectionInfo:
        assert self._info is not None  # connect() came first
        return self._info

    @property
    def _the_listener(self) -> ProviderListener:
        assert self._listener is not None  # connect() came first
        return self._listener

    @property
    def _the_engine(self) -> AmqpEngine:
        if self._engine is None:
            raise IllegalStateException("the connection is not open")
        return self._engine

    def on_ready(self) -> None:
        """SASL is over: send Open and Begin in one burst."""
        engine, info, amqp = self._the_engine, self._the_info, self._url.amqp
        connection, transport = engine.connection, engine.transport
        connection.container = info.client_id
        if self._hostname:
            connection.hostname = self._hostname
        desired = _DESIRED + ((_EXCLUSIVE_CLIENT_ID,) if info.explicit_client_id else ())
        connection.desired_capabilities = [symbol(name) for name in desired]
        connection.properties = {
            symbol("product"): "pyjmsack",
            symbol("version"): version("pyjmsack"),
            symbol("platform"): f"Python/{platform.python_version()}",
        }
        transport.max_frame_size = amqp.max_frame_size
        transport.channel_max = amqp.channel_max
        if amqp.idle_timeout is not None:
            transport.idle_timeout = amqp.idle_timeout
        connection.open()
        self._open_session(0, AmqpSession(engine, connection.session(), False)).add_callback(self._on_first_session)

    def on_remote_open(self) -> None:
        """The answer to Open; only the Begin that follows makes it count."""
        self._dialect = self._find_dialect(self._remote_properties())
        name = self._dialect.dead_letters
        queue = None if name is None else Queue(self._url.amqp.dead_letter_queue or name)
        address = "" if queue is None else self.address(queue)
        self._dead_letters = DeadLetters(self._the_engine, self._sessions[0], queue, address)

    def _find_dialect(self, properties: Mapping[str, object]) -> Dialect:
        named = broker_key(str(properties.get("product", "")), str(properties.get("version", "")))
        options = self._url.connection
        return dialect_of(self._url.broker or named, properties, options.queue_prefix, options.topic_prefix)

    def _remote_properties(self) -> dict[str, object]:
        properties = self._the_engine.connection.remote_properties or {}
        return {str(key): value for key, value in cast(dict[Any, object], properties).items()}

    def _on_first_session(self, session: Completion[None]) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        if session.error is not None:
            opening.fail(session.error)
        else:
            opening.succeed(self._metadata())

    def _metadata(self) -> ConnectionMetadata:
        properties = self._remote_properties()
        offered = {str(name) for name in self._the_engine.connection.remote_offered_capabilities or []}
        product, version = str(properties.get("product", "unknown")), str(properties.get("version", "unknown"))
        table = self._dialect.features(offered, scheduler=self._url.scheduler)
        detects = table["duplicate-detection"].level is not Level.REFUSED
        self._marks_repetitions = self._the_info.resends and detects
        return ConnectionMetadata(
            protocol="AMQP 1.0",
            broker_name=product,
            broker_version=version,
            provider_version=f"python-qpid-proton {proton.VERSION_MAJOR}.{proton.VERSION_MINOR}.{proton.VERSION_POINT}",
            capabilities=Capabilities(table, offered),
            properties=properties,
            broker=self._dialect.broker,
            url=str(self._url),
            encrypted=self._url.endpoints[0].tls,
        )

    def close(self, done: Completion[None]) -> None:
        """Send Close; ``done`` when the peer answered or is gone."""
        engine = self._engine
        if engine is None or engine.failed is not None:
            done.succeed()
            return
        self._closing = done
        self._when_copied(lambda _: True, partial(self._close_engine, engine))

    @staticmethod
    def _close_engine(engine: AmqpEngine) -> None:
        if engine.failed is None:
            engine.close_connection()

    def _when_copied(self, concerns: Callable[[AmqpReceiver], bool], then: Callable[[], None]) -> None:
        """End links when what they brought is dead-lettered."""
        if self._dead_letters is None:
            then()
        else:
            self._dead_letters.afterwards(concerns, then)

    def abort(self, error: BaseException) -> None:
        """Fail everything with ``error`` and drop the stream."""
        engine, self._engine = self._engine, None
        self._fail_everything(error)
        self._connector.cancel()
        if engine is not None:
            engine.abort(error)

    def flush(self) -> None:
        """Write what is pending."""
        if self._engine is not None:
            self._engine.flush()

    def on_failure(self, error: JMSException) -> None:
        """The connection is over, because we closed it or otherwise."""
        closing, self._closing = self._closing, None
        if closing is None and self._opening is None and self._listener is not None:
            self._listener.on_failure(error)
        self._fail_everything(error)
        if closing is not None:
            closing.succeed()

    def _fail_everything(self, error: BaseException) -> None:
        sessions = [*self._sessions.values(), *self._ending.values()]
        links = (self._senders, self._receivers, self._temporaries)
        for table in (self._sessions, *links, self._transacted, self._ending):
            cast(dict[int, object], table).clear()
        opening, self._opening = self._opening, None
        for session in sessions:
            session.fail(error)
        if opening is not None:
            opening.fail(error)

    def on_burst_end(self) -> None:
        """Wake each consumer that got something, once."""
        if self._dirty:
            dirty, self._dirty[:] = self._dirty[:], []
            for receiver in dirty:
                receiver.burst_end()

    # -- sessions, producers, consumers -------------------------------------------------------------------------

    def _open_session(self, number: int, session: AmqpSession) -> Completion[None]:
        self._sessions[number] = session
        opened: Completion[None] = Completion()
        session.open(opened)
        return opened

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Begin a session; a transacted one with its coordinator and first transaction."""
        if not self._usable(done):
            return
        session = AmqpSession(
            self._the_engine,
            self._the_engine.connection.session(),
            info.transacted,
            partial(self._the_listener.on_resource_closed, info.id),
        )
        if info.transacted:
            self._transacted[info.id] = session
        self._open_session(info.id, session).add_callback(lambda c: done.settle(c.error))

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session."""
        end = partial(self._end_session, session_id, done)
        self._when_copied(lambda receiver: receiver.info.session_id == session_id, end)

    def _end_session(self, session_id: int, done: Completion[None]) -> None:
        self._transacted.pop(session_id, None)
        session = self._sessions.pop(session_id, None)
        if session is None:
            done.succeed()
            return
        for number in session.links:
            self._senders.pop(number, None)
            self._receivers.pop(number, None)
        self._ending[session_id] = session
        done.add_callback(lambda _: self._ending.pop(session_id, None))
        if self._dialect.broker == "artemis":
            nudge = self._connector.call_later(_NUDGE, self._the_engine.nudge)
            done.add_callback(lambda _: nudge.cancel())
        session.close(done)

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Attach a sender."""
        session = self._session(info.session_id, done)
        if session is None:
            return
        sender = AmqpSender(
            self._the_engine,
            session.new_sender(f"pyjmsack:producer:{info.id}:{self._the_info.client_id}"),
            info,
            None if info.destination is None else self.address(info.destination),
            session.next_tag,
            session.send_state,
            partial(self._the_listener.on_resource_closed, info.id),
        )
        self._senders[info.id] = sender
        session.links[info.id] = sender
        sender.open(done)

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Detach a sender."""
        self._close_link(self._senders.pop(producer_id, None), done)

    def create_consumer(self, info: ConsumerInfo, done: Completion[None]) -> None:
        """Attach a receiver."""
        session = self._session(info.session_id, done)
        if session is None:
            return
        explicit = self._the_info.explicit_client_id
        name = f"pyjmsack:consumer:{info.id}:{self._the_info.client_id}"
        if info.subscription is not None:
            name = link_name(info.subscription, explicit)
        receiver = AmqpReceiver(
            self._the_engine,
            session.new_receiver(name),
            info,
            self.address(info.destination),
            explicit_client_id=explicit,
            generation=self.generation,
            dirty=self._dirty,
            connector=self._connector,
            drain_timeout=self._url.amqp.drain_timeout,
        )
        self._receivers[info.id] = receiver
        session.links[info.id] = receiver
        receiver.open(done)

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Detach a receiver."""
        receiver = self._receivers.pop(consumer_id, None)
        self._when_copied(lambda copied: copied is receiver, partial(self._close_link, receiver, done))

    def _close_link(self, link: AmqpSender | AmqpReceiver | AmqpTemporary | None, done: Completion[None]) -> None:
        if link is None:
            done.succeed()
            return
        session_id = 0 if isinstance(link, AmqpTemporary) else link.info.session_id
        session = self._sessions.get(session_id)
        if session is not None:  # it stays the session's until the peer answers: a lost connection must end the wait
            done.add_callback(lambda _: session.links.pop(link.info.id, None))
        link.close(done)

    # -- temporary destinations and subscriptions: on the connection's own session ------------------------------

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Attach to a dynamic node (S132)."""
        session = self._session(0, done)
        if session is None:
            return
        name = f"pyjmsack:temporary:{info.id}:{self._the_info.client_id}"
        temporary = AmqpTemporary(self._the_engine, session.new_sender(name), info)
        self._temporaries[info.id] = session.links[info.id] = temporary
        temporary.create(done)

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Close the link of a dynamic node: its lifetime ends."""
        self._close_link(self._temporaries.pop(temporary_id, None), done)

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Attach to a durable subscription by its name, close, and look whether it is gone (S141)."""
        closed: Completion[None] = Completion()
        closed.add_callback(lambda _: self._confirm_unsubscribed(name, closed.error, done))
        self._look_up(name, closed, delete=True)

    def _confirm_unsubscribed(self, name: str, error: BaseException | None, done: Completion[None]) -> None:
        """Artemis keeps, in silence, a subscription that has a consumer on another connection."""
        if error is not None:
            done.fail(error)
            return
        found: Completion[None] = Completion()
        found.add_callback(lambda _: done.settle(still_there(name, found.error)))
        self._look_up(name, found, delete=False)

    def _look_up(self, name: str, done: Completion[None], *, delete: bool) -> None:
        session = self._session(0, done)
        if session is None:
            return
        explicit = self._the_info.explicit_client_id
        receiver = session.new_receiver(durable_link_name(name, explicit))
        link = AmqpLookup(self._the_engine, receiver, name, explicit_client_id=explicit, delete=delete)
        number = -next(self._lookups)  # links of the core have positive ones
        session.links[number] = link
        done.add_callback(lambda _: session.links.pop(number, None))
        link.run(done)

    def _usable(self, done: Completion[Any]) -> bool:
        error = IllegalStateException("not connected") if self._engine is None else self._engine.failed
        if error is not None:
            done.fail(error)
        return error is None

    def _session(self, session_id: int, done: Completion[Any]) -> AmqpSession | None:
        session = self._sessions.get(session_id)
        if session is None or session.closed is not None:
            done.fail(self._lost(session))
            return None
        return session

    def _lost(self, session: AmqpSession | None = None) -> JMSException:
        """Say why something is not there any more."""
        if session is not None and session.closed is not None:
            return session.closed
        if self._engine is not None and self._engine.failed is not None:
            return self._engine.failed
        return IllegalStateException("it is closed")

    # -- flow and messages --------------------------------------------------------------------------------------

    def start_consumer(self, consumer_id: int) -> None:
        """Open the credit window."""
        self.replenish(consumer_id)

    def replenish(self, consumer_id: int) -> None:
        """Top up credit (S53)."""
        receiver = self._receivers.get(consumer_id)
        if receiver is not None:
            receiver.replenish()

    def pull(self, consumer_id: int) -> None:
        """Grant one credit (S50)."""
        receiver = self._receivers.get(consumer_id)
        if receiver is not None:
            receiver.pull()

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Use up the credit now."""
        receiver = self._receivers.get(consumer_id)
        if receiver is None:
            done.fail(self._lost())
        else:
            receiver.drain(done)

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Stop deliveries to the sink."""
        receiver = self._receivers.get(consumer_id)
        if receiver is None:
            done.succeed()
        else:
            receiver.stop(done)

    def send(self, outbound: Outbound) -> None:
        """Transfer, or queue for credit."""
        sender = self._senders.get(outbound.producer_id)
        if sender is None:
            outbound.done(self._lost())
        else:
            sender.send(outbound)

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send that timed out, if it did not leave yet."""
        sender = self._senders.get(outbound.producer_id)
        withdrawn.succeed(sender is not None and sender.withdraw(outbound))

    def settle(self, inbound: Inbound, outcome: Outcome) -> None:
        """Send an outcome, unless the delivery is of an earlier connection or its link is gone (S95, S96)."""
        receiver = self._receivers.get(inbound.consumer_id)
        if receiver is None or inbound.generation != self.generation:
            return
        session = self._transacted.get(receiver.info.session_id) if outcome is Outcome.ACCEPTED else None
        template = None
        if session is not None:
            try:
                template = session.ack_state()
            except JMSException:  # the transaction is lost: the message goes back when it ends (S79, S87)
                session.orphans.append((receiver, cast(AmqpInbound, inbound)))
                return
        delivery, wanted = cast(AmqpInbound, inbound), self._dialect.outcome(outcome)
        if self._dead_letters is None or not self._dead_letters.take(receiver, delivery, wanted):
            receiver.settle(delivery, wanted, template)

    # -- transactions -------------------------------------------------------------------------------------------

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Declare the next transaction."""
        session = self._session(session_id, done)
        if session is not None:
            session.declare(done)

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Discharge."""
        session = self._session(session_id, done)
        if session is not None:
            session.discharge(done, fail=False)

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Discharge as failed."""
        session = self._session(session_id, done)
        if session is not None:
            session.discharge(done, fail=True)

    # -- names and encoding -------------------------------------------------------------------------------------

    def address(self, destination: Destination) -> str:
        """Return the name of a node in this broker's dialect."""
        return self._dialect.address(destination)

    def encoder(self, destination: Destination) -> Encoder:
        """Return the encoder of messages for one destination."""
        marks = parse_destination_options(destination).duplicate_detection
        if marks is None:
            marks = self._marks_repetitions
        return partial(_encode, self.address(destination), self.address, marks)

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Undo the encoding."""
        return AmqpInbound(payload).to_sent(destination)


def _encode(
    address: str, address_of: Callable[[Destination], str], marks_repetitions: bool, message: Message, ttl_ms: int
) -> bytes:
    return encode(message, address, ttl_ms, address_of, marks_repetitions=marks_repetitions)
