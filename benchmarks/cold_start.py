"""A new process of ``python -m benchmarks cold``: ``python -m benchmarks.cold_start FACE URL QUEUE``.

Prints the moments, by the monotonic clock, at which the program began, had imported, had connected, and had the
confirmation of its first message.
"""

# ruff: noqa: E402 - nothing may be imported before the clock is read
import time

_BEGUN = time.perf_counter_ns()

import os
import sys


def _blocking(url: str, queue: str) -> list[int]:
    from pyjmsack import ConnectionFactory

    moments = [time.perf_counter_ns()]
    user, password = os.environ.get("PYJMSACK_BENCH_USERNAME"), os.environ.get("PYJMSACK_BENCH_PASSWORD")
    with ConnectionFactory(url, username=user, password=password).create_connection() as connection:
        session = connection.create_session()
        moments.append(time.perf_counter_ns())
        session.create_producer(session.create_queue(queue)).send("first")
        return [*moments, time.perf_counter_ns()]


def _asyncio(url: str, queue: str) -> list[int]:
    import asyncio

    from pyjmsack.aio import ConnectionFactory

    moments = [time.perf_counter_ns()]
    user, password = os.environ.get("PYJMSACK_BENCH_USERNAME"), os.environ.get("PYJMSACK_BENCH_PASSWORD")

    async def run() -> list[int]:
        async with ConnectionFactory(url, username=user, password=password).create_connection() as connection:
            session = await connection.create_session()
            moments.append(time.perf_counter_ns())
            await (await session.create_producer(session.create_queue(queue))).send("first")
            return [*moments, time.perf_counter_ns()]

    return asyncio.run(run())


if __name__ == "__main__":
    _work = _asyncio if sys.argv[1] == "aio" else _blocking
    sys.stdout.write(f"{[_BEGUN, *_work(*sys.argv[2:])]}\n")
