"""The blocking session."""

from __future__ import annotations

from pyjmsack.core import connection as core_connection
from pyjmsack.core import session as core_session
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.facade import SessionFacade
from pyjmsack.core.requestor import Requestor as CoreRequestor
from pyjmsack.core.steps import Steps
from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.spi.resources import Subscription
from pyjmsack.sync._face import SessionFace
from pyjmsack.sync.consumer import MessageConsumer, QueueBrowser
from pyjmsack.sync.producer import MessageProducer
from pyjmsack.sync.requestor import Requestor

__all__ = ["Session"]


class Session(SessionFacade):
    """Makes producers, consumers and messages; belongs to one thread at a time (S15), or to its listeners."""

    def __init__(self, core: core_session.Session, connection: core_connection.Connection) -> None:
        super().__init__(core)
        face = core.face
        assert isinstance(face, SessionFace)  # of this face's connection
        self._face = face
        self._core_connection = connection
        self._run = face.run
        self._guard = face.guard

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Return a producer for a destination, or an anonymous one (S67).

        Raises:
            JMSException: the broker refused it, by the kind of its reason (S129).
        """
        return MessageProducer(self._run(self._core.create_producer(destination)), self._face)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Return a consumer; it gets messages once the connection is started (S120).

        Args:
            selector: only messages for which this holds.
            no_local: not those that this connection sent (S147).

        Raises:
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: it is a temporary destination of another connection (S130).
            UnsupportedFeatureException: it cannot be had over this protocol at this broker (S119).
            JMSException: the broker refused the consumer.
        """
        return self._consumer(self._core.create_consumer(destination, selector, no_local))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """Return the consumer of a durable subscription, which keeps messages while there is none (S141).

        It belongs to the connection's client id, and lives until ``unsubscribe(name)``. Another topic, selector or
        ``no_local`` under the same name deletes it with its messages and makes a new one (S142).

        Args:
            name: of the subscription, without ``|``.
            selector, no_local: as for ``create_consumer``.

        Raises:
            IllegalStateException: no client id was given, or the subscription has an active consumer (S141).
            InvalidDestinationException: not a topic, or a temporary one.
            JMSException: the name is not valid (S143), or the broker refused it.
        """
        subscription = Subscription(name, durable=True, shared=False)
        return self._consumer(self._core.subscribe(topic, selector, no_local, subscription))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Return one of the consumers of a shared subscription: each message goes to one of them (S143).

        It lives as long as its consumers. It belongs to the client id, if one was given, else to all connections
        without one. Topic and selector are those of its first consumer.

        Raises:
            UnsupportedFeatureException: the broker has none (S144).
            IllegalStateException: the name is in use with another topic or selector (S143).
            JMSException: the name is not valid (S143), or the broker refused it.
        """
        subscription = Subscription(name, durable=False, shared=True)
        return self._consumer(self._core.subscribe(topic, selector, False, subscription))

    def create_shared_durable_consumer(self, topic: Topic, name: str, selector: str | None = None) -> MessageConsumer:
        """Return one of the consumers of a shared subscription that lives until ``unsubscribe(name)`` (S143).

        Raises:
            UnsupportedFeatureException, IllegalStateException, JMSException: as ``create_shared_consumer``; an
                unshared durable subscription and a shared one of the same name exclude each other.
        """
        subscription = Subscription(name, durable=True, shared=True)
        return self._consumer(self._core.subscribe(topic, selector, False, subscription))

    def _consumer(self, steps: Steps[Consumer]) -> MessageConsumer:
        return MessageConsumer(self._run(steps), self._face)

    def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription and the messages it keeps (S141).

        Raises:
            IllegalStateException: it has an active consumer.
            InvalidDestinationException: there is none of that name.
        """
        self._run(self._core.unsubscribe(name))

    def create_temporary_queue(self) -> TemporaryQueue:
        """Return a new queue that lives as long as the connection, or until its ``delete()``, which a ``with`` block
        calls in the end. Everybody may send to it; only this connection can consume from it (S130).

        Raises:
            UnsupportedFeatureException: it cannot be had over this protocol at this broker.
        """
        return self._run(self._core.create_temporary(TemporaryQueue, self._run))

    def create_temporary_topic(self) -> TemporaryTopic:
        """Return a new topic that lives as long as the connection; as ``create_temporary_queue``."""
        return self._run(self._core.create_temporary(TemporaryTopic, self._run))

    def create_requestor(self, destination: Destination) -> Requestor:
        """Return a requestor, which sends requests to a destination and waits for their replies.

        It has a session of its own on the same connection, so this session's mode, transaction and listeners do not
        matter, and closing this session does not end it; close it, or the connection.

        Raises:
            UnsupportedFeatureException: temporary queues cannot be had over this protocol at this broker.
            JMSException: the broker refused it.
        """
        return self._requestor(CoreRequestor.open(self._core_connection, self._core, destination, self._run))

    def _requestor(self, steps: Steps[CoreRequestor]) -> Requestor:
        return Requestor(self._run(steps), self._face)

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        """Return a browser of a queue (S134).

        Raises:
            UnsupportedFeatureException: this broker would consume the queue (Artemis over STOMP).
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: it cannot be browsed: no destination, or deleted, or another connection's.
        """
        self._core.check_browser(queue, selector)
        return QueueBrowser(self._core, self._face, queue, selector)

    def acknowledge(self) -> None:
        """CLIENT mode: acknowledge all delivered messages of the session (S25); elsewhere a no-op (S12)."""
        with self._guard:
            self._core.acknowledge()

    def recover(self) -> None:
        """Deliver again what is not acknowledged (S32)."""
        with self._guard:
            self._core.recover()

    def commit(self) -> None:
        """Commit the transaction and begin the next (S75, S78).

        Raises:
            TransactionRolledBackException: it did not commit, or nobody knows (S79, S86, S87).
        """
        with self._guard:
            self._run(self._core.commit())

    def rollback(self) -> None:
        """Roll the transaction back and begin the next; its messages come again (S80, S83)."""
        with self._guard:
            self._run(self._core.rollback())

    def close(self) -> None:
        """Close; unacknowledged messages go back to the broker (S30), a transaction is rolled back (S84)."""
        self._run(self._core.close())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
