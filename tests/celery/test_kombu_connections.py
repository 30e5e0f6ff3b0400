"""What a connection of kombu promises when it is lost, closed, or one of several; and how it tells of messages."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import kombu
import pytest
from kombu.exceptions import ChannelError
from polling import wait_until
from shared_brokers import Served

import pyjmsack.kombu
from pyjmsack import JMSSecurityException, ResourceAllocationException
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.testing import Wire

assert pyjmsack.kombu.Transport  # the import makes the schemes known
PROTOCOLS = pytest.mark.parametrize("protocol", ["amqp", "stomp"])


def url_of(protocol: str, served: Served) -> str:
    return served.amqp_url if protocol == "amqp" else served.stomp_url


def gone(queue: Any) -> bool:
    """Whether a queue that is empty, or that nobody but others may look into, has nothing for this connection."""
    try:
        queue.get(timeout=0.2)
    except queue.Empty:
        return True
    return False


@PROTOCOLS
def test_a_late_acknowledgement_never_reaches_a_new_delivery(
    protocol: str, any_broker: Served, queue_name: str
) -> None:
    """The connection is lost before the acknowledgement. The broker delivers the message again, and that delivery
    stays without an outcome, whatever happens to the old one."""
    with Wire(url_of(protocol, any_broker)) as wire:
        lost = kombu.Connection(f"jms+{wire.url}")
        old = lost.SimpleQueue(queue_name)
        old.put("one")
        first = old.get(timeout=30)
        own = lost.connection  # kombu would connect again if it were asked now
        wire.cut()
        wait_until(lambda: not own.alive)
        wire.heal()
        with kombu.Connection(f"jms+{url_of(protocol, any_broker)}") as other:
            second = other.SimpleQueue(queue_name).get(timeout=30)
            assert second.payload == "one"
            for settle in (first.ack, first.reject, first.requeue):
                with pytest.raises(lost.connection_errors, match="lost"):
                    settle()
            assert not second.acknowledged
        lost.release()
    with kombu.Connection(f"jms+{url_of(protocol, any_broker)}") as third:
        message = third.SimpleQueue(queue_name).get(timeout=30)
        assert message.payload == "one"
        message.ack()


@PROTOCOLS
def test_a_consumer_learns_of_a_loss_that_came_while_it_did_not_wait(
    protocol: str, any_broker: Served, queue_name: str
) -> None:
    """kombu replaced the connection by one without consumers, and the program waited for ever."""
    bodies: list[Any] = []
    queue = kombu.Queue(queue_name)

    def take(body: Any, message: Any) -> None:
        bodies.append(body)
        message.ack()

    with Wire(url_of(protocol, any_broker)) as wire, kombu.Connection(f"jms+{wire.url}") as connection:
        with kombu.Consumer(connection.channel(), [queue], callbacks=[take]) as consumer:
            own = connection.connection
            wire.cut()
            wait_until(lambda: not own.alive)
            wire.heal()
            with pytest.raises(connection.recoverable_connection_errors, match="lost"):
                connection.drain_events(timeout=1)
            consumer.channel = connection.channel()  # what programs do after the error: kombu connects again
            consumer.revive(consumer.channel)
            consumer.consume()
            connection.Producer().publish("one", routing_key=queue_name, declare=[queue])
            connection.drain_events(timeout=30)
        assert bodies == ["one"]


@PROTOCOLS
def test_unacknowledged_messages_go_back_and_are_not_sent_again(
    protocol: str, any_broker: Served, queue_name: str
) -> None:
    """A message that was sent again would be a second task."""
    url = f"jms+{url_of(protocol, any_broker)}"
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue(queue_name)
        queue.put("one")
        queue.get(timeout=30)
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue(queue_name)
        again = queue.get(timeout=30)
        assert again.payload == "one"
        assert gone(queue)
        again.ack()


def test_two_connections_of_a_process_share_nothing(any_broker: Served, queue_name: str) -> None:
    """Neither exchanges nor queues, nor prefetch counts."""
    url, exchange = f"jms+{any_broker.amqp_url}", kombu.Exchange(queue_name, type="fanout")
    with kombu.Connection(url) as one, kombu.Connection(url) as other:
        exchange(one.default_channel).declare()
        one.default_channel.basic_qos(0, 7, False)
        with pytest.raises(ChannelError, match="declare it on this connection"):
            other.default_channel.basic_publish(other.default_channel.prepare_message("x"), queue_name, "")
        assert other.default_channel.qos.prefetch_count == 0
        assert one.connection is not other.connection
        assert one.connection.state is not other.connection.state


def test_the_prefetch_count_changes_while_messages_come(any_broker: Served, queue_name: str) -> None:
    """Celery raises the count for each task with an ETA, and lowers it after a lost connection."""
    held: list[Any] = []
    with kombu.Connection(f"jms+{any_broker.amqp_url}") as connection:
        consumer = kombu.Consumer(connection, [kombu.Queue(queue_name)], on_message=held.append, prefetch_count=1)
        producer = connection.Producer()
        for number in range(6):
            producer.publish(number, routing_key=queue_name)

        def comes(count: int) -> None:
            for _ in range(count):
                connection.drain_events(timeout=30)
            with pytest.raises(TimeoutError):
                connection.drain_events(timeout=0.2)

        with consumer:
            comes(1)
            consumer.qos(prefetch_count=4)
            comes(3)
            consumer.qos(prefetch_count=2)
            for message in held[:2]:
                message.ack()
            comes(0)  # two are unacknowledged, and two are allowed
            held[2].ack()
            comes(1)
            assert sorted(message.payload for message in held) == [0, 1, 2, 3, 4]


@PROTOCOLS
def test_the_file_descriptor_becomes_readable_once_for_a_burst(
    protocol: str, any_broker: Served, queue_name: str
) -> None:
    """However many messages wait, one byte is there. So the event loop of Celery is woken once."""
    with kombu.Connection(f"jms+{url_of(protocol, any_broker)}") as connection:
        came: list[Any] = []
        with kombu.Consumer(connection, [kombu.Queue(queue_name)], on_message=came.append, no_ack=True):
            producer = connection.Producer()
            for number in range(20):
                producer.publish(number, routing_key=queue_name)
            own = connection.connection
            wait_until(lambda: len(own._ready) == 20)
            assert select.select([own], [], [], 0)[0] == [own]
            with socket.socket(fileno=os.dup(own.fileno())) as signal:
                assert len(signal.recv(100, socket.MSG_PEEK)) == 1
            for _ in range(20):
                connection.drain_events(timeout=30)
            assert select.select([own], [], [], 0)[0] == []
            assert len(came) == 20


SENDER = """
import sys, kombu, pyjmsack.kombu
producer = kombu.Connection(sys.argv[1]).Producer()
for number in range(1500):
    producer.publish(number, routing_key=sys.argv[2], delivery_mode="transient")
