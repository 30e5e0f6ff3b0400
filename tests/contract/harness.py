"""What a scenario works with: a queue of its own on a real broker, and ways to wait for what happens."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar

from contract.brokers import Target
from contract.faces import Face
from pyjmsack import AckMode, JMSException, Message, Queue, aio
from pyjmsack.testing import Wire

__all__ = ["PATIENCE", "Completed", "Gate", "Heard", "Jms", "counts", "nothing", "producer_behind", "take", "texts"]

T = TypeVar("T")
Options = Mapping[str, object]
PATIENCE = 60.0
"""Seconds after which a scenario gives up waiting for something that must happen."""


class Gate:
    """Opened once; a scenario and a callback of either face may wait for it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.open = self._event.set
        self.is_open = self._event.is_set

    async def passed(self) -> None:
        """Wait until it is open."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a callback of the blocking face
            opened = self._event.wait(PATIENCE)
        else:
            opened = await loop.run_in_executor(None, self._event.wait, PATIENCE)
        assert opened, "nobody opened the gate"


class Heard(Generic[T]):
    """A listener that remembers; a scenario waits for the next thing it heard."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[T] = queue.SimpleQueue()

    def __call__(self, item: T) -> None:
        self._queue.put(item)

    async def next(self) -> T:
        """Return what was heard and not asked for yet, oldest first."""
        return await asyncio.get_running_loop().run_in_executor(None, self._queue.get, True, PATIENCE)

    async def take(self, count: int) -> list[T]:
        """Return the next ``count``."""
        return [await self.next() for _ in range(count)]

    @property
    def silent(self) -> bool:
        """Whether nothing is left to ask for."""
        return self._queue.empty()


class Completed:
    """A completion listener that remembers ``(message, error)``."""

    def __init__(self) -> None:
        self.heard: Heard[tuple[Message, JMSException | None]] = Heard()

    def on_completion(self, message: Message) -> None:
        """The broker has it."""
        self.heard((message, None))

    def on_exception(self, message: Message, error: JMSException) -> None:
        """The broker did not take it."""
        self.heard((message, error))


