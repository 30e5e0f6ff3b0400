"""Taking everything off a queue."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

from pyjmsack import Message, Queue, Session

__all__ = ["take_everything"]

PATIENCE = 60.0


def take_everything(session: Session, queue: Queue) -> Iterator[Message]:
    """Yield each message of a queue, up to a message of our own that is sent behind all others.

    A broker that answers "nothing there" may only be slow, so an answer of this kind is no end.
    """
    end = f"end {uuid4()}"
    with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
        producer.send(end, priority=0)
        while True:
            message = consumer.receive(PATIENCE)
            assert message is not None, f"{queue} did not give back what was just sent there"
            if message.body == end:
                return
            yield message
