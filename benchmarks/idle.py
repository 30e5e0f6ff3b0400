"""A process with many idle consumers, for ``python -m benchmarks scale``: ``python -m benchmarks.idle URL PLAN``.

PLAN is JSON. Prints a line of JSON after each step, then one each time when all connections are restored.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import click

from benchmarks.job import login
from pyjmsack import Message, aio
from pyjmsack.cli.resources import resident_bytes

ValueT = TypeVar("ValueT")


async def _step(name: str, makers: Iterable[Awaitable[ValueT]]) -> list[ValueT]:
    """Await all at the same time; tell how long they took, and the memory of this process now."""
    begun = time.monotonic()
    made = await asyncio.gather(*makers)
    _tell(step=name, seconds=time.monotonic() - begun, resident=resident_bytes())
    return made


def _tell(**facts: Any) -> None:
    click.echo(json.dumps(facts))


class _Restored:
    """Tells when each connection is restored once more."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._seen = 0

    def on_connection_restored(self, url: str) -> None:
        """Count."""
        self._seen += 1
        if self._seen % self._connections == 0:
            _tell(step="restored")


async def _on_message(message: Message) -> None:
    """No message comes."""


async def _consumer(session: aio.Session, queue: str, listens: bool) -> aio.MessageConsumer:
    consumer = await session.create_consumer(session.create_queue(queue))
    if listens:
        consumer.message_listener = _on_message
    return consumer


async def _open(factory: aio.ConnectionFactory, stack: AsyncExitStack) -> aio.Connection:
    connection = await stack.enter_async_context(factory.create_connection())
    await connection.start()
    return connection


async def _idle(url: str, plan: dict[str, Any]) -> None:
    username, password = login()
    factory = aio.ConnectionFactory(url, username=username, password=password)
    async with AsyncExitStack() as stack:
        first = await _open(factory, stack)
        await _consumer(await first.create_session(), f"{plan['queue']}-first", plan["listens"])
        _tell(step="start", seconds=0.0, resident=resident_bytes())
        many, each = plan["connections"], plan["consumers"] // plan["connections"]
        connections = await _step("connections", (_open(factory, stack) for _ in range(many)))
        lots = [one for one in connections for _ in range(plan["sessions"] // many)]
        sessions = await _step("sessions", [one.create_session() for one in lots])
        names = (f"{plan['queue']}-{number}" for number in range(plan["consumers"]))
        owners = [sessions[place * len(sessions) // many] for place in range(many) for _ in range(each)]
        consumers = [_consumer(owner, name, plan["listens"]) for owner, name in zip(owners, names, strict=True)]
        kept = await _step("consumers", consumers)
        restored = _Restored(many)
        for connection in connections:
            connection.add_connection_listener(restored)
        await asyncio.to_thread(sys.stdin.readline)  # the parent process ends this one so
        del kept


if __name__ == "__main__":
    asyncio.run(_idle(sys.argv[1], json.loads(sys.argv[2])))
