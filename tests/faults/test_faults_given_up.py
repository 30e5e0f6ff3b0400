"""Calls that are given up while a real broker stands still: the others of their connection get their answers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyjmsack import ConnectionFactory, JMSException, Queue, aio
from pyjmsack.broker import EmbeddedArtemis

ROUNDS, CALLS = 20, 20


@pytest.fixture
def url(protocol: str, mortal: EmbeddedArtemis, no_leaks: None) -> str:
    """Where the broker is."""
    return str(getattr(mortal, f"{protocol}_url"))


@pytest.mark.parametrize("what", ["session", "transacted session", "requestor"])
def test_one_of_twenty_calls_is_cancelled_each_round_and_all_others_succeed(
    url: str, mortal: EmbeddedArtemis, queue_name: str, what: str
) -> None:
    """What the cancelled one began is undone when the broker has answered, and meets no other."""

    async def open_one(session: aio.Session, connection: aio.Connection) -> Any:
        if what == "requestor":
            return await session.create_requestor(Queue(queue_name))
        own = await connection.create_session(transacted=what == "transacted session")
        await own.create_consumer(Queue(queue_name))  # over STOMP the broker hears of a session only by what it has
        return own

    async def scenario() -> None:
        async with aio.ConnectionFactory(url).create_connection() as connection:
            await connection.start()
            session = await connection.create_session()
            for number in range(ROUNDS):
                mortal.pause()
                try:
                    calls = [asyncio.create_task(open_one(session, connection)) for _ in range(CALLS)]
                    for _ in range(3):  # the requests leave
                        await asyncio.sleep(0)
                    calls[number].cancel()
                    await asyncio.wait([calls[number]])
                finally:
                    mortal.resume()
                opened = await asyncio.gather(*calls, return_exceptions=True)
                assert isinstance(opened.pop(number), asyncio.CancelledError)
                assert [each for each in opened if isinstance(each, BaseException)] == []
                await asyncio.gather(*(each.close() for each in opened))
            producer, consumer = await session.create_producer(Queue(queue_name)), None
            await producer.send("still here")
            consumer = await session.create_consumer(Queue(queue_name))
            message = await consumer.receive(60)
            assert message is not None

    asyncio.run(scenario())


def test_twenty_calls_that_time_out_leave_a_connection_that_works(
    url: str, mortal: EmbeddedArtemis, queue_name: str
) -> None:
    """``jms.requestTimeout``: the late answers end nobody else's sessions."""
    queue = Queue(queue_name)
    with ConnectionFactory(f"{url}?jms.requestTimeout=2000").create_connection() as connection:
        connection.start()

        def consume() -> Any:
            return connection.create_session().create_consumer(queue)

        with ThreadPoolExecutor(CALLS) as pool:
            for _ in range(3):
                mortal.pause()
                try:
                    late = [pool.submit(consume) for _ in range(CALLS)]
                    for call in late:
                        with pytest.raises(JMSException, match=r"jms\.requestTimeout"):
                            call.result(60)
                finally:
                    mortal.resume()
        connection.create_session().create_producer(queue).send("still here")
        message = consume().receive(60)
        assert message is not None, "a consumer that nobody has took it"
