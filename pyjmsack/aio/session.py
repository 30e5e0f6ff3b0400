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
    """Makes producers, consumers and messages. A session is made by :meth:`Connection.create_session`. Several tasks
    may share a session. Commits, rollbacks, transacted sends and listeners take turns (S15).
    """

    def __init__(self, core: core_session.Session, connection: core_connection.Connection) -> None:
        super().__init__(core)
        face = core.face
        assert isinstance(face, SessionFace)  # because a connection of this face made the session
        self._face = face
        self._core_connection = connection
        self._run = face.run
        self._lock = face.lock

    def create_producer(self, destination: Destination | None = None) -> Opening[MessageProducer]:
        """Return a producer for a destination. ``await`` the result, or use it in ``async with``.

        Args:
            destination: the destination of all messages. ``None`` means that each send names its destination (S67).

        Raises:
            InvalidDestinationException: ``destination`` is no destination, was deleted, or is unknown to the broker.
            JMSException: the broker refused the producer. The class of the error says why (S129).
        """
        return Opening(self._create_producer(destination))

    async def _create_producer(self, destination: Destination | None) -> MessageProducer:
        return MessageProducer(await self._run(self._core.create_producer(destination)), self._face)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return a consumer, which gets messages while the connection is started (S120). ``await`` the result, or use
        it in ``async with``.

        Args:
            destination: a queue or a topic. Options after its name, as in ``orders?consumer.prefetchSize=10``, apply to
                the consumer.
            selector: a condition in the language of JMS, such as ``"region = 'EU'"``. The consumer gets only messages
                that fulfil the condition. ``None`` means the option ``consumer.selector`` of the destination, or all
                messages if this option is not set. A blank text selects all messages.
            no_local: whether messages that this connection sent are left out (S147).

        Raises:
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: ``destination`` is no destination, was deleted, or is a temporary destination
                of another connection (S130).
            UnsupportedFeatureException: this protocol or this broker lacks a feature that the consumer needs (S119).
            JMSException: the broker refused the consumer.
        """
        return Opening(self._consumer(self._core.create_consumer(destination, selector, no_local)))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return the consumer of a durable subscription, which keeps messages while there is no consumer (S141).

        The subscription belongs to the client id of the connection, and lives until ``unsubscribe(name)``. A call with
        the same name and another topic, selector or ``no_local`` deletes the subscription with its messages, and makes
        a new one (S142).

        Args:
            topic: the topic to subscribe to. It must not be temporary.
            name: the name of the subscription. It must not be empty, and must not contain ``|``.
            selector, no_local: as for :meth:`create_consumer`.

        Raises:
            IllegalStateException: no client id was given, or the subscription has an active consumer (S141).
            InvalidDestinationException: ``topic`` is not a topic, or is temporary.
            JMSException: the name is not valid (S143), or the broker refused the subscription.
        """
        subscription = Subscription(name, durable=True, shared=False)
        return Opening(self._consumer(self._core.subscribe(topic, selector, no_local, subscription)))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> Opening[MessageConsumer]:
        """Return a new consumer of a shared subscription. Each message goes to only one of its consumers (S143).

        The subscription lives as long as its consumers. It belongs to the client id, if one was given, and otherwise to
        all connections without a client id. Its first consumer decides topic and selector.

        Args:
            topic: the topic to subscribe to. It must not be temporary.
            name: the name of the subscription. It must not be empty, and must not contain ``|``.
            selector: as for :meth:`create_consumer`.

        Raises:
            UnsupportedFeatureException: the broker has no shared subscriptions (S144).
            IllegalStateException: the name is in use with another topic or selector (S143).
            InvalidDestinationException: ``topic`` is not a topic, or is temporary.
            JMSException: the name is not valid (S143), or the broker refused the subscription.
        """
        subscription = Subscription(name, durable=False, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> Opening[MessageConsumer]:
        """Return a new consumer of a shared subscription that lives until ``unsubscribe(name)``. Each message goes to
        only one of its consumers (S143).

        Args:
            topic: the topic to subscribe to. It must not be temporary.
            name: the name of the subscription. It must not be empty, and must not contain ``|``.
            selector: as for :meth:`create_consumer`.

        Raises:
            UnsupportedFeatureException: the broker has no shared subscriptions (S144).
            IllegalStateException: the name is in use with another topic or selector, or by an unshared subscriber on
                this connection (S143).
            InvalidDestinationException: ``topic`` is not a topic, or is temporary.
            JMSException: the name is not valid (S143), or the broker refused the subscription.
        """
        subscription = Subscription(name, durable=True, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    async def _consumer(self, steps: Steps[Consumer]) -> MessageConsumer:
        return MessageConsumer(await self._run(steps), self._face)

    async def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription and the messages that it keeps (S141).

        Args:
            name: the name that :meth:`create_durable_consumer` or :meth:`create_shared_durable_consumer` got.

        Raises:
            IllegalStateException: the subscription has an active consumer.
            InvalidDestinationException: there is no subscription of that name.
            JMSException: the name is empty or contains ``|`` (S143).
        """
        await self._run(self._core.unsubscribe(name))

    def create_temporary_queue(self) -> Opening[TemporaryQueue]:
        """Return a new temporary queue. ``await`` the result, or use it in ``async with``, which deletes the queue at
        its end.

        The queue lives as long as the connection, or until its ``delete()``, which is awaited. Everybody may send to
        the queue. Only this connection can consume from it (S130).

        Raises:
            UnsupportedFeatureException: this protocol or this broker has no temporary queues.
        """
        return Opening(self._run(self._core.create_temporary(TemporaryQueue, self._run)), "delete")

    def create_temporary_topic(self) -> Opening[TemporaryTopic]:
        """Return a new temporary topic, which lives as long as a queue of :meth:`create_temporary_queue`.

        Raises:
            UnsupportedFeatureException: this protocol or this broker has no temporary topics.
        """
        return Opening(self._run(self._core.create_temporary(TemporaryTopic, self._run)), "delete")

    def create_requestor(self, destination: Destination) -> Opening[Requestor]:
        """Return a requestor, which sends requests to a destination and waits for their replies.

        The requestor has a session of its own on the same connection. So the mode, the transaction and the listeners of
        this session do not matter, and the end of this session does not end the requestor. Close the requestor, or the
        connection.

        Args:
            destination: the destination of the requests.

        Raises:
            InvalidDestinationException: ``destination`` is not a destination, or was deleted (S67, S68).
            UnsupportedFeatureException: this protocol or this broker has no temporary queues.
            JMSException: the broker refused the queue for the replies, or the producer.
        """
        return Opening(self._requestor(CoreRequestor.open(self._core_connection, self._core, destination, self._run)))

    async def _requestor(self, steps: Steps[CoreRequestor]) -> Requestor:
        return Requestor(await self._run(steps), self._face)

    def create_browser(self, queue: Queue, selector: str | None = None) -> Opening[QueueBrowser]:
        """Return a browser, which looks at the messages of a queue and takes none (S134).

        Args:
            queue: the queue to look at.
            selector: as for :meth:`create_consumer`.

        Raises:
            UnsupportedFeatureException: this broker would take the messages out of the queue (Artemis over STOMP).
            InvalidSelectorException: the selector is wrong (S187).
            InvalidDestinationException: ``queue`` is not a destination, was deleted, or is a temporary queue of another
                connection.
        """
        return Opening(self._create_browser(queue, selector))

    async def _create_browser(self, queue: Queue, selector: str | None) -> QueueBrowser:
        self._core.check_browser(queue, selector)
        return QueueBrowser(self._core, self._face, queue, selector)

    async def acknowledge(self) -> None:
        """In CLIENT mode acknowledge all messages that the session delivered (S25). In other modes this call does
        nothing (S12).

        Raises:
            IllegalStateException: the session is closed.
        """
        self._core.acknowledge()

    async def recover(self) -> None:
        """Let the messages that are not acknowledged be delivered again (S32).

        Raises:
            IllegalStateException: the session is transacted (S7) or closed.
        """
        self._core.recover()

    async def commit(self) -> None:
        """Commit the transaction and begin the next one (S75, S78).

        Raises:
            TransactionRolledBackException: the transaction did not commit, or nobody knows whether it did (S79, S86,
                S87). The attribute ``in_doubt`` tells these cases apart.
            IllegalStateException: the session is not transacted (S7) or closed, or the caller is a completion listener
                (S74).
        """
        await self._lock.in_turn(lambda: self._run(self._core.commit()))

    async def rollback(self) -> None:
        """Roll the transaction back and begin the next one. The messages that the transaction received are delivered
        again (S80, S83).

        Raises:
            IllegalStateException: the session is not transacted (S7) or closed, or the caller is a completion listener
                (S74).
            JMSException: the broker refused the rollback, or did not answer in time.
        """
        await self._lock.in_turn(lambda: self._run(self._core.rollback()))

    async def close(self) -> None:
        """Close the session. Messages without an acknowledgement go back to the broker (S30), and an open transaction
        is rolled back (S84).

        Raises:
            IllegalStateException: the caller is a listener (S14) or completion listener (S74) of this session.
        """
        await self._run(self._core.close())

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
