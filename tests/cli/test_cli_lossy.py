"""Over STOMP Artemis leaves out the content of maps, objects and lists of other protocols: no copy replaces them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cli_support import Cli, put
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