"""


@PROTOCOLS
def test_transient_messages_of_a_program_that_ends_without_a_close_arrive(
    protocol: str, any_broker: Served, queue_name: str
) -> None:
    """Celery closes no connection when a program ends. More messages than Artemis gives credit for."""
    url = f"jms+{url_of(protocol, any_broker)}"
    subprocess.run([sys.executable, "-c", SENDER, url, queue_name], check=True, timeout=120)
    # counted over AMQP, because a drain over STOMP may end before a busy broker has delivered everything
    with kombu.Connection(f"jms+{any_broker.amqp_url}") as connection:
        assert connection.default_channel.queue_purge(queue_name) == 1500


def test_closing_ends_although_the_broker_is_silent(any_broker: Served, queue_name: str) -> None:
    """A half-open socket: the broker's answers do not arrive. The message comes again."""
    with Wire(any_broker.amqp_url) as wire:
        connection = kombu.Connection(f"jms+{wire.url}?jms.closeTimeout=100&jms.requestTimeout=3000")
        queue = connection.SimpleQueue(queue_name)
        queue.put("one")
        queue.get(timeout=30)
        wire.swallow_replies()
        connection.release()
        wire.cut()
    with kombu.Connection(f"jms+{any_broker.amqp_url}") as other:
        message = other.SimpleQueue(queue_name).get(timeout=30)
        assert message.payload == "one"
        message.ack()


def test_a_full_queue_does_not_stop_the_messages_for_other_queues(queue_name: str) -> None:
    """Artemis gives the link of a refused message no credit before the full queue has room, whatever comes next."""
    settings = {"full.#": {"address-full-policy": "FAIL", "max-size-messages": 2}}
    with (
        EmbeddedArtemis(address_settings=settings) as broker,
        kombu.Connection(f"jms+{broker.amqp_url}?jms.sendTimeout=20000") as connection,
    ):
        producer, free = connection.Producer(), connection.SimpleQueue(queue_name)

        def put() -> None:
            producer.publish("one", routing_key="full.one", declare=[kombu.Queue("full.one")])

        put()
        put()
        for _ in range(2):
            with pytest.raises(ResourceAllocationException, match="is full"):
                put()
        free.put("one")
        message = free.get(timeout=30)
        assert message.payload == "one"
        message.ack()


@pytest.fixture(scope="module")
def tls_broker() -> Any:
    with EmbeddedArtemis(tls=True) as broker:
        yield broker


@pytest.mark.parametrize(("protocol", "scheme"), [("amqp", "jms+amqps"), ("stomp", "jms+stomp+ssl")])
def test_the_schemes_with_tls_check_the_broker_by_the_settings_of_celery(
    protocol: str, scheme: str, tls_broker: Any, queue_name: str
) -> None:
    """``broker_use_ssl`` names the authority. Without it the certificate is refused."""
    found: str = tls_broker.amqp_url if protocol == "amqp" else tls_broker.stomp_url
    url, _, options = found.partition("?")
    authority = parse_qs(options)["transport.trustStoreLocation"][0]
    assert f"jms+{url}".startswith(f"{scheme}://")
    with kombu.Connection(f"jms+{url}", ssl={"ca_certs": authority}) as connection:
        queue = connection.SimpleQueue(queue_name)
        queue.put(7)
        message = queue.get(timeout=30)
        assert message.payload == 7
        message.ack()
    with kombu.Connection(f"jms+{url}", ssl=True) as distrusting, pytest.raises(JMSSecurityException):
        distrusting.connect()


@pytest.mark.parametrize("pre", ["", "jms+"])
def test_the_transport_can_be_named_by_its_path(pre: str, any_broker: Served, queue_name: str) -> None:
    """``broker_transport = "pyjmsack.kombu:Transport"``, as Celery gives it to kombu; with a scheme of kombu or not."""
    make: Callable[..., kombu.Connection] = kombu.Connection
    with make(f"{pre}{any_broker.amqp_url}", transport="pyjmsack.kombu:Transport") as connection:
        queue = connection.SimpleQueue(queue_name)
        queue.put(7)
        message = queue.get(timeout=30)
        assert message.payload == 7
        message.ack()
        assert connection.as_uri().startswith("jms+amqp://")
