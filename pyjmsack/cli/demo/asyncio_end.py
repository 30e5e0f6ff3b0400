"""The sending and the receiving end over the asyncio face, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from itertools import islice

from pyjmsack import AckMode, Message
from pyjmsack.aio import Connection, MessageProducer
from pyjmsack.cli.demo.job import LOOK_SECONDS, Job
from pyjmsack.cli.demo.source import Line, line_message

__all__ = ["run_on_asyncio"]

_WINDOW = 500


def run_on_asyncio(job: Job) -> None:
    """Receive with a coroutine listener in the mode of the job, and send with a coroutine."""
    asyncio.run(_run(job))


async def _run(job: Job) -> None:
    async with job.login.aio_factory().create_connection() as inward, inward.create_session(job.mode) as session:
        finished = asyncio.Event()

        async def listener(message: Message) -> None:
            await asyncio.sleep(0)
            job.ledger.deliver(message)
            if job.ledger.complete:
                finished.set()

        inward.exception_listener = job.on_exception
        consumer = await session.create_consumer(session.create_queue(job.queue))
        consumer.message_listener = listener
        await inward.start()
        async with job.login.aio_factory().create_connection() as outward:
            outward.exception_listener = job.on_exception
            job.begin()
            sending = asyncio.create_task(_send(job, outward))
            while job.waiting(not sending.done()):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(finished.wait(), LOOK_SECONDS)
            await sending
            await inward.stop()


async def _send(job: Job, connection: Connection) -> None:
    async with connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session:
        producer = await session.create_producer(session.create_queue(job.queue))
        now, later = job.portions
        await _send_lines(job, producer, now)
        while job.held():  # noqa: ASYNC110 - another thread ends the wait
            await asyncio.sleep(LOOK_SECONDS)
        await _send_lines(job, producer, later)


async def _send_lines(job: Job, producer: MessageProducer, lines: Sequence[Line]) -> None:
    left = iter(lines)
    while (batch := list(islice(left, _WINDOW))) and not job.abandoned:
        sends = [producer.send_async(line_message(line)) for line in batch]
        job.sent += len(sends)
        await asyncio.gather(*sends)
        job.confirmed += len(sends)
