"""A session: one acknowledge mode, one transaction, one thread at a time (S1-S15, S25-S37, S75-S87)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from pyjmsack.core.channel import Channel
from pyjmsack.core.completions import Completions
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.guard import Memory, make_store
from pyjmsack.core.listening import Dispatchers, Listening
from pyjmsack.core.outcomes import FEATURES, outcome_of
from pyjmsack.core.producer import Producer
from pyjmsack.core.runtime import LAST_CALLS
from pyjmsack.core.sources import Sources, check_destination
from pyjmsack.core.state import SessionState, State
from pyjmsack.core.steps import Deadline, Steps, answered, ended, give_up
from pyjmsack.core.subscriptions import Subscriptions, check_name, check_topic
from pyjmsack.core.temporaries import Temporaries
from pyjmsack.core.transaction import Transactions
from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import IllegalStateException
from pyjmsack.loggers import get_logger
from pyjmsack.message import Acknowledger, Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo, Subscription
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import DestinationOptions

__all__ = ["Session", "SessionFace"]

log = get_logger("pyjmsack")
T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class SessionFace(Protocol):
    """The part of a face that serves one of its sessions."""

    @property
    def acknowledger(self) -> Acknowledger:
        """Return the object that carries out ``message.acknowledge()`` and the outcomes of one message."""
        ...

    def feed(self, listening: Listening) -> Any:
        """Give messages to the listener of a consumer. A dispatcher calls this method. In asyncio the method returns an
        awaitable."""
        ...


class Session:
    """The core of one session.

    Args:
        channel: the way to the broker.
        info: id and acknowledge mode.
        subscriptions: the named subscriptions of the connection.
        temporaries: the temporary destinations of the connection.
        face: makes the object that serves this session in the face of the caller.
        leave: called with the id of the session when the session ends.
        consumer_made: called after a consumer was created.
    """

    def __init__(
        self,
        channel: Channel,
        info: SessionInfo,
        subscriptions: Subscriptions,
        temporaries: Temporaries,
        face: Callable[[Session], SessionFace],
        leave: Callable[[int], object],
        consumer_made: Callable[[], None],
    ) -> None:
        self.channel = channel
        self.info = info
        self.consumers: dict[int, Consumer] = {}
        self.ended: dict[int, Consumer] = {}
        """The consumers that have ended, and of whose messages the caller still has some that a lost connection
        delivered. An acknowledgement of such a message counts as processed (S95)."""
        self.producers: dict[int, Producer] = {}
        self.memory = Memory(make_store(channel))
        """Remembers the messages that were processed in this session, because no message may be processed twice after a
        failover (S105)."""
        self.transactions = Transactions(channel, info.id, self.memory, self.consumers, self.update)
        self.state = SessionState(channel, info, self.memory, self.transactions)
        self.dispatchers = Dispatchers(channel.runtime, f"pyjmsack-session-{info.id}")
        self._sources = Sources(channel, info, temporaries)
        self._subscriptions = subscriptions
        self._temporaries = temporaries
        self._leave = leave
        self._consumer_made = consumer_made
        self._closing: Completion[None] | None = None
        self._completions: Completions | None = None
        self._has_warned = False
        self.face = face(self)

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the session is closed."""
        return self.state.closed

    def check_open(self) -> None:
        """Raise an error if the session is closed, or the connection is closed or lost (S125)."""
        self.state.check_open()

    def update(self) -> None:
        """Decide again whether messages flow, and wake the callers that wait.

        Messages flow while the connection is started and the session is neither closing nor ending a transaction. A
        message handed out during a commit would belong to no transaction.
        """
        state, channel = self.state, self.channel
        state.started = channel.started and not self.transactions.ending and state.state is State.OPEN
        if state.started:
            for consumer in [*self.consumers.values()]:
                if consumer.wants_more:
                    channel.submit(channel.provider.start_consumer, consumer.info.id)
                if consumer.on_arrival is None:
                    consumer.arrived()
                else:  # on the loop, because a signal handler must not end it while a reply is in no table
                    channel.submit(consumer.arrived)

    @property
    def completions(self) -> Completions:
        """The completion listeners of this session's sends."""
        if self._completions is None:
            name = f"pyjmsack-session-{self.info.id}-completions"
            self._completions = Completions(self.channel.runtime.dispatcher(name), self.channel.submit)
            if self._closing is not None and self._closing.done:  # nobody else would end the new thread
                self._completions.dispatcher.let_end()
        return self._completions

    def check_not_in_callback(self, what: str) -> None:
        """Raise an error if the caller is inside a completion listener of this session (S74)."""
        if self._completions is not None and self._completions.dispatcher.running_here():
            raise IllegalStateException(f"{what} is not allowed inside a completion listener of the session (S74)")

    # -- producers and consumers --------------------------------------------------------------------------------

    def create_producer(self, destination: Destination | None) -> Steps[Producer]:
        """Create a producer at the broker (S67)."""
        self.check_open()
        if destination is not None:
            check_destination(destination, self.channel.metadata)
        channel, provider = self.channel, self.channel.provider
        presettled = channel.options.presettle_policy.producer(destination, self.info.transacted)
        info = ProducerInfo(channel.next_id(), self.info.id, destination, presettled)
        producer = Producer(self.state, info, lambda: self.completions, lambda number: self.producers.pop(number, None))
        done: Completion[None] = Completion()
        try:  # before the request leaves, because Ctrl-C may come at any step
            channel.submit(provider.create_producer, info, done)
            yield from answered(done, channel.deadline(), f"creating a producer for {producer.describe()}")
            self.producers[info.id] = producer
            return producer
        except BaseException:
            if done.error is None:
                self.producers.pop(info.id, None)
                channel.submit(provider.close_producer, info.id, Completion())
            raise

    def check_browser(self, queue: Destination, selector: str | None) -> None:
        """Check that this destination can be browsed, before the broker is asked (S134).

        Raises:
            UnsupportedFeatureException: this broker would take the messages out of the queue.
            InvalidSelectorException, InvalidDestinationException: the selector is wrong, or the destination is not a
                queue.
        """
        self.check_open()
        self._sources.check(queue, selector)
        self.channel.require("browser")

    def create_consumer(
        self,
        destination: Destination,
        selector: str | None,
        no_local: bool = False,
        *,
        browser: bool = False,
        subscription: Subscription | None = None,
        pulls: bool = True,
    ) -> Steps[Consumer]:
        """Create a consumer, a browser or a named subscriber at the broker. Messages flow after the connection is
        started (S120).

        Args:
            pulls: whether the consumer is used with ``receive``. If false, a prefetch of 0 is raised to 1, because
                prefetch 0 works only with ``receive``.

        Raises:
            UnsupportedFeatureException: over this protocol the broker lacks a feature that the consumer needs; no
                request was sent.
            InvalidSelectorException: the selector is wrong; no request was sent, unless ``jms.validateSelector`` is
                off.
            InvalidDestinationException: the destination is a temporary destination of another connection (S130).
            IllegalStateException: the subscription's name is in use (S141, S143); or the session was closed meanwhile.
        """
        self.check_open()
        info, options = self._sources.describe(
            destination, selector, no_local, subscription, browser=browser, pulls=pulls
        )
        consumer: Consumer | None = None
        attached: Completion[None] = Completion()
        try:  # before the requests leave, because Ctrl-C may come at any step
            if subscription is not None:
                info.subscription = yield from self._subscriptions.take(subscription, destination, info.selector)
            consumer = self._make_consumer(info, options)
            yield from self._open_consumer(consumer, attached)
            return consumer
        except BaseException:
            self._undo_consumer(info, consumer, attached)
            raise

    def _open_consumer(self, consumer: Consumer, attached: Completion[None]) -> Steps[None]:
        """Create a consumer at the broker, and remember the consumer. ``attached`` gets the broker's answer."""
        channel, info = self.channel, consumer.info
        if info.subscription is not None:
            attached.add_callback(partial(self._release_if_refused, info.subscription))
        channel.submit(channel.provider.create_consumer, info, consumer, attached)
        yield from answered(attached, channel.deadline(), f"creating a consumer of {info.destination.name}")
        self._add(consumer)
        self._consumer_made()
        if channel.started or info.browser:
            channel.submit(channel.provider.start_consumer, info.id)

    def _undo_consumer(self, info: ConsumerInfo, consumer: Consumer | None, attached: Completion[None]) -> None:
        """End a consumer that its caller does not get, because otherwise the consumer would keep messages that nobody
        can receive. ``consumer`` is ``None`` if the consumer was not made yet. A refused consumer has nothing to end.
        """
        if consumer is None:
            if info.subscription is not None:
                self.channel.submit(self._subscriptions.release, info.subscription)
        elif info.id in self.consumers:
            give_up(consumer.close())
        elif attached.error is None:
            self.channel.submit(consumer.close_link, info.id, Completion())

    def _add(self, consumer: Consumer) -> None:
        """Remember a consumer that was created at the broker. If another thread or task closes the session meanwhile,
        raise an error, so that the consumer is ended, because over STOMP the consumer would go on receiving.

        The close first notes that the session is closed, and then ends the noted consumers. This method first notes the
        consumer, and then looks whether the session is closed. So the close ends the consumer, or this method raises.
        """
        number = consumer.info.id
        self.consumers[number] = consumer
        consumer.joined()
        if self.closed:
            self.consumers.pop(number, None)
            raise IllegalStateException("the session was closed while the consumer was being created")

    def _make_consumer(self, info: ConsumerInfo, options: DestinationOptions) -> Consumer:
        return Consumer(
            self.state,
            info,
            self.face.acknowledger,
            self.dispatchers,
            self.face.feed,
            self._subscriptions,
            self._consumer_left,
            allow_pull_listener=options.allow_pull_listener,
        )

    def _consumer_left(self, number: int) -> Consumer | None:
        """Take a consumer that ends out of the table. Return ``None`` if another thread was first."""
        consumer = self.consumers.get(number)
        if consumer is not None and consumer.unsettled.has_stale:
            self.ended[number] = consumer  # before the pop, so that a thread that acknowledges finds the consumer
        return self.consumers.pop(number, None)

    def _forget_ended(self, *, all_of_them: bool = False) -> None:
        """Forget the consumers that have ended and of whose messages none can be acknowledged any more."""
        for number, consumer in [*self.ended.items()]:
            if (all_of_them or not consumer.unsettled.has_stale) and self.ended.pop(number, None) is not None:
                consumer.end_record()

    def _settle_ended(self, outcome: Outcome) -> None:
        """Give the messages of consumers that have ended an outcome (S95)."""
        for consumer in [*self.ended.values()]:
            consumer.unsettled.settle_stale(outcome)
        self._forget_ended()

    # -- subscriptions and temporary destinations ---------------------------------------------------------------

    def subscribe(
        self, topic: Topic, selector: str | None, no_local: bool, subscription: Subscription
    ) -> Steps[Consumer]:
        """Create a consumer of a named subscription at the broker (S141, S143).

        Raises:
            IllegalStateException: the subscription is durable and unshared, and the user set no client id (S141); or as
                for ``create_consumer``.
            JMSException: the name is empty or contains ``|`` (S143).
        """
        self.check_open()
        check_name(subscription.name)
        check_topic(topic)
        if subscription.durable and not subscription.shared and not self.channel.info.explicit_client_id:
            raise IllegalStateException(
                "a durable subscription belongs to a client id; give the factory client_id=..., or set "
                "connection.client_id before the connection is used (S141)"
            )
        return (yield from self.create_consumer(topic, selector, no_local, subscription=subscription))

    def unsubscribe(self, name: str) -> Steps[None]:
        """Delete a durable subscription (S141).

        Raises:
            IllegalStateException: the subscription has a consumer on this connection.
            InvalidDestinationException: there is no such subscription.
        """
        self.check_open()
        yield from self._subscriptions.unsubscribe(name)

    def _release_if_refused(self, subscription: Subscription, attached: Completion[None]) -> None:
        if attached.error is not None:
            self._subscriptions.release(subscription)

    def create_temporary(self, kind: type[T], run: Callable[[Steps[None]], Any]) -> Steps[T]:
        """Create a temporary destination, which belongs to the connection (S130)."""
        self.check_open()
        return (yield from self._temporaries.create(kind, run))

    # -- acknowledgement ----------------------------------------------------------------------------------------

    def acknowledge(self, outcome: Outcome = Outcome.ACCEPTED) -> None:
        """In CLIENT mode, give one outcome to all messages that the session handed out, at all its consumers. In other
        modes, do nothing (S25, S26).

        Raises:
            IllegalStateException: the broker closed one of the consumers. The messages of the other consumers have
                their outcome (S125).
        """
        self.check_open()
        self._require(outcome)
        if self.info.ack_mode is AckMode.CLIENT_ACKNOWLEDGE:
            self._settle_ended(outcome)
            for consumer in sorted([*self.consumers.values()], key=lambda consumer: consumer.error is not None):
                consumer.acknowledge(outcome)

    def acknowledge_message(self, message: Message) -> None:
        """Carry out ``message.acknowledge()`` by the rules of the mode. ``JMS_AMQP_ACK_TYPE`` chooses the outcome (S28,
        S38).
        """
        self.check_open()
        outcome = outcome_of(message._ack_type)
        if self.info.ack_mode.individual:
            self._settle_message(message, outcome)
        elif message._delivery.settled:  # a second call does nothing, even if the caller got messages meanwhile (S28)
            return
        elif message._delivery.generation <= self.channel.lost_generation:
            # the message is stale: acknowledge all stale messages, and no newer ones (S95)
            for consumer in [*self.consumers.values()]:
                consumer.unsettled.settle_stale(outcome)
            self._settle_ended(outcome)
        else:
            self.acknowledge(outcome)

    def settle_message(self, message: Message, outcome: Outcome) -> None:
        """Send an outcome for this message alone."""
        self.check_open()
        self._settle_message(message, outcome)

    def _settle_message(self, message: Message, outcome: Outcome) -> None:
        self._require(outcome)
        if message._delivery.settled:
            self._warn_of_second(outcome, message)
        number = message._delivery.consumer_id
        consumer = self.consumers.get(number) or self.ended.get(number)
        if consumer is not None:
            consumer.settle_one(message, outcome)
            if self.ended:
                self._forget_ended()

    def _warn_of_second(self, outcome: Outcome, message: Message) -> None:
        """Log, once, that a message has its outcome already (S28). A second acceptance is not logged, because a second
        acceptance is harmless.
        """
        if outcome is not Outcome.ACCEPTED and not self._has_warned:
            self._has_warned = True
            place = message._destination
            log.warning("a message of %r has an outcome already, so %s has no effect (S28)", place, outcome.name)

    def _require(self, outcome: Outcome) -> None:
        """Refuse an outcome that this broker would replace by another outcome (S119)."""
        if outcome is not Outcome.ACCEPTED:
            self.channel.require(FEATURES[outcome])

    def recover(self) -> None:
        """Let the messages that are not acknowledged be delivered again (S32, S33).

        Raises:
            IllegalStateException: the session is transacted (S7).
        """
        self.check_open()
        if self.info.transacted:
            raise IllegalStateException("recover() is not for transacted sessions; use rollback() (S7)")
        for consumer in [*self.consumers.values()]:
            consumer.recover()
        self._forget_ended(all_of_them=True)

    def undo(self) -> Steps[None]:
        """Let the messages of a listener be delivered again, because the listener raised. The redelivery is counted
        (S20).
        """
        if self.info.transacted:
            yield from self.rollback()
        else:
            self.recover()

    # -- transactions -------------------------------------------------------------------------------------------

    def commit(self) -> Steps[None]:
        """Make the transaction's work take effect (S75, S78).

        Raises:
            IllegalStateException: the session is not transacted (S7), or the caller is in a completion listener (S74).
            TransactionRolledBackException: the transaction was rolled back, or its outcome is unknown (S79, S86, S87,
                S94).
        """
        self._check_transacted("commit()")
        yield from self._traced("commit", self.transactions.commit())

    def rollback(self) -> Steps[None]:
        """Undo the transaction's work. The messages that it received are delivered again, before newer messages, and
        the redelivery is counted (S80, S83).

        Raises:
            IllegalStateException: the session is not transacted (S7), or the caller is in a completion listener (S74).
        """
        self._check_transacted("rollback()")
        yield from self._traced("rollback", self.transactions.rollback())

    def _traced(self, what: str, steps: Steps[None]) -> Steps[None]:
        traces, transaction = self.channel.traces, self.transactions.current
        if traces is None:
            return steps
        return traces.transaction(what, len(transaction.sent) + len(transaction.acknowledged), steps)

    def _check_transacted(self, what: str) -> None:
        self.check_open()
        if not self.info.transacted:
            raise IllegalStateException(f"{what} needs a transacted session (S7)")
        self.check_not_in_callback(what)

    # -- failover -----------------------------------------------------------------------------------------------

    def leaving(self) -> None:
        """Send the acknowledgements that wait in batches, because the connection is about to leave its broker. Runs on
        the loop."""
        for consumer in [*self.consumers.values()]:
            consumer.unsettled.flush()

    def interrupted(self) -> None:
        """Remember that the connection is lost and is being restored. Runs on the loop."""
        for consumer in [*self.consumers.values()]:
            consumer.interrupted()

    def restored(self) -> None:
        """Remember that the connection is restored, perhaps at another broker. Runs on the loop."""
        for producer in [*self.producers.values()]:
            producer.encoders.forget()

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self, deadline: Deadline | None = None) -> Steps[None]:
        """Close the session: wait for the running listener, give messages back, roll back, and end (S30, S31, S74, S84,
        S124).

        Raises:
            IllegalStateException: called from a listener of this session (S14) or a completion listener (S74).
        """
        if self.dispatchers.running_here():
            raise IllegalStateException("a message listener may not close its own session (S14)")
        self.check_not_in_callback("close()")
        if self._closing is not None:
            if not self._closing.done:
                yield self._closing, self.channel.options.close_timeout
            if self._closing.done:
                self._let_go()  # Ctrl-C may have ended the first close before it did so
            return
        closing: Completion[None] = Completion()
        finished = False
        try:
            self._closing = closing
            self.state.state = State.CLOSING
            yield from self._close(deadline)
            finished = True
        finally:
            try:
                self._over(finished)
            finally:
                closing.succeed()
                self._let_go()  # once more, because ``completions`` may have made a thread before ``closing`` was done

    def _over(self, finished: bool) -> None:
        """Note that the session is closed. If the caller gave up before, end the session without waiting."""
        try:
            self.state.state = State.CLOSED
            self._forget_ended(all_of_them=True)
            if not finished and self.channel.usable:
                for consumer in [*self.consumers.values()]:
                    consumer.abandon()
                self._submit_rollback(Completion())
                self._submit_end(Completion())
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Give back what would outlive the session: the file of the guard, and the threads of the listeners. Wait for
        nothing. A second call has no effect."""
        self.memory.close()
        self.dispatchers.let_end()
        if self._completions is not None:
            self._completions.dispatcher.let_end()

    def _close(self, deadline: Deadline | None) -> Steps[None]:
        self.state.started = False
        deadline = deadline or Deadline(self.channel.options.close_timeout)
        yield from self.dispatchers.idle(deadline)  # the running listener may still acknowledge and send
        self.state.state = State.CLOSED
        if not self.info.transacted:
            for producer in [*self.producers.values()]:
                yield from producer.all_answered(deadline)
        if self._completions is not None:
            yield from self._completions.finish(deadline)
        consumers = [*self.consumers.values()]
        for consumer in consumers:
            consumer.taking.stop()
        for consumer in consumers:
            yield from consumer.taking.through(deadline)
            consumer.abandon()
        yield from self._end(deadline)
        self.dispatchers.close(deadline)
        if self._completions is not None:
            self._completions.dispatcher.close(deadline.extended(LAST_CALLS))

    def _end(self, deadline: Deadline) -> Steps[None]:
        channel, number = self.channel, self.info.id
        for producer in [*self.producers.values()]:
            producer.closed = True
            producer.remote_close.forget()
        self._leave(number)
        if channel.failure is not None:
            self.transactions.current.ended("rolled_back")
            return
        if self.info.transacted:
            undone: Completion[None] = Completion()
            self._submit_rollback(undone)
            yield from ended(undone, deadline, "rolling back")
        done: Completion[None] = Completion()
        self._submit_end(done)
        yield from ended(done, deadline, "closing the session")

    def _submit_rollback(self, done: Completion[None]) -> None:
        """Roll the open transaction back (S84). The end of the session is not enough, because the brokers have no
        sessions of STOMP: a transaction would stay open, and keep its messages, as long as the connection lives."""
        if self.info.transacted:
            self.transactions.note_failures(self.transactions.current)
            self.transactions.current.ended("rolled_back")
            self.channel.submit(self.transactions.end, done)

    def _submit_end(self, done: Completion[None]) -> None:
        """End the links of the consumers, and end the session."""
        self._leave(self.info.id)
        for consumer in [*self.consumers.values()]:
            consumer.submit_end(Completion())
        end = self.channel.provider.close_session
        if self.memory.file is not None:
            self.memory.file.add((), end, self.info.id, done)
        else:
            self.channel.submit(end, self.info.id, done)
