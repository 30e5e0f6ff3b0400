"""The process whose memory is watched: ``python -m benchmarks.consume FACE STEP`` and the arguments of a job.

Prints one line of JSON after every STEP messages.
"""

from __future__ import annotations

import asyncio
import json
import sys

import click

from benchmarks.job import PATIENCE, Job, login
from benchmarks.peers.sync import read
from pyjmsack import ConnectionFactory, aio
from pyjmsack.cli.resources import resident_bytes


def _sample(received: int, step: int) -> None:
    if received % step == 0:
        click.echo(json.dumps({"received": received, "rss": resident_bytes()}))


def _blocking(job: Job, step: int) -> None:
    username, password = login()
    with ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(job.queue))
        for received in range(1, job.count + 1):
            read(consumer.receive(PATIENCE), job)
            _sample(received, step)


async def _asyncio(job: Job, step: int) -> None:
    username, password = login()
    async with aio.ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        await connection.start()
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue(job.queue))
        for received in range(1, job.count + 1):
            read(await consumer.receive(PATIENCE), job)
            _sample(received, step)


def main(arguments: list[str]) -> None:
    """Receive everything."""
    face, step, *rest = arguments
    job = Job.parse(rest)
    if face == "aio":
        asyncio.run(_asyncio(job, int(step)))
    else:
        _blocking(job, int(step))


if __name__ == "__main__":
    main(sys.argv[1:])
