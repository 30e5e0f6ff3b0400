"""Load for the fault tests: producers, relays and consumers that go on whatever happens, and keep count."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from contract.harness import Jms

from pyjmsack import AckMode, Queue, TransactionRolledBackException
from pyjmsack.broker import EmbeddedArtemis

__all__ = ["OPTIONS", "Load", "failover_url", "url_of"]

OPTIONS = "failover.reconnectDelay=10&failover.useReconnectBackOff=false&jms.closeTimeout=10000"

PATIENCE = 40.0
"""Seconds for the load to get somewhere: a broker may have to start in between, on a busy machine."""


def failover_url(*members: str) -> str:
    """Return a failover URL that is impatient."""
    return f"failover:({','.join(members)})?{OPTIONS}"


def url_of(jms: Jms, broker: EmbeddedArtemis) -> str:
    """Return the broker's URL of the protocol that the scenario runs on."""
    return next(url for url in (broker.amqp_url, broker.stomp_url) if url in jms.url)


class Load:
    """Numbers that go through the broker."""

    def __init__(self, jms: Jms) -> None:
        self._jms = jms
        self._ended = self._complete = False
        self._tasks: list[asyncio.Task[None]] = []
        self.confirmed: list[int] = []
        self.received: list[int] = []
        """Those whose handling is done: acknowledged as the mode wants."""
        self.rolled_back = self.in_doubt = self._relays = 0
        self._atomic = jms.target.protocol == "amqp"
        """Whether the broker, which is Artemis, has transactions over receipts, too (S88)."""

    async def reaches(self, received: int) -> None:
        """Wait for the load to get somewhere."""
        deadline = monotonic() + PATIENCE
        while len(self.received) < received:
            for task in self._tasks:
                if task.done():
                    task.result()
            assert monotonic() < deadline, f"stuck: {len(self.confirmed)} confirmed, {len(self.received)} received"
            await asyncio.sleep(0.002)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def produce(self, queue: Queue) -> asyncio.Task[None]:
        """Send, 20 at a time, until the load ends."""
        return self._start(self._produce(queue))

    async def _produce(self, queue: Queue) -> None:
        session = await self._jms.session()
        producer = await session.create_producer(queue)
        while not self._ended:
            batch = range(len(self.confirmed), len(self.confirmed) + 20)
            await asyncio.gather(*[producer.send_async(str(number)) for number in batch])
            self.confirmed += batch

    def consume(self, queue: Queue, mode: AckMode = AckMode.AUTO_ACKNOWLEDGE) -> asyncio.Task[None]:
        """Receive until cancelled by ``finish``."""
        return self._start(self._consume(queue, mode))

    async def _consume(self, queue: Queue, mode: AckMode) -> None:
        session = await self._jms.session(mode)
        consumer = await session.create_consumer(queue)
        while not (self._complete and len({*self.received}) >= len(self.confirmed)):
            message = await consumer.receive(timeout=1)
            if message is not None:
                message.acknowledge()
                self.received.append(int(message.text))
        if self._relays == 0 or self._atomic:
            assert await consumer.receive(timeout=0) is None, "more than was sent"

    def relay(self, source: Queue, target: Queue) -> asyncio.Task[None]:
        """Receive and send on, five to a transaction; do again what was rolled back."""
        self._relays += 1
        return self._start(self._relay(source, target))

    async def _relay(self, source: Queue, target: Queue) -> None:
        session = await self._jms.session(AckMode.SESSION_TRANSACTED)
        consumer = await session.create_consumer(source)
        producer = await session.create_producer(target)
        while True:
            try:
                for _ in range(5):
                    message = await consumer.receive(timeout=0.2)
                    if message is not None:
                        await producer.send(message.text)
                await session.commit()
            except TransactionRolledBackException as error:
                self.rolled_back += 1
                self.in_doubt += error.in_doubt

    async def finish(self, producing: asyncio.Task[None], consuming: asyncio.Task[None]) -> None:
        """Produce nothing more, and consume the rest."""
        self._ended = True
        await producing
        self._complete = True
        await asyncio.wait_for(consuming, PATIENCE)

    def check_transactions(self) -> None:
        """What went through the relay arrived: once where transactions are atomic, else at least once (S75, S88)."""
        if self._atomic:
            assert sorted(self.received) == sorted(self.confirmed)
        else:
            assert {*self.received} == {*self.confirmed}

    @staticmethod
    async def stop(relaying: asyncio.Task[None]) -> None:
        """End a relay that has nothing to do."""
        relaying.cancel()
        await asyncio.gather(relaying, return_exceptions=True)
