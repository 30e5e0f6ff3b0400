"""What tests of services share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyjmsack import AckMode, ConnectionFactory, Message


class Collected:
    """What a listener got; a test waits until there is enough."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._more = threading.Condition()

    def add(self, item: Any) -> None:
        """One more."""
        with self._more:
            self.items.append(item)
            self._more.notify_all()

    def wait_for(self, count: int, timeout: float = 60) -> list[Any]:
        """Return what there is, once that is enough."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.items) >= count, timeout), self.items
            return [*self.items]


@pytest.fixture
def collected() -> Collected:
    """An empty collection."""
    return Collected()


Take = Callable[..., list[Message]]


@pytest.fixture
def take(broker_url: str) -> Iterator[Take]:
    """Takes messages from a queue with a plain session; waits for each."""
    with ConnectionFactory(broker_url).create_connection() as connection:
        connection.start()

        def taken(queue: str, count: int, timeout: float = 60) -> list[Message]:
            with connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session:
                consumer = session.create_consumer(session.create_queue(queue))
                found = [consumer.receive(timeout) for _ in range(count)]
                assert None not in found, found
                assert consumer.receive(0) is None, "more messages than expected"
                return [message for message in found if message is not None]

        yield taken
