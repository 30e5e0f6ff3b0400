"""A consumer that waits to be killed: ``URL MODE DESTINATION RECEIVED [ACKNOWLEDGED ...]``.

It receives, acknowledges those of the given numbers, sees to it that the broker has read that, says so, and waits.
"""

from __future__ import annotations

import asyncio
import sys

from pyjmsack import AckMode, ConnectionFactory, Queue, Topic, aio


def blocking(url: str, mode: int, destination: Queue | Topic, received: int, acknowledged: list[int]) -> None:
    connection = ConnectionFactory(url).create_connection()
    connection.start()
    session = connection.create_session(mode)
    durable = isinstance(destination, Topic)
    consumer = (
        session.create_durable_consumer(destination, "crash") if durable else session.create_consumer(destination)
    )
    for number in range(received):
        message = consumer.receive(timeout=60)
        if number in acknowledged:
            session.commit() if mode == AckMode.SESSION_TRANSACTED else message.acknowledge()
    connection.create_session().create_producer(Queue(f"{destination.name}.fence")).send("read so far")
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    sys.stdin.read()


async def in_asyncio(url: str, mode: int, destination: Queue | Topic, received: int, acknowledged: list[int]) -> None:
    connection = await aio.ConnectionFactory(url).create_connection()
    await connection.start()
    session = await connection.create_session(mode)
    if isinstance(destination, Topic):
        consumer = await session.create_durable_consumer(destination, "crash")
    else:
        consumer = await session.create_consumer(destination)
    for number in range(received):
        message = await consumer.receive(timeout=60)
        if number in acknowledged:
            await (session.commit() if mode == AckMode.SESSION_TRANSACTED else message.acknowledge())
    producer = await (await connection.create_session()).create_producer(Queue(f"{destination.name}.fence"))
    await producer.send("read so far")
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    face, url, mode, kind, name, received, *acknowledged = sys.argv[1:]
    given = (url, int(mode), {"queue": Queue, "topic": Topic}[kind](name), int(received), [*map(int, acknowledged)])
    asyncio.run(in_asyncio(*given)) if face == "aio" else blocking(*given)
