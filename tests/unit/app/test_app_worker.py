"""What a worker does with an error that is no ``Exception``."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from pyjmsack import App, TextMessage, TransactionRolledBackException, aio
from pyjmsack.app.worker import Worker


def worker_of(app: Any, mock: type[MagicMock]) -> tuple[Worker, Any]:
    """Return a worker of the app's only listener, and a connection that has one message for it."""
    session = mock()
    consumer = session.create_consumer.return_value
    consumer.receive.side_effect = [TextMessage("body"), None]
    consumer.stats.buffered = 0
    consumer._processing = MagicMock(return_value=None)
    connection = mock()
    connection.create_session.return_value = session
    return Worker(app._face, app.listeners["orders"], lambda: False, lambda: None, lambda: None, None), connection


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


def test_after_a_message_that_was_not_done_the_next_one_gets_a_new_producer() -> None:
    """A producer that the broker closed fails every transaction, and each failure counts a delivery."""
    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(body: str) -> None: ...

    worker, connection = worker_of(app, MagicMock)
    session = connection.create_session.return_value
    producers = [MagicMock(), MagicMock()]
    session.create_producer.side_effect = producers
    session.create_consumer.return_value.receive.side_effect = [
        TextMessage("1"),
        TextMessage("1"),
        TextMessage("2"),
        None,
    ]
    session.commit.side_effect = [TransactionRolledBackException("refused"), None, None]
    app._face.run(worker.run(connection))
    assert (worker.counts.rolled_back, worker.counts.succeeded) == (1, 2)
    assert session.create_producer.call_count == 2, "one more, and not one for each message"
    producers[0].close.assert_called_once_with()


def test_a_send_of_the_app_ends_while_failover_looks_for_a_broker() -> None:
    timeouts = [
        App(url, send_timeout=1.5)._patience() for url in ("failover:(amqp://a:1)", "amqp://a:1?jms.sendTimeout=5")
    ]
    assert timeouts == [{"jms.sendTimeout": 1500}, {}]


@pytest.mark.parametrize("connection", [None, "one"])
def test_a_stop_in_which_a_connection_does_not_end_is_not_reported_as_finished(connection: str | None) -> None:
    """A connection that was only being made has no listener at work."""
    app = App("amqp://localhost:1")
    task = MagicMock()
    task.join.return_value = False
    finished = app._face.run(app._joined(MagicMock(connection=connection), task, 0.0, 0.0))
    assert finished is (connection is None)
    task.abandon.assert_called_once_with()
