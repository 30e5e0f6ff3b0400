"""pyjmsack's asyncio face."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from benchmarks.job import PATIENCE, Job, Scenarios, Stopwatch, Timing, login, pass_gate
from benchmarks.peers.sync import CLIENT, CONSUMERS, IN_FLIGHT, TRANSACTION, queues_of, read, shares
from benchmarks.tracing import prepare
from pyjmsack import AckMode, DeliveryMode, Message
from pyjmsack.aio import ConnectionFactory, MessageConsumer, MessageProducer, Session

_UNDER_WAY = 1000  # unconfirmed sends; the broker gives no more credit than that


@asynccontextmanager
async def _session(job: Job, mode: AckMode) -> AsyncIterator[Session]:
    username, password = login()
    prepare(job)
    factory = ConnectionFactory(job.url, username=username, password=password, ledger=job.ledger or None)
    async with factory.create_connection() as connection:
        await connection.start()
        async with connection.create_session(mode) as session:
            pass_gate()
            yield session


@asynccontextmanager
async def _producer(
    job: Job, mode: AckMode = AckMode.AUTO_ACKNOWLEDGE
) -> AsyncIterator[tuple[Session, MessageProducer]]:
    async with _session(job, mode) as session:
        producer = await session.create_producer(session.create_queue(job.queue))
        producer.delivery_mode = DeliveryMode.PERSISTENT
        yield session, producer


async def _send_async(job: Job) -> Timing:
    """Timed from the first send to the last confirmation."""
    text = job.text
    async with _producer(job) as (session, producer):
        under_way: deque[asyncio.Future[None]] = deque()
        watch = Stopwatch()
        for _ in range(job.count):
            if len(under_way) == _UNDER_WAY:
                await under_way.popleft()
            under_way.append(producer.send_async(session.create_text_message(text)))
        for future in under_way:
            await future
        return watch.timing(job.count, CLIENT)


async def _send(job: Job) -> Timing:
    """Timed from the first send to the last confirmation."""
    text = job.text
    async with _producer(job) as (session, producer):
        watch = Stopwatch()
        for _ in range(job.count):
            await producer.send(session.create_text_message(text))
        return watch.timing(job.count, CLIENT)


async def _send_nonpersistent(job: Job) -> Timing:
    """Timed from the first send to the answer to the producer's close, because no such send waits for the broker."""
    text = job.text
    async with _producer(job) as (session, producer):
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        watch = Stopwatch()
        for _ in range(job.count):
            await producer.send(session.create_text_message(text))
        await producer.close()
        return watch.timing(job.count, CLIENT)


async def _send_transacted(job: Job) -> Timing:
    """Timed from the first send to the answer to the last commit."""
    text = job.text
    async with _producer(job, AckMode.SESSION_TRANSACTED) as (session, producer):
        watch = Stopwatch()
        for number in range(1, job.count + 1):
            await producer.send(session.create_text_message(text))
            if number % TRANSACTION == 0 or number == job.count:
                await session.commit()
        return watch.timing(job.count, CLIENT)


async def _drained(consumer: MessageConsumer, job: Job) -> Timing:
    """Timed from the first message to the answer to the consumer's close."""
    message = await consumer.receive(PATIENCE)
    watch = Stopwatch()
    read(message, job)
    for _ in range(job.count - 1):
        read(await consumer.receive(PATIENCE), job)
    await consumer.close()
    return watch.timing(job.count, CLIENT)


async def _receive(job: Job) -> Timing:
    """Out of a queue that is full."""
    async with _session(job, AckMode.AUTO_ACKNOWLEDGE) as session:
        consumer = await session.create_consumer(session.create_queue(job.queue))
        return await _drained(consumer, job)


async def _receive_topic(job: Job, mode: AckMode) -> Timing:
    """From a topic; all are sent before the connection starts."""
    username, password = login()
    async with ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        session = await connection.create_session(mode)
        topic = session.create_topic(f"{job.queue}.topic")
        consumer = await session.create_consumer(topic)
        async with (await connection.create_session()).create_producer(topic) as producer:
            for start in range(0, job.count, _UNDER_WAY):
                count = min(_UNDER_WAY, job.count - start)
                await asyncio.gather(*(producer.send_async(job.text) for _ in range(count)))
        await connection.start()
        return await _drained(consumer, job)


