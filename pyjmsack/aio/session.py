"""The asyncio session."""

from __future__ import annotations

from pyjmsack.aio._face import SessionFace
from pyjmsack.aio._runtime import Opening
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.aio.producer import MessageProducer
from pyjmsack.aio.requestor import Requestor
from pyjmsack.core import connection as core_connection
from pyjmsack.core import session as core_session
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.facade import SessionFacade
from pyjmsack.core.requestor import Requestor as CoreRequestor
from pyjmsack.core.steps import Steps
from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.spi.resources import Subscription

__all__ = ["Session"]


class Session(SessionFacade):
    """Makes producers, consumers and messages. Tasks may share it: commits, rollbacks, listeners take turns (S15)."""

    def __init__(self, core: core_session.Session, connection: core_connection.Connection) -> None:
        super().__init__(core)
        face = core.face
        assert isinstance(face, SessionFace)  # of this face's connection
        self._face = face
        self._core_connection = connection
        self._run = face.run
        self._lock = face.lock

    def create_producer(self, destination: Destination | None = None) -> Opening[MessageProducer]:
        """Return a producer for a destination. Without one, each send names its destination (S67).

        Raises:
            JMSException: the broker refused the producer, by the kind of its reason (S129).
        """
        return Opening(self._create_producer(destination))

    async def _create_producer(self, destination: Destination | None) -> MessageProducer:
        return MessageProducer(await self._run(self._core.create_producer(destination)), self._face)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return a consumer, which gets messages once the connection is started (S120).

        Args:
            destination: a queue or a topic.
            selector: only messages that fit this condition come.
            no_local: messages that this connection sent do not come (S147).

        Raises:
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: a temporary destination of another connection (S130).
            UnsupportedFeatureException: this protocol or this broker cannot do it (S119).
            JMSException: the broker refused the consumer.
        """
        return Opening(self._consumer(self._core.create_consumer(destination, selector, no_local)))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return the consumer of a durable subscription, which keeps messages while there is no consumer (S141).

        The subscription belongs to the client id of the connection, and lives until ``unsubscribe(name)``. Another
        topic, selector or ``no_local`` under the same name deletes the subscription with its messages and makes a new
        one (S142).

        Args:
            topic: what is subscribed to.
            name: of the subscription, without ``|``.
            selector, no_local: as for :meth:`create_consumer`.

        Raises:
            IllegalStateException: no client id was given, or the subscription has an active consumer (S141).
            InvalidDestinationException: no topic, or a temporary one.
            JMSException: the name is not valid (S143), or the broker refused the subscription.
        """
        subscription = Subscription(name, durable=True, shared=False)
        return Opening(self._consumer(self._core.subscribe(topic, selector, no_local, subscription)))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> Opening[MessageConsumer]:
        """Return one of the consumers of a shared subscription: each message goes to one of them (S143).

        The subscription lives as long as its consumers. It belongs to the client id, if one was given, and otherwise to
        all connections without one. Its first consumer decides topic and selector.

        Raises:
            UnsupportedFeatureException: the broker has no shared subscriptions (S144).
            IllegalStateException: the name is in use with another topic or selector (S143).
            JMSException: the name is not valid (S143), or the broker refused the subscription.
        """
        subscription = Subscription(name, durable=False, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> Opening[MessageConsumer]:
        """Return one of the consumers of a shared subscription that lives until ``unsubscribe(name)`` (S143).

        Raises:
            UnsupportedFeatureException, IllegalStateException, JMSException: as :meth:`create_shared_consumer`. An
                unshared durable subscription and a shared one of the same name exclude each other.
        """
        subscription = Subscription(name, durable=True, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    async def _consumer(self, steps: Steps[Consumer]) -> MessageConsumer:
        return MessageConsumer(await self._run(steps), self._face)

    async def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription and the messages that it keeps (S141).

        Raises:
            IllegalStateException: the subscription has an active consumer.
            InvalidDestinationException: there is no subscription of that name.
        """
        await self._run(self._core.unsubscribe(name))

    def create_temporary_queue(self) -> Opening[TemporaryQueue]:
        """Return a new temporary queue. It lives as long as the connection, or until its ``delete()``, which you
        ``await``; ``async with`` deletes it in the end. Everybody may send to it. Only this connection can consume from
        it (S130).

        Raises:
            UnsupportedFeatureException: this protocol or this broker has no temporary queues.
        """
        return Opening(self._run(self._core.create_temporary(TemporaryQueue, self._run)), "delete")

    def create_temporary_topic(self) -> Opening[TemporaryTopic]:
        """Return a new temporary topic, which lives as long as a queue of :meth:`create_temporary_queue`."""
        return Opening(self._run(self._core.create_temporary(TemporaryTopic, self._run)), "delete")

    def create_requestor(self, destination: Destination) -> Opening[Requestor]:
        """Return a requestor, which sends requests to a destination and waits for their replies.

        The requestor has a session of its own on the same connection. So the mode, the transaction and the listeners of
        this session do not matter, and the end of this session does not end the requestor. Close the requestor, or the
        connection.

        Raises:
            UnsupportedFeatureException: this protocol or this broker has no temporary queues.
            JMSException: the broker refused the queue for the replies.
        """
        return Opening(self._requestor(CoreRequestor.open(self._core_connection, self._core, destination, self._run)))

    async def _requestor(self, steps: Steps[CoreRequestor]) -> Requestor:
        return Requestor(await self._run(steps), self._face)

    def create_browser(self, queue: Queue, selector: str | None = None) -> Opening[QueueBrowser]:
        """Return a browser of a queue (S134).

        Raises:
            UnsupportedFeatureException: this broker would consume the queue (Artemis over STOMP).
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: it cannot be browsed: no destination, or deleted, or another connection's.
        """
        return Opening(self._create_browser(queue, selector))

    async def _create_browser(self, queue: Queue, selector: str | None) -> QueueBrowser:
        self._core.check_browser(queue, selector)
        return QueueBrowser(self._core, self._face, queue, selector)

    async def acknowledge(self) -> None:
        """CLIENT mode: acknowledge all delivered messages of the session (S25); elsewhere a no-op (S12)."""
        self._core.acknowledge()

    async def recover(self) -> None:
        """Deliver again what is not acknowledged (S32)."""
        self._core.recover()

    async def commit(self) -> None:
        """Commit the transaction and begin the next (S75, S78).

        Raises:
            TransactionRolledBackException: the transaction did not commit, or nobody knows whether it did (S79, S86,
                S87).
        """
        async with self._lock.hold():
            await self._run(self._core.commit())

    async def rollback(self) -> None:
        """Roll the transaction back and begin the next; its messages come again (S80, S83)."""
        async with self._lock.hold():
            await self._run(self._core.rollback())

    async def close(self) -> None:
        """Close; unacknowledged messages go back to the broker (S30), a transaction is rolled back (S84)."""
        await self._run(self._core.close())

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
