"""One message there and back, on either face."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pyjmsack
from pyjmsack import Queue, aio

__all__ = ["FACES", "Exchange"]

PATIENCE = 60.0
Exchange = Callable[..., Any]
"""Called with a URL, the queue's name, options and arguments of the factory; returns what was received."""


def blocking(url: str, queue: str, options: Mapping[str, object] | None = None, **arguments: Any) -> Any:
    """Over ``pyjmsack``."""
    factory = pyjmsack.ConnectionFactory(url, options=options, **arguments)
    with factory.create_connection() as connection, connection.create_session() as session:
        connection.start()
        session.create_producer(Queue(queue)).send(session.create_text_message("hello"))
        message = session.create_consumer(Queue(queue)).receive(timeout=PATIENCE)
        return message and message.body


def in_asyncio(url: str, queue: str, options: Mapping[str, object] | None = None, **arguments: Any) -> Any:
    """Over ``pyjmsack.aio``."""

    async def run() -> Any:
        factory = aio.ConnectionFactory(url, options=options, **arguments)
        async with factory.create_connection() as connection, connection.create_session() as session:
            await connection.start()
            await (await session.create_producer(Queue(queue))).send(session.create_text_message("hello"))
            message = await (await session.create_consumer(Queue(queue))).receive(timeout=PATIENCE)
            return message and message.body

    return asyncio.run(run())


FACES: dict[str, Exchange] = {"sync": blocking, "aio": in_asyncio}
