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
        """Return a producer; see :meth:`pyjmsack.Session.create_producer`."""
        return Opening(self._create_producer(destination))

    async def _create_producer(self, destination: Destination | None) -> MessageProducer:
        return MessageProducer(await self._run(self._core.create_producer(destination)), self._face)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return a consumer; see :meth:`pyjmsack.Session.create_consumer`."""
        return Opening(self._consumer(self._core.create_consumer(destination, selector, no_local)))

    def create_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, no_local: bool = False
    ) -> Opening[MessageConsumer]:
        """Return the consumer of a durable subscription; see :meth:`pyjmsack.Session.create_durable_consumer`."""
        subscription = Subscription(name, durable=True, shared=False)
        return Opening(self._consumer(self._core.subscribe(topic, selector, no_local, subscription)))

    def create_shared_consumer(self, topic: Topic, name: str, selector: str | None = None) -> Opening[MessageConsumer]:
        """Return a consumer of a shared subscription; see :meth:`pyjmsack.Session.create_shared_consumer`."""
        subscription = Subscription(name, durable=False, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> Opening[MessageConsumer]:
        """Return a consumer of a shared durable subscription; see
        :meth:`pyjmsack.Session.create_shared_durable_consumer`."""
        subscription = Subscription(name, durable=True, shared=True)
        return Opening(self._consumer(self._core.subscribe(topic, selector, False, subscription)))

    async def _consumer(self, steps: Steps[Consumer]) -> MessageConsumer:
        return MessageConsumer(await self._run(steps), self._face)

    async def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription and the messages it keeps (S141); see :meth:`pyjmsack.Session.unsubscribe`."""
        await self._run(self._core.unsubscribe(name))

    def create_temporary_queue(self) -> Opening[TemporaryQueue]:
        """Return a new temporary queue, whose ``delete()`` is awaited; ``async with`` deletes it in the end. See
        :meth:`pyjmsack.Session.create_temporary_queue`."""
        return Opening(self._run(self._core.create_temporary(TemporaryQueue, self._run)), "delete")

    def create_temporary_topic(self) -> Opening[TemporaryTopic]:
        """Return a new temporary topic; as ``create_temporary_queue``."""
        return Opening(self._run(self._core.create_temporary(TemporaryTopic, self._run)), "delete")

    def create_requestor(self, destination: Destination) -> Opening[Requestor]:
        """Return a requestor, which sends requests to a destination and waits for their replies; see
        :meth:`pyjmsack.Session.create_requestor`."""
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
        """Commit the transaction and begin the next (S75, S78); see :meth:`pyjmsack.Session.commit`."""
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
