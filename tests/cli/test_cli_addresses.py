"""Queues of Artemis whose name is not their address: the broker confirms and drops what is sent to such a name.

The queue of a subscription is one, and so is each queue with an address of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cli_support import Cli, put
from dead_letters import wait_for_dead_letters
from polling import wait_until
from shared_brokers import Served
from test_cli_operating import depth

from pyjmsack import AckMode, ConnectionFactory, Queue, Session, Topic
from pyjmsack.management import Manager

PATIENCE = 60


@pytest.fixture(params=["amqp", "stomp"])
def way(request: pytest.FixtureRequest, brokers: Callable[[str], Served]) -> Cli:
    """The command line over each protocol, at Artemis."""
    return Cli(getattr(brokers("artemis"), f"{request.param}_url"))


def made(url: str, address: str, *, topic: bool) -> str:
    """Make a queue that is not named like its address, and return its name."""
    with ConnectionFactory(url, client_id=f"{address}.client").create_connection() as connection:
        session = connection.create_session()
        if topic:
            session.create_durable_consumer(Topic(address), "reader").close()
            return f"{address}.client.reader"
        session.create_consumer(Queue(f"{address}::{address}.queue")).close()
        return f"{address}.queue"


def rejected(session: Session, topic: str, name: str) -> None:
    """Let a message of a new durable subscription become a dead letter."""
    consumer = session.create_durable_consumer(Topic(topic), name)
    session.create_producer(Topic(topic)).send("a")
    message = consumer.receive(PATIENCE)
    assert message is not None
    message.reject()
    consumer.close()


@pytest.mark.parametrize("topic", [False, True], ids=["queue", "subscription"])
@pytest.mark.parametrize("whole", [False, True], ids=["name", "address-and-name"])
def test_what_a_command_sends_to_a_queue_with_another_address_is_in_the_queue(
    cli: Cli, way: Cli, queue_name: str, topic: bool, whole: bool
) -> None:
    """`move`, `dlq move` and `copy` said that they had moved the messages, and the broker had dropped them all."""
    target = made(cli.url, queue_name, topic=topic)
    named = f"{queue_name}::{target}" if whole else target
    source = f"{queue_name}.source"
    put(cli.url, source, ["a", "b"])
    assert "Moved 2" in way.ok("move", source, named, "--transaction", 1)
    assert (depth(cli.url, source), depth(cli.url, target)) == (0, 2)
    put(cli.url, source, ["c", "d"])
    assert "Copied 2" in cli.ok("copy", source, named)
    assert depth(cli.url, target) == 4
    assert "Moved 2" in way.ok("dlq", "move", named, "--queue", source)
    assert (depth(cli.url, source), depth(cli.url, target)) == (0, 6)
    assert way.run("import", named, stdin='{"body": "e"}\n').exit_code == 0
    assert depth(cli.url, target) == 7


def test_a_letter_of_a_subscription_goes_back_to_this_subscription_alone(cli: Cli, way: Cli, queue_name: str) -> None:
    """A retry by this process named its queue as an ordinary one, and the letter was lost."""
    with ConnectionFactory(cli.url, client_id=queue_name).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        session.create_durable_consumer(Topic(queue_name), "other").close()
        rejected(session, queue_name, "reader")
        reader = f"{queue_name}.reader"
        wait_for_dead_letters(cli.url, "DLQ", f"_AMQ_ORIG_QUEUE = '{reader}'", 1)
        assert "Sent 1 dead letter back" in way.ok("dlq", "retry", "--origin", reader, "--transaction", 1)
        assert (depth(cli.url, reader), depth(cli.url, f"{queue_name}.other")) == (1, 1)


def stomp_letter(brokers: Callable[[str], Served], topic: str, name: str | None) -> None:
    """Let a message of a subscription over STOMP become a dead letter. The subscription is durable if it has a name."""
    factory = ConnectionFactory(brokers("artemis").stomp_url, client_id=topic)
    with factory.create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        if name is None:
            consumer = session.create_consumer(Topic(topic))
        else:
            consumer = session.create_durable_consumer(Topic(topic), name)
        session.create_producer(Topic(topic)).send("a")
        message = consumer.receive(PATIENCE)
        assert message is not None
        message.reject()


def test_a_letter_of_a_subscription_over_stomp_goes_back_to_this_subscription(
    cli: Cli, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """The letter named the topic as its queue, and a retry made a queue of this name, from which nobody receives."""
    stomp_letter(brokers, queue_name, "reader")
    reader = f"{queue_name}.reader"
    wait_for_dead_letters(cli.url, "DLQ", f"_AMQ_ORIG_QUEUE = '{reader}'", 1)
    assert "Sent 1 dead letter back" in cli.ok("dlq", "retry", "--origin", reader, "--transaction", 1)
    assert depth(cli.url, reader) == 1


def test_a_letter_of_a_subscription_without_a_name_over_stomp_stays(
    cli: Cli, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """Its queue is gone, and the topic would hand it to each of its subscribers."""
    stomp_letter(brokers, queue_name, None)
    origin = f"topic://{queue_name}"
    wait_for_dead_letters(cli.url, "DLQ", f"_AMQ_ORIG_QUEUE = '{origin}'", 1)
    result = cli.run("dlq", "retry", "--origin", origin, "--transaction", 1)
    assert "1 stay in DLQ, because nothing says where they came from" in result.stderr
    assert result.exit_code == 1
    cli.ok("dlq", "purge", "--origin", origin, "--yes")


def test_a_letter_of_a_deleted_subscription_stays(cli: Cli, way: Cli, queue_name: str) -> None:
    """Nobody could receive it."""
    with ConnectionFactory(cli.url, client_id=queue_name).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        rejected(session, queue_name, "reader")
        reader = f"{queue_name}.reader"
        wait_for_dead_letters(cli.url, "DLQ", f"_AMQ_ORIG_QUEUE = '{reader}'", 1)
        session.unsubscribe("reader")
    if "stomp" not in way.url:  # this protocol has no browser here
        assert "1 stay" in way.run("dlq", "retry", "--origin", reader, "--dry-run").stdout
    result = way.run("dlq", "retry", "--origin", reader, "--transaction", 1)
    assert "Sent 0 dead letters back" in result.stdout
    assert "1 stay in DLQ, because the name of their queue is not its address" in result.stderr
    assert result.exit_code == 1
    wait_for_dead_letters(cli.url, "DLQ", f"_AMQ_ORIG_QUEUE = '{reader}'", 1)
    cli.ok("dlq", "purge", "--origin", reader, "--yes")


def test_a_target_with_an_address_is_refused_if_nobody_can_look_whether_it_is_there(
    guarded: Cli, queue_name: str
) -> None:
    """The user may not manage this broker."""
    with ConnectionFactory(guarded.url, username="alice", password="wonderland").create_connection() as connection:
        session = connection.create_session()
        session.create_producer(Queue(queue_name)).send("a")
        for command in (["move", queue_name], ["copy", queue_name], ["dlq", "move", "--queue", queue_name]):
            result = guarded.run(*command, f"{queue_name}::other", "--user", "alice", PYJMSACK_PASSWORD="wonderland")
            assert "Artemis would lose the messages" in result.stderr
            assert result.exit_code == 1
        connection.start()
        consumer = session.create_consumer(Queue(queue_name))
        wait_until(lambda: consumer.receive(1) is not None)


def test_a_target_is_not_looked_for_at_another_address_and_not_made_there(cli: Cli, queue_name: str) -> None:
    target = made(cli.url, queue_name, topic=False)
    put(cli.url, f"{queue_name}.source", ["a"])
    for name, options, reason in (
        (f"else::{target}", [], f"belongs to the address {queue_name}, not to else"),
        (f"{queue_name}::new", ["--create"], "--create creates no queue with an address of another name"),
        (f"{queue_name}::new", [], "the broker has no queue 'new'"),
    ):
        result = cli.run("copy", f"{queue_name}.source", name, *options)
        assert (result.exit_code, reason in result.stderr) == (1, True), result.stderr
    with Manager(ConnectionFactory(cli.url)) as manager:
        found = manager.queue(target)
        assert (found.address, found.multicast, found.messages) == (queue_name, False, 0)