class Jms:
    """A face, a broker and a queue that is this test's alone. Closes what it opened."""

    def __init__(self, face: Face, url: str, queue_name: str, target: Target) -> None:
        self.face = face
        self.url = url
        self.target = target
        self.ways = target.ways
        self.queue = Queue(queue_name)
        self._opened = AsyncExitStack()

    def queue_with(self, options: str) -> Queue:
        """Return the queue with destination options, ``consumer.prefetchSize=1``."""
        return Queue(f"{self.queue.name}?{options}")

    def factory(self, url: str | None = None, *, options: Options | None = None, **login: Any) -> aio.ConnectionFactory:
        """Return a factory for this broker, or for ``url``."""
        return self.face.factory(url or self.url, options=options, **login)

    async def connection(
        self, url: str | None = None, *, started: bool = True, options: Options | None = None, **login: Any
    ) -> aio.Connection:
        """Return a new connection."""
        opening = self.factory(url, options=options, **login).create_connection()
        connection = await self._opened.enter_async_context(await opening)
        if started:
            await connection.start()
        return connection

    async def session(
        self, mode: int = AckMode.AUTO_ACKNOWLEDGE, url: str | None = None, *, options: Options | None = None
    ) -> aio.Session:
        """Return a session on a started connection of its own."""
        return await (await self.connection(url, options=options)).create_session(mode)

    async def consumer(
        self, mode: int = AckMode.AUTO_ACKNOWLEDGE, *, options: Options | None = None
    ) -> aio.MessageConsumer:
        """Return a consumer of the queue, on a connection of its own."""
        return await (await self.session(mode, options=options)).create_consumer(self.queue)

    async def manage(self, operation: str, *arguments: Any) -> Any:
        """Do something at the broker, as its administrator would. Artemis only: Classic takes no such messages."""
        async with (
            self.factory().create_connection() as connection,
            connection.create_session() as session,
            session.create_requestor(Queue("activemq.management")) as requestor,
        ):
            await connection.start()
            request = session.create_text_message(json.dumps(arguments))
            request.properties.update({"_AMQ_ResourceName": "broker", "_AMQ_OperationName": operation})
            answer = await requestor.request(request, PATIENCE)
        assert answer is not None, f"the broker did not answer {operation}"
        assert answer.properties["_AMQ_OperationSucceeded"], answer.body
        return json.loads(answer.body)[0] if answer.body else None

    async def listed(self, operation: str, field: str, comparison: str, value: str) -> list[Any]:
        """Return the rows of a list of Artemis, such as ``listConsumers``, whose field compares so with the value.

        ``listAllConsumersAsJSON`` would fail if a session of another test ends just now (Artemis 2.56).
        """
        wanted = json.dumps({"field": field, "operation": comparison, "value": value})
        return list(json.loads(await self.manage(operation, wanted, 1, 10))["data"])

    async def consumers_of(self, queue: str) -> list[Any]:
        """Return what Artemis says of the consumers of a queue."""
        return await self.listed("listConsumers", "queue", "EQUALS", queue)

    async def queues(self) -> list[dict[str, Any]]:
        """Return what Artemis says of this test's queues: what is there, with whom, and what became of the rest."""
        told = (
            "name messageCount deliveringCount consumerCount messagesAdded messagesAcked messagesExpired messagesKilled"
        )
        listed = await self.listed("listQueues", "name", "CONTAINS", self.queue.name)
        return [{name: queue[name] for name in told.split()} for queue in listed]

    def wire(self) -> Wire:
        """Return a wire to the broker."""
        return self._opened.enter_context(Wire(self.url))

    async def send(self, *bodies: str, **how: Any) -> None:
        """Put text messages into the queue; each carries the queue's name as property ``test``."""
        async with self.factory().create_connection() as connection, connection.create_session() as session:
            producer = await session.create_producer(self.queue)
            for body in bodies:
                await producer.send(self.text(session, body), **how)

    def text(self, session: aio.Session, body: str) -> Message:
        """Return a text message that :meth:`dead` finds again."""
        message = session.create_text_message(body)
        message.properties["test"] = self.queue.name
        return message

    async def left(self, *bodies: str, in_order: bool = True) -> list[Message]:
        """Close everything, then check that the queue holds these, in this order; return them, consumed.

        With ``in_order=False`` the order in the queue does not matter, and ``bodies`` must be sorted.
        """
        await self.close()
        return await self._holds(self.queue, None, bodies, in_order=in_order)

    async def dead(self, *bodies: str) -> list[Message]:
        """Check that these are the messages of this test that the broker gave up; return them, consumed."""
        return await self._holds(Queue(self.ways.dead_letters), f"test = '{self.queue.name}'", bodies)

    async def _holds(
        self, where: Queue, selector: str | None, bodies: Sequence[str], *, in_order: bool = True
    ) -> list[Message]:
        async with self.factory().create_connection() as connection, connection.create_session() as session:
            await connection.start()
            async with session.create_consumer(where, selector) as consumer:
                found = await take(consumer, len(bodies))
                assert (texts(found) if in_order else sorted(texts(found))) == [*bodies]
                await nothing(consumer)
                return found

    async def close(self) -> None:
        """Close everything."""
        await self._opened.aclose()


async def producer_behind(
    jms: Jms, wire: Wire, mode: AckMode = AckMode.AUTO_ACKNOWLEDGE, options: dict[str, object] | None = None
) -> tuple[aio.Session, aio.MessageProducer]:
    """Return a session and a producer behind a wire, with credit for many messages."""
    session = await (await jms.connection(wire.url, options=options)).create_session(mode)
    producer = await session.create_producer(jms.queue)
    await producer.send_async("warm-up")
    return session, producer


async def take(consumer: aio.MessageConsumer, count: int) -> list[Message]:
    """Receive ``count`` messages."""
    found: list[Message] = []
    for _ in range(count):
        message = await consumer.receive(timeout=PATIENCE)
        assert message is not None, f"only {texts(found)} arrived"
        found.append(message)
    return found


async def nothing(consumer: aio.MessageConsumer) -> None:
    """Check that the broker has no message for this consumer: it is asked, so nobody waits."""
    message = await consumer.receive(timeout=0)
    assert message is None, f"unexpected: {texts([message])}"


def texts(messages: Sequence[Message]) -> list[Any]:
    """Return the bodies."""
    return [message.body for message in messages]


def counts(messages: Sequence[Message]) -> list[int]:
    """Return the delivery counts (S110)."""
    return [message.delivery_count for message in messages]
