"""What the transport promises to programs of kombu, on real brokers."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kombu
import pytest
from shared_brokers import Served

import pyjmsack.kombu

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
