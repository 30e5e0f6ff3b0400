"""A session: one acknowledge mode, one transaction, one thread at a time (S1-S15, S25-S37, S75-S87)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyjmsack.core.completions import Completions
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.duplicates import FileStore
from pyjmsack.core.lanes import Lanes
from pyjmsack.core.producer import Producer
from pyjmsack.core.recording import RecordedProducer
from pyjmsack.core.runtime import Dispatcher
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.subscriptions import check_name, check_topic
from pyjmsack.core.transacting import Transacting
from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import (
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
)
from pyjmsack.message import Message
from pyjmsack.selector import check_selector
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo, Subscription
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import DestinationOptions, parse_destination_options

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection

__all__ = ["Session"]

T = TypeVar("T", TemporaryQueue, TemporaryTopic)
MIN_BROWSER_PREFETCH = 1000
"""Messages a browser asks for at a time, whatever its prefetch."""


class Session(Transacting):
    """The core of one session."""

    def __init__(self, connection: Connection, info: SessionInfo) -> None:
        super().__init__(connection, info)
        self.closed = False
        self.remote_close = connection.remote_close(info.id, "on_session_closed")
        self.producers: dict[int, Producer] = {}
        self.has_listener = False
        self.run_listener: Any = None
        """Set by the face: makes one dispatcher call that feeds a consumer's listener."""
        self._closing: Completion[None] | None = None
        self._dispatchers: list[Dispatcher] = []
        self._completions: Completions | None = None

    # -- state --------------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise if session or connection is closed or lost (S125)."""
        if self.closed:
            raise IllegalStateException("the session is closed")
        self.connection.check_open()

    def update(self) -> None:
        """Something changed that decides whether messages are handed out: let them flow, and wake who waits for that.

        They are while the connection is started, and the session neither closes nor ends a transaction: one handed
        out then would belong to neither transaction.
        """
        self.started = self.connection.started and not self.ending and self._closing is None
        if self.started:
            for consumer in [*self.consumers.values()]:
                if not consumer.drained:
                    self.connection.submit(self.connection.provider.start_consumer, consumer.info.id)
                consumer.arrived()

    def listener_changed(self) -> None:
        """Some consumer got or lost its listener."""
        self.has_listener = any(c.listener is not None and not c.closed for c in [*self.consumers.values()])

    @property
    def dispatcher(self) -> Dispatcher:
        """The one that hands messages to this session's listeners, and runs them unless they have lanes."""
        return (self._dispatchers or self._more_dispatchers(1))[0]

    def lanes(self, count: int) -> Lanes:
        """Return dispatchers for a listener that works on ``count`` messages at a time."""
        if not self._dispatchers:  # the first is the one that hands messages out
            self._more_dispatchers(1)
        return Lanes(self._more_dispatchers(count))

    def _more_dispatchers(self, count: int) -> list[Dispatcher]:
        name, number = f"pyjmsack-session-{self.info.id}", len(self._dispatchers)
        more = [self.connection.runtime.dispatcher(f"{name}-{number + n}") for n in range(count)]
        self._dispatchers += more
        return more

    @property
    def completions(self) -> Completions:
        """The completion listeners of this session's sends."""
        if self._completions is None:
            self._completions = Completions(
                self.connection.runtime.dispatcher(f"pyjmsack-session-{self.info.id}-completions")
            )
        return self._completions

    def dispatch(self, consumer: Consumer) -> None:
        """Let the dispatcher feed this consumer's listener."""
        self.dispatcher.submit(lambda: self.run_listener(consumer))

    def in_listener(self) -> bool:
        """Whether the caller is inside a message listener of this session (S14)."""
        return any(dispatcher.running_here() for dispatcher in self._dispatchers)

    def handler_idle(self, deadline: Deadline | None = None) -> Steps[None]:
        """Wait for the running message listener, unless that is the caller (S124).

        The first dispatcher hands out nothing more after the call at work. What it handed to lanes their listeners have
        in hand, also what waits in a lane behind another message of its group.
        """
        if self.in_listener():
            return
        for number, dispatcher in enumerate([*self._dispatchers]):
            for idle, _ in dispatcher.idle() if number == 0 else dispatcher.through():
                yield idle, None if deadline is None else deadline.remaining()

    def check_not_in_callback(self, what: str) -> None:
        """Raise if the caller is inside a completion listener of this session (S74)."""
        if self._completions is not None and self._completions.dispatcher.running_here():
            raise IllegalStateException(f"{what} is not allowed inside a completion listener of the session (S74)")

    # -- producers and consumers --------------------------------------------------------------------------------

    def create_producer(self, destination: Destination | None) -> Steps[Producer]:
        """Attach a producer (S67)."""
        self.check_open()
        if destination is not None:
            _check_destination(destination)
        presettled = self.connection.options.presettle_policy.producer(destination, self.info.transacted)
        info = ProducerInfo(self.connection.next_id(), self.info.id, destination, presettled)
        name = destination.name if destination is not None else "any destination"
        producer = (Producer if self.connection.recorder is None else RecordedProducer)(self, info)
        done: Completion[None] = Completion()
        self.connection.submit(self.connection.provider.create_producer, info, done)
        provider = self.connection.provider
        yield from self.connection.request(done, f"creating a producer for {name}", provider.close_producer, info.id)
        self.producers[info.id] = producer
        return producer

    def check_source(self, destination: Destination, selector: str | None) -> tuple[DestinationOptions, str | None]:
        """Raise what speaks against consuming or browsing this, before the broker is asked.

        Returns:
            the options of the destination, and the selector to ask the broker for; a blank one means none (S187).

        Raises:
            InvalidSelectorException: the selector is wrong, unless ``jms.validateSelector`` is off.
            InvalidDestinationException: it is none, or a temporary destination of another connection (S130).
        """
        self.check_open()
        _check_destination(destination)
        self.connection.temporaries.check_consumable(destination)
        options = parse_destination_options(destination)
        selector = selector if selector is not None else options.selector
        if selector is None or not selector.strip():
            return options, None
        if self.connection.options.validate_selector:
            check_selector(selector)
        return options, selector

    def check_browser(self, queue: Destination, selector: str | None) -> None:
        """Raise what speaks against browsing this, before the broker is asked (S134).

        Raises:
            UnsupportedFeatureException: this broker would consume the queue.
            InvalidSelectorException, InvalidDestinationException: as of :meth:`check_source`.
        """
        self.check_source(queue, selector)
        self.connection.require("browser")

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
        """Attach a consumer, a browser or a named subscriber; messages flow once the connection is started (S120).

        Args:
            pulls: whether somebody calls ``receive``, so that prefetch 0 makes sense.

        Raises:
            UnsupportedFeatureException: this protocol and broker cannot do it; nothing was asked of the broker.
            InvalidSelectorException: the selector is wrong; nothing was asked unless ``jms.validateSelector`` is off.
            InvalidDestinationException: it is a temporary destination of another connection (S130).
            IllegalStateException: the subscription's name is in use (S141, S143).
        """
        options, selector = self.check_source(destination, selector)
        connection = self.connection
        prefetch = self._prefetch(destination, options.prefetch, browser, subscription)
        prefetch = prefetch if pulls else max(1, prefetch)
        info = self._consumer_info(destination, options, prefetch, browser)
        info.selector, info.subscription = selector, subscription
        info.no_local = no_local or bool(options.no_local)
        connection.check_features(info)
        if subscription is not None:
            info.subscription = yield from connection.subscriptions.take(subscription, destination, info.selector)
        consumer = Consumer(self, info, allow_pull_listener=options.allow_pull_listener)
        attached: Completion[None] = Completion()
        if info.subscription is not None:
            attached.add_callback(partial(self._release_if_refused, info.subscription))
        connection.submit(connection.provider.create_consumer, info, consumer, attached)
        yield from connection.request(
            attached, f"creating a consumer of {destination.name}", consumer.close_link, info.id
        )
        self.consumers[info.id] = consumer
        connection.warn_if_never_started()
        if connection.started or browser:
            connection.submit(connection.provider.start_consumer, info.id)
        return consumer

    def _consumer_info(
        self, destination: Destination, options: DestinationOptions, prefetch: int, browser: bool
    ) -> ConsumerInfo:
        """What the options make of a consumer: those of the destination, else those of the connection."""
        jms = self.connection.options
        presettled = browser or self.info.ack_mode.presettled
        presettled = presettled or jms.presettle_policy.consumer(destination, self.info.transacted)
        exclusive = jms.exclusive_consumer and not destination.is_topic and not browser
        retroactive = jms.use_retroactive_consumer if options.retroactive is None else options.retroactive
        limit = options.maximum_pending_message_limit
        limit = jms.prefetch_policy.maximum_pending_message_limit if limit is None else limit
        return ConsumerInfo(
            self.connection.next_id(),
            self.info.id,
            destination,
            prefetch,
            browser=browser,
            presettled=presettled,
            exclusive=exclusive if options.exclusive is None else options.exclusive,
            priority=options.priority,
            retroactive=retroactive and destination.is_topic,
            pending_limit=limit if destination.is_topic else 0,
            expected_message_size=options.expected_message_size,
        )

    def _prefetch(
        self, destination: Destination, given: int | None, browser: bool, subscription: Subscription | None
    ) -> int:
        policy = self.connection.options.prefetch_policy
        durable = subscription is not None and subscription.durable
        auto = self.info.ack_mode is AckMode.AUTO_ACKNOWLEDGE
        prefetch = policy.for_destination(destination, given, durable=durable, browser=browser, auto=auto)
        # A browser takes nothing from others, and Artemis 2.56 is unreliable when its credit runs out (S134)
        return max(prefetch, MIN_BROWSER_PREFETCH) if browser else prefetch

    # -- subscriptions and temporary destinations ---------------------------------------------------------------

    def subscribe(
        self, topic: Topic, selector: str | None, no_local: bool, subscription: Subscription
    ) -> Steps[Consumer]:
        """Attach a subscriber with a name (S141, S143).

        Raises:
            IllegalStateException: durable, unshared, and without a client id of the user's (S141); or as
                ``create_consumer``.
            JMSException: the name is empty or contains ``|`` (S143).
        """
        self.check_open()
        check_name(subscription.name)
        check_topic(topic)
        if subscription.durable and not subscription.shared and not self.connection.info.explicit_client_id:
            raise IllegalStateException(
                "a durable subscription belongs to a client id; give the factory client_id=..., or set "
                "connection.client_id before the connection is used (S141)"
            )
        return (yield from self.create_consumer(topic, selector, no_local, subscription=subscription))

    def unsubscribe(self, name: str) -> Steps[None]:
        """Delete a durable subscription (S141).

        Raises:
            IllegalStateException: it has a consumer on this connection.
            InvalidDestinationException: there is no such subscription.
        """
        self.check_open()
        yield from self.connection.subscriptions.unsubscribe(name)

    def _release_if_refused(self, subscription: Subscription, attached: Completion[None]) -> None:
        if attached.error is not None:
            self.connection.subscriptions.release(subscription)

    def create_temporary(self, kind: type[T], run: Callable[[Steps[None]], Any]) -> Steps[T]:
        """Create a temporary destination, which belongs to the connection (S130)."""
        self.check_open()
        return (yield from self.connection.temporaries.create(kind, run))

    # -- acknowledgement ----------------------------------------------------------------------------------------

    def acknowledge(self, outcome: Outcome = Outcome.ACCEPTED) -> None:
        """CLIENT mode: one outcome for all delivered messages of the session, across consumers (S25, S26)."""
        self.check_open()
        self._require(outcome)
        if self.info.ack_mode is AckMode.CLIENT_ACKNOWLEDGE:
            for consumer in [*self.consumers.values()]:
                consumer.settle_delivered(outcome)

    def acknowledge_message(self, message: Message) -> None:
        """``message.acknowledge()`` by the mode; ``JMS_AMQP_ACK_TYPE`` chooses the outcome (S28, S38)."""
        self.check_open()
        outcome = _outcome(message._ack_type)
        if self.info.ack_mode.individual:
            self.settle_message(message, outcome)
        elif message._delivery.generation <= self.connection.lost_generation:  # newer messages are not covered (S95)
            for consumer in [*self.consumers.values()]:
                consumer.settle_stale(outcome)
        elif not message._delivery.settled:  # a second call is a no-op, even if more was delivered meanwhile (S28)
            self.acknowledge(outcome)

    def settle_message(self, message: Message, outcome: Outcome) -> None:
        """An outcome for this message alone."""
        self.check_open()
        self._require(outcome)
        consumer = self.consumers.get(message._delivery.consumer_id)
        if consumer is not None:
            consumer.settle_one(message._delivery, outcome)

    def _require(self, outcome: Outcome) -> None:
        """Refuse an outcome that this broker would take for another one (S119)."""
        if outcome is not Outcome.ACCEPTED:
            self.connection.require(_FEATURES[outcome])

    def recover(self) -> None:
        """Deliver again what is not acknowledged (S32, S33).

        Raises:
            IllegalStateException: the session is transacted (S7).
        """
        self.check_open()
        if self.info.transacted:
            raise IllegalStateException("recover() is not for transacted sessions; use rollback() (S7)")
        for consumer in [*self.consumers.values()]:
            consumer.recover()

    def undo(self) -> Steps[None]:
        """A listener raised: its messages come again, counted, by the session's own verb (S20)."""
        if self.info.transacted:
            yield from self.rollback()
        else:
            self.recover()

    # -- failover -----------------------------------------------------------------------------------------------

    def interrupted(self) -> None:
        """The connection is lost and is being rebuilt; on the loop."""
        for consumer in [*self.consumers.values()]:
            consumer.interrupted()

    def restored(self) -> None:
        """The connection is there again, perhaps at another broker; on the loop."""
        for producer in [*self.producers.values()]:
            producer.forget_encoders()

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self, deadline: Deadline | None = None) -> Steps[None]:
        """Close: wait for the listener at work, hand messages back, roll back, end (S30, S31, S74, S84, S124).

        Raises:
            IllegalStateException: called from a listener of this session (S14) or a completion listener (S74).
        """
        if self.in_listener():
            raise IllegalStateException("a message listener may not close its own session (S14)")
        self.check_not_in_callback("close()")
        if self._closing is not None:
            yield self._closing, self.connection.options.close_timeout
            return
        closing: Completion[None] = Completion()
        finished = False
        try:
            self._closing = closing
            yield from self._close(deadline)
            finished = True
        finally:
            try:
                self.closed = True
                if not finished and self.connection.usable:  # the caller gave up: end it without waiting
                    for consumer in [*self.consumers.values()]:
                        consumer.abandon()
                    self._submit_end(Completion())
                self.forget()
            finally:
                closing.succeed()

    def _close(self, deadline: Deadline | None) -> Steps[None]:
        self.started = False
        deadline = deadline or Deadline(self.connection.options.close_timeout)
        yield from self.handler_idle(deadline)  # the listener at work may still acknowledge and send
        self.closed = True
        if not self.info.transacted:
            for producer in [*self.producers.values()]:
                yield from producer.all_answered(deadline)
        if self._completions is not None:
            yield from self._completions.finish(deadline)
        for consumer in [*self.consumers.values()]:
            consumer.abandon()
        yield from self._end(deadline)
        for dispatcher in self._dispatchers:
            dispatcher.close()
        if self._completions is not None:
            self._completions.dispatcher.close()

    def _end(self, deadline: Deadline) -> Steps[None]:
        provider, number = self.connection.provider, self.info.id
        for producer in [*self.producers.values()]:
            producer.closed = True
            producer.remote_close.forget()
        self.connection.sessions.pop(number, None)
        self.transaction.ended("rolled_back")
        if self.connection.failure is not None:
            return
        if self.info.transacted:
            undone: Completion[None] = Completion()
            self.connection.submit(provider.rollback, number, undone)
            yield from self.connection.answer(undone, "rolling back", deadline.remaining())
        done: Completion[None] = Completion()
        self._submit_end(done)
        yield from self.connection.answer(done, "closing the session", deadline.remaining())

    def _submit_end(self, done: Completion[None]) -> None:
        """Detach the consumers and end the session; the broker rolls back what is open (S84)."""
        self.connection.sessions.pop(self.info.id, None)
        for consumer in [*self.consumers.values()]:
            consumer.submit_behind(consumer.close_link, consumer.info.id, Completion())
        end = self.connection.provider.close_session
        if isinstance(self.processed, FileStore):
            self.processed.add((), end, self.info.id, done)
        else:
            self.connection.submit(end, self.info.id, done)


def _check_destination(destination: object) -> None:
    if not isinstance(destination, Destination):
        raise InvalidDestinationException(f"{destination!r} is not a destination; use session.create_queue(name) (S67)")
    if destination.is_temporary and getattr(destination, "deleted", False):
        raise InvalidDestinationException(f"temporary destination {destination.name} was deleted (S68)")


_FEATURES = {
    Outcome.REJECTED: "reject",
    Outcome.RELEASED: "release",
    Outcome.MODIFIED_FAILED: "modified-failed",
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: "undeliverable-here",
}


def _outcome(ack_type: Any) -> Outcome:
    if ack_type is None:
        return Outcome.ACCEPTED
    try:
        return Outcome(ack_type)
    except ValueError as error:
        known = ", ".join(f"{o.value} ({o.name})" for o in Outcome)
        raise JMSException(f"JMS_AMQP_ACK_TYPE {ack_type!r}: expected one of {known} (S38)") from error
