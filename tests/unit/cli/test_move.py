"""`move`: what the broker says about the names is used, whoever moves the messages."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from pyjmsack import Destination, Topic
from pyjmsack.cli import managing, move
from pyjmsack.cli.main import cli
from pyjmsack.management import ManagementDeniedError, QueueStatus

MULTICAST = QueueStatus("client.reader", 0, 0, 0, 0, 0, 0, address="news", multicast=True)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """A manager of Artemis with one queue of a subscription."""
    made = MagicMock()
    made.broker.return_value.product = "artemis"
    made.queue.return_value = MULTICAST
    monkeypatch.setattr(managing, "Manager", lambda *args, **options: nullcontext(made))
    return made


@pytest.fixture
def sent_to(monkeypatch: pytest.MonkeyPatch) -> list[Destination]:
    """The destinations to which this process would move messages."""
    found: list[Destination] = []

    def transfer(source: str, target: Any, *args: object, **options: object) -> Any:
        found.append(target(MagicMock()))
        job = MagicMock()
        job.run.return_value = 1
        return job

    monkeypatch.setattr(move, "Transfer", transfer)
    return found


def test_a_user_who_may_look_and_not_move_gets_the_destination_that_the_broker_named(
    manager: MagicMock, sent_to: list[Destination]
) -> None:
    """The messages went to an ordinary queue with this name: Artemis confirmed and dropped them."""
    manager.move.side_effect = ManagementDeniedError("no edit")
    result = CliRunner().invoke(cli, ["move", "orders", "client.reader"])
    assert sent_to == [Topic._literal("news::client.reader")]
    assert "Moved by this process, because no edit." in result.stderr
    assert "without a check" not in result.stderr
    assert result.exit_code == 0, result.output


def test_the_broker_moves_to_the_name_behind_the_address(manager: MagicMock) -> None:
    """The command ended with the error that there is no such queue."""
    manager.move.return_value = 2
    result = CliRunner().invoke(cli, ["move", "a::orders?consumer.x=1", "news::client.reader"])
    assert result.exit_code == 0, result.output
    manager.move.assert_called_once_with("orders", "client.reader", None, limit=None)


def test_the_broker_of_classic_moves_to_a_name_with_colons(manager: MagicMock) -> None:
    """The command looked for the queue behind the colons, which is another queue on this broker."""
    manager.broker.return_value.product = "classic"
    manager.queue.return_value = QueueStatus("x::y", 0, 0, 0, 0, 0, 0)
    manager.move.return_value = 2
    result = CliRunner().invoke(cli, ["move", "orders", "x::y"])
    assert result.exit_code == 0, result.output
    assert [call.args for call in manager.queue.call_args_list] == [("orders",), ("x::y",)]
    manager.move.assert_called_once_with("orders", "x::y", None, limit=None)
