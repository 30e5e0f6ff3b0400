"""`move` and the moving commands of `dlq`: which names they use, and how they end if messages stay."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner, Result

from pyjmsack import Destination, Topic
from pyjmsack.cli import managing, move
from pyjmsack.cli.dlq import command as dlq
from pyjmsack.cli.dlq.choosing import Letters
from pyjmsack.cli.dlq.letters import Choice
from pyjmsack.cli.dlq.moving import Round, ask_to_retry
from pyjmsack.cli.existing import OutOfSight
from pyjmsack.cli.main import cli
from pyjmsack.cli.transfer import Transfer
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
        job = MagicMock(not_sent=0)
        job.run.return_value = 1
        job.reasons.return_value = []
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
    assert [call.args for call in manager.queue.call_args_list] == [("orders",), ("x::y",), ("orders",)]
    manager.move.assert_called_once_with("orders", "x::y", None, limit=None)


def leaves_one(self: Transfer, *ignored: object) -> int:
    """Move two messages, and leave one that cannot be sent."""
    self.unsendable = 1
    return 2


def failed(result: Result, count: str) -> None:
    """Check that the command told what it had done, and failed."""
    report = json.loads(result.stdout)
    assert (report[count], report["left"], result.exit_code) == (2, 1, 1), result.output
    assert "Error: 1 message had to stay in " in result.stderr


def test_a_move_that_leaves_messages_fails_after_its_report(
    manager: MagicMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`move a b && delete a` destroyed them."""
    monkeypatch.setattr(Transfer, "run", leaves_one)
    failed(CliRunner().invoke(cli, ["move", "a", "client.reader", "--transaction", "5", "--json"]), "moved")


@pytest.mark.parametrize(
    ("more", "code", "left"), [([], 1, 7), (["--selector", "x = 1"], 0, 0), (["--limit", "2"], 0, 0)]
)
def test_a_move_by_this_process_fails_if_the_queue_still_has_messages(
    manager: MagicMock, monkeypatch: pytest.MonkeyPatch, more: list[str], code: int, left: int
) -> None:
    """The broker stopped after 2 of 100 messages, and the exit code was 0. A selector or a limit leaves messages."""
    monkeypatch.setattr(Transfer, "run", lambda *ignored: 2)
    manager.queue.return_value = QueueStatus("a", 7, 0, 0, 0, 0, 0, scheduled=0)
    result = CliRunner().invoke(cli, ["move", "a", "b", "--transaction", "5", "--json", *more])
    assert (result.exit_code, json.loads(result.stdout)["left"]) == (code, left), result.output
    assert ("a has 7 more: they did not come to this command" in result.stderr) is (code == 1)


