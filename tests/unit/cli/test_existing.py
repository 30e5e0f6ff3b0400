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
from pyjmsack.cli.check import _has_waiting
from pyjmsack.cli.existing import Checked, OutOfSight, out_of_sight, target_on_demand
from pyjmsack.cli.main import cli
from pyjmsack.cli.options import Login
from pyjmsack.management import ManagementDeniedError, QueueStatus, UnknownQueueError

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


def state(delivering: int | None, scheduled: int = 0) -> QueueStatus:
    """Return the state of a queue of Artemis with 5 messages."""
    return QueueStatus("DLQ", 5, delivering, 0, 5, 0, 0, scheduled=scheduled)


WRONG = (
    "The broker's count of the messages of DLQ that are with consumers is below zero, so it is wrong, and nobody can"
    " know whether messages are with consumers, which may give them back"
)
DELAYED = "1 message of DLQ waits for the time of its delivery, where this command could not see them"


@pytest.mark.parametrize("by", ["browser", "broker", "consumer"])
def test_a_wrong_count_of_the_broker_makes_the_command_fail_without_a_number(by: Any) -> None:
    """`move a b && delete a` destroyed 98 of 100 messages, because a remark does not stop the second command."""
    assert out_of_sight(state(None), by=by) == OutOfSight(0, WRONG)


def test_delayed_messages_are_out_of_sight_although_the_other_count_is_wrong() -> None:
    assert out_of_sight(state(None, scheduled=1), by="browser") == OutOfSight(1, f"{DELAYED}. {WRONG}")


@pytest.mark.parametrize(("before", "now", "number"), [(None, None, 0), (2, None, 2), (None, 1, 1), (None, 0, 0)])
def test_a_wrong_count_is_told_once_whenever_it_was_wrong(before: int | None, now: int | None, number: int) -> None:
    missed = Checked("DLQ", before=state(before), look=lambda: state(now)).out_of_sight()
    assert missed is not None
    assert (missed.number, missed.why.count(WRONG)) == (number, 1)


def test_a_command_that_tried_to_take_all_tells_what_the_queue_still_has() -> None:
    """Artemis sends no more to a consumer whose credit was used up by messages that it cannot convert."""
    assert out_of_sight(state(0), by="consumer", known=5) is None
    why = "DLQ has 3 more: they did not come to this command, or are new"
    assert out_of_sight(state(0), by="consumer", known=2) == OutOfSight(3, why)
    assert out_of_sight(state(0), by="consumer") is None  # a command that a selector or a limit ended


def test_messages_that_are_told_with_their_reason_are_not_counted_twice() -> None:
    found = out_of_sight(state(2, scheduled=1), by="consumer", known=1)
    assert found is not None
    assert found.number == 2 + 1 + 1
    assert "DLQ has 1 more" in found.why


def test_a_queue_that_was_deleted_has_nothing_left() -> None:
    def look() -> QueueStatus:
        raise UnknownQueueError("no such queue", ())

    assert Checked("DLQ", before=state(None), look=look).out_of_sight(earlier=False) is None


@pytest.mark.parametrize(("delivering", "waiting"), [(5, False), (4, True), (None, True)])
def test_messages_wait_if_nobody_knows_that_consumers_hold_them(delivering: int | None, waiting: bool) -> None:
    assert _has_waiting(state(delivering)) is waiting
