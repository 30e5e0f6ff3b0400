"""A producer whose message was refused for a full queue is replaced once, however many threads were refused."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from pyjmsack.kombu.connection import Connection


class _Producer:
    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        self.closed = True


def test_two_refusals_at_the_same_time_leave_one_open_producer() -> None:
    """The second replacement overwrote the first, which stayed open for the life of the connection."""
    made = [_Producer()]

    async def create_producer() -> _Producer:
        await asyncio.sleep(0)  # as while the broker answers
        made.append(_Producer())
        return made[-1]

    async def refused_twice() -> Any:
        session = SimpleNamespace(create_producer=create_producer)
        parts = {"_producer": made[0], "_session": session, "_closing": set(), "_close": Connection._close}
        connection: Any = SimpleNamespace(**parts)
        await asyncio.gather(*(Connection._replace(connection, cast(Any, made[0])) for _ in range(2)))
        await asyncio.gather(*connection._closing)
        return connection._producer

    present = asyncio.run(refused_twice())
    assert [producer for producer in made if not producer.closed] == [present]
