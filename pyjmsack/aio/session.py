"""The asyncio session."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyjmsack.aio._runtime import Opening, SessionLock, ends_task
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.aio.producer import MessageProducer
from pyjmsack.aio.requestor import Requestor
from pyjmsack.core import session as core_session
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.facade import SessionFacade
from pyjmsack.core.lanes import Lanes
from pyjmsack.core.requestor import Requestor as CoreRequestor
from pyjmsack.core.steps import Steps
from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.message import Message
from pyjmsack.spi.resources import Subscription

if TYPE_CHECKING:
    from pyjmsack.aio.connection import Connection

__all__ = ["Session"]

BATCH = 64
"""Messages a listener gets before the session's other consumers, and other tasks, have a turn."""


class Session(SessionFacade):
    """Makes producers, consumers and messages. Tasks may share it: commits, rollbacks, listeners take turns (S15)."""

    def __init__(self, core: core_session.Session, connection: Connection) -> None:
        super().__init__(core)
        self._run = connection._run
        self._loop = connection._loop
        self._lock = SessionLock()
        core.run_listener = self._run_listener

    def create_producer(self, destination: Destination | None = None) -> Opening[MessageProducer]:
        """Return a producer; see :meth:`pyjmsack.Session.create_producer`."""
        return Opening(self._create_producer(destination))

    async def _create_producer(self, destination: Destination | None) -> MessageProducer:
        return MessageProducer(await self._run(self._core.create_producer(destination)), self)

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
        return MessageConsumer(await self._run(steps), self)

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
        return Opening(self._requestor(CoreRequestor.open(self._core, destination, self._run)))

    async def _requestor(self, steps: Steps[CoreRequestor]) -> Requestor:
        return Requestor(await self._run(steps), self)

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
        return QueueBrowser(self, queue, selector)

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

    async def _run_listener(self, consumer: Consumer) -> None:
        """Feed a consumer's listener, in the dispatcher's task."""
        for _ in range(BATCH):
            async with self._lock.hold():
                listener, lanes = consumer.listener, consumer.lanes
                message = None if listener is None else consumer.begin_dispatch()
                if message is None or listener is None:
                    break
                if lanes is not None:
                    lane = lanes.enter(message)
                    lane.submit(partial(self._call_listener, consumer, listener, message, lanes))
                    continue
                try:
                    await self._call_listener(consumer, listener, message, None)
                except BaseException:
                    consumer.unscheduled()
                    raise
        else:
            self._core.dispatch(consumer)
            await asyncio.sleep(0)  # let other tasks have the loop
            return
        consumer.unscheduled()

    async def _call_listener(
        self, consumer: Consumer, listener: Callable[[Message], Any], message: Message, lanes: Lanes | None
    ) -> None:
        error: BaseException | None = None
        try:
            result = listener(message)
            if inspect.isawaitable(result):
                await result
        except BaseException as raised:  # a cancelled await of its own is a listener's failure like any other
            error = raised
        if consumer.end_dispatch(message, error):
            await self._run(self._core.undo())
        if lanes is not None:
            lanes.leave(message)
            consumer.schedule()
        if ends_task(error):
            raise error

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
