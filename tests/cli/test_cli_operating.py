"""The commands of operators against a real broker: what they show, change, ask and refuse."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cli_support import Cli, depth, put, rest, take_all
from polling import wait_until
from shared_brokers import Served

from pyjmsack import AckMode, ConnectionFactory, MapMessage, Queue


def killed_when(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    """Wait for a condition, then kill the process. It must be slow, as one look may take seconds on a busy machine."""
    try:
        wait_until(condition, patience=90)
    finally:
        process.kill()
        rest(process)


def test_stat_shows_queues_as_table_json_and_for_prometheus(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b"])
    assert queue_name[:30] in cli.ok("stat", f"{queue_name[:-1]}?")
    (status,) = json.loads(cli.ok("stat", queue_name, "--json"))["queues"]
    assert (status["name"], status["messages"], status["consumers"]) == (queue_name, 2, 0)
    lines = cli.ok("stat", queue_name, "--format", "prometheus").splitlines()
    assert f'pyjmsack_queue_messages{{queue="{queue_name}"}} 2' in lines
    assert "# TYPE pyjmsack_queue_added_total counter" in lines


def test_stat_of_a_queue_that_is_not_there_names_the_nearest(cli: Cli, queue_name: str) -> None:
    """It showed an empty table, as if the queue were there; a pattern that fits nothing still does."""
    put(cli.url, queue_name, ["a"])
    result = cli.run("stat", f"{queue_name}x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"'{queue_name}'" in result.stderr
    assert cli.run("stat", f"{queue_name}x*").exit_code == 0


def test_stat_of_a_watched_queue_ends_with_a_signal(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a"])
    process = cli.start("stat", queue_name, "--watch", "50ms", "--json")
    assert process.stdout is not None
    samples = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    assert rest(process)[2] == 0
    assert [each["queues"][0]["messages"] for each in samples] == [1, 1]


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--max-depth", 2], 0, "OK"),
        (["--max-depth", 1], 2, "CRITICAL"),
        (["--max-depth", 5, "--warn-depth", 1], 1, "WARNING"),
        (["--min-consumers", 1], 2, "CRITICAL"),
        (["--max-age", "1d"], 0, "OK"),
    ],
    ids=str,
)
def test_check_answers_with_the_exit_codes_of_nagios(
    cli: Cli, queue_name: str, options: list[object], code: int, word: str
) -> None:
    put(cli.url, queue_name, ["a", "b"])
    result = cli.run("check", "queue", queue_name, *options)
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(f"{word} - queue {queue_name}: ")
    assert "messages=2" in result.stdout


@pytest.mark.parametrize(("more", "code"), [([], 3), (["--max-depth", 0], 2), (["--warn-depth", 0], 3)], ids=str)
def test_check_of_an_age_that_is_not_known_is_unknown(cli: Cli, queue_name: str, more: list[object], code: int) -> None:
    """Artemis says that a message without a time stamp is of 1970, which was critical."""
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(queue_name))
        producer.disable_message_timestamp = True
        producer.send("a")
    result = cli.run("check", "queue", queue_name, "--max-age", "10m", *more)
    assert result.exit_code == code, result.output
    assert ("no time stamp" in result.stdout) is (code == 3)
    assert "age=" not in result.stdout


def test_check_of_a_queue_whose_messages_are_all_with_consumers_knows_no_age_and_needs_none(
    cli: Cli, queue_name: str
) -> None:
    put(cli.url, queue_name, ["a"])
    with ConnectionFactory(cli.url).create_connection() as connection:
        connection.start()
        consumer = connection.create_session(AckMode.CLIENT_ACKNOWLEDGE).create_consumer(Queue(queue_name))
        assert consumer.receive(60) is not None
        assert cli.run("check", "queue", queue_name, "--max-age", "10m").exit_code == 0


@pytest.mark.parametrize("command", ["move", "copy"])
@pytest.mark.parametrize(
    "names", [("{0}::{0}", "{0}"), ("{0}", "{0}::{0}"), ("{0}?consumer.prefetchSize=1", "{0}")], ids=str
)
def test_two_spellings_of_one_queue_are_no_source_and_target(
    cli: Cli, queue_name: str, command: str, names: tuple[str, str]
) -> None:
    """The messages went round and round: each copy came to the end of the queue that was read."""
    put(cli.url, queue_name, ["a", "b"])
    said = cli.run(command, *(name.format(queue_name) for name in names), "--limit", 5)
    assert said.exit_code == 1, said.output
    assert depth(cli.url, queue_name) == 2


def test_check_of_a_queue_or_broker_that_is_not_there_is_unknown(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a"])
    result = cli.run("check", "queue", queue_name + "x", "--json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["status"] == "UNKNOWN"
    assert queue_name in document["reasons"][0]
    assert Cli("amqp://127.0.0.1:1").run("check", "queue", "a").exit_code == 3


def test_a_script_must_say_yes_before_anything_is_destroyed(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b"])
    refused = cli.run("purge", queue_name, stdin="")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert json.loads(cli.ok("purge", queue_name, "--dry-run", "--json"))["messages"] == 2
    assert depth(cli.url, queue_name) == 2
    assert json.loads(cli.ok("purge", queue_name, "--yes", "--json"))["removed"] == 2
    assert depth(cli.url, queue_name) == 0


@pytest.mark.parametrize("options", [[], ["--rate", 1000], ["--transaction", 2]], ids=["broker", "rate", "client"])
def test_a_typing_error_moves_nothing_and_names_the_queue_that_was_meant(
    cli: Cli, queue_name: str, options: list[object]
) -> None:
    """With --rate or --transaction the messages went to the misspelt queue, which the broker had created."""
    put(cli.url, queue_name, ["a"])
    put(cli.url, f"{queue_name}.target", ["b"])
    result = cli.run("move", queue_name, f"{queue_name}.tarqet", *options)
    assert result.exit_code == 1
    assert f"{queue_name}.target" in result.stderr
    assert "give --create to create the queue" in result.stderr
    assert cli.run("move", f"{queue_name}x", f"{queue_name}.target", *options).exit_code == 1
    assert depth(cli.url, queue_name) == 1


@pytest.mark.parametrize("command", ["move {0} {1}", "copy {0} {1}", "dlq move {1} --queue {0}"])
def test_a_misspelt_target_gets_no_messages(cli: Cli, queue_name: str, command: str) -> None:
    """`copy` and `dlq move` let the broker create the misspelt queue, and the messages went there."""
    target = f"{queue_name}.target"
    put(cli.url, queue_name, ["a"])
    put(cli.url, target, ["b"])
    result = cli.run(*command.format(queue_name, f"{target}s").split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"'{target}'" in result.stderr
    assert "give --create to create the queue" in result.stderr
    assert depth(cli.url, queue_name) == 1
    assert json.loads(cli.ok("stat", f"{target}*", "--json"))["queues"][0]["messages"] == 1
    cli.ok(*command.format(queue_name, f"{target}s").split(), "--create")
    assert depth(cli.url, f"{target}s") == 1


def test_a_copy_of_a_misspelt_queue_names_the_queue_that_was_meant(cli: Cli, queue_name: str) -> None:
    """It said "Copied 0 messages", and the broker had created the misspelt queue."""
    put(cli.url, queue_name, ["a"])
    result = cli.run("copy", f"{queue_name}x", f"{queue_name}.2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"'{queue_name}'" in result.stderr


@pytest.mark.parametrize("options", [[], ["--transaction", "2"]], ids=["broker", "client"])
def test_move_takes_what_the_selector_and_the_limit_say(cli: Cli, queue_name: str, options: list[str]) -> None:
    cli.ok("send", queue_name, "--property", "n:int=1", stdin="one\n")
    cli.ok("send", queue_name, "--property", "n:int=2", stdin="two\nthree\nfour\n")
    target = f"{queue_name}.target"
    put(cli.url, target, ["there"])
    said = cli.ok("move", queue_name, target, "--selector", "n = 2", "--limit", 2, "--json", *options)
    assert json.loads(said)["moved"] == 2
    assert json.loads(said)["by"] == ("client" if options else "broker")
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["one", "four"]
    assert [text for text, _ in take_all(cli.url, target)] == ["there", "two", "three"]


def test_a_message_that_this_process_moves_keeps_body_headers_and_properties(cli: Cli, queue_name: str) -> None:
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        message = session.create_map_message({})
        message.correlation_id, message.type, message.reply_to = "c", "t", Queue("answers")
        message.properties["n"] = 5
        session.create_producer(Queue(queue_name)).send(message, priority=7, time_to_live=600)
        expiration = message.expiration
    cli.ok("move", queue_name, f"{queue_name}.2", "--create", "--transaction", "10")
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        moved = session.create_consumer(Queue(f"{queue_name}.2")).receive(60)
    assert isinstance(moved, MapMessage)
    assert (moved.correlation_id, moved.type, moved.reply_to, moved.priority) == ("c", "t", Queue("answers"), 7)
    assert dict(moved.properties) == {"n": 5}
    assert moved.expiration is not None
    assert expiration is not None
    assert abs((moved.expiration - expiration).total_seconds()) < 5


def test_copy_leaves_the_messages_where_they_are(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b", "c"])
    assert json.loads(cli.ok("copy", queue_name, f"{queue_name}.2", "--create", "--limit", 2, "--json"))["copied"] == 2
    assert [text for text, _ in take_all(cli.url, f"{queue_name}.2")] == ["a", "b"]
    assert len(take_all(cli.url, queue_name)) == 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_move_that_is_killed_and_repeated_loses_and_doubles_nothing(
    brokers: Callable[[str], Served], queue_name: str, protocol: str
) -> None:
    """S88: over STOMP, where sends and receipts are not atomic at Artemis, the broker drops the second copies."""
    served = brokers("artemis")
    cli = Cli(served.stomp_url if protocol == "stomp" else served.amqp_url)
    texts, target = [f"message {number}" for number in range(150)], f"{queue_name}.target"
    put(served.amqp_url, queue_name, texts)
    process = cli.start("move", queue_name, target, "--create", "--rate", 8, "--transaction", 7)
    killed_when(process, lambda: depth(served.amqp_url, target) >= 20)
    arrived = depth(served.amqp_url, target)
    assert arrived < len(texts), "the move ended before it was killed"
    wait_until(lambda: json.loads(cli.ok("consumers", queue_name, "--json"))["consumers"] == [])
    cli.ok("move", queue_name, target, "--transaction", 20)
    assert sorted(text for text, _ in take_all(served.amqp_url, target)) == sorted(texts)
    assert take_all(served.amqp_url, queue_name) == []


def send_with_one_message_id(url: str, queue: str, texts: list[str]) -> None:
    """Send messages that differ in the text only, as a STOMP client may that chooses its ids and times."""
    frames = [
        f"SEND\ndestination:{queue}\ndestination-type:ANYCAST\npersistent:true\nNATIVE_MESSAGE_ID:ID\\c1\n"
        f"timestamp:1000\n\n{text}\0"
        for text in texts
    ]
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 0), 30) as client:
        head = "CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"
        client.sendall("".join([head, *frames, "DISCONNECT\nreceipt:end\n\n\0"]).encode())
        while client.recv(4096):  # the broker closes the connection when it has done all
            pass


def test_messages_that_share_a_message_id_are_all_moved_even_those_that_share_everything(
    brokers: Callable[[str], Served], queue_name: str
) -> None:
    """S88: over STOMP Artemis drops what it takes for a second copy, and the original is acknowledged then."""
    served, target = brokers("artemis"), f"{queue_name}.target"
    send_with_one_message_id(served.stomp_url, queue_name, ["same", "same", "other"])
    Cli(served.stomp_url).ok("move", queue_name, target, "--create", "--transaction", 1)
    assert [text for text, _ in take_all(served.amqp_url, target)] == ["same", "same", "other"]
    assert take_all(served.amqp_url, queue_name) == []


def test_pause_and_resume_say_what_they_did(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a"])
    assert json.loads(cli.ok("pause", queue_name, "--json"))["done"] == "paused"
    assert cli.run("check", "queue", queue_name).exit_code == 1
    assert "resumed" in cli.ok("resume", queue_name)
    assert cli.run("check", "queue", queue_name).exit_code == 0


def test_consumers_and_connections_are_shown(cli: Cli, queue_name: str) -> None:
    with ConnectionFactory(cli.url, client_id=queue_name).create_connection() as connection:
        connection.create_session().create_consumer(Queue(queue_name))
        (consumer,) = json.loads(cli.ok("consumers", queue_name, "--json"))["consumers"]
        assert consumer["queue"] == queue_name
        found = json.loads(cli.ok("connections", "--json"))["connections"]
        assert any(queue_name in each["client_id"] for each in found)


def put_what_cannot_be_converted(broker: Served, queue: str, count: int) -> None:
    """Send messages over STOMP that Artemis cannot convert for AMQP. This library sends no such message."""
    where = urlsplit(broker.stomp_url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=60) as stream:
        stream.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        head = f"destination:{queue}\ndestination-type:ANYCAST\n_AMQ_GROUP_SEQUENCE:x\n"
        for number in range(count):
            stream.sendall(f"SEND\n{head}receipt:{number}\n\nodd\0".encode())
        answers = b""
        while answers.count(b"RECEIPT\n") < count:
            more = stream.recv(65536)
            assert more
            answers += more


@pytest.mark.parametrize("command", ["move --transaction 1", "dlq move --transaction 1 --queue", "export --take"])
def test_messages_that_the_broker_does_not_send_make_a_command_fail_that_empties_a_queue(
    cli: Cli, any_broker: Served, queue_name: str, tmp_path: Path, command: str
) -> None:
    """They use up the credit of the consumer. The command left good messages, and ended with the exit code 0."""
    put(cli.url, queue_name, ["good"])
    put_what_cannot_be_converted(any_broker, queue_name, 5)
    target = [tmp_path / "queue.jsonl"] if command.startswith("export") else [f"{queue_name}.target", "--create"]
    # the name of the queue is the value of ``--queue`` of `dlq move`
    result = cli.run(*command.split(), queue_name, *target)
    assert result.exit_code == 1, result.output
    assert "more: they did not come to this command, or are new" in result.stderr
    assert f"The broker's count of the messages of {queue_name} that are with consumers is below zero" in result.stderr
