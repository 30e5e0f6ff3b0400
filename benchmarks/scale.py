"""``python -m benchmarks scale``: many consumers in one asyncio process, their memory, and how soon they come back."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from benchmarks.restore import address, await_answer
from pyjmsack.aio import Connection, ConnectionFactory
from pyjmsack.broker import EmbeddedArtemis

ATTACH_LIMIT, RESTORE_LIMIT, CONSUMER_LIMIT_KB = 10.0, 5.0, 5.0
SESSIONS = 1000
"""Sessions whose memory is measured, on one connection."""
_AT_ONCE = 100
"""Consumers of one connection that are asked for at the same time."""
_PATIENCE = 120.0


@dataclass(frozen=True)
class ScaleReport:
    """Kilobytes of resident memory of each idle thing, and seconds for all consumers."""

    protocol: str
    connections: int
    consumers: int
    connection_kb: float
    session_kb: float
    consumer_kb: float
    attach_seconds: float
    restore_seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def sentences(self) -> str:
        """Say it in five lines."""
        return "\n".join(
            f"{self.protocol}: {line}"
            for line in (
                f"{self.consumers:,} consumers on {self.connections} connections, each with a queue of its own",
                f"attached in {self.attach_seconds:.1f} s (limit {ATTACH_LIMIT:g} s)",
                f"restored {self.restore_seconds:.1f} s after the broker's port answered (limit {RESTORE_LIMIT:g} s)",
                f"{self.consumer_kb:.1f} KB a consumer (limit {CONSUMER_LIMIT_KB:g})",
                f"{self.session_kb:.1f} KB a session, {self.connection_kb:.0f} KB a connection",
            )
        )


def measure(protocol: str, connections: int, consumers: int, progress: Callable[[str], None]) -> ScaleReport:
    """Attach so many consumers in all to an embedded Artemis, then kill the broker and start it again.

    Raises:
        BenchmarkError: the connections did not come back.
    """
    with embedded() as broker:
        return asyncio.run(_measure(broker, protocol, connections, consumers, progress))


async def _measure(
    broker: EmbeddedArtemis, protocol: str, connections: int, consumers: int, progress: Callable[[str], None]
) -> ScaleReport:
    factory = ConnectionFactory(f"failover:({address(broker, protocol)})?failover.warnAfterReconnectAttempts=0")
    async with AsyncExitStack() as stack:
        warm = await stack.enter_async_context(factory.create_connection())  # imports, caches, the loop's own buffers
        await _attach([warm], 10, "bench-warm")
        progress("connections")
        before = _resident()
        opened = [await stack.enter_async_context(factory.create_connection()) for _ in range(connections)]
        connection_kb = _kilobytes(before, connections)
        before = _resident()
        sessions = [await warm.create_session() for _ in range(SESSIONS)]
        session_kb = _kilobytes(before, len(sessions))
        for session in sessions:
            await session.close()
        progress("consumers")
        before, start = _resident(), time.monotonic()
        await _attach(opened, consumers // connections, "bench-scale")
        attach_seconds = time.monotonic() - start
        consumer_kb = _kilobytes(before, consumers)
        progress("restart")
        restore_seconds = await _restored(broker, protocol, opened)
    return ScaleReport(
        protocol, connections, consumers, connection_kb, session_kb, consumer_kb, attach_seconds, restore_seconds
    )


async def _attach(connections: Sequence[Connection], each: int, name: str) -> None:
    """Create the consumers, at all connections at the same time."""
    await asyncio.gather(*(_attach_to(connection, each, f"{name}-{n}") for n, connection in enumerate(connections)))


async def _attach_to(connection: Connection, count: int, name: str) -> None:
    session = await connection.create_session()
    await connection.start()
    for first in range(0, count, _AT_ONCE):
        numbers = range(first, min(count, first + _AT_ONCE))
        await asyncio.gather(*(session.create_consumer(session.create_queue(f"{name}-{n}")) for n in numbers))


class _Restored:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.moment = 0.0

    def on_connection_restored(self, url: str) -> None:
        self.moment = time.monotonic()
        self.event.set()


async def _restored(broker: EmbeddedArtemis, protocol: str, connections: Sequence[Connection]) -> float:
    """Return the seconds from the port's first answer to the restoring of the last connection."""
    listeners = [_Restored() for _ in connections]
    for connection, listener in zip(connections, listeners, strict=True):
        connection.add_connection_listener(listener)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as executor:
        await loop.run_in_executor(executor, broker.kill)
        answering = loop.run_in_executor(executor, _answered, broker, protocol)
        await loop.run_in_executor(executor, broker.restart)
        answered = await answering
        try:
            await asyncio.wait_for(asyncio.gather(*(listener.event.wait() for listener in listeners)), _PATIENCE)
        except asyncio.TimeoutError:
            raise BenchmarkError(f"not all connections came back within {_PATIENCE:g} s") from None
    return max(listener.moment for listener in listeners) - answered


def _answered(broker: EmbeddedArtemis, protocol: str) -> float:
    await_answer(broker, protocol)
    return time.monotonic()


def _resident() -> int:
    """Return the bytes of this process that are in memory, without garbage."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _kilobytes(before: int, count: int) -> float:
    return (_resident() - before) / 1024 / count
