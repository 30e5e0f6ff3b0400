"""``pyjmsack tail``: messages are shown as they come, and none is taken."""

from __future__ import annotations

import json
import signal

import pytest
from cli_support import Cli, first_lines, put, rest, take_all

from pyjmsack import ConnectionFactory, TextMessage, Topic
from pyjmsack.cli.tail import render


def test_a_template_shows_headers_properties_and_body() -> None:
    message = TextMessage("body")
    message.properties["region"] = "EU"
    message.correlation_id = "c"
    assert render(r"%c|%p{region}|%p{none}|%b|%%\t%p", message) == 'c|EU||body|%\t{"region": "EU"}'


def test_a_letter_that_is_unknown_is_a_usage_error(cli: Cli) -> None:
    result = cli.run("tail", "a", "--format", "%q")
    assert result.exit_code == 2
    assert "%q is unknown" in result.stderr


def test_a_queue_is_followed_and_keeps_its_messages(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b", "c"])
    process = cli.start("tail", queue_name, "--lines", 2, "--interval", "50ms", "--format", "%b")
    assert first_lines(process, 2) == ["b", "c"]
    put(cli.url, queue_name, ["d"])
    assert first_lines(process, 1) == ["d"]
    process.send_signal(signal.SIGINT)
    assert rest(process)[::2] == ([], 0)
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["a", "b", "c", "d"]


def test_the_help_has_its_examples_in_lines_of_their_own(cli: Cli) -> None:
    assert "\n  pyjmsack tail orders\n" in cli.ok("tail", "--help")


def test_the_count_ends_it(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b"])
    lines = cli.ok("tail", queue_name, "--count", 2, "--json").splitlines()
    assert [json.loads(line)["body"] for line in lines] == ["a", "b"]


@pytest.mark.timeout(200)
def test_a_topic_is_followed(cli: Cli, queue_name: str) -> None:
    process = cli.start("tail", queue_name, "--topic", "--count", 1, "--format", "%b")
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Topic(queue_name))
        while process.poll() is None:  # until its subscription is there the broker throws messages away
            producer.send("price")
    assert rest(process)[::2] == (["price"], 0)
