"""The STOMP provider. It turns the requests of the core into frames of one connection. All methods run on the loop."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pyjmsack.destination import Destination
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    UnsupportedFeatureException,
)
from pyjmsack.message import Message
from pyjmsack.providers.stomp.dialect import StompDialect, dialect_of
from pyjmsack.providers.stomp.encode import encode
from pyjmsack.providers.stomp.engine import StompEngine
from pyjmsack.providers.stomp.errors import ConsumerEnded
from pyjmsack.providers.stomp.frames import Limits, Refusal
from pyjmsack.providers.stomp.header_lines import escape
from pyjmsack.providers.stomp.heads import check_connect_line, encode_head
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.receiver import StompReceiver, end_consumers
from pyjmsack.providers.stomp.session import StompSession
from pyjmsack.providers.stomp.stray_text import refuse_text
from pyjmsack.providers.stomp.subscriptions import Shared
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Encoder, Inbound, InboundSink, Outbound, Payload, StreamedPayload
from pyjmsack.spi.features import Capabilities, broker_key, features
from pyjmsack.spi.lifecycle import Lifecycle
from pyjmsack.spi.provider import ProviderListener
from pyjmsack.spi.resources import (
    ConnectionInfo,
    ConnectionMetadata,
    ConsumerInfo,
    ProducerInfo,
    SessionInfo,
    Subscription,
    TemporaryInfo,
)
from pyjmsack.spi.spellings import check_target
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import BrokerUrl
from pyjmsack.version import VERSION

__all__ = ["StompProvider"]

_TEMPORARY = "pyjmsack.temporary."
"""The beginning of the names of temporary destinations on Artemis, by which an operator can tell them from others."""

_VERSIONS = {"1.2": "1.1,1.2", "1.1": "1.1"}
_WILD = re.compile(rb"destination:[^\n]*[#*]")
_SERIAL = (AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE)


class StompProvider(Lifecycle[StompEngine]):
    """One connection to one broker."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        super().__init__(url, connector)
        self._dialect: StompDialect = dialect_of("unknown")
        self._escape = escape
        self._shared: Shared | None = None
        self._sessions: dict[int, StompSession] = {}
        self._producers: dict[int, int] = {}
        """The session of each producer. STOMP has no producers."""
        self._aliases: dict[int, str] = {}
        """The names of temporary destinations that are valid on this connection only."""
        self._receivers: dict[int, StompReceiver] = {}
        self._ending: dict[StompReceiver, None] = {}
        """Receivers that wait for the answer to UNSUBSCRIBE, the frame that ends a subscription."""

    # -- connection ---------------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, and send the CONNECT frame when the stream is open."""
        self._begin(info, listener, done)
        largest = min(self._url.stomp.max_frame_size, self._url.connection.max_message_size)
        options = replace(self._url.stomp, max_frame_size=largest)
        engine = self._engine = StompEngine(
            self,
            options,
            later=self._connector.call_later,
            trace_bytes=self._url.transport.trace_bytes,
            read=self._connector.read,
        )
        self._connector.connect(self._url.endpoints[0], engine, self._fail_opening)

    @property
    def _the_shared(self) -> Shared:
        if self._shared is None:
            raise IllegalStateException("the connection is not open")
        return self._shared

    def on_stream(self) -> None:
        """Write the CONNECT frame, which opens the connection."""
        try:
            self._the_engine.write(self._connect_frame())
        except JMSException as error:
            self._the_engine.fail(error)

    def _connect_frame(self) -> bytes:
        info, options = self._the_info, self._url.stomp
        beat = max(1, round(options.heart_beat * 1000))
        host = self._url.endpoints[0].host if options.vhost is None else options.vhost
        headers = {
            "accept-version": _VERSIONS[options.version],
            "host": host or None,
            "heart-beat": f"{beat},{beat}",
            "client-id": info.client_id,
            "login": info.username,
            "passcode": info.password,
        }
        for name, value in headers.items():  # CONNECT has no escapes, because STOMP 1.0 has none
            if value is not None:
                check_connect_line(name, value)
        lines = [f"{name}:{value}\n" for name, value in headers.items() if value is not None]
        return "".join(("CONNECT\n", *lines, "\n\0")).encode()

    def on_connected(self, headers: dict[str, str]) -> None:
        """Check the headers of the CONNECTED frame, and complete the opening of the connection."""
        spoken = headers.get("version", "1.0")
        if spoken not in _VERSIONS:
            raise ConnectionLostException(f"the broker wants to speak STOMP {spoken}; pyjmsack speaks 1.1 and 1.2")
        product, _, rest = headers.get("server", "unknown").partition("/")
        release = rest.split(" ", 1)[0] or "unknown"
        broker = self._url.broker or broker_key(product, release)
        options = self._url.connection
        dialect = self._dialect = dialect_of(broker, options.queue_prefix, options.topic_prefix)
        engine = self._the_engine
        engine.errors_end = dialect.errors_end
        if dialect.bare_text:
            engine.use_secret()
        self._escape = escape if spoken == "1.2" else _escape_11
        shared = self._shared = Shared(engine, self._connector, dialect, self.generation, str(self._url.endpoints[0]))
        shared.ack_by_id = spoken == "1.2"
        shared.client_id, shared.username = self._the_info.client_id, self._the_info.username or ""
        shared.drain_timeout = self._url.stomp.drain_timeout
        shared.dead_letters = self._url.stomp.dead_letter_queue or dialect.dead_letters
        table = features("stomp", broker, scheduler=self._url.scheduler)
        self._duplicate_detection = table["duplicate-detection"]
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.succeed(
                ConnectionMetadata(
                    protocol=f"STOMP {spoken}",
                    broker_name=product,
                    broker_version=release,
                    provider_version=f"pyjmsack {VERSION}",
                    capabilities=Capabilities(table),
                    properties=dict(headers),
                    broker=broker,
                    url=str(self._url),
                    encrypted=self._url.endpoints[0].tls,
                    transaction_guarantee="atomic" if dialect.transacted_acks else "at-least-once",
                )
            )

    def close(self, done: Completion[None]) -> None:
        """Send DISCONNECT, the last frame. When the broker confirms this frame, it has read all earlier frames, too."""
        engine = self._engine
        if engine is None or engine.failed is not None:
            done.succeed()
            return
        self._closing = done
        engine.ask(b"DISCONNECT", b"\n\0", self._disconnected)

    def _disconnected(self, error: BaseException | None) -> None:
        if error is None:
            self._parted = True
            self._the_engine.fail(ConnectionLostException("the connection is closed"))

    def abort(self, error: BaseException) -> None:
        """Fail all pending requests and sends with ``error``, and close the stream at once."""
        engine, self._engine = self._engine, None
        self._connector.cancel()
        if engine is not None:
            engine.abort(error)
        self._fail_everything(error)
        self._end_closing(error)

    def flush(self) -> None:
        """End a burst of calls: redeliver the messages that the core gave back in them, and write their frames."""
        if self._shared is not None and self._shared.giving_back:
            giving_back, self._shared.giving_back[:] = self._shared.giving_back[:], []
            for redelivery in giving_back:
                redelivery.redeliver()
        if self._engine is not None:
            self._engine.flush()

    def _fail_everything(self, error: BaseException) -> None:
        receivers = [*self._receivers.values(), *self._ending]
        self._receivers.clear()
        self._ending.clear()
        self._sessions.clear()
        self._producers.clear()
        self._shared = None
        lost = error if isinstance(error, JMSException) else ConnectionLostException(str(error))
        for receiver in receivers:
            receiver.fail(lost)
        self._fail_opening(error)

    def on_failure(self, error: JMSException) -> None:
        """End the consumers that cannot go on, before the connection counts as lost and failover restores the rest."""
        if isinstance(error, ConsumerEnded):
            end_consumers(error, [*self._receivers.values()])
        super().on_failure(error)

    def on_message(self, name: bytes, head: bytes, body: bytes, refusal: Refusal | None) -> None:
        """Give a message to the subscription of this name. A message for an ended subscription is dropped."""
        shared = self._shared
        if shared is None:
            raise ConnectionLostException("the broker sent a MESSAGE before CONNECTED")
        subscription = shared.subscriptions.get(name)
        if subscription is not None:
            subscription.receiver.deliver(subscription, head, body, refusal)

    def on_end_behind(self, name: bytes, head: bytes, most_ends: int) -> None:
        """Refuse a message whose text has a NUL, because the next connection would end behind it too."""
        refuse_text(self._the_shared, name, head, most_ends)

    def on_burst_end(self) -> None:
        """Wake each consumer that got messages in this burst. Each consumer is woken once."""
        shared = self._shared
        if shared is not None and shared.dirty:
            dirty, shared.dirty[:] = shared.dirty[:], []
            for receiver in dirty:
                receiver.burst_end()

    # -- sessions, producers, consumers -------------------------------------------------------------------------

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Create a session, which keeps consumers and a transaction together. STOMP has none, so nothing is sent."""
        if self._usable(done):
            self._sessions[info.id] = StompSession(self._the_shared, info)
            done.succeed()

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """Close a session. ``done`` succeeds when the broker has confirmed the end of the consumers of the session."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            done.succeed()
        else:
            session.close(done)

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Create a producer. This method sends nothing to the broker."""
        if self._session(info.session_id, done) is not None:
            self._producers[info.id] = info.session_id
            done.succeed()

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Forget a producer."""
        self._producers.pop(producer_id, None)
        done.succeed()

    def create_consumer(self, info: ConsumerInfo, sink: InboundSink, done: Completion[None]) -> None:
        """Create a consumer by a SUBSCRIBE frame. The broker delivers at once, and the core keeps the messages until it
        may hand them out."""
        session = self._session(info.session_id, done)
        if session is None:
            return
        refusal = self._refusal(info.subscription)
        if refusal is not None:
            done.fail(UnsupportedFeatureException(refusal))
            return
        try:
            receiver = StompReceiver(self._the_shared, info, sink, serial=session.info.ack_mode in _SERIAL)
        except JMSException as error:  # the frame cannot carry such a name or selector
            done.fail(error)
            return
        self._receivers[info.id] = receiver
        receiver.open(done)

    def _refusal(self, named: Subscription | None) -> str | None:
        """Return the reason why this broker cannot keep the promises of a subscription, or ``None`` if the broker can
        keep them.

        On Artemis, consumers can share a subscription by a fully qualified name (address and queue). But the queue of
        such a subscription stays after the last consumer, and ignores selectors.
        """
        if named is None or not self._dialect.routed:
            return None
        if not named.durable:
            return (
                "over STOMP this broker keeps a shared subscription after its last consumer; use a durable one (S143)"
            )
        if not self._the_info.explicit_client_id:
            return (
                "over STOMP this broker keeps a durable subscription by client id; give the factory a client id (S146)"
            )
        return None

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Close a consumer: end its subscriptions, and wait for the answer of the broker."""
        receiver = self._receivers.pop(consumer_id, None)
        if receiver is None:
            done.succeed()
            return
        session = self._sessions.get(receiver.info.session_id)
        self._ending[receiver] = None
        done.add_callback(partial(self._consumer_ended, receiver, session))
        if session is None:
            receiver.close(done)
        else:
            session.closing += 1
            session.after_commit(partial(receiver.close, done))

    def _consumer_ended(self, receiver: StompReceiver, session: StompSession | None, _: Completion[None]) -> None:
        self._ending.pop(receiver, None)
        if session is not None:
            session.consumer_ended()

    def _usable(self, done: Completion[Any]) -> bool:
        error = self._unusable
        if error is not None:
            done.fail(error)
        return error is None

    @property
    def _unusable(self) -> JMSException | None:
        engine = self._engine
        if engine is not None and engine.failed is not None:
            return engine.failed  # first, because it says why the connection ended (S125, S128)
        return IllegalStateException("the connection is not open") if engine is None or self._shared is None else None

    def _session(self, session_id: int, done: Completion[None]) -> StompSession | None:
        session = self._sessions.get(session_id)
        if session is None:
            done.fail(self._lost())
        return session

    def _lost(self) -> JMSException:
        """Return the error for a request about a closed object."""
        return self._unusable or IllegalStateException("the session, producer or consumer is closed")

    # -- temporary destinations and subscriptions ---------------------------------------------------------------

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Choose the name of a temporary destination. The broker creates the destination at its first use (S132)."""
        if not self._usable(done):
            return
        name = str(uuid.uuid4())
        if self._dialect.routed:
            name = _TEMPORARY + name
        else:
            name = f"/temp-{'topic' if info.kind.is_topic else 'queue'}/{name}"
            self._aliases[info.id] = name
        done.succeed(name)

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Forget a temporary destination. STOMP has no frame that deletes a destination. The broker deletes the
        destination after its last use or at the end of the connection."""
        self._aliases.pop(temporary_id, None)
        done.succeed()

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription that has no consumer now (S141)."""
        if not self._usable(done):
            return
        line = self._dialect.durable_line(Subscription(name, durable=True, shared=False))
        try:
            head = encode_head(f"id:{escape(name)}\n{line}\n", self._dialect.limits)
        except JMSException as error:
            done.fail(error)
            return
        self._the_engine.ask(b"UNSUBSCRIBE", head + b"\n\0", done.settle, unnamed=True)

    # -- flow and messages --------------------------------------------------------------------------------------

    def start_consumer(self, consumer_id: int) -> None:
        """Do nothing, because a STOMP broker delivers to a consumer as soon as the consumer is created."""

    def replenish(self, consumer_id: int) -> None:
        """Acknowledge messages that the caller need not acknowledge (S36), because the caller has taken messages and
        the inbox has room.

        In STOMP, acknowledgements make room in the window.
        """
        receiver = self._receivers.get(consumer_id)
        if receiver is not None:
            receiver.replenish()

    def make_room(self, consumer_id: int) -> None:
        """Open another subscription if the message that the caller put aside fills the window (S116)."""
        receiver = self._receivers.get(consumer_id)
        if receiver is not None:
            receiver.make_room()

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Stop the delivery of messages to this consumer."""
        receiver = self._receivers.get(consumer_id)
        if receiver is None:
            done.succeed()
        else:
            receiver.stop(done)

    def pull(self, consumer_id: int) -> None:
        """Ask for one message (S50), although STOMP has no request for this: make room in the window if the window is
        full."""
        receiver = self._receivers.get(consumer_id)
        if receiver is not None:
            receiver.pull()

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Wait until the broker has sent the messages that it has for this consumer."""
        receiver = self._receivers.get(consumer_id)
        if receiver is None:
            done.fail(self._lost())
        else:
            receiver.drain(done)

    def send(self, outbound: Outbound) -> None:
        """Send a message at once. Messages leave in the order of the calls."""
        session = self._sessions.get(self._producers.get(outbound.producer_id, -1))
        if session is None:
            outbound.done(self._lost())
        elif outbound.transacted:
            session.send(outbound)
        elif outbound.presettled:
            self._the_engine.write_and_forget(b"SEND", outbound.payload, outbound.done)
        elif (
            outbound.left
            or isinstance(outbound.payload, StreamedPayload)
            or not self._dialect.receipts_cover
            or _WILD.match(outbound.payload)
        ):
            # this SEND asks for its own RECEIPT, because a refusal then names this message. Artemis refuses wildcards,
            # and would confirm the repeated message, because it keeps the duplicate id (docs/broker-facts.md)
            self._the_engine.ask(b"SEND", outbound.payload, outbound.done)
        else:
            self._the_engine.ask_together(b"SEND", outbound.payload, outbound.done)

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Answer that the send cannot be taken back, because STOMP has no credit and each send leaves at once (S66)."""
        withdrawn.succeed(False)

    def settle(self, inbound: Inbound, outcome: Outcome, joins: bool = True) -> None:
        """Apply an outcome, unless the delivery belongs to an earlier connection or consumer (S95, S96)."""
        receiver = self._receivers.get(inbound.consumer_id)
        if receiver is None or inbound.generation != self.generation:
            return
        session = self._sessions.get(receiver.info.session_id)
        if outcome is Outcome.ACCEPTED and joins and session is not None and session.info.transacted:
            session.acknowledge(receiver, cast(StompInbound, inbound))
        else:
            receiver.settle(cast(StompInbound, inbound), outcome)

    # -- transactions -------------------------------------------------------------------------------------------

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Begin a transaction. This method sends nothing, because the BEGIN frame is sent with the first work of the
        transaction (S76)."""
        if self._session(session_id, done) is not None:
            done.succeed()

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Commit the transaction of this session."""
        session = self._session(session_id, done)
        if session is not None:
            session.commit(done)

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Roll back the transaction of this session."""
        session = self._session(session_id, done)
        if session is not None:
            session.rollback(done)

    # -- encoding -----------------------------------------------------------------------------------------------

    def encoder(self, destination: Destination) -> Encoder:
        """Return the encoder of messages for this destination."""
        name = destination.name
        if destination.is_temporary and name.startswith("/temp-") and name not in self._aliases.values():
            raise InvalidDestinationException(
                f"only the connection that created {destination} can use this name; over STOMP another connection must"
                " use the name in the reply_to of a message"
            )
        self._dialect.check_temporary(destination)
        check_target(self._dialect.broker, self._dialect.name(destination))
        dialect, marks = self._dialect, self._marks(destination)
        return partial(_encode, dialect.send_lines(destination), dialect, self._escape, self._sendable, marks)

    @property
    def _sendable(self) -> Limits:
        """The limits for frames that this client sends. For headers, the smaller limit of the broker and of this client
        counts, because the program that receives the message may also use this library (S160)."""
        options = self._url.stomp
        own = Limits(options.max_frame_size, options.max_headers, options.max_header_length)
        taken = self._dialect.limits or own
        return own._replace(
            headers=min(own.headers, taken.headers), header_line=min(own.header_line, taken.header_line)
        )

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Decode a payload, and return the message with its time to live in milliseconds."""
        head, _, body = payload.partition(b"\n\n")
        return StompInbound(b"\n" + head, body[:-1], self._dialect).to_sent(destination)


def _encode(
    lines: str,
    dialect: StompDialect,
    escaped: Callable[[str], str],
    limits: Limits | None,
    marks_repetitions: bool,
    message: Message,
    ttl_ms: int,
) -> Payload:
    return encode(
        message, lines=lines, dialect=dialect, escape=escaped, limits=limits, marks_repetitions=marks_repetitions
    )


def _escape_11(text: str) -> str:
    if "\r" in text:
        raise MessageFormatException("STOMP 1.1 cannot carry a carriage return in a header or property")
    return escape(text)
