"""What the programs of one kombu.Connection learn of a lost connection, and how each of them works again."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kombu
import pytest
from kombu.exceptions import OperationalError
from polling import wait_until
from shared_brokers import Served

import pyjmsack.kombu
from pyjmsack.kombu.connection import Connection
from pyjmsack.testing import Wire

assert pyjmsack.kombu.Transport  # the import makes the schemes known
FEW_ATTEMPTS = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


class Line:
    """A connection of kombu whose wire the test cuts, and a queue."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.connection = kombu.Connection(f"jms+{wire.url}")
        self.queue = kombu.Queue(name)
        self.bodies: list[Any] = []

    def own(self) -> Connection:
        """The connection to the broker, which kombu replaces after a loss."""
        own: Connection = self.connection.connection
        return own

    def lose(self) -> Connection:
        """Cut the wire, and return the lost connection when it knows of it. The next one works."""
        lost = self.own()
        self.wire.cut()
        wait_until(lambda: not lost.alive)
        self.wire.heal()
        return lost

    def publish_while_away(self, producer: Any, body: Any) -> None:
        """Publish in vain while the broker is away. Afterwards the broker is back."""
        lost = self.own()
        self.wire.cut()
        wait_until(lambda: not lost.alive)
        with pytest.raises(OperationalError):
            self.publish(producer, body)
        self.wire.heal()

    def publish(self, producer: Any, body: Any) -> None:
        """Publish as Celery does."""
        name = self.queue.name
        producer.publish(body, routing_key=name, declare=[self.queue], retry=True, retry_policy=FEW_ATTEMPTS)

    def consumer(self, take: Callable[[Any, Any], None] | None = None) -> Any:
        return self.connection.Consumer([self.queue], callbacks=[take or self.take])

    def take(self, body: Any, message: Any) -> None:
        self.bodies.append(body)
        message.ack()


@pytest.fixture
def line(any_broker: Served, queue_name: str) -> Iterator[Line]:
    with Wire(any_broker.amqp_url) as wire:
        made = Line(wire, queue_name)
        yield made
        made.connection.release()


def test_a_producer_that_failed_while_the_broker_was_away_publishes_again(line: Line) -> None:
    """Celery beat keeps one producer. Its channel belonged to the lost connection for ever."""
    producer = line.connection.Producer(auto_declare=False)
    line.publish(producer, "one")
    line.publish_while_away(producer, "two")
    for body in ("three", "four"):
        line.publish(producer, body)
    with line.consumer():
        for _ in range(3):
            line.connection.drain_events(timeout=30)
    assert line.bodies == ["one", "three", "four"]


def test_a_producer_publishes_again_after_another_user_has_made_the_connection_anew(line: Line) -> None:
    """Each attempt of the producer closed the new connection, and failed."""
    producer = line.connection.Producer(auto_declare=False)
    line.publish(producer, "one")
    line.lose()
    assert line.queue(line.connection.default_channel).queue_declare(passive=True).message_count == 1
    line.publish(producer, "two")
    own = line.own()
    line.publish(producer, "three")
    assert line.own() is own
    assert own.alive


def test_a_producer_declares_a_new_queue_after_a_loss(line: Line) -> None:
    """The declaration went to the old channel again and again, and each attempt closed the new connection."""
    producer = line.connection.Producer(auto_declare=False)
    line.publish(producer, "one")
    line.lose()
    line.queue = kombu.Queue(f"{line.queue.name}.new")
    line.publish(producer, "two")
    own = line.own()
    line.publish(producer, "three")
    assert line.own() is own
    assert line.connection.default_channel.queue_purge(line.queue.name) == 2


