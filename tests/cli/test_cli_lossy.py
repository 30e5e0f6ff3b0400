"""What a command cannot see or carry stays, and no script goes on as if it were copied.

Over STOMP Artemis leaves out the content of maps, objects and lists of other protocols. It shows no browser what is
with consumers or waits for its time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import Cli, put, take_all
from polling import wait_until
from shared_brokers import Served

from pyjmsack import AckMode, ConnectionFactory, MapMessage, Queue

PATIENCE = 60


@pytest.fixture
def stomp(brokers: Callable[[str], Served]) -> Cli:
    """The command line over STOMP, at Artemis."""
    return Cli(brokers("artemis").stomp_url)


def send_map(url: str, queue: str) -> None:
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue(queue)).send({"item": "bolt", "count": 10})


def the_map(url: str, queue: str) -> object:
    """Take the message, and return its content."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_consumer(Queue(queue)).receive(PATIENCE)
        assert isinstance(message, MapMessage)
        return dict(message)


@pytest.mark.parametrize("command", [["move", "--transaction", "2"], ["dlq", "move", "--create"], ["export", "--take"]])
def test_a_map_whose_content_did_not_come_stays_and_the_others_go(
    cli: Cli, stomp: Cli, queue_name: str, command: list[str]
) -> None:
    """An empty text took its place, and the map was acknowledged."""
    put(cli.url, queue_name, ["a"])
    send_map(cli.url, queue_name)
    put(cli.url, queue_name, ["b"])
    put(cli.url, f"{queue_name}.target", [])
    names = {"move": [queue_name, f"{queue_name}.target", "--create"], "export": [queue_name]}
    dead = ["--queue", queue_name, f"{queue_name}.target"]
    result = stomp.run(command[0], *command[1:], *names.get(command[0], dead))
    if command[0] == "export":
        assert [json.loads(line)["body"] for line in result.stdout.splitlines()] == ["a", "b"]
    else:
        assert "Moved 2" in result.stdout, result.output
    assert result.exit_code == 1
    assert "the broker may have left out its content" in result.stderr
    assert the_map(cli.url, queue_name) == {"item": "bolt", "count": 10}


def test_receiving_a_map_whose_content_did_not_come_says_so(cli: Cli, stomp: Cli, queue_name: str) -> None:
    """It wrote a line without content, acknowledged the map, and said nothing."""
    send_map(cli.url, queue_name)
    send_map(cli.url, queue_name)
    put(cli.url, queue_name, ["text"])
    result = stomp.run("receive", queue_name)
    assert [line.strip("\0") for line in result.stdout.splitlines()] == ["", "", "text"]
    assert result.stderr.count("the broker may have left out its content") == 1
    assert "use amqp://" in result.stderr


