"""``connection.state``, as far as a broker can be seen to change it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from contract.brokers import Embedded
from polling import wait_until

from pyjmsack import ConnectionFactory, ConnectionState, aio

pytestmark = pytest.mark.usefixtures("no_leaks")


def test_the_state_follows_the_broker(mortal_brokers: Callable[[str], Embedded]) -> None:
    """S101, S128: with failover it is interrupted and connected again, without it has failed."""
    broker = mortal_brokers("patient")
    plain = ConnectionFactory(broker.amqp_url).create_connection()
    with ConnectionFactory(f"failover:({broker.amqp_url})").create_connection() as lasting:
        assert plain.state == lasting.state == "connected"
        broker.kill()
        wait_until(lambda: (plain.state, lasting.state) == ("failed", "interrupted"))
        broker.restart()
        wait_until(lambda: lasting.state is ConnectionState.CONNECTED, patience=60)
    plain.close()
    assert plain.state == lasting.state == "closed"


def test_the_state_in_asyncio(broker_url: str) -> None:
    async def main() -> list[str]:
        connection = await aio.ConnectionFactory(broker_url).create_connection()
        before = connection.state
        await connection.close()
        return [str(before), str(connection.state)]

    assert asyncio.run(main()) == ["connected", "closed"]
