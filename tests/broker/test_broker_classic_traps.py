"""What ActiveMQ Classic adds to messages, and what it delivers to a consumer of several queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from polling import expired, wait_until

from pyjmsack import ConnectionFactory, Queue
from pyjmsack.broker import EmbeddedActiveMQ

PATIENCE = 60


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A Classic that converts messages between the protocols, as Java services need it, and that delays messages."""
    with EmbeddedActiveMQ(scheduler=True, transformer="jms") as broker:
        yield f"{broker.amqp_url}?broker.scheduler=true"


@pytest.fixture(scope="module")
def plain_url() -> Iterator[str]:
    """A Classic that passes AMQP messages on as they came, which is its default."""
    with EmbeddedActiveMQ() as broker:
        yield broker.amqp_url


def test_a_delayed_message_that_is_forwarded_with_another_delay_is_delayed_again(url: str) -> None:
    """S157: the broker adds the property ``scheduledJobId``, and delivers at once what has it."""
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        producer = session.create_producer()
        producer.send("late", Queue("delayed.first"), delivery_delay=0.1)
        message = session.create_consumer(Queue("delayed.first")).receive(PATIENCE)
        assert message is not None
        assert dict(message.properties) == {}
        producer.send(message, Queue("delayed.second"), delivery_delay=3600)
        producer.send("prompt", Queue("delayed.second"))
        consumer = session.create_consumer(Queue("delayed.second"))
        assert [consumer.receive_body(str, timeout=PATIENCE), consumer.receive_nowait()] == ["prompt", None]


@pytest.mark.parametrize("options", ["transformer=jms", ""])
def test_a_consumer_of_a_queue_and_its_dead_letters_gets_the_dead_letter_after_its_time(
    options: str, request: pytest.FixtureRequest
) -> None:
    """S118, S156: Classic leaves the time to live in the letter, and discards what is rejected there."""
    url = request.getfixturevalue("url" if options else "plain_url")
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session(101)
        message = session.create_text_message("old")
        session.create_producer(Queue("both.orders")).send(message, time_to_live=1)
        with session.create_consumer(Queue("both.orders")) as first:
            rejected = first.receive(PATIENCE)
            assert rejected is not None
            rejected.reject()
        wait_until(lambda: expired(message.expiration))
        consumer = session.create_consumer(Queue("both.>,ActiveMQ.DLQ"))
        assert consumer.receive_body(str, timeout=PATIENCE) == "old"


def test_a_map_that_the_broker_converts_keeps_every_text(url: str) -> None:
    """S172: the broker writes these in the modified UTF-8 of Java. The client refused the map, as a dead letter."""
    texts = {"emoji": "a\U0001f600b", "nul": "a\0b", "umlaut": "Gr\u00fc\u00dfe"}
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        session.create_producer(Queue("maps")).send(texts)
        assert session.create_consumer(Queue("maps")).receive_body(dict, timeout=PATIENCE) == texts
