"""What the transport promises to programs of kombu, on real brokers."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import kombu
import pytest
from shared_brokers import Served

import pyjmsack.kombu
from pyjmsack import ConnectionFactory, TextMessage, Topic, UnsupportedFeatureException
from pyjmsack.core import producer as producers

assert pyjmsack.kombu.Transport  # the import makes the schemes known


@pytest.mark.parametrize(
    "broker",
    ["artemis", pytest.param("classic-6", marks=pytest.mark.whole_tier("the row above runs the same lines"))],
)
def test_a_consumer_holds_as_many_messages_as_its_prefetch_count_and_no_more(
    broker: str, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """Over AMQP. One message is unacknowledged, and others get all that are behind."""
    url = f"jms+{brokers(broker).amqp_url}"
    with kombu.Connection(url) as busy, kombu.Connection(url) as other:
        held: list[Any] = []
        queue = kombu.Queue(queue_name)
        with kombu.Consumer(busy, [queue], on_message=held.append, prefetch_count=1):
            producer = other.Producer()
            for number in range(5):
                producer.publish(number, routing_key=queue_name)
            busy.drain_events(timeout=30)
            behind = other.SimpleQueue(queue_name)
            found = [behind.get(timeout=30) for _ in range(4)]
            assert [message.payload for message in found] == [1, 2, 3, 4]
            assert [message.payload for message in held] == [0]


def test_a_failover_url_finds_the_broker_that_runs(any_broker: Served, queue_name: str) -> None:
    """The first broker of the list does not run."""
    url = f"jms+failover:(amqp://127.0.0.1:1,{any_broker.amqp_url})"
    with kombu.Connection(url, transport="jms") as connection:
        queue = connection.SimpleQueue(queue_name)
        queue.put(1, compression="zlib")
        assert queue.get(timeout=60).payload == 1


@pytest.mark.parametrize("kind", ["fanout", "topic"])
def test_a_durable_queue_gets_what_a_program_sends_that_does_not_know_the_queue(
    kind: str, any_broker: Served, queue_name: str
) -> None:
    """Artemis over AMQP: the binding is a shared durable subscription at the broker."""
    url = f"jms+{any_broker.amqp_url}"
    exchange = kombu.Exchange(f"x-{queue_name}", type=kind)
    with kombu.Connection(url) as receiver:
        queue = kombu.Queue(queue_name, exchange, routing_key="prices.#")(receiver.default_channel)
        queue.declare()
    with kombu.Connection(url) as sender:
        producer = sender.Producer(exchange=exchange)
        producer.publish({"price": 7}, routing_key="prices.eu")
    with kombu.Connection(url) as receiver:
        queue = kombu.Queue(queue_name, exchange, routing_key="prices.#")(receiver.default_channel)
        queue.declare()
        found = queue.get()
        assert found is not None
        assert found.payload == {"price": 7}
        found.ack()
        queue.delete()


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_requeued_message_comes_again_and_says_so(protocol: str, any_broker: Served, queue_name: str) -> None:
    """A task that requeues itself once, and looks at ``redelivered``, would else requeue itself for ever."""
    with kombu.Connection(f"jms+{getattr(any_broker, f'{protocol}_url')}") as connection:
        queue = connection.SimpleQueue(queue_name)
        queue.put(1)
        first = queue.get(timeout=30)
        assert first.delivery_info["redelivered"] is False
        first.requeue()
        again = queue.get(timeout=30)
        assert again.delivery_info["redelivered"] is True
        again.ack()


def test_a_message_that_is_requeued_comes_again_to_a_consumer_that_waits_on_several_queues(
    brokers: Callable[[str], Served], queue_name: str
) -> None:
    """Classic delivers it to the same link only, and all places were asked for by other links: tasks of Celery waited
    in the broker while the worker was idle."""
    names = [f"{queue_name}-{number}" for number in range(3)]
    with kombu.Connection(f"jms+{brokers('classic-6').amqp_url}") as connection:
        came: list[Any] = []
        producer = connection.Producer()
        with kombu.Consumer(connection, [*map(kombu.Queue, names)], on_message=came.append, prefetch_count=16):
            for number in range(60):  # so that each queue gets more lanes than one
                producer.publish(number, routing_key=names[number % 3])
            for count in range(60):
                while len(came) == count:
                    connection.drain_events(timeout=30)
                came[-1].ack()
            for number in range(20):
                producer.publish(number, routing_key=names[number % 3])
                connection.drain_events(timeout=30)
                assert came[-1].payload == number
                came[-1].requeue()
                connection.drain_events(timeout=30)
                assert came[-1].payload == number
                came[-1].ack()


def overlapping(connection: Any, name: str, *, durable: bool) -> tuple[Any, Any, Any]:
    """Return a queue that is bound with ``a.*``, its exchange, and a producer for it."""
    exchange = kombu.Exchange(f"x-{name}", type="topic")
    queue = kombu.Queue(name, exchange, routing_key="a.*", durable=durable, exclusive=not durable)
    bound = queue(connection.default_channel)
    bound.declare()
    return bound, exchange, connection.Producer(exchange=exchange)


def drained(queue: Any) -> list[Any]:
    """Take all messages of a queue."""
    found = []
    while (message := queue.get()) is not None:
        found.append(message.payload)
        message.ack()
    return found


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "temporary"])
def test_a_message_that_is_older_than_a_binding_which_covers_it_is_not_lost(
    durable: bool, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """It was dropped as a second copy, because the name of the new binding stands before that of the old one."""
    with kombu.Connection(f"jms+{brokers('artemis').amqp_url}") as connection:
        queue, exchange, producer = overlapping(connection, queue_name, durable=durable)
        for number in range(3):
            producer.publish(number, routing_key="a.b")
        queue.bind_to(exchange, routing_key="*.b")
        for number in range(3, 5):
            producer.publish(number, routing_key="a.b")
        producer.publish(5, routing_key="a.c")
        producer.publish(6, routing_key="c.b")
        assert sorted(drained(queue)) == [*range(7)]
        queue.delete()


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "temporary"])
@pytest.mark.parametrize("key", ["a.*", "*.b"])
def test_a_message_that_two_bindings_cover_comes_once_when_one_of_them_ends(
    durable: bool, key: str, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """It came twice; from a temporary queue the messages of the ended binding were lost."""
    with kombu.Connection(f"jms+{brokers('artemis').amqp_url}") as connection:
        queue, exchange, producer = overlapping(connection, queue_name, durable=durable)
        queue.bind_to(exchange, routing_key="*.b")
        for number, sent in enumerate(("a.b", "a.c", "c.b", "a.b")):
            producer.publish(number, routing_key=sent, priority=8)
        queue.unbind_from(exchange, routing_key=key)
        assert sorted(drained(queue)) == [0, 1, 2, 3]
        queue.delete()


def test_two_workers_that_consume_a_queue_with_overlapping_bindings_get_each_message_once(
    brokers: Callable[[str], Served], queue_name: str
) -> None:
    url = f"jms+{brokers('artemis').amqp_url}"
    with kombu.Connection(url) as one, kombu.Connection(url) as other:
        queue, exchange, producer = overlapping(one, queue_name, durable=True)
        queue.bind_to(exchange, routing_key="*.b")
        second = overlapping(other, queue_name, durable=True)[0]
        second.bind_to(exchange, routing_key="*.b")
        found: list[Any] = []
        take = lambda body, message: (found.append(body), message.ack())  # noqa: E731 - one expression
        with kombu.Consumer(one, [queue], callbacks=[take]), kombu.Consumer(other, [second], callbacks=[take]):
            for number in range(40):
                producer.publish(number, routing_key="a.b")
            for _ in range(400):
                for connection in (one, other):
                    with contextlib.suppress(TimeoutError):
                        connection.drain_events(timeout=0.02)
                if len(found) >= 40:
                    break
            for connection in (one, other):
                with contextlib.suppress(TimeoutError):
                    connection.drain_events(timeout=0.5)
        assert sorted(found) == [*range(40)]
        queue.delete()


def send_order(url: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a message with a property that this library refuses to send, as a Java program may do."""
    message = TextMessage("order")
    message.properties["AMQ_SCHEDULED_PERIOD"] = 1
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        target = session.create_producer(Topic(topic))
        with pytest.raises(UnsupportedFeatureException):
            target.send(message)
        with monkeypatch.context() as patch:
            patch.setattr(producers, "ORDERS", frozenset[str]())
            target.send(message)


