"""``pyjmsack browse``: looking takes nothing."""

from __future__ import annotations

import json

from cli_support import Cli, put, take_all


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
    assert "the first 2 messages, and more" in table
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
    assert "0 messages" in cli.ok("browse", queue_name)
    assert cli.ok("browse", queue_name, "--json") == ""
