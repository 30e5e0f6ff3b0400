"""The failover provider: the broker in use answers the requests of the core. While there is no broker, the provider
keeps the requests (S90-S109)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException, TransactionRolledBackException
from pyjmsack.message import Message
from pyjmsack.providers.failover.connection import Connection
from pyjmsack.providers.failover.encoding import MemberEncoder
from pyjmsack.providers.failover.pending import Request
from pyjmsack.providers.failover.requests import Requests
from pyjmsack.providers.failover.resources import ConsumerRecord, Resources, SessionRecord
from pyjmsack.providers.failover.restore import checked
from pyjmsack.providers.failover.transactions import Transactions
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.demands import check_consumer, check_producer, check_session
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Encoder, Inbound, InboundSink, Outbound
from pyjmsack.spi.provider import Provider, ProviderListener
from pyjmsack.spi.registry import create_provider
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

__all__ = ["FailoverProvider"]

L = TypeVar("L", ProducerInfo, ConsumerInfo)


class FailoverProvider:
    """One connection that survives the loss of its brokers. All methods run on the I/O loop.

    Args:
        create: makes the provider for one broker of the URL.
    """

    def __init__(
        self,
        url: BrokerUrl,
        connector: Connector,
        create: Callable[[BrokerUrl, Connector], Provider] = create_provider,
    ) -> None:
        options = url.failover
        limits = (options.timeout, url.connection.send_timeout)
        patience = min((limit for limit in limits if limit is not None), default=None)
        period = url.connection.consumer_failover_redelivery_wait_period
        self._strict = url.strict
        self._replays = options.transaction_replay
        self._resources = Resources()
        self._elsewhere = connector.elsewhere
        self._requests = Requests(self._resources, connector, patience)
        self._transactions = Transactions(
            self._resources, connector, period, first_send_survives=options.first_send_survives
        )
        self._connection = Connection(url, connector, create, self._resources, self._requests, self._transactions)

    # -- the connection -----------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """The number of the connection to the broker in use, or 0 if no broker is in use."""
        return self._connection.generation

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Look for the first broker."""
        self._connection.connect(info, listener, done)

    def close(self, done: Completion[None]) -> None:
        """Close the connection. If a broker is in use, tell the broker first that the connection ends."""
        self._connection.close(done)

    def abort(self, error: BaseException) -> None:
        """Fail all pending requests and sends, and drop the connection without telling the broker."""
        self._connection.abort(error)

    def flush(self) -> None:
        """Write the pending bytes to the socket."""
        self._connection.flush()

    # -- sessions, producers, consumers -------------------------------------------------------------------------

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Open a session."""
        replays = self._replays
        check = partial(check_session, strict=self._strict)
        self._requests.ask(
            Request(
                "create_session",
                (info.id,),
                lambda provider, a: checked(check, self._requests.metadata, provider.create_session)(info, a),
                done,
                lambda _: self._resources.sessions.__setitem__(info.id, SessionRecord(info, replays=replays)),
            )
        )

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session and its producers and consumers."""
        self._transactions.give_up(self._resources.sessions.get(session_id))
        self._resources.forget_session(session_id)
        self._requests.drop(session_id, "the session")
        self._requests.ask(
            Request("close_session", (), lambda provider, a: provider.close_session(session_id, a), done)
        )

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Open a producer at the broker."""
        self._requests.ask(
            Request(
                "create_producer",
                (info.session_id, info.id),
                lambda provider, answered: self._in_session(
                    checked(check_producer, self._requests.metadata, provider.create_producer)
                )(info, answered),
                done,
                lambda _: self._resources.producers.__setitem__(info.id, info),
            )
        )

    def _in_session(self, create: Callable[[L, Completion[None]], None]) -> Callable[[L, Completion[None]], None]:
        """Return a function that calls ``create`` unless a broker has ended the session. A later broker does not know
        the session, so it could not say why the session ended."""

        def create_if_open(info: L, answered: Completion[None]) -> None:
            ended = self._resources.ended.get(info.session_id)
            if ended is not None:
                answered.fail(ended)
            else:
                create(info, answered)

        return create_if_open

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Close a producer at the broker."""
        self._resources.forget_producer(producer_id)
        self._requests.drop(producer_id, "the producer")
        self._requests.ask(
            Request("close_producer", (), lambda provider, a: provider.close_producer(producer_id, a), done)
        )

    def create_consumer(self, info: ConsumerInfo, sink: InboundSink, done: Completion[None]) -> None:
        """Open a consumer at the broker. ``sink`` takes its messages."""
        record = ConsumerRecord(info, sink, self._resources.forget_consumer, self._elsewhere)

        def ask(provider: Provider, answered: Completion[None]) -> None:
            def create(info: ConsumerInfo, answered: Completion[None]) -> None:
                provider.create_consumer(info, record.attach(), answered)

            self._in_session(checked(check_consumer, self._requests.metadata, create))(info, answered)

        self._requests.ask(
            Request(
                "create_consumer", (info.session_id, info.id), ask, done, lambda _: self._resources.add_consumer(record)
            )
        )

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Close a consumer at the broker."""
        self._resources.forget_consumer(consumer_id)
        self._requests.drop(consumer_id, "the consumer")
        self._requests.ask(
            Request("close_consumer", (), lambda provider, a: provider.close_consumer(consumer_id, a), done)
        )

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Create a temporary destination."""
        self._requests.ask(
            Request(
                "create_temporary",
                (info.id,),
                lambda provider, a: provider.create_temporary(info, a),
                done,
                lambda name: self._resources.temporaries.__setitem__(info.id, (info, name)),
            )
        )

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Delete a temporary destination."""
        self._resources.temporaries.pop(temporary_id, None)
        self._requests.drop(temporary_id, "the temporary destination")
        self._requests.ask(
            Request("delete_temporary", (), lambda provider, a: provider.delete_temporary(temporary_id, a), done)
        )

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription."""
        self._requests.ask(Request("unsubscribe", (), lambda provider, a: provider.unsubscribe(name, a), done))

    # -- flow ---------------------------------------------------------------------------------------------------

    def start_consumer(self, consumer_id: int) -> None:
        """Let messages flow to this consumer. The flow continues at later brokers, after each failover."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.started = True
            if self._requests.member is not None:
                self._requests.member.provider.start_consumer(consumer_id)

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Stop the flow of messages to this consumer. If there is no broker, the consumer is not restored at the next
        broker, unless the replay of a transaction expects messages of this consumer."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.stopped = True
            if self._requests.member is None and not self._transactions.expects(consumer_id):
                # no later broker may deliver to this consumer; a consumer that was stopped before the loss was already
                # forgotten by Resources.interrupted
                self._resources.forget_consumer(consumer_id)
        self._requests.ask(
            Request("stop_consumer", (), lambda provider, a: provider.stop_consumer(consumer_id, a), done)
        )

    def replenish(self, consumer_id: int) -> None:
        """Grant new credit to the broker, so that the broker sends more messages. Without a broker this method does
        nothing, because the consumer grants new credit when it is restored at the next broker."""
        if self._requests.member is not None:
            self._requests.member.provider.replenish(consumer_id)

    def make_room(self, consumer_id: int) -> None:
        """Let the broker send another message. Without a broker this method does nothing, because the loss of the
        connection ended the wait of the message that was put aside."""
        if self._requests.member is not None:
            self._requests.member.provider.make_room(consumer_id)

    def pull(self, consumer_id: int) -> None:
        """Ask the broker for one message. If the broker is lost before the message comes, ask the next broker
        (S108)."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.pulling = True
            if self._requests.member is not None:
                self._requests.member.provider.pull(consumer_id)

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Ask the broker to send the messages that it has for this consumer now, and then to stop. Without a broker the
        drain succeeds at once. Only the drain of a browser waits for the next broker, because otherwise the browser
        would end too early."""
        record = self._resources.consumers.get(consumer_id)
        verb = "drain"
        if record is not None:
            record.pulling = False
            verb = "browse" if record.info.browser else "drain"

        def ask(provider: Provider, answered: Completion[None]) -> None:
            provider.drain(consumer_id, answered if record is None else record.behind(answered))

        self._requests.ask(Request(verb, (consumer_id,), ask, done))

    # -- messages -----------------------------------------------------------------------------------------------

    def send(self, outbound: Outbound) -> None:
        """Send a message, and keep it until the broker answers (S91)."""
        if self._replays and outbound.transacted:
            self._transactions.sends(outbound.producer_id)
        self._requests.send(outbound)

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send, because it timed out. A send that may have reached a broker is not repeated any more."""
        self._requests.withdraw(outbound, withdrawn)

    def settle(self, inbound: Inbound, outcome: Outcome, joins: bool = True) -> None:
        """Send an outcome. If an earlier connection delivered the message, send nothing, because the broker has put the
        message back into the queue (S95)."""
        current = inbound.generation == self._connection.generation
        if outcome is Outcome.ACCEPTED and joins:
            if self._requests.held:
                self._look_for_end(inbound)
            self._transactions.settled(inbound, current=current)
        member = self._requests.member
        if current and member is not None:
            member.provider.settle(inbound, outcome, joins)

    def lose(self, error: BaseException) -> None:
        """End the present connection, because ``error`` kept an outcome from being sent. Then look for a broker."""
        member = self._requests.member
        if member is not None:
            member.provider.lose(error)

    def _look_for_end(self, inbound: Inbound) -> None:
        """Mark the open transaction of this message as in doubt, if the commit or rollback of the previous transaction
        was not sent yet. This happens if the caller stopped waiting for the commit or rollback and went on. Otherwise
        the broker would count the message as a part of the previous transaction.
        """
        session = self._resources.transacted_consumers.get(inbound.consumer_id)
        if session is not None and self._requests.overtakes_end(session.info.id):
            session.in_doubt = True

    # -- transactions -------------------------------------------------------------------------------------------

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Begin a transaction. Without a broker this method does nothing, because the session is restored with a new
        transaction."""
        if self._transactions.wait_behind(
            self._resources.sessions.get(session_id), partial(self.begin, session_id, done)
        ):
            return
        self._requests.ask(Request("begin", (), lambda provider, a: provider.begin(session_id, a), done))

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Commit the transaction. If a part of its work was lost with a broker, roll the transaction back and raise an
        error (S92, S97)."""
        session = self._resources.sessions.get(session_id)
        if session is None or not session.in_doubt:
            if session is not None and self._transactions.wait(session, partial(self.commit, session_id, done)):
                return
            if session is None or session.replay is None or session.replay.complete:
                self._clear(session)
                self._end_transaction("commit", lambda provider, a: provider.commit(session_id, a), session_id, done)
                return
        missing = 0 if session.replay is None else session.replay.missing.total()
        lost = "the connection was lost while the transaction was open, so the transaction was rolled back (S92, S97)"
        if missing:
            lost = f"the transaction was not replayed: {missing} received message(s) were not delivered again (S107)"
        session.clear()
        undone: Completion[None] = Completion()
        undone.add_callback(lambda _: done.fail(TransactionRolledBackException(lost)))
        self._end_transaction("rollback", lambda provider, a: provider.rollback(session_id, a), session_id, undone)

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Roll the transaction back. A lost broker has already rolled back the work that it had (S99)."""
        session = self._resources.sessions.get(session_id)
        self._transactions.give_up(session)
        self._clear(session)
        self._requests.undo(session_id)
        self._end_transaction("rollback", lambda provider, a: provider.rollback(session_id, a), session_id, done)

    def _end_transaction(
        self, verb: str, ask: Callable[[Provider, Completion[None]], None], session_id: int, done: Completion[None]
    ) -> None:
        self._requests.ask(Request(verb, (), ask, done, ends=session_id))

    @staticmethod
    def _clear(session: SessionRecord | None) -> None:
        if session is not None:
            session.clear()

    # -- names and encoding -------------------------------------------------------------------------------------

    def encoder(self, destination: Destination) -> Encoder:
        """Return an encoder for the broker in use, or for the last broker if there is none. The encoder remembers for
        which broker it encodes (S91)."""
        if self._requests.encoding is None:
            raise IllegalStateException("the connection is not open")
        return MemberEncoder.of(self._requests.encoding, destination)

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Decode a payload, and return the message with its time to live in milliseconds."""
        if self._requests.encoding is None:
            raise IllegalStateException("the connection is not open")
        return self._requests.encoding.provider.decode(payload, destination)
