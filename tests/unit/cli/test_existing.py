"""The check of the names of queues: what a command does with the answer of the manager, and without one."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from pyjmsack import (
    ConnectionFactory,
    ConnectionLostException,
    InvalidClientIDException,
    JMSException,
    Queue,
    RequestTimedOutException,
)
from pyjmsack.cli import managing
from pyjmsack.cli.existing import target_on_demand
from pyjmsack.cli.main import cli
from pyjmsack.cli.options import Login
from pyjmsack.management import ManagementDeniedError, UnknownQueueError

ARTEMIS: Any = MagicMock()
ARTEMIS.metadata.broker = "artemis"


def refuses(monkeypatch: pytest.MonkeyPatch, error: JMSException) -> None:
    """Let each manager raise this error when it opens."""

    def open_manager(factory: object, jolokia: object) -> Any:
        raise error

    monkeypatch.setattr(managing, "Manager", open_manager)


@pytest.mark.parametrize(
    "error",
    [RequestTimedOutException("no answer"), InvalidClientIDException("in use"), ManagementDeniedError("no role")],
)
def test_an_import_into_a_plain_queue_needs_no_manager(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: JMSException
) -> None:
    """An import ended with this error, and nothing was imported."""
    refuses(monkeypatch, error)
    assert target_on_demand(ARTEMIS, Login(), "orders") == Queue("orders")
    assert capsys.readouterr().err == f"The name of the queue orders is not checked, because {error}.\n"


@pytest.mark.parametrize(
    ("error", "target"),
    [(RequestTimedOutException("no answer"), "address::orders"), (ConnectionLostException("gone"), "orders")],
)
def test_an_import_ends_if_it_would_lose_messages_or_the_broker_is_gone(
    monkeypatch: pytest.MonkeyPatch, error: JMSException, target: str
) -> None:
    refuses(monkeypatch, error)
    with pytest.raises(type(error)):
        target_on_demand(ARTEMIS, Login(), target)


def test_the_manager_does_not_use_the_client_id_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker refuses a second connection with the same client id."""
    made: list[ConnectionFactory] = []

    def open_manager(factory: ConnectionFactory, jolokia: object) -> Any:
        made.append(factory)
        return nullcontext()

    monkeypatch.setattr(managing, "Manager", open_manager)
    for _ in range(2):
        with managing.opened_manager(Login("amqp://localhost?jms.clientID=mine"), None):
            pass
    assert len({"mine", *(factory._client_id for factory in made)}) == 3


def test_an_import_with_json_reports_that_its_queue_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"body": "a"}\n')
    refuses(monkeypatch, UnknownQueueError("the broker has no queue 'orders'", ()))
    opened = MagicMock()
    opened.return_value.__enter__.return_value = ARTEMIS
    monkeypatch.setattr(ConnectionFactory, "create_connection", opened)
    result = CliRunner().invoke(cli, ["import", "address::orders", str(lines), "--json"])
    assert json.loads(result.stdout)["error"] == "TARGET address::orders: the broker has no queue 'orders'"
    assert result.exit_code == 1