def test_threads_that_connect_at_the_same_time_get_one_connection(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """kombu knew one of two connections. So a program waited with the one, and its consumers were on the other."""
    transport, opened, others = line.connection.transport, Connection._open, list[Connection]()

    async def meanwhile(own: Connection) -> None:
        monkeypatch.undo()
        others.append(transport.establish_connection())  # as another thread does
        await opened(own)

    monkeypatch.setattr(Connection, "_open", meanwhile)
    own = transport.establish_connection()
    assert [own] == others
    assert own.alive
    own.close()


def test_a_program_with_consumers_is_not_told_to_open_them_again(line: Line) -> None:
    """Another thread gave up a connection with consumers, and both threads connect. One has its consumers already."""
    transport = line.connection.transport
    with line.consumer():
        own = line.own()
        transport._note_consumers(own)
        assert transport.establish_connection() is own
        line.publish(line.connection.Producer(), "one")
        line.connection.drain_events(timeout=30)
    assert line.bodies == ["one"]


def test_a_producer_of_a_channel_publishes_again_when_the_broker_is_back(line: Line) -> None:
    """It raised an AttributeError of kombu, because its channel had no connection before there was a new one."""
    producer = kombu.Producer(line.connection.channel(), auto_declare=False)
    line.publish(producer, "one")
    line.publish_while_away(producer, "two")
    line.publish(producer, "three")
    assert line.connection.default_channel.queue_purge(line.queue.name) == 2


def test_an_exchange_is_declared_again_after_a_loss(line: Line) -> None:
    """kombu tries a second time only after an error of the connection."""
    exchange = kombu.Exchange(line.queue.name, type="fanout")(line.connection.default_channel)
    line.lose()
    line.publish(line.connection.Producer(auto_declare=False), "one")  # connects again
    line.connection.ensure(exchange, exchange.declare, max_retries=1, interval_start=0)()
    assert line.own().alive


def test_a_thread_may_give_a_connection_up_while_another_one_connects(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other thread got a TypeError, which kombu does not take for a loss."""
    transport = line.connection.transport
    opened = Connection._open

    async def given_up(own: Connection) -> None:
        await opened(own)
        transport.client = None

    monkeypatch.setattr(Connection, "_open", given_up)
    own = transport.establish_connection()
    assert own.alive
    own.close()


def test_a_program_consumes_again_after_a_loss_that_it_learned_of_in_a_callback(line: Line) -> None:
    """The acknowledgement raised the error. kombu got the lost connection again and again."""

    def losing(body: Any, message: Any) -> None:
        line.lose()
        message.ack()

    line.publish(line.connection.Producer(), "one")
    with pytest.raises(line.connection.connection_errors, match="lost"), line.consumer(losing):
        line.connection.drain_events(timeout=30)
    line.connection.ensure_connection(max_retries=1)
    with line.consumer():
        line.connection.drain_events(timeout=30)
    assert line.bodies == ["one"]


def test_a_program_consumes_again_after_a_loss_between_its_consumers(line: Line) -> None:
    consumer = line.consumer()
    consumer.consume()
    line.lose()
    with pytest.raises(line.connection.connection_errors, match="lost"):
        line.consumer()
    line.publish(line.connection.Producer(), "one")
    with line.consumer():
        line.connection.drain_events(timeout=30)
    assert line.bodies == ["one"]


def publish_in_vain(line: Line) -> None:
    """The program catches the error of a send, as many do in a callback."""
    line.lose()
    with pytest.raises(line.connection.connection_errors, match="lost"):
        line.connection.Producer().publish("two", routing_key=line.queue.name)


def publish_until_it_works(line: Line) -> None:
    """kombu itself has restored the connection, for the producer."""
    line.lose()
    line.publish(line.connection.Producer(), "two")


def collect(line: Line) -> None:
    """kombu does so after an answer that came too late."""
    line.connection.collect()


def switch(line: Line) -> None:
    """kombu closes a lost connection before it turns to the next broker of its list."""
    line.lose()
    line.connection.switch(line.connection.as_uri(include_password=True))


def test_a_connection_that_kombu_gives_up_although_it_works_counts_no_delivery(line: Line) -> None:
    """A send without an answer makes kombu do so. Artemis counted a failure each time, until a dead letter was made."""
    counts: dict[str, int] = {}

    def take(body: Any, message: Any) -> None:
        counts[body] = message.properties["delivery_info"]["delivery_count"]

    bodies = ["one", "two", "three", "four", "five"]
    for body in bodies:
        line.publish(line.connection.Producer(), body)
    for _ in range(3):
        counts.clear()
        line.consumer(take).consume()
        while len(counts) < 3:
            line.connection.drain_events(timeout=30)
        line.connection.collect()
    with line.consumer(take):
        while len(counts) < len(bodies):
            line.connection.drain_events(timeout=30)
    assert counts == dict.fromkeys(bodies, 1)


@pytest.mark.parametrize("own_channel", [True, False])
def test_a_program_with_several_brokers_is_told_that_a_switch_ended_its_consumers(
    line: Line, own_channel: bool
) -> None:
    """kombu switches after a send without an answer, also if the connection works. The program then waited for ever."""
    line.connection.release()
    line.connection = kombu.Connection(f"jms+{line.wire.url};jms+{line.wire.url}")
    channel = line.connection.channel() if own_channel else line.connection.default_channel
    line.connection.Consumer([line.queue], channel=channel).consume()
    line.connection.maybe_switch_next()
    with pytest.raises(line.connection.connection_errors, match="consumers with it: open them again"):
        line.connection.drain_events(timeout=30)
    line.publish(line.connection.Producer(), "one")
    with line.consumer():
        line.connection.drain_events(timeout=30)
    assert line.bodies == ["one"]


@pytest.mark.parametrize("lose", [publish_in_vain, publish_until_it_works, collect, switch])
def test_a_program_whose_consumers_are_gone_does_not_wait_for_ever(line: Line, lose: Callable[[Line], None]) -> None:
    """kombu replaces the connection, and the new one has no consumers."""
    line.publish(line.connection.Producer(), "one")
    consumer = line.consumer()
    consumer.consume()
    line.connection.drain_events(timeout=30)
    lose(line)
    with pytest.raises(line.connection.connection_errors, match="consumers with it: open them again"):
        line.connection.drain_events(timeout=30)
    line.publish(line.connection.Producer(), "three")
    with line.consumer():
        while "three" not in line.bodies:
            line.connection.drain_events(timeout=30)


def test_a_lost_connection_that_is_replaced_ends_its_thread(line: Line) -> None:
    """Each loss left a thread and five descriptors to the garbage collector."""
    line.publish(line.connection.Producer(), "one")
    lost = line.lose()
    line.connection.ensure_connection(max_retries=1)
    assert line.own() is not lost
    assert lost.closed
    assert lost.fileno() == -1
