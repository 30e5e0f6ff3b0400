"""Both ends over the asyncio face, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from itertools import islice

from pyjmsack import AckMode, Message
from pyjmsack.aio import Connection
from pyjmsack.cli.demo.job import Job
from pyjmsack.cli.demo.source import line_message

__all__ = ["run_on_asyncio"]

_WINDOW = 500
_LOOK_SECONDS = 0.05


def run_on_asyncio(job: Job) -> None:
    """A coroutine listener in the mode of the job, and a coroutine that sends."""
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
            job.started = time.monotonic()
            sending = asyncio.create_task(_send(job, outward))
            while job.waiting(not sending.done()):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(finished.wait(), _LOOK_SECONDS)
            await sending
            await inward.stop()


async def _send(job: Job, connection: Connection) -> None:
    async with connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session:
        producer = await session.create_producer(session.create_queue(job.queue))
        lines = iter(job.source.lines)
        while batch := list(islice(lines, _WINDOW)):
            sends = [producer.send_async(line_message(line)) for line in batch]
            job.sent += len(sends)
            await asyncio.gather(*sends)
            job.confirmed += len(sends)
