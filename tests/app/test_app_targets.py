"""The same service over STOMP and at Classic; and a stop in no-acknowledgement mode."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest
from contract.brokers import Target
from emptying import take_everything
from shared_brokers import Served

from pyjmsack import App, ConnectionFactory, Message, Retry, aio

from .conftest import Collected

pytestmark = pytest.mark.usefixtures("no_leaks")
ELSEWHERE = [Target("stomp", "artemis"), Target("amqp", "classic-6"), Target("stomp", "classic-5")]
"""What the other tests of services do not run on."""


@pytest.fixture(params=ELSEWHERE, ids=str)
def url(request: pytest.FixtureRequest, brokers: Callable[[str], Served]) -> str:
    """A broker and a protocol."""
    served = brokers(request.param.broker)
    return served.stomp_url if request.param.protocol == "stomp" else served.amqp_url


def remaining(url: str, *queues: str) -> list[list[str]]:
    """Take what is in the queues."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        return [[message.body for message in take_everything(session, session.create_queue(each))] for each in queues]


def test_a_listener_retries_joins_and_answers_here_too(url: str, queue_name: str, collected: Collected) -> None:
    app = App(url)

    @app.listener(queue_name, retry=Retry(1, delay=0.05, then="drop"))
    def receive(body: str, message: Message) -> str:
        app.sender.send(f"{queue_name}.out", f"{body} {message.delivery_count}")
        collected.add((body, message.delivery_count))
        if body == "bad" or message.delivery_count == 1:
            raise ValueError("no")
        return body.upper()

    with app:
        assert app.sender.request(queue_name, "good", timeout=30) == "GOOD"
        app.sender.send(queue_name, "bad")
        collected.wait_for(4)
        assert app.sender.request(queue_name, "last", timeout=30) == "LAST"
    expected = [(body, count) for body in ("good", "bad", "last") for count in (1, 2)]
    assert collected.items == expected
    assert remaining(url, queue_name, f"{queue_name}.out") == [[], ["good 2", "last 2"]]


def test_in_asyncio_too(url: str, queue_name: str) -> None:
    seen: list[int] = []

    async def main() -> None:
        app = aio.App(url)

        @app.listener(queue_name, retry=Retry(1, delay=0.05, then="drop"))
        async def receive(body: str, message: Message) -> str:
            await app.sender.send(f"{queue_name}.out", message.delivery_count)
            seen.append(message.delivery_count)
            if message.delivery_count == 1:
                raise ValueError("no")
            return body.upper()

        async with app:
            assert await app.sender.request(queue_name, "good", timeout=30) == "GOOD"

    asyncio.run(main())
    assert seen == [1, 2]
    assert remaining(url, queue_name, f"{queue_name}.out") == [[], ["2"]]


@pytest.mark.parametrize(("face", "protocol"), [("sync", "amqp"), ("aio", "amqp"), ("sync", "stomp"), ("aio", "stomp")])
def test_a_stop_in_no_ack_mode_loses_no_message_that_the_broker_had_sent_ahead(
    any_broker: Served, queue_name: str, face: str, protocol: str
) -> None:
    """S36: the broker forgets what it sends, so the listener gets it before the stop ends."""
    broker_url = any_broker.stomp_url if protocol == "stomp" else any_broker.amqp_url
    service, got = (App if face == "sync" else aio.App)(f"{broker_url}?jms.prefetchPolicy.all=5"), Collected()
    at_work, go = threading.Event(), threading.Event()

    def receive(body: int) -> None:
        got.add(body)
        at_work.set()
        assert go.wait(60)

    async def receive_async(body: int) -> None:
        got.add(body)
        at_work.set()
        await asyncio.to_thread(go.wait, 30)

    service.listener(queue_name, mode="no-ack")(receive if face == "sync" else receive_async)

    async def done(result: Any) -> Any:
        return await result if inspect.isawaitable(result) else result

    async def main() -> bool:
        await done(service.start())
        await done(service.sender.send_many(queue_name, range(20)))
        await asyncio.to_thread(at_work.wait, 30)
        stopping = asyncio.create_task(asyncio.to_thread(service.stop) if face == "sync" else service.stop())
        await asyncio.sleep(0)  # the stop has begun, or will: either way the listener is at work
        go.set()
        return bool(await stopping)

    assert asyncio.run(main())
    (rest,) = remaining(broker_url, queue_name)
    assert [*got.items, *map(int, rest)] == [*range(20)]
