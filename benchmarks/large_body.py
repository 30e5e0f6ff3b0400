"""Sends or receives one large body: ``python -m benchmarks.large_body FACE send|receive URL QUEUE PATH``.

Prints the highest memory before and after, in bytes, and the seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path

import click

from benchmarks.job import PATIENCE, BenchmarkError, login
from pyjmsack import BytesMessage, ConnectionFactory, Message, aio

_LARGE_PATIENCE = 300.0
"""Seconds until a large body has come. The broker copies the body to its disk, and the client to its own."""


def highest_memory() -> int:
    """Return the most memory that this process ever had, in bytes (VmHWM)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise BenchmarkError("this system does not tell the highest memory of a process (VmHWM)")
    return int(found[1]) * 1024


def _bytes(message: Message | None) -> BytesMessage:
    if not isinstance(message, BytesMessage):
        raise BenchmarkError(f"expected a BytesMessage, got {message!r}")
    return message


def _blocking(job: str, url: str, name: str, path: Path) -> tuple[int, float]:
    username, password = login()
    with ConnectionFactory(url, username=username, password=password).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        small, queue = session.create_queue(f"{name}-small"), session.create_queue(name)
        session.create_producer(small).send(b"small")
        _bytes(session.create_consumer(small).receive(PATIENCE))
        before, begun = highest_memory(), time.monotonic()
        if job == "send":
            session.create_producer(queue).send(session.create_bytes_message(path))
        else:
            _bytes(session.create_consumer(queue).receive(_LARGE_PATIENCE)).save_to(path)
        return before, time.monotonic() - begun


async def _asyncio(job: str, url: str, name: str, path: Path) -> tuple[int, float]:
    username, password = login()
    async with aio.ConnectionFactory(url, username=username, password=password).create_connection() as connection:
        await connection.start()
        session = await connection.create_session()
        small, queue = session.create_queue(f"{name}-small"), session.create_queue(name)
        await (await session.create_producer(small)).send(b"small")
        _bytes(await (await session.create_consumer(small)).receive(PATIENCE))
        before, begun = highest_memory(), time.monotonic()
        if job == "send":
            await (await session.create_producer(queue)).send(session.create_bytes_message(path))
        else:
            await _bytes(await (await session.create_consumer(queue)).receive(_LARGE_PATIENCE)).save_to(path)
        return before, time.monotonic() - begun


if __name__ == "__main__":
    _face, _job, _url, _name, _path = sys.argv[1:]
    if _face == "aio":
        _before, _seconds = asyncio.run(_asyncio(_job, _url, _name, Path(_path)))
    else:
        _before, _seconds = _blocking(_job, _url, _name, Path(_path))
    click.echo(json.dumps({"before": _before, "after": highest_memory(), "seconds": _seconds}))
