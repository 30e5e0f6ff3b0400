"""The commands of operators on ActiveMQ Classic, over AMQP and STOMP, where nobody may manage the broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_support import Cli, put, take_all
from shared_brokers import Served
from test_cli_dead_letters import give_up
from test_cli_operating import killed_when

from pyjmsack import AckMode, ConnectionFactory, Queue

PROTOCOLS = ("amqp", "stomp")
ONE_AFTER_THE_OTHER = pytest.mark.xdist_group("letters of ActiveMQ Classic")
"""All workers share this broker and its dead letters. Without a choice by selector a command holds the letters that it
looks at, also those that another test wants."""


@pytest.fixture(params=PROTOCOLS)
def plain(request: pytest.FixtureRequest, brokers: Callable[[str], Served]) -> Cli:
    """The command line, pointed at ActiveMQ Classic without Jolokia."""
    served = brokers("classic-6")
    return Cli(served.stomp_url if request.param == "stomp" else served.amqp_url)


@pytest.fixture
def letter_with_foreign_id(brokers: Callable[[str], Served], queue_name: str) -> Iterator[None]:
    """A dead letter with the id of its AMQP sender, while a test runs: no command can acknowledge it over STOMP."""
    with ConnectionFactory(brokers("classic-6").amqp_url).create_connection() as connection:
        connection.start()
        session, letters = connection.create_session(AckMode.AUTO_ACKNOWLEDGE), Queue("ActiveMQ.DLQ")
        message = session.create_text_message("poison")
        message.properties["of"] = queue_name
        session.create_producer(letters).send(message)
        yield
        assert session.create_consumer(letters, f"of = '{queue_name}'").receive(60) is not None


def depth(cli: Cli, queue: str) -> int:
    """Count by browsing, as this broker is not managed."""
    return int(json.loads(cli.ok("stat", queue, "--json"))["queues"][0]["messages"])


@pytest.mark.timeout(300)
def test_a_move_that_is_killed_and_repeated_loses_and_doubles_nothing(plain: Cli, queue_name: str) -> None:
    """S88: a transaction of this broker is atomic over both protocols."""
    texts, target = [f"message {number}" for number in range(150)], f"{queue_name}.target"
    put(plain.url, queue_name, texts)
    process = plain.start("move", queue_name, target, "--rate", 8, "--transaction", 7)
    killed_when(process, lambda: depth(plain, target) >= 20)
    assert depth(plain, target) < len(texts), "the move ended before it was killed"
    moved = 0
    while depth(plain, target) < len(texts):  # the broker gives back what was under way
        moved += json.loads(plain.ok("move", queue_name, target, "--transaction", 20, "--json"))["moved"]
        assert moved < len(texts), "messages came twice, or the broker gives nothing back"
    assert sorted(text for text, _ in take_all(plain.url, target)) == sorted(texts)
    assert take_all(plain.url, queue_name) == []


@pytest.mark.parametrize("command", ["move", "dlq move"])
def test_a_message_in_which_the_broker_would_find_no_target_is_moved_with_the_others(
    brokers: Callable[[str], Served], queue_name: str, command: str
) -> None:
    """Its property with an empty name stopped the move of the whole queue, each time."""
    cli, target = Cli(brokers("classic-6").amqp_url), f"{queue_name}.target"
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(queue_name))
        for text in ("a", "odd", "b"):
            message = session.create_text_message(text)
            message._properties = {"": "x"} if text == "odd" else {}  # only other clients can send such a name
            producer.send(message)
    names = [queue_name, target] if command == "move" else [target, "--queue", queue_name]
    cli.ok(*command.split(), *names)
    assert [text for text, _ in take_all(cli.url, target)] == ["a", "odd", "b"]


def test_an_import_leaves_out_a_header_that_this_broker_cannot_write_and_sends_the_others(
    plain: Cli, queue_name: str, tmp_path: Path
) -> None:
    """S160: Classic called such a message rejected over AMQP, and the import stopped at its line, each time."""
    odd = [{"correlation_id": "c" * 66_000}, {"type": "t" * 66_000}, {"properties": {"JMSXGroupID": "g" * 66_000}}]
    lines = [{"body": "a"}, *({"body": "odd", **more} for more in odd), {"body": "b"}]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = plain.run("import", queue_name, file, "--resume", tmp_path / "progress", "--transaction", 1)
    assert result.exit_code == 1
    assert "3 messages left out" in result.stderr, result.output
    assert [text for text, _ in take_all(plain.url, queue_name)] == ["a", "b"]


@ONE_AFTER_THE_OTHER
@pytest.mark.timeout(300)
def test_a_retry_that_is_killed_and_repeated_loses_nothing(plain: Cli, queue_name: str) -> None:
    """Each letter is confirmed and then acknowledged, so that the one that was under way may come twice."""
    texts = [f"message {number}" for number in range(120)]
    give_up(plain.url, queue_name, texts)
    arguments = ("dlq", "retry", "--origin", queue_name)
    process = plain.start(*arguments, "--rate", 8, "--transaction", 7)
    killed_when(process, lambda: depth(plain, queue_name) >= 20)
    assert depth(plain, queue_name) < len(texts), "the retry ended before it was killed"
    while json.loads(plain.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"]:
        plain.ok(*arguments, "--json")
    found = [text for text, _ in take_all(plain.url, queue_name)]
    assert set(found) == set(texts)
    assert len(found) <= len(texts) + 1


@pytest.mark.timeout(300)
def test_an_import_that_is_killed_and_repeated_loses_nothing(plain: Cli, queue_name: str, tmp_path: Path) -> None:
    """The batch that was under way may come twice, because this broker recognises no second copy."""
    batch, texts = 10, [f"message {number}" for number in range(150)]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    arguments = ("import", queue_name, file, "--resume", tmp_path / "progress", "--transaction", batch)
    process = plain.start(*arguments, "--rate", 8)
    killed_when(process, lambda: depth(plain, queue_name) >= 25)
    assert depth(plain, queue_name) < len(texts), "the import ended before it was killed"
    plain.ok(*arguments)
    found = [text for text, _ in take_all(plain.url, queue_name)]
    assert set(found) == set(texts)
    assert len(found) <= len(texts) + batch


@pytest.mark.parametrize(
    "command",
    ["export {}", "copy {} {}.copies", "dlq ls --queue {}", "dlq purge --yes --queue {}", "dlq move {}.x --queue {}"],
)
def test_a_choice_behind_the_first_400_messages_is_not_told_to_be_empty(
    plain: Cli, queue_name: str, command: str
) -> None:
    """This broker looks for a selector among the first 400 messages only.

    `copy` and `export` found nothing, and ended with the exit code 0. A script that destroys what it has exported then
    destroyed messages that no file had.
    """
    if "dlq move" in command:
        command += " --dry-run"
    put(plain.url, queue_name, ["other"] * 450)
    plain.ok("send", queue_name, "--property", "wanted=yes", stdin="behind them\n")
    choice = ["--selector", "wanted = 'yes'"]
    result = plain.run(*command.replace("{}", queue_name).split(), *choice)
    assert result.exit_code == 1, result.output
    assert "may not be all" in result.stderr
    assert "may not be all" in plain.run("browse", queue_name, *choice).stderr
    assert len(take_all(plain.url, queue_name, wait_for=451)) == 451


@ONE_AFTER_THE_OTHER
def test_dead_letters_have_an_origin_and_go_back_to_it(plain: Cli, queue_name: str) -> None:
    """Over STOMP this broker notes the origin in a header of its own.

    The letters were shown as of unknown origin, and a retry of that origin took none of them.
    """
    give_up(plain.url, queue_name, ["a", "b", "c"])
    (group,) = json.loads(plain.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"]
    assert (group["origin"], group["messages"]) == (queue_name, 3)
    assert json.loads(plain.ok("dlq", "retry", "--origin", queue_name, "--limit", 2, "--json"))["retried"] == 2
    assert [text for text, _ in take_all(plain.url, queue_name)] == ["a", "b"]
    assert json.loads(plain.ok("dlq", "purge", "--origin", queue_name, "--yes", "--json"))["removed"] == 1


@ONE_AFTER_THE_OTHER
@pytest.mark.parametrize("command", [["retry"], ["move", "test.parked"]], ids=["retry", "move"])
@pytest.mark.usefixtures("letter_with_foreign_id")
def test_letters_that_another_consumer_holds_are_told_of(plain: Cli, queue_name: str, command: list[str]) -> None:
    """Two retries at the same time took each other's letters, and both said that there was nothing to do.

    Other tests leave letters on this queue, some with an id by which nobody can acknowledge them over STOMP. A command
    names each such letter on standard error. So this test looks for the sentence that it is about, and for no other.
    """
    give_up(plain.url, queue_name, ["a", "b"])
    with ConnectionFactory(plain.url).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        consumer = session.create_consumer(Queue("ActiveMQ.DLQ"))
        held: list[object] = []
        while (message := consumer.receive(1)) is not None:
            held.append(message)
        assert len(held) >= 2
        result = plain.run("dlq", *command, "--origin", queue_name)
    assert result.exit_code == 0
    assert "2 of 2 were not moved, because another consumer of ActiveMQ.DLQ holds them" in result.stderr
    moved = plain.run("dlq", *command, "--origin", queue_name, "--json")
    assert 2 in json.loads(moved.stdout).values()
    assert "not moved" not in moved.stderr
    if plain.url.startswith("stomp"):
        assert "cannot be decoded and is refused" in moved.stderr


@ONE_AFTER_THE_OTHER
def test_a_retry_says_how_many_letters_stay_because_their_origin_is_unknown(
    brokers: Callable[[str], Served], queue_name: str
) -> None:
    """Over AMQP this broker does not tell the origin of a message that was sent over STOMP."""
    served = brokers("classic-6")
    give_up(served.stomp_url, queue_name, ["a"])
    result = Cli(served.amqp_url).run("dlq", "retry", "--selector", f"_AMQ_DUPL_ID = '{queue_name}-a'", "--json")
    report = json.loads(result.stdout)
    assert (report["retried"], report["left"], result.exit_code) == (0, 1, 1)
    assert "1 stay in ActiveMQ.DLQ, because nothing says where they came from" in result.stderr
    listed = Cli(served.amqp_url).run("dlq", "ls", "--selector", f"_AMQ_DUPL_ID = '{queue_name}-a'")
    assert "a stomp:// URL shows the origin of letters that were sent over STOMP" in listed.stderr
    listed = Cli(served.stomp_url).run("dlq", "ls", "--selector", f"_AMQ_DUPL_ID = '{queue_name}-a'")
    assert queue_name[:20] in listed.stdout
    assert "stomp:// URL" not in listed.stderr


def test_numbers_that_nobody_told_are_not_shown_as_zero(plain: Cli, queue_name: str) -> None:
    """A graph of consumers showed none, and it was the browser that could not know."""
    put(plain.url, queue_name, ["a", "b"])
    counted = plain.run("stat", queue_name, "--json")
    (status,) = json.loads(counted.stdout)["queues"]
    assert {name for name, value in status.items() if value is not None} == {"name", "messages"}
    assert "that does not exist counts as empty" in counted.stderr
    lines = plain.ok("stat", queue_name, "--format", "prometheus").splitlines()
    values = [line for line in lines if not line.startswith("#")]
    assert values == [f'pyjmsack_queue_messages{{queue="{queue_name}"}} 2']


@pytest.mark.parametrize("command", [("copy", "target"), ("dlq", "ls", "--queue"), ("browse",)], ids=lambda c: c[0])
def test_a_name_that_nobody_could_check_is_said_when_the_queue_is_empty(
    plain: Cli, queue_name: str, command: tuple[str, ...]
) -> None:
    """A misspelt queue is created and empty, which looks as if there were nothing to do."""
    words = ("copy", queue_name, f"{queue_name}.2") if command[0] == "copy" else (*command, queue_name)
    assert f"It is not known whether the queue {queue_name} exists" in plain.run(*words).stderr


def test_a_move_says_that_nobody_checked_the_names(plain: Cli, queue_name: str) -> None:
    for options in ([], ["--rate", 1000]):
        result = plain.run("move", queue_name, f"{queue_name}.2", *options)
        assert result.exit_code == 0, result.output
        assert "check" in result.stderr
        assert "Jolokia" in result.stderr