def test_a_message_that_cannot_be_sent_on_does_not_end_the_worker_of_a_queue_with_overlapping_bindings(
    brokers: Callable[[str], Served], queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ended, and at each reconnect again, so that no message behind it was delivered."""
    url = brokers("artemis").amqp_url
    with kombu.Connection(f"jms+{url}") as connection:
        queue, exchange, producer = overlapping(connection, queue_name, durable=True)
        queue.bind_to(exchange, routing_key="*.b")
        send_order(url, f"kombu.topic.x-{queue_name}.a.b", monkeypatch)
        for number in range(3):
            producer.publish(number, routing_key="a.b")
        found: list[Any] = []
        take = lambda body, message: (found.append(body), message.ack())  # noqa: E731 - one expression
        with kombu.Consumer(connection, [queue], callbacks=[take], accept=["json", "text/plain"]):
            while not {0, 1, 2, "order"} <= {*found}:
                connection.drain_events(timeout=30)
        assert sorted(body for body in found if body != "order") == [0, 1, 2]
        queue.delete()


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "temporary"])
def test_a_message_that_cannot_be_sent_on_costs_itself_alone_when_its_binding_ends(
    durable: bool, brokers: Callable[[str], Served], queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unbinding failed, and the messages behind the bad one stayed in a subscription without a consumer."""
    url = brokers("artemis").amqp_url
    with kombu.Connection(f"jms+{url}") as connection:
        queue, exchange, producer = overlapping(connection, queue_name, durable=durable)
        send_order(url, f"kombu.topic.x-{queue_name}.a.b", monkeypatch)
        for number in range(3):
            producer.publish(number, routing_key="a.b")
        queue.unbind_from(exchange, routing_key="a.*")
        assert sorted(drained(queue)) == [0, 1, 2]
        queue.delete()
