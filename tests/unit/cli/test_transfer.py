"""A transfer asks once for each message where the message goes."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from unittest.mock import MagicMock

import pytest

from pyjmsack import Message, Queue, TextMessage
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.transfer import Pace, Transfer


class _Received(TextMessage):
    """A message that takes an acknowledgement, although no session gave it. The broker noted nothing about its past."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._delivery = MagicMock()
        self._delivery.original_destination.return_value = None

    def acknowledge(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("guarantee", ["atomic", "none"], ids=["in transactions", "one by one"])
def test_each_message_goes_where_the_one_question_said(guarantee: str) -> None:
    messages = [_Received(text) for text in ("a", "b")]
    asked: list[Message] = []

    def target(message: Message) -> Queue:
        asked.append(message)
        return Queue(f"place {len(asked)}")

    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = guarantee
    connection.metadata.capabilities = ()
    session = connection.create_session.return_value.__enter__.return_value
    session.create_consumer.return_value.receive.side_effect = messages
    with closing(Stop()) as stop:
        assert Transfer("source", target, limit=2).run(login, Pace(None, stop), stop, lambda count, note: None) == 2
    sends = session.create_producer.return_value.send.call_args_list
    assert [call.args for call in sends] == [(messages[0], Queue("place 1")), (messages[1], Queue("place 2"))]
    assert asked == messages
