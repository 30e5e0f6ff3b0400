"""What a worker does with an error that is no ``Exception``."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from pyjmsack import App, TextMessage, aio
from pyjmsack.app.worker import Worker


def worker_of(app: Any, mock: type[MagicMock]) -> tuple[Worker, Any]:
    """Return a worker of the app's only listener, and a connection that has one message for it."""
    session = mock()
    consumer = session.create_consumer.return_value
    consumer.receive.side_effect = [TextMessage("body"), None]
    consumer.stats.buffered = 0
    connection = mock()
    connection.create_session.return_value = session
    return Worker(app._face, app.listeners["orders"], lambda: False, lambda: None, None), connection


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BaseException])
def test_no_error_of_a_listener_or_its_on_error_ends_a_worker(error: type[BaseException]) -> None:
    app = App("amqp://localhost:1")
    told: list[BaseException] = []

    def on_error(raised: BaseException, _: Any) -> None:
        told.append(raised)
        raise error

    @app.listener("orders", on_error=on_error)
    def order(body: str) -> None:
        raise error

    worker, connection = worker_of(app, MagicMock)
    app._face.run(worker.run(connection))
    assert [type(each) for each in told] == [error]
    assert worker.counts.failed == 1
    assert worker.error is None
    connection.create_session.return_value.rollback.assert_called_once_with()


def test_a_cancelled_future_that_a_listener_awaited_is_an_error_of_the_listener() -> None:
    app = aio.App("amqp://localhost:1")

    @app.listener("orders")
    async def order(body: str) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    worker, connection = worker_of(app, AsyncMock)
    asyncio.run(app._face.run(worker.run(connection)))
    assert worker.counts.failed == 1
    assert worker.error is None
    connection.create_session.return_value.rollback.assert_awaited_once_with()
