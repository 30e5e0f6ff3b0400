"""Scheduled functions at a broker: they run in ``app.test()`` and send, also while the app stops."""

from __future__ import annotations

import asyncio
import threading

import pytest
from polling import wait_until

from pyjmsack import App, aio

from .conftest import Collected, Take

pytestmark = pytest.mark.usefixtures("no_leaks")
ELSEWHERE = "amqp://127.0.0.1:1"


def test_in_a_test_of_the_app_its_schedules_run_at_the_broker_of_the_test(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    app, number = App(ELSEWHERE), iter(range(1, 1000))
    app.listener(queue_name)(collected.add)

    @app.every(0.05)
    def report() -> None:
        app.sender.send(queue_name, str(next(number)))

    with app.test(broker_url):
        assert collected.wait_for(3)[:3] == ["1", "2", "3"]
        assert app.health()["status"] == "UP"
        assert queue_name in app.stats()


def test_in_asyncio_too(broker_url: str, queue_name: str) -> None:
    async def main() -> None:
        app, got = aio.App(ELSEWHERE), asyncio.Event()

        @app.listener(queue_name)
        async def receive(body: str) -> None:
            got.set()

        @app.every(60)
        async def report() -> None:
            await app.sender.send(queue_name, "at the start")

        async with app.test(broker_url):
            await asyncio.wait_for(got.wait(), 60)

    asyncio.run(main())


def test_a_run_at_work_may_send_while_the_app_stops(broker_url: str, queue_name: str, take: Take) -> None:
    app, begun, go = App(broker_url), threading.Event(), threading.Event()

    @app.every(60)
    def report() -> None:
        begun.set()
        assert go.wait(60)
        app.sender.send(queue_name, "sent while the app stops")

    app.start()
    assert begun.wait(60)
    ended: list[bool] = []
    stopping = threading.Thread(target=lambda: ended.append(app.stop()))
    stopping.start()
    wait_until(lambda: app._ticking._over is not None and app._ticking._over.is_set())
    go.set()
    stopping.join(60)
    assert ended == [True]
    assert [message.body for message in take(queue_name, 1)] == ["sent while the app stops"]
