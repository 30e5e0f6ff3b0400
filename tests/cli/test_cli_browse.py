"""``pyjmsack browse``: looking takes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import Cli, put, take_all

from pyjmsack import ConnectionFactory
from pyjmsack.management import Manager


def test_the_table_shows_messages_and_takes_none(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["first body", "second body"])
    for _ in range(2):
        table = cli.ok("browse", queue_name)
        assert "2 messages" in table
        assert "first body" in table
    assert len(take_all(cli.url, queue_name)) == 2


def test_the_limit_says_that_there_is_more(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, [f"body {number}" for number in range(5)])
    table = cli.ok("browse", queue_name, "--limit", 2)
    assert "the first 2 messages; --limit N or --json shows more" in table
    assert "body 2" not in table
    assert len(cli.ok("browse", queue_name, "--limit", 2, "--json").splitlines()) == 2


def test_json_has_one_object_per_line_that_can_be_sent(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a\nb", "c"])
    lines = cli.ok("browse", queue_name, "--json")
    assert [json.loads(line)["body"] for line in lines.splitlines()] == ["a\nb", "c"]
    cli.ok("send", queue_name, "--format", "jsonl", stdin=lines)
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["a\nb", "c", "a\nb", "c"]


def test_a_selector_filters(cli: Cli, queue_name: str) -> None:
    cli.ok("send", queue_name, "--property", "n:int=1", stdin="one\n")
    cli.ok("send", queue_name, "--property", "n:int=2", stdin="two\n")
    assert json.loads(cli.ok("browse", queue_name, "--selector", "n > 1", "--json"))["body"] == "two"


def test_control_characters_of_strangers_do_not_reach_the_terminal(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["\x1b]0;owned\x07 [bold]markup[/bold]"])
    table = cli.ok("browse", queue_name)
    assert "\x1b" not in table
    assert "[bold]markup[/bold]" in table


def test_bytes_are_shown_by_length(cli: Cli, queue_name: str) -> None:
    cli.ok("send", queue_name, "--bytes", stdin=b"\x00\x01\x02\n")
    assert "3 bytes" in cli.ok("browse", queue_name)


def test_an_empty_queue_has_no_messages(cli: Cli, queue_name: str) -> None:
    with Manager(ConnectionFactory(cli.url)) as manager:
        manager.create_queue(queue_name)
    assert "0 messages" in cli.ok("browse", queue_name)
    assert cli.ok("browse", queue_name, "--json") == ""


@pytest.mark.parametrize(
    "command",
    [["browse"], ["browse", "--json"], ["tail"], ["export"], ["export", "--take"], ["dlq", "ls", "--queue"]],
    ids=" ".join,
)
def test_a_misspelt_queue_is_not_created_and_the_nearest_is_named(
    cli: Cli, queue_name: str, command: list[str]
) -> None:
    """Looking into a queue creates it at Artemis, so that the command said 0 messages of a typing error."""
    put(cli.url, queue_name, ["a"])
    result = cli.run(*command, f"{queue_name}x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"'{queue_name}'" in result.stderr
    with Manager(ConnectionFactory(cli.url)) as manager:
        assert [each.name for each in manager.queues(f"{queue_name}*")] == [queue_name]


def test_an_export_of_a_misspelt_queue_leaves_no_file(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    assert cli.run("export", queue_name, tmp_path / "out.jsonl").exit_code == 1
    assert [*tmp_path.iterdir()] == []


def test_an_export_that_fails_at_once_leaves_no_file_that_stops_the_next(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """The empty file stopped the same command with the right selector, and an import read it as an empty queue."""
    put(cli.url, queue_name, ["a"])
    file = tmp_path / "out.jsonl"
    for command in (["export", queue_name, file], ["dlq", "export", file, "--queue", queue_name]):
        assert cli.run(*command, "--selector", "region =").exit_code == 1
        cli.ok(*command)
        assert len(file.read_text().splitlines()) == 1
        file.unlink()


@pytest.mark.parametrize("dead", [False, True])
def test_a_dash_is_standard_output_and_no_file(
    cli: Cli, queue_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    """A script that waited for the lines got none, and found a file with the name ``-`` later."""
    put(cli.url, queue_name, ["a"])
    monkeypatch.chdir(tmp_path)
    said = cli.ok("dlq", "export", "-", "--queue", queue_name) if dead else cli.ok("export", queue_name, "-")
    assert [json.loads(line)["body"] for line in said.splitlines()] == ["a"]
    assert [*tmp_path.iterdir()] == []


def test_a_user_who_may_not_manage_is_told_that_the_name_was_not_checked(guarded: Cli, queue_name: str) -> None:
    """And can still browse."""
    login = ["--user", "alice"]
    result = guarded.run("browse", queue_name, *login, PYJMSACK_PASSWORD="wonderland")
    assert result.exit_code == 0, result.output
    assert f"It is not known whether the queue {queue_name} exists, because" in result.stderr
    guarded.run("send", queue_name, *login, stdin="one\n", PYJMSACK_PASSWORD="wonderland")
    result = guarded.run("browse", queue_name, *login, PYJMSACK_PASSWORD="wonderland")
    assert "1 message\n" in result.stdout
    assert result.stderr == ""


def test_before_the_first_dead_letter_there_is_none(classic: tuple[str, str], queue_name: str) -> None:
    """ActiveMQ Classic creates its queue of dead letters with the first one; looking creates no queue."""
    url, jolokia = classic
    cli = Cli(url)
    with Manager(ConnectionFactory(url), jolokia=jolokia) as manager:
        there = {each.name for each in manager.queues()}
        name = "ActiveMQ.DLQ"
        if name in there:
            manager.delete_queue(name)
        assert "0 dead letters" in cli.ok("dlq", "ls", "--jolokia", jolokia)
        assert "back from" in cli.ok("dlq", "retry", "--jolokia", jolokia)
        assert name not in {each.name for each in manager.queues()}
