"""Two ways to subscribe to a topic: a durable subscription keeps messages while its consumer is away, a shared one
divides
the work."""

from __future__ import annotations

import os
from queue import SimpleQueue

from pyjmsack import ConnectionFactory, JMSContext

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
TOPIC = "examples.news"


def durable(reader: JMSContext, writer: JMSContext) -> None:
    """Read, go away, come back."""
    topic = reader.create_topic(TOPIC)
    publish = writer.create_producer(topic).send
    with reader.create_durable_consumer(topic, "archive") as archive:
        publish("first edition")
        print("archive:", archive.receive_body(str, timeout=10))
    publish("second edition")  # no consumer is there
    with reader.create_durable_consumer(topic, "archive") as archive:
        print("archive:", archive.receive_body(str, timeout=10))
    reader.unsubscribe("archive")  # otherwise the broker would keep messages for it for ever


def shared(reader: JMSContext, writer: JMSContext) -> None:
    """Each message goes to one of the two."""
    topic = reader.create_topic(TOPIC)
    publish = writer.create_producer(topic).send
    with reader.create_shared_consumer(topic, "desk") as one, reader.create_shared_consumer(topic, "desk") as other:
        stories: SimpleQueue[str] = SimpleQueue()
        for consumer in (one, other):  # how many stories each of the two gets is the broker's decision
            consumer.set_message_listener(lambda message: stories.put(message.text))
        for number in range(6):
            publish(f"story {number}")
        taken = [stories.get(timeout=30) for _ in range(6)]
    print("desk:", ", ".join(sorted(taken)))


def main() -> None:
    reader = ConnectionFactory(URL, client_id="examples-reader")  # durable subscriptions belong to a client id
    with reader.create_context() as reading, ConnectionFactory(URL).create_context() as writing:
        durable(reading, writing)
        shared(reading, writing)


if __name__ == "__main__":
    main()