def test_a_rejected_map_whose_content_did_not_come_is_not_replaced_by_an_empty_dead_letter(
    cli: Cli, stomp: Cli, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S118: no outcome may lose a message. The copy for the dead-letter queue had no content."""
    send_map(cli.url, queue_name)
    with ConnectionFactory(stomp.url).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        message = session.create_consumer(Queue(queue_name)).receive(PATIENCE)
        assert message is not None
        message.reject()
    assert "stays unacknowledged until its consumer ends: a client of another protocol sent it" in caplog.text
    assert the_map(cli.url, queue_name) == {"item": "bolt", "count": 10}


@pytest.mark.parametrize(
    "command",
    [
        ["export", "{}"],
        ["export", "{}", "--take"],
        ["copy", "{}", "{}.to", "--create", "--json"],
        ["move", "{}", "{}.to", "--create", "--json"],
        ["move", "{}", "{}.to", "--create", "--json", "--transaction", "10"],
        ["dlq", "export", "--queue", "{}"],
        ["dlq", "move", "{}.to", "--create", "--queue", "{}", "--json", "--yes"],
    ],
    ids=" ".join,
)
def test_what_consumers_have_or_waits_for_its_time_is_named_and_fails_the_command(
    cli: Cli, queue_name: str, command: list[str]
) -> None:
    """``export q f && purge q`` would destroy it when the consumer is gone."""
    with ConnectionFactory(cli.url).create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
        producer = context.create_producer(Queue(queue_name))
        for text in ("one", "two", "three"):
            producer.send(text)
        consumer = context.create_consumer(Queue(queue_name))
        assert consumer.receive(PATIENCE) is not None
        wait_until(lambda: consumer.stats.buffered == 2)
        producer.send("late", delivery_delay=3600)
        found = cli.run(*(each.format(queue_name) for each in command))
    assert found.exit_code == 1, found.output
    assert f"3 messages of {queue_name} are with consumers, which may give them back" in found.stderr
    by_broker = command[0] == "move" and "--transaction" not in command  # the broker moves what waits for its time
    waits = f" and 1 message of {queue_name} waits for the time of its delivery" in found.stderr
    assert waits is not by_broker
    if "--json" in command:
        assert json.loads(found.stdout)["left"] == 3 + waits


def test_browse_and_dlq_ls_say_what_they_could_not_see(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["one", "two"])
    with ConnectionFactory(cli.url).create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
        assert context.create_consumer(Queue(queue_name)).receive(PATIENCE) is not None
        wait_until(lambda: "are with consumers" in cli.run("browse", queue_name).stderr)
        for command in (
            ["browse", queue_name],
            ["dlq", "ls", "--queue", queue_name],
            ["dlq", "show", "--queue", queue_name],
        ):
            found = cli.run(*command)
            assert found.exit_code == 0
            assert f"messages of {queue_name} are with consumers" in found.stderr
    cli.ok("export", queue_name, "--limit", "2")


@pytest.mark.parametrize("bad", ["first", "last"])
def test_the_lines_before_a_broken_line_are_sent(cli: Cli, queue_name: str, tmp_path: Path, bad: str) -> None:
    """The error names the broken line, so that somebody goes on behind it."""
    good = [f'{{"kind": "text", "body": "{number}"}}' for number in range(3)]
    lines = tmp_path / "lines"
    lines.write_text("\n".join(['{"kin', *good] if bad == "first" else [*good, '{"kin']))
    found = cli.run("import", queue_name, lines, "--json")
    assert (found.exit_code, json.loads(found.stdout)["sent"]) == (1, 0 if bad == "first" else 3)
    assert f"line {1 if bad == 'first' else 4}: " in found.stderr
    assert [text for text, _ in take_all(cli.url, queue_name)] == ([] if bad == "first" else ["0", "1", "2"])


@pytest.mark.parametrize(
    "command", [["export", "{}", "--take"], ["move", "{}", "{}.to", "--transaction", "10"]], ids=" ".join
)
@pytest.mark.parametrize("asked", [True, False], ids=["jolokia", "browser"])
def test_what_other_consumers_have_fails_a_command_that_receives(
    classic: tuple[str, str], queue_name: str, command: list[str], asked: bool
) -> None:
    """The rest of a script would go on as if all were taken. A browser and Jolokia's move get these messages, too."""
    url, jolokia = classic
    on_classic = Cli(url)
    put(url, queue_name, ["one", "two"])
    with ConnectionFactory(url).create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
        context.create_producer(Queue(f"{queue_name}.to")).send("there")
        consumer = context.create_consumer(Queue(queue_name))
        assert consumer.receive(60) is not None
        wait_until(lambda: consumer.stats.buffered == 1)
        options = ["--jolokia", jolokia] if asked else []
        found = on_classic.run(*(each.format(queue_name) for each in command), *options)
        assert found.exit_code == 1
        expected = f"2 messages of {queue_name} are" if asked else f"{queue_name} still has 2 of"
        assert expected in found.stderr
        assert len(on_classic.ok("export", queue_name, *options).splitlines()) == 2
