"""What the sender keeps of a connection, and whose transaction it joins."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from pyjmsack import (
    App,
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    RequestTimedOutException,
    TextMessage,
    aio,
)
from pyjmsack.app.joining import CURRENT, Joined


def app_with(*requestors: Any) -> App:
    """Return an app that is connected, and gets these requestors one after the other."""
    app = App("amqp://localhost:1")
    sender = app.sender
    sender._started = True
    connection = MagicMock()
    connection.create_session.return_value.create_requestor.side_effect = requestors
    sender.link.connection = connection
    return app


def requestor(*results: Any) -> MagicMock:
    """Return one with these replies or errors."""
    return MagicMock(**{"request.side_effect": results})


def test_a_requestor_that_failed_is_closed_and_the_next_request_gets_a_new_one() -> None:
    dead, new = requestor(JMSException("closed")), requestor(TextMessage("a"), TextMessage("b"))
    app = app_with(dead, new)
    with pytest.raises(JMSException, match="closed"):
        app.sender.request("q", "x")
    dead.close.assert_called_once_with()
    assert [app.sender.request("q", "x"), app.sender.request("q", "x")] == ["a", "b"]
    new.close.assert_not_called()


def test_a_send_that_outlives_a_restart_of_the_app_keeps_its_outcome() -> None:
    """It gave its place back to the next start, which raised ``ValueError`` for a message that was sent."""
    app = app_with()
    producer = app.sender.link.connection.create_session.return_value.create_producer.return_value
    producer.send.side_effect = lambda *_: app.sender.renew()
    app.sender.send("q", "x")
    producer.send.assert_called_once()


def test_a_requestor_without_a_reply_in_time_is_kept() -> None:
    kept = requestor(
        RequestTimedOutException("late"),
        TextMessage(
            "no json",
        ),
        TextMessage("3"),
    )
    app = app_with(kept)
    with pytest.raises(RequestTimedOutException):
        app.sender.request("q", "x")
    with pytest.raises(JMSException):
        app.sender.request("q", "x", wanted=int)
    assert app.sender.request("q", "x", wanted=int) == 3
    kept.close.assert_not_called()


def test_a_requestor_that_failed_is_closed_after_the_last_request_on_it() -> None:
    """Others that wait for their replies get them."""
    inner: list[Any] = []

    def first(*_: Any, **__: Any) -> TextMessage:
        with pytest.raises(InvalidDestinationException):
            app.sender.request("q", "second")
        failing.close.assert_not_called()
        inner.append(app.sender.request("q", "third"))
        return TextMessage("first")

    failing, new = MagicMock(), requestor(TextMessage("third"))
    failing.request.side_effect = [None, InvalidDestinationException("gone")]
    app = app_with(failing, new)
    calls = iter([first, lambda *_, **__: (_ for _ in ()).throw(InvalidDestinationException("gone"))])
    failing.request.side_effect = lambda *how, **more: next(calls)(*how, **more)
    assert app.sender.request("q", "first") == "first"
    assert inner == ["third"]
    failing.close.assert_called_once_with()
    new.close.assert_not_called()


def test_the_sender_of_another_app_does_not_join_the_transaction_of_a_listener() -> None:
    """A bridge between two brokers: its messages would go back to the first broker."""
    first, second = App("amqp://localhost:1"), App("amqp://localhost:2")

    @first.listener("q")
    def bridge(body: str) -> None:
        first.sender.send("here", body)
        second.sender.send("there", body)

    sent: list[tuple[str, Any]] = []
    with pytest.raises(IllegalStateException, match="not running"):
        first.listeners["q"].call("x", sent=sent)
    assert [name for name, _ in sent] == ["here"]


def test_no_body_of_a_batch_joins_a_transaction_after_the_listener_has_ended() -> None:
    """A task of the listener waited for the window of the producer, and the rest of its bodies joined the transaction
    of the next message."""

    async def main() -> None:
        app = aio.App("amqp://localhost:1")
        producer, full, room = AsyncMock(), asyncio.Event(), asyncio.Event()

        async def send(message: TextMessage, _: object) -> None:
            sent.append(message.text)
            if message.text == "2":
                full.set()
                await room.wait()

        sent: list[str | None] = []
        producer.send = send
        joined = Joined(app, producer, None)
        token = CURRENT.set(joined)
        batch = asyncio.create_task(app.sender.send_many("q", ["1", "2", "3"]))
        CURRENT.reset(token)
        await full.wait()
        joined.over = True
        room.set()
        with pytest.raises(IllegalStateException, match="after 2 of 3 bodies"):
            await batch
        assert sent == ["1", "2"]

    asyncio.run(main())


def test_a_send_does_not_wait_for_the_time_outs_of_other_sends_while_the_broker_is_away() -> None:
    """At most 16 sends work at a time, and each of them waited for the broker before the next one began to wait."""
    app = app_with()
    sender = app.sender
    sender.link.connection, sender._timeout = None, 0
    sender._limit = MagicMock(**{"take.side_effect": AssertionError("the send waits for its turn")})
    with pytest.raises(ConnectionLostException, match="no broker within 0 s"):
        sender.send("q", "x")
