"""Workers in asyncio: each has a session of its own and takes one job at a time; a failed job is tried again."""

from __future__ import annotations

import asyncio
import os

from pyjmsack import AckMode, TextMessage
from pyjmsack.aio import Connection, ConnectionFactory, MessageConsumer

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
QUEUE = "examples.work?consumer.prefetchSize=1"  # prefetch 1: a busy worker holds no job that another could do
JOBS = 10


async def handle(text: str | None, attempt: int) -> None:
    """Stands for the work."""
    await asyncio.sleep(0.01)
    if text == "job 3" and attempt == 1:
        raise ValueError("the first attempt fails")


async def worker(consumer: MessageConsumer, finished: asyncio.Queue[str | None]) -> None:
    async for message in consumer:  # ends when the consumer is closed
        assert isinstance(message, TextMessage)
        try:
            await handle(message.text, message.delivery_count)
        except ValueError as error:
            print(f"{message.text}: {error}")
            message.modify(delivery_failed=True)
        else:
            message.accept()
            finished.put_nowait(message.text)


async def fill(connection: Connection) -> None:
    async with connection.create_session() as session, session.create_producer(session.create_queue(QUEUE)) as producer:
        for number in range(JOBS):
            await producer.send(f"job {number}")


async def main() -> None:
    async with ConnectionFactory(URL).create_connection() as connection:
        await connection.start()
        await fill(connection)
        finished: asyncio.Queue[str | None] = asyncio.Queue()
        consumers, tasks = [], []
        for _ in range(3):
            session = await connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
            consumers.append(await session.create_consumer(session.create_queue(QUEUE)))
            tasks.append(asyncio.create_task(worker(consumers[-1], finished)))
        done = {await asyncio.wait_for(finished.get(), 10) for _ in range(JOBS)}
        for consumer in consumers:
            await consumer.close()
        await asyncio.gather(*tasks)
    print(f"{len(done)} jobs done")


if __name__ == "__main__":
    asyncio.run(main())
