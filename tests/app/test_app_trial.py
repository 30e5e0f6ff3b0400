"""``app.test()``: the app at the broker of a test, and at its own again afterwards."""

from __future__ import annotations

import asyncio

import pytest

from pyjmsack import App, IllegalStateException, aio
from pyjmsack.app.trial import options_elsewhere, url_elsewhere

from .conftest import Collected

pytestmark = pytest.mark.usefixtures("no_leaks")
USUAL = "failover:(amqps://127.0.0.1:1?transport.verifyHost=false)?jms.username=u&jms.password=p&jms.closeTimeout=9000"


def test_an_app_runs_at_a_broker_of_its_own_and_leaves_none(collected: Collected) -> None:
    app = App(USUAL, password="also secret", options={"nested.transport.trustAll": True})
    before = app._url, app._options, app._login

    @app.listener("orders")
    def order(body: dict[str, int]) -> None:
        app.sender.send("invoices", body["id"])

    @app.listener("invoices")
    def invoice(body: int) -> None:
        collected.add(body)

    with app.test() as running:
        assert running is app
        assert app.health()["status"] == "UP"
        app.sender.send("orders", {"id": 7})
        assert collected.wait_for(1) == [7]
        with pytest.raises(IllegalStateException, match="running already"), app.test("amqp://127.0.0.1:1"):
            pass
    assert (app._url, app._options, app._login) == before
    assert app.health()["status"] == "DOWN"


def test_in_asyncio_an_app_runs_at_a_broker_that_is_given(broker_url: str, queue_name: str) -> None:
    async def main() -> None:
        app, got = aio.App(USUAL), asyncio.Event()

        @app.listener(queue_name)
        async def receive(body: str) -> None:
            got.set()

        for _ in range(2):  # an app may be tested again
            got.clear()
            async with app.test(broker_url):
                await app.sender.send(queue_name, "x")
                await asyncio.wait_for(got.wait(), 60)
        assert app._url == USUAL

    asyncio.run(main())


def test_in_asyncio_an_app_runs_at_a_broker_of_its_own() -> None:
    async def main() -> None:
        app = aio.App("stomp://127.0.0.1:1?stomp.heartBeat=5000")
        async with app.test():
            await app.sender.send("somewhere", "x")
            assert app.health()["status"] == "UP"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "elsewhere"),
    [
        (USUAL, "failover:(amqp://t:1)?jms.closeTimeout=9000"),
        ("amqp://h?amqp.idleTimeout=5&transport.tcpNoDelay=false&amqp.vhost=v", "amqp://t:1?amqp.idleTimeout=5"),
        ("failover:amqp://h?randomize=true", "failover:(amqp://t:1)?randomize=true"),
        ("failover:(amqp://h,amqp://i)?nested.transport.verifyHost=false", "failover:(amqp://t:1)"),
        ("amqp://h", "amqp://t:1"),
    ],
)
def test_the_options_of_the_usual_broker_alone_are_left_out(url: str, elsewhere: str) -> None:
    assert url_elsewhere(url, "amqp://t:1") == elsewhere


def test_options_that_are_given_beside_the_url_are_treated_alike() -> None:
    given = {"jms.password": "p", "nested.transport.trustAll": True, "jms.closeTimeout": 1}
    assert options_elsewhere(given) == {"jms.closeTimeout": 1}
