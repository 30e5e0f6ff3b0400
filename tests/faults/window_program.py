"""Sends until nothing more goes, and says how much its memory has grown: ``window_program.py FACE URL QUEUE SIZE``.

It writes a line of JSON, and waits for a line of standard input, before it begins, before it goes on, and at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pyjmsack
from pyjmsack import aio

FACE, URL, NAME, SIZE = sys.argv[1:5]
BODY = b"x" * int(SIZE)
QUEUE = pyjmsack.Queue(NAME)
WARM_UP = 400


def resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def say(**what: object) -> None:
    """Write a line for the test, and wait for one from it."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()
    sys.stdin.readline()


def blocking() -> int:
    """Return how many messages were sent with ``pyjmsack``."""
    with pyjmsack.ConnectionFactory(URL).create_connection() as connection, connection.create_session() as session:
        with session.create_producer(QUEUE) as warm_up:
            for _ in range(WARM_UP):
                warm_up.send(BODY)
        producer = session.create_producer(QUEUE)
        say(sent=0)
        before, sent = resident(), 0
        try:
            while True:
                producer.send(BODY)
                sent += 1
        except pyjmsack.SendTimedOutException as error:
            say(sent=sent, growth=resident() - before, error=str(error))
        producer.close()  # waits for the answers
        return WARM_UP + sent


async def in_asyncio() -> int:
    """Return how many messages were sent with ``pyjmsack.aio``."""
    async with aio.ConnectionFactory(URL).create_connection() as connection, connection.create_session() as session:
        async with session.create_producer(QUEUE) as warm_up:
            for _ in range(WARM_UP):
                await warm_up.send(BODY)
        producer = await session.create_producer(QUEUE)
        say(sent=0)
        before, sent = resident(), 0
        try:
            while True:
                await producer.send(BODY)
                sent += 1
        except pyjmsack.SendTimedOutException as error:
            say(sent=sent, growth=resident() - before, error=str(error))
        await producer.close()  # waits for the answers
        return WARM_UP + sent


if __name__ == "__main__":
    say(sent=blocking() if FACE == "sync" else asyncio.run(in_asyncio()))
