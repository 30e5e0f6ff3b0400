"""One cell of the failover proof: a connection behind a wire, a drop placed around one request, and what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeVar

from contract.harness import PATIENCE, Jms, take
from polling import eventually

from faults.faults_support import failover_url
from pyjmsack import AckMode, Message, Queue, aio

__all__ = ["HALF_A_SEND", "Moment", "Proof", "body", "name_of"]

T = TypeVar("T")
PADDING = "." * 20_000
"""Makes a send longer than all that is said while a connection is rebuilt."""
HALF_A_SEND, HALF_A_COMMAND = 5000, 10
"""Bytes after which a request with and one without a message is half-way."""
STEP = 50
"""Bytes of the recovery that the first drop lets through; each later one lets through so many more, and a quarter."""


class Moment(Enum):
    """When the connection is lost."""

    BEFORE = "before it leaves"
    HALF = "when half of it has left"
    STORED = "when the broker has done it, before its reply"
    RECOVERY = "there, and again and again during recovery"

    @property
    def done(self) -> bool:
        """Whether the broker has done what it is asked for and answers, before the connection is lost."""
        return self in (Moment.STORED, Moment.RECOVERY)


class Watch:
    """A connection listener that counts."""

    def __init__(self) -> None:
        self.interrupted = self.restored = 0

    def on_connection_interrupted(self, _: str) -> None:
        """The client knows that its connection is lost."""
        self.interrupted += 1

    def on_connection_restored(self, _: str) -> None:
        """All is rebuilt."""
        self.restored += 1


class Proof:
    """What a case works with.

    Args:
        moment: when :meth:`lose` loses the connection.
    """

    def __init__(self, jms: Jms, moment: Moment) -> None:
        self.jms = jms
        self.moment = moment
        self.queue = jms.queue
        self.onwards = Queue(f"{jms.queue.name}.onwards")
        self._watch = Watch()
        self._wire = jms.wire()

    # -- what the case works with -------------------------------------------------------------------------------

    async def session(self, mode: AckMode) -> aio.Session:
        """Return a session of the connection that will be lost."""
        self.connection = await self.jms.connection(failover_url(self._wire.url))
        self.connection.add_connection_listener(self._watch)
        self._fence = await self.connection.create_session()
        return await self.connection.create_session(mode)

    async def consumer(self, session: aio.Session, *bodies: str) -> aio.MessageConsumer:
        """Return a consumer that has these messages in its buffer: nothing more will come for it."""
        await self.jms.send(*bodies)
        consumer = await session.create_consumer(self.queue)
        await eventually(lambda: consumer.stats.buffered == len(bodies))
        return consumer

    # -- the drop -----------------------------------------------------------------------------------------------

    async def lose(self, request: Callable[[], Awaitable[T]], *, half: int = HALF_A_COMMAND) -> T:
        """Make a request, and lose the connection at the moment that is to be proved; return its result.

        Args:
            half: bytes after which it is half-way.
        """
        return await self._lose(request, self.moment is Moment.HALF, half)

    async def lose_unanswered(self, request: Callable[[], Awaitable[T]]) -> T:
        """The same for a request that the broker does not answer: another one behind it makes the broker speak.

        A recovery follows a request that was half-way, so that the broker still has what it is about.
        """

        async def with_fence() -> T:
            result = await request()
            if self.moment is not Moment.BEFORE:
                await self._fence.create_consumer(Queue(f"{self.queue.name}.fence"))
            return result

        return await self._lose(with_fence, self.moment is not Moment.STORED, HALF_A_COMMAND)

    async def _lose(self, request: Callable[[], Awaitable[T]], halfway: bool, half: int) -> T:
        if self.moment is Moment.BEFORE:
            self._wire.cut()
            await self._interrupted()
            asked = asyncio.ensure_future(request())
            await asyncio.wait({asked}, timeout=0.05)  # what is held is held now; too short a time would prove less
        else:
            if halfway:
                self._wire.cut_after(half)
            else:
                self._wire.cut_after(0, replies=True)
            asked = asyncio.ensure_future(request())
            await self._interrupted()
        await self._recover()
        return await asyncio.wait_for(asked, PATIENCE)

    async def _interrupted(self) -> None:
        await eventually(lambda: self._watch.interrupted == 1)

    async def _recover(self) -> None:
        """Let the client back; during recovery only after drops at each stage of it."""
        drops, passing = 0, STEP
        while self.moment is Moment.RECOVERY and not self._watch.restored:
            self._wire.cut_after(passing)
            await eventually(lambda: self._wire.broken or bool(self._watch.restored))
            drops, passing = drops + self._wire.broken, passing + passing // 4 + STEP
        assert drops > 1 or self.moment is not Moment.RECOVERY
        self._wire.heal()
        await eventually(lambda: self._watch.restored == self._watch.interrupted)

    # -- what is left -------------------------------------------------------------------------------------------

    async def content(self, least: int, queue: Queue | None = None) -> list[str]:
        """End the connection; return what the queue holds, seen by another one past the wire.

        Args:
            least: messages that must be there, to wait for.
        """
        await self.jms.close()
        async with self.jms.factory().create_connection() as connection, connection.create_session() as session:
            await connection.start()
            consumer = await session.create_consumer(queue or self.queue)
            found = await take(consumer, least)
            while (message := await consumer.receive(timeout=0)) is not None:
                found.append(message)
            return [name_of(message) for message in found]


def body(name: str) -> str:
    """Return a body that is long and has a name."""
    return name + PADDING


def name_of(message: Message) -> str:
    """Return the name."""
    return str(message.body).rstrip(".")
