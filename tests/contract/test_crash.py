"""A consumer process is killed with SIGKILL: exactly the messages come again that ``pyjmsack.explain`` says.

Scenario 100; S16, S30, S34-S37, S40, S45-S47, S75, S84.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from contract.harness import Jms, nothing, take
from pyjmsack import Destination, InvalidClientIDException, Queue, Topic, aio
from pyjmsack.explain import explain

TOTAL, RECEIVED = 8, 5
PROGRAM = Path(__file__).with_name("crash_consumer.py")
OPTIMIZED = "jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=0"


@dataclass(frozen=True)
class Case:
    """A consumer: its mode, URL options, prefetch, and the numbers of the messages that it acknowledges."""

    mode: int
    acknowledged: Sequence[int] = ()
    options: str = ""
    prefetch: int = 100
    topic: bool = False

    def __str__(self) -> str:
        kind = "topic" if self.topic else "queue"
        acks = "".join(map(str, self.acknowledged)) or "none"
        return f"mode{self.mode}-{kind}-prefetch{self.prefetch}-{'optimized' if self.options else 'plain'}-acks_{acks}"


CASES = [
    Case(1),
    Case(1, options=OPTIMIZED, prefetch=3),
    Case(1, options=OPTIMIZED, prefetch=6),
    Case(1, options=OPTIMIZED),
    Case(3),
    Case(3, options=OPTIMIZED, prefetch=4),
    Case(3, topic=True, prefetch=4),
    Case(3, topic=True),
    Case(2),
    Case(2, acknowledged=[2]),
    Case(2, acknowledged=[1, 4]),
    Case(101, acknowledged=[3, 1]),
    Case(4, acknowledged=[4]),
    Case(0),
    Case(0, acknowledged=[2]),
    Case(257),
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_exactly_what_the_rules_say_comes_again_after_a_kill(jms: Jms, case: Case) -> None:
    options = f"consumer.prefetchSize={case.prefetch}"
    name = f"{jms.queue.name}?{options}"
    destination = Topic(name) if case.topic else Queue(name)
    url = f"{jms.url}?jms.clientID={jms.queue.name}" + (f"&{case.options}" if case.options else "")
    await put(jms, destination, [str(number) for number in range(TOTAL)])
    await killed(jms.face.name, url, case, destination)
    expected = explain(url, case.mode, destination).comes_again(TOTAL, RECEIVED, case.acknowledged)
    assert await rest(jms, destination, len(expected)) == [str(number) for number in expected]


async def killed(face: str, url: str, case: Case, destination: Destination) -> None:
    kind = "topic" if case.topic else "queue"
    name = f"{destination.name}?consumer.prefetchSize={case.prefetch}"
    arguments = [str(PROGRAM), face, url, case.mode, kind, name, RECEIVED, *case.acknowledged]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *map(str, arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 60)
    process.kill()
    _, complaint = await process.communicate()
    assert line == b"ready\n", complaint.decode()


async def put(jms: Jms, destination: Destination, bodies: Sequence[str]) -> None:
    """Send; a topic gets its durable subscription first."""
    connecting = jms.factory(client_id=jms.queue.name).create_connection()
    async with connecting as connection, connection.create_session() as session:
        if destination.is_topic:
            await (await session.create_durable_consumer(destination, "crash")).close()
        producer = await session.create_producer(destination)
        for body in bodies:
            await producer.send(body)


async def again(jms: Jms) -> aio.Connection:
    """Connect with the client id that the dead process may still have for the broker."""
    for _ in range(200):
        try:
            return await jms.connection(client_id=jms.queue.name)
        except InvalidClientIDException:
            await asyncio.sleep(0.05)
    raise AssertionError("the broker does not notice that the consumer is gone")


async def rest(jms: Jms, destination: Destination, number: int) -> list[str]:
    """Take what is left; the broker may need a moment to notice that the consumer is gone."""
    async with await again(jms) as connection, connection.create_session() as session:
        await connection.start()
        if destination.is_topic:
            opening = session.create_durable_consumer(destination, "crash")
        else:
            opening = session.create_consumer(destination)
        async with opening as consumer:
            bodies = [message.body for message in await take(consumer, number)]
            await nothing(consumer)
        if destination.is_topic:
            await session.unsubscribe("crash")
        return bodies
