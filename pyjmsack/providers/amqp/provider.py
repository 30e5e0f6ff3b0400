"""The AMQP 1.0 provider, which serves the requests of the core with one engine. All methods run on the loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, cast

from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    JMSSecurityException,
    UnsupportedFeatureException,
)
from pyjmsack.message import Message
from pyjmsack.providers.amqp import caution
from pyjmsack.providers.amqp.counts import LargeCounts
from pyjmsack.providers.amqp.deadletter import DeadLetters
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.engines import AmqpEngine
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.name_sizes import unfit_attach, unfit_open
from pyjmsack.providers.amqp.opening import find_dialect, hostname_of, metadata_of, new_engine, our_open
from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.subscription import AmqpLookup, durable_link_name, link_name, still_there
from pyjmsack.providers.amqp.tables import OpenResources
from pyjmsack.providers.amqp.temporary import AmqpTemporary
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Encoder, Inbound, InboundSink, Outbound, Payload
from pyjmsack.spi.lifecycle import Lifecycle
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
from pyjmsack.uri import BrokerUrl

__all__ = ["AmqpProvider"]

_NUDGE = 0.01
"""If Artemis does not answer an End frame (the end of a session) within this number of seconds, this client sends an
empty frame. Artemis holds back every second answer until another frame comes, or until its own timer runs out after up
to 2 s (docs/broker-facts.md, 13)."""

_LEAST_FRAME = 4096
"""The smallest max-frame-size of a broker, in bytes. AMQP allows 512 (2.4.1), but cutting large messages into so many
frames would hold up the other connections of the loop for seconds."""


class AmqpProvider(Lifecycle[AmqpEngine]):
    """One connection to one broker, with its sessions, links, messages and transactions."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        super().__init__(url, connector)
        self._resources = OpenResources()
        self._lookups = count(1)
        self._dirty: list[AmqpReceiver] = []
        self._dialect = find_dialect(url, {})
        self._dead_letters: DeadLetters | None = None
        self._counts: LargeCounts | None = None

    # -- open ---------------------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, log in by SASL, and send Open and Begin.

        A broker that refuses the login or the client id sends an Open frame first. Therefore only the answer to Begin,
        which opens a session, shows that the connection is really open.
        """
        self._begin(info, listener, done)
        amqp = self._url.amqp
        if not amqp.sasl_layer and info.username is not None:
            self._opening = None
            done.fail(
                JMSSecurityException(
                    "amqp.saslLayer=false switches the login off, so the user name that was given cannot be sent"
                )
            )
            return
        unfit = unfit_open(info.client_id, hostname_of(self._url))
        if unfit is not None:
            self._fail_opening(unfit)
            return
        try:
            engine = self._engine = new_engine(self._url, info, self, self._connector)
        except UnsupportedFeatureException as missing:
            self._fail_opening(missing)
            return
        self._connector.connect(self._url.endpoints[0], engine, self._fail_opening)

    def on_ready(self) -> None:
        """Send an Open frame, which opens the connection, and a Begin frame, which opens a session. The login has
        succeeded."""
        engine = self._the_engine
        engine.open(our_open(self._url, self._the_info))
        first = AmqpSession(engine, False, partial(self._first_session_ended, engine))
        self._open_session(0, first).add_callback(self._on_first_session)

    def _first_session_ended(self, engine: AmqpEngine, error: JMSException) -> None:
        """Give up the connection, because the broker ended the session that has the links of the connection itself,
        such as those of its temporary queues. Without this session no call could say that they are gone.
        """
        lost = ConnectionLostException(f"the broker ended a session that this connection needs: {error}")
        self._connector.call_later(0, partial(engine.fail, lost))  # later, because other links hear of the end first

    def on_remote_open(self) -> None:
        """Handle the broker's Open frame. The connection counts as open only after the answer to Begin."""
        size = self._the_engine.peer_frame_size
        if 0 < size < _LEAST_FRAME:
            text = (
                f"the broker accepts only frames of {size:,} bytes (max-frame-size); expected at least {_LEAST_FRAME:,}"
            )
            self._the_engine.fail(ConnectionLostException(text))
            return
        self._dialect = find_dialect(self._url, self._the_engine.remote.properties or {})
        dialect = self._dialect
        self._counts = LargeCounts() if dialect.broker == "artemis" else None
        queue = Queue(self._url.amqp.dead_letter_queue or dialect.dead_letters)
        session = self._resources.sessions[0]
        self._dead_letters = DeadLetters(
            self._the_engine, session, queue, self.address(queue), self._connector, copies=dialect.discards
        )

    def _open_session(self, number: int, session: AmqpSession) -> Completion[None]:
        self._resources.sessions[number] = session
        opened: Completion[None] = Completion()
        session.open(opened)
        return opened

    def _on_first_session(self, session: Completion[None]) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        if session.error is not None:
            opening.fail(session.error)
        else:
            metadata = metadata_of(self._url, self._the_engine, self._dialect)
            self._duplicate_detection = metadata.capabilities.features["duplicate-detection"]
            opening.succeed(metadata)

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self, done: Completion[None]) -> None:
        """Send a Close frame, which ends the connection. ``done`` succeeds when the broker has answered. If the
        connection is lost before the answer, ``done`` fails."""
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
        """Wait until no message of certain receivers is being copied to the dead-letter queue, and then call ``then``.
        ``concerns`` returns True for these receivers."""
        if self._dead_letters is None:
            then()
        else:
            self._dead_letters.afterwards(concerns, then)

    def on_failure(self, error: JMSException) -> None:
        """Handle the end of the connection. After a loss, new links take one message at a time for a while."""
        self._parted = self._engine is not None and self._engine.parted
        if self._closing is None:
            caution.lost(receiver.caution for receiver in self._resources.receivers.values())
        super().on_failure(error)

    def abort(self, error: BaseException) -> None:
        """Fail all requests and sends with ``error``, and close the stream at once."""
        engine, self._engine = self._engine, None
        if engine is not None and engine.failed is None:
            caution.lost(receiver.caution for receiver in self._resources.receivers.values())
        self._fail_everything(error)
        self._connector.cancel()
        if engine is not None:
            engine.abort(error)
        self._end_closing(error)

    def flush(self) -> None:
        """Write the bytes that wait to be sent."""
        if self._engine is not None:
            self._engine.flush()

    def _fail_everything(self, error: BaseException) -> None:
        sessions = self._resources.take_all()
        opening, self._opening = self._opening, None
        for session in sessions:
            session.fail(error)
        if opening is not None:
            opening.fail(error)

    def on_burst_end(self) -> None:
        """Wake each consumer that got messages in this burst. Each consumer is woken once."""
        if self._dirty:
            dirty, self._dirty[:] = self._dirty[:], []
            for receiver in dirty:
                receiver.burst_end()

    def address(self, destination: Destination) -> str:
        """Return this broker's name for a destination."""
        return self._dialect.address(destination)

    # -- sessions, producers, consumers -------------------------------------------------------------------------

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Begin a session. If the session is transacted, open the link that controls its transactions, and begin the
        first transaction."""
        if not self._usable(done):
            return
        session = AmqpSession(
            self._the_engine,
            info.transacted,
            partial(self._the_listener.on_resource_closed, info.id),
            info.id,
            self._counts,
        )
        if info.transacted:
            self._resources.transacted[info.id] = session
        self._open_session(info.id, session).add_callback(lambda c: done.settle(c.error))

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session."""
        end = partial(self._end_session, session_id, done)
        self._when_copied(lambda receiver: receiver.info.session_id == session_id, end)

    def _end_session(self, session_id: int, done: Completion[None]) -> None:
        session = self._resources.end_session(session_id, done)
        if session is None:
            done.succeed()
            return
        if self._dialect.broker == "artemis":
            nudge = self._connector.call_later(_NUDGE, self._the_engine.nudge)
            done.add_callback(lambda _: nudge.cancel())
        session.close(done)

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Open a producer: attach a link on which this client sends messages."""
        session = self._session(info.session_id, done)
        if session is None:
            return
        name = f"pyjmsack:producer:{info.id}:{self._the_info.client_id}"
        try:
            address = None if info.destination is None else self._dialect.target(info.destination)
        except JMSException as error:
            done.fail(error)
            return
        if not self._fits(f"the producer for {address or 'any destination'}", done, link_name=name, address=address):
            return
        sender = AmqpSender(
            self._the_engine,
            session.end,
            name,
            info,
            address,
            session.send_state,
            partial(self._the_listener.on_resource_closed, info.id),
            self._connector,
            takes_back=self._dialect.takes_back,
        )
        self._resources.senders[info.id] = sender
        session.links[info.id] = sender
        done.add_callback(partial(self._forget_refused, self._resources.senders, session, info.id))
        sender.open(done)

    @staticmethod
    def _forget_refused(links: dict[int, Any], session: AmqpSession, number: int, opened: Completion[None]) -> None:
        """Forget a link or session that was refused, because no caller will close it."""
        if opened.error is not None:
            links.pop(number, None)
            session.links.pop(number, None)

    def _fits(self, what: str, done: Completion[Any], **texts: str | None) -> bool:
        """Return True if an Attach frame of this size, and the answer to it, fit. Otherwise fail ``done`` and return
        False, because such a frame ends the connection.
        """
        named = {kind.replace("_", " "): text for kind, text in texts.items()}
        error = unfit_attach(what, named, self._the_engine.peer_frame_size, self._url.amqp.max_frame_size)
        if error is not None:
            done.fail(error)
        return error is None

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Close a producer: detach its link."""
        self._close_link(self._resources.senders.pop(producer_id, None), done)

    def create_consumer(self, info: ConsumerInfo, sink: InboundSink, done: Completion[None]) -> None:
        """Open a consumer: attach a link on which this client receives messages."""
        session = self._session(info.session_id, done)
        if session is None:
            return
        explicit = self._the_info.explicit_client_id
        name = f"pyjmsack:consumer:{info.id}:{self._the_info.client_id}"
        if info.subscription is not None:
            name = link_name(info.subscription, explicit)
        address = self.address(info.destination)
        selector = self._dialect.selector(info)
        if not self._fits(f"the consumer of {address}", done, link_name=name, address=address, selector=selector):
            return
        receiver = AmqpReceiver(
            self._the_engine,
            session.end,
            name,
            info,
            sink,
            address,
            selector=selector,
            explicit_client_id=explicit,
            generation=self.generation,
            kept_whole=self._dialect.broker == "artemis",
            dirty=self._dirty,
            connector=self._connector,
            max_size=self._url.connection.max_message_size,
            drain_timeout=self._url.amqp.drain_timeout,
            single=self._single_credit(info),
            spool_over=self._url.amqp.spool_over,
            spool_directory=self._url.amqp.spool_directory,
            counts=self._counts,
            page=self._dialect.page,
            answers_early=self._dialect.answers_early,
        )
        self._resources.receivers[info.id] = receiver
        session.links[info.id] = receiver
        done.add_callback(partial(self._forget_refused, self._resources.receivers, session, info.id))
        receiver.open(done)

    def _single_credit(self, info: ConsumerInfo) -> caution.Single:
        """Return whether the link of a consumer takes one message at a time.

        This is needed only for Artemis, and not for browsers.
        """
        if self._dialect.broker != "artemis" or info.browser:
            return caution.Single.NO
        return caution.single_credit(self._url.amqp.single_credit)

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Close a consumer: detach its link."""
        receiver = self._resources.receivers.pop(consumer_id, None)
        self._when_copied(lambda copied: copied is receiver, partial(self._close_link, receiver, done))

    def _close_link(self, link: AmqpSender | AmqpReceiver | AmqpTemporary | None, done: Completion[None]) -> None:
        if link is None:
            done.succeed()
            return
        session_id = 0 if isinstance(link, AmqpTemporary) else link.info.session_id
        session = self._resources.sessions.get(session_id)
        if session is not None:
            # the link stays in the session until the peer answers, because a lost connection must end the wait
            done.add_callback(lambda _: session.links.pop(link.info.id, None))
        link.close(done)

    # -- temporary destinations and subscriptions: on the connection's own session ------------------------------

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Create a temporary destination by a link to a queue or topic whose name the broker chooses (S132)."""
        session = self._session(0, done)
        if session is None:
            return
        name = f"pyjmsack:temporary:{info.id}:{self._the_info.client_id}"
        if not self._fits("a temporary destination", done, link_name=name):
            return
        temporary = AmqpTemporary(self._the_engine, session.end, name, info)
        self._resources.temporaries[info.id] = session.links[info.id] = temporary
        temporary.create(done)

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Delete a temporary destination by closing its link."""
        self._close_link(self._resources.temporaries.pop(temporary_id, None), done)

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription (S141).

        Attach a link by the name of the subscription, close the link, and check that the subscription is gone.
        """
        closed: Completion[None] = Completion()
        closed.add_callback(lambda _: self._confirm_unsubscribed(name, closed.error, done))
        self._look_up(name, closed, delete=True)

    def _confirm_unsubscribed(self, name: str, error: BaseException | None, done: Completion[None]) -> None:
        """Check that the subscription is gone.

        Artemis does not delete a subscription that has a consumer on another connection, and does not report this.
        """
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
        if not self._fits(f"durable subscription {name!r}", done, link_name=durable_link_name(name, explicit)):
            return
        link = AmqpLookup(self._the_engine, session.end, name, explicit_client_id=explicit, delete=delete)
        number = -next(self._lookups)  # links of the core have positive numbers
        session.links[number] = link
        done.add_callback(lambda _: session.links.pop(number, None))
        link.run(done)

    def _usable(self, done: Completion[Any]) -> bool:
        error = IllegalStateException("the connection is not open") if self._engine is None else self._engine.failed
        if error is not None:
            done.fail(error)
        return error is None

    def _session(self, session_id: int, done: Completion[Any]) -> AmqpSession | None:
        session = self._resources.sessions.get(session_id)
        if session is None or session.closed is not None:
            done.fail(self._lost(session))
            return None
        return session

    def _lost(self, session: AmqpSession | None = None) -> JMSException:
        """Return the error for a request about a session or link that does not exist any more."""
        if session is not None and session.closed is not None:
            return session.closed
        if self._engine is not None and self._engine.failed is not None:
            return self._engine.failed
        return IllegalStateException("the session, producer or consumer is closed")

    # -- flow and messages --------------------------------------------------------------------------------------

    def start_consumer(self, consumer_id: int) -> None:
        """Let messages flow to this consumer: grant credit up to the prefetch."""
        self.replenish(consumer_id)

    def replenish(self, consumer_id: int) -> None:
        """Grant credit again if enough messages were taken from the inbox (S53)."""
        receiver = self._resources.receivers.get(consumer_id)
        if receiver is not None:
            receiver.replenish()

    def make_room(self, consumer_id: int) -> None:
        """Do nothing, because credit counts messages that arrived, and not messages without an outcome."""

    def pull(self, consumer_id: int) -> None:
        """Grant credit for one message (S50)."""
        receiver = self._resources.receivers.get(consumer_id)
        if receiver is not None:
            receiver.pull()

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Ask the broker to send the messages that it has, as far as the credit allows."""
        receiver = self._resources.receivers.get(consumer_id)
        if receiver is None:
            done.fail(self._lost())
        else:
            receiver.drain(done)

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Stop the delivery of messages to this consumer."""
        receiver = self._resources.receivers.get(consumer_id)
        if receiver is None:
            done.succeed()
        else:
            receiver.stop(done)

    def send(self, outbound: Outbound) -> None:
        """Send a message. If the broker has given no credit, keep the message until the broker gives credit."""
        sender = self._resources.senders.get(outbound.producer_id)
        if sender is None:
            outbound.done(self._lost())
        else:
            sender.send(outbound)

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send, because it timed out. Do nothing if the message was sent already."""
        sender = self._resources.senders.get(outbound.producer_id)
        withdrawn.succeed(sender is not None and sender.withdraw(outbound))

    def settle(self, inbound: Inbound, outcome: Outcome, joins: bool = True) -> None:
        """Send the outcome of a message, unless its connection or link has ended (S95, S96)."""
        receiver = self._resources.receivers.get(inbound.consumer_id)
        if receiver is None or inbound.generation != self.generation:
            return
        delivery, wanted = cast(AmqpInbound, inbound), self._dialect.outcome(outcome)
        session = self._resources.transacted.get(receiver.info.session_id) if joins else None
        if session is not None and outcome is Outcome.ACCEPTED:
            self._join(session, receiver, delivery)
        elif self._dead_letters is None or not self._dead_letters.take(receiver, delivery, wanted):
            receiver.settle(delivery, wanted)

    @staticmethod
    def _join(session: AmqpSession, receiver: AmqpReceiver, delivery: AmqpInbound) -> None:
        """Make an accepted message a part of the open transaction. A message that cannot join goes back to the queue,
        and makes the commit fail (S79, S87).
        """
        try:
            joined = receiver.settle(delivery, Outcome.ACCEPTED, session.ack_state())
        except JMSException:  # the transaction is lost
            joined = False
        if joined:
            session.joined(delivery)
        else:
            session.orphans.append((receiver, delivery))

    # -- transactions -------------------------------------------------------------------------------------------

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Begin the next transaction of this session."""
        session = self._session(session_id, done)
        if session is not None:
            session.declare(done)

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Commit the transaction of this session."""
        session = self._session(session_id, done)
        if session is not None:
            session.discharge(done, fail=False)

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Roll back the transaction of this session."""
        session = self._session(session_id, done)
        if session is not None:
            session.discharge(done, fail=True)

    # -- names and encoding -------------------------------------------------------------------------------------

    def encoder(self, destination: Destination) -> Encoder:
        """Return the function that encodes messages for this destination."""
        marks, nested = self._marks(destination), self._dialect.checks_nested
        return partial(_encode, self._dialect.target(destination), self.address, marks, nested)

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Decode a payload, and return the message with its time to live in milliseconds."""
        return AmqpInbound(payload).to_sent(destination)


def _encode(
    address: str,
    address_of: Callable[[Destination], str],
    marks_repetitions: bool,
    checks_nested: bool,
    message: Message,
    ttl_ms: int,
) -> Payload:
    return encode(
        message, address, ttl_ms, address_of, marks_repetitions=marks_repetitions, checks_nested=checks_nested
    )