async def _answer(session: Session, job: Job) -> None:
    """Reply to each request with its text."""
    producer = await session.create_producer()
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    consumer = await session.create_consumer(session.create_queue(job.queue))

    async def on_message(request: Message) -> None:
        await producer.reply(request, request.body)

    consumer.message_listener = on_message


async def _request(job: Job, in_flight: int) -> Timing:
    """Timed from the first request to the last reply. The replies come from this process, over another connection."""
    latencies: list[int] = []
    async with _session(job, AckMode.AUTO_ACKNOWLEDGE) as answering, _session(job, AckMode.AUTO_ACKNOWLEDGE) as asking:
        await _answer(answering, job)
        async with asking.create_requestor(asking.create_queue(job.queue)) as requestor:

            async def ask(count: int) -> None:
                for _ in range(count):
                    begun = time.perf_counter_ns()
                    reply = await requestor.request(job.text, PATIENCE, delivery_mode=DeliveryMode.NON_PERSISTENT)
                    read(reply, job)
                    latencies.append(time.perf_counter_ns() - begun)

            watch = Stopwatch()
            await asyncio.gather(*map(ask, shares(job.count, in_flight)))
            return watch.timing(len(latencies), CLIENT, latencies)


class _Listener:
    """Reads each message, and acknowledges each by itself unless the session does so."""

    def __init__(self, job: Job, *, acknowledges: bool) -> None:
        self.job = job
        self.acknowledges = acknowledges
        self.watch: Stopwatch | None = None
        self.seen = 0
        self.finished = asyncio.Event()

    async def on_message(self, message: Message) -> None:
        """Take one message. ``acknowledge`` is awaited, like every call of this face that may wait."""
        self.watch = self.watch or Stopwatch()
        read(message, self.job)
        if self.acknowledges:
            acknowledged: Any = message.acknowledge()
            await acknowledged
        self.seen += 1
        if self.seen == self.job.count:
            self.finished.set()


async def _listen(job: Job) -> Timing:
    """Timed from the first message to the answer to the consumer's close."""
    listener = _Listener(job, acknowledges=True)
    async with _session(job, AckMode.INDIVIDUAL_ACKNOWLEDGE) as session:
        consumer = await session.create_consumer(session.create_queue(job.queue))
        consumer.message_listener = listener.on_message
        await listener.finished.wait()
        await consumer.close()
        assert listener.watch is not None  # a message came
        return listener.watch.timing(listener.seen, CLIENT)


async def _listen_with_many(job: Job, consumers: int, *, apart: bool) -> Timing:
    """So many consumers of one session, in AUTO. Timed from the first message to the last."""
    username, password = login()
    listener = _Listener(job, acknowledges=False)
    queues = await asyncio.to_thread(queues_of, job, consumers, apart=apart)
    async with ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        session = await connection.create_session()
        created = (session.create_consumer(session.create_queue(queue)) for queue in queues)
        for consumer in await asyncio.gather(*created):
            consumer.message_listener = listener.on_message
        await connection.start()
        await listener.finished.wait()
        assert listener.watch is not None  # a message came
        return listener.watch.timing(listener.seen, CLIENT)


def _on_a_loop(scenario: Callable[[Job], Awaitable[Timing]]) -> Callable[[Job], Timing]:
    async def run(job: Job) -> Timing:
        return await scenario(job)

    return lambda job: asyncio.run(run(job))


SCENARIOS: Scenarios = {
    **{
        f"{name}-{number}": _on_a_loop(partial(_listen_with_many, consumers=number, apart=name == "queues"))
        for name in ("consumers", "queues")
        for number in CONSUMERS
    },
    "send-async": _on_a_loop(_send_async),
    "receive": _on_a_loop(_receive),
    "listener": _on_a_loop(_listen),
    "send": _on_a_loop(_send),
    "send-nonpersistent": _on_a_loop(_send_nonpersistent),
    "transacted": _on_a_loop(_send_transacted),
    "request": _on_a_loop(partial(_request, in_flight=1)),
    "request-many": _on_a_loop(partial(_request, in_flight=IN_FLIGHT)),
    "topic": _on_a_loop(partial(_receive_topic, mode=AckMode.AUTO_ACKNOWLEDGE)),
    "topic-dups-ok": _on_a_loop(partial(_receive_topic, mode=AckMode.DUPS_OK_ACKNOWLEDGE)),
}