def test_after_a_limit_a_move_tells_of_no_more_than_what_it_refused(
    manager: MagicMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_one(job: Transfer, *ignored: object) -> int:
        job.refused = 1
        return 2

    monkeypatch.setattr(Transfer, "run", refuses_one)
    manager.queue.return_value = QueueStatus("a", 7, 0, 0, 0, 0, 0, scheduled=0)
    result = CliRunner().invoke(cli, ["move", "a", "b", "--transaction", "5", "--json", "--limit", "2"])
    assert (result.exit_code, json.loads(result.stdout)["left"]) == (1, 1), result.output


def test_a_move_by_the_broker_does_not_fail_because_new_messages_come(manager: MagicMock) -> None:
    manager.move.return_value = 2
    manager.queue.return_value = QueueStatus("a", 7, 0, 0, 0, 0, 0, scheduled=0)
    assert CliRunner().invoke(cli, ["move", "a", "b"]).exit_code == 0


@pytest.mark.parametrize("arguments", [["move", "a", "b"], ["move", "a", "b", "--rate", "5", "--selector", "x = 1"]])
def test_a_move_fails_if_the_broker_counts_wrongly(
    manager: MagicMock, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    manager.move.return_value = 2
    monkeypatch.setattr(Transfer, "run", lambda *ignored: 2)
    manager.queue.return_value = QueueStatus("a", 0, None, 0, 0, 0, 0, scheduled=0)
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1, result.output
    assert "Moved 2 messages" in result.stdout
    assert "below zero, so it is wrong" in result.stderr


@pytest.mark.parametrize(("arguments", "count"), [(["move", "other"], "moved"), (["retry", "--limit", "5"], "retried")])
def test_dlq_fails_after_its_report_if_letters_cannot_be_sent(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], count: str
) -> None:
    """`dlq retry && dlq purge` destroyed them."""
    letters = MagicMock(spec=Letters, queue="DLQ", absent=False, artemis=True, connection=MagicMock())
    letters.choice = MagicMock(selector=None, choosy=False)
    letters.shown.return_value = 3
    letters.missed.return_value = None
    monkeypatch.setattr(dlq, "opened_letters", lambda *args: nullcontext(letters))
    monkeypatch.setattr(dlq, "check_target", MagicMock())
    monkeypatch.setattr(dlq, "rounds_of", lambda *args: [Round("x > 1")])
    monkeypatch.setattr(Transfer, "run", leaves_one)
    failed(CliRunner().invoke(cli, ["dlq", *arguments, "--json"]), count)


@pytest.mark.parametrize(("selector", "known"), [(None, [1]), ("x = 1", [])])
def test_dlq_asks_what_is_left_besides_the_letters_that_it_tells_of(
    monkeypatch: pytest.MonkeyPatch, selector: str | None, known: list[int]
) -> None:
    """On Classic, too, where a browser counts. With a choice, the other letters stay."""
    more = OutOfSight(4, "DLQ has 4 more")
    checked, left_behind = MagicMock(), MagicMock(return_value=more)
    checked.out_of_sight.return_value = more
    monkeypatch.setattr(dlq, "left_behind", left_behind)
    letters = Letters(MagicMock(), "DLQ", Choice(selector), checked=checked)
    monkeypatch.setattr(letters, "shown", lambda *args: 3)
    monkeypatch.setattr(dlq, "opened_letters", lambda *args: nullcontext(letters))
    monkeypatch.setattr(dlq, "check_target", MagicMock())
    monkeypatch.setattr(dlq, "rounds_of", lambda *args: [Round("x > 1")])
    monkeypatch.setattr(Transfer, "run", leaves_one)
    result = CliRunner().invoke(cli, ["dlq", "move", "other", "--json"])
    assert [call.args[2:] for call in left_behind.call_args_list] == [("DLQ", None, number) for number in known]
    assert (json.loads(result.stdout)["left"], result.exit_code) == (5 if known else 1, 1)
    assert "DLQ has 4 more" in result.stderr


def asked_to_retry(left: int, with_consumers: int) -> MagicMock:
    """Return a manager that sends two letters back, and then counts those that stay."""
    asked = MagicMock()
    asked.retry.return_value, asked.count.return_value = 2, left
    asked.queue.return_value = QueueStatus("DLQ", left, with_consumers, 0, 0, 0, 0, scheduled=0)
    return asked


def test_a_retry_by_the_broker_fails_if_letters_stay() -> None:
    """The queue of a letter may have been deleted."""
    asked = asked_to_retry(1, 0)
    done = ask_to_retry(asked, "DLQ", None)
    assert (done.count, done.left) == (2, 1)
    assert "After the retry, DLQ has 1 of the chosen dead letters" in done.reasons[0]
    asked.count.return_value = 0
    assert ask_to_retry(asked, "DLQ", None).reasons == []


def test_a_retry_by_the_broker_names_the_letters_that_are_with_consumers() -> None:
    """Artemis counts them if there is no selector, but nothing is wrong with them."""
    asked = asked_to_retry(3, 3)
    done = ask_to_retry(asked, "DLQ", None)
    assert (done.count, done.left) == (2, 3)
    assert done.reasons[0].startswith("3 messages of DLQ are with consumers")
    assert len(done.reasons) == 1
    asked.count.return_value = 0
    assert ask_to_retry(asked, "DLQ", "x = 1").reasons == []  # nobody knows whether they fit
