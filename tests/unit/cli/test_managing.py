"""Who does the work of a command: the broker, or this process where the user may not manage the broker."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from pyjmsack import JMSException, JMSSecurityException, UnsupportedFeatureException
from pyjmsack.cli import managing
from pyjmsack.cli.main import cli
from pyjmsack.management import ManagementDeniedError

LOGIN: Any = SimpleNamespace(factory=lambda **options: None)


def by_broker(monkeypatch: pytest.MonkeyPatch, answer: int | Exception, opened: Exception | None = None) -> int | None:
    """Let a broker answer, or raise when the manager is opened."""

    def open_manager(factory: object, jolokia: object) -> Any:
        if opened is not None:
            raise opened
        return nullcontext()

    def work(manager: object) -> int:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(managing, "Manager", open_manager)
    return managing.by_broker(LOGIN, None, "Done here", work)


def test_the_broker_does_the_work_if_it_can(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert by_broker(monkeypatch, 0) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [ManagementDeniedError("no role"), UnsupportedFeatureException("no such verb")])
@pytest.mark.parametrize("at_once", [True, False], ids=["at the start", "in the work"])
def test_this_process_does_what_the_user_or_the_broker_may_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: JMSException, at_once: bool
) -> None:
    assert by_broker(monkeypatch, error, error if at_once else None) is None
    assert capsys.readouterr().err == f"Done here, because {error}.\n"


@pytest.mark.parametrize("error", [JMSSecurityException("this user may not manage to log in"), JMSException("broken")])
def test_a_refused_login_and_a_failure_are_raised_whatever_their_text(
    monkeypatch: pytest.MonkeyPatch, error: JMSException
) -> None:
    with pytest.raises(type(error)):
        by_broker(monkeypatch, error)
    with pytest.raises(type(error)):
        by_broker(monkeypatch, 0, error)


@pytest.mark.parametrize("arguments", [["stat", "--watch", "0"], ["tail", "q", "--interval", "0s"]])
def test_a_command_that_looks_again_and_again_needs_a_pause(arguments: list[str]) -> None:
    """With 0 it asked the broker all the time."""
    result = CliRunner().invoke(cli, [*arguments, "--url", "amqp://127.0.0.1:1"])
    assert result.exit_code == 2
    assert "the shortest pause is 10ms" in result.stderr


def test_a_narrow_terminal_leaves_out_columns_without_content_so_that_names_stay_readable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings = ("queue", "state", "messages", "delivering", "scheduled", "consumers", "added", "acknowledged")
    rows = [("orders.incoming", "", 1200, 0, 0, 1, 10_000, 8_800), ("DLQ", "", 0, 0, 0, 0, 0, 0)]
    monkeypatch.setattr(managing, "stdout_console", lambda: Console(width=80))
    managing.print_table(headings, rows, numbers=6)
    shown = capsys.readouterr()
    assert "orders.incoming" in shown.out
    assert "delivering" not in shown.out
    assert shown.err == "No room for the columns in which all is 0, empty or unknown: state, delivering, scheduled.\n"
    monkeypatch.setattr(managing, "stdout_console", lambda: Console(width=132))
    managing.print_table(headings, rows, numbers=6)
    shown = capsys.readouterr()
    assert all(heading in shown.out for heading in headings)
    assert shown.err == ""


@pytest.mark.parametrize("empty", ["", " "], ids=["nothing", "a blank"])
@pytest.mark.parametrize(
    "command",
    ["purge q --selector", "move q r --selector", "export q --selector", "dlq purge --origin", "dlq retry --cause"],
)
def test_a_choice_of_messages_without_a_value_does_not_take_all_messages(command: str, empty: str) -> None:
    """It destroyed all messages of a queue, because a variable of the shell had no value."""
    result = CliRunner().invoke(cli, [*command.split(), empty, "--url", "amqp://127.0.0.1:1"])
    assert result.exit_code == 2
    assert "Leave the option out" in result.output
    assert command.split()[-1] in result.output
