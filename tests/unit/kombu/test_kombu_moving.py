"""How a queue takes over the messages of its bindings, from subscriptions that are scripted."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

from pyjmsack import (
    ConnectionLostException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    ResourceAllocationException,
    TextMessage,
    UnsupportedFeatureException,
)
from pyjmsack import Queue as Target
from pyjmsack.kombu.copies import Copies
from pyjmsack.kombu.names import ExchangeKind
from pyjmsack.kombu.queues import Queues
from pyjmsack.kombu.receiving import Binding, Source

OF_THE_MESSAGE = [InvalidDestinationException, MessageFormatException, UnsupportedFeatureException]
COVERED: tuple[tuple[str, str], list[tuple[str, str]]] = (("events", "*.b"), [("events", "a.*")])
"""The second binding that covers a message, and the other ones."""
LOST = ConnectionLostException("the connection was lost")


class Broker:
    """A session of Artemis with one subscription and one JMS queue."""

    def __init__(self, *texts: str) -> None:
        self.waiting = deque(Waiting(self, text) for text in texts)
        self.errors: dict[str, JMSException] = {}
        """The errors of the next send of each text."""
        self.moved: list[str] = []
        self.letters: list[str] = []
        self.subscribed = False

    async def create_shared_durable_consumer(self, *ignored: object) -> Any:
        self.subscribed = True
        return self

    async def receive(self, timeout: float) -> Any:
        return self.waiting.popleft() if self.waiting else None

    async def close(self) -> None:
        pass

    async def unsubscribe(self, name: str) -> None:
        self.subscribed = False

    def create_producer(self, queue: Target) -> Any:
        return self

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *ignored: object) -> None:
        pass

    async def send(self, message: Any, **ignored: object) -> None:
        if (error := self.errors.pop(message.text, None)) is not None:
            raise error
        self.moved.append(message.text)


class Waiting(TextMessage):
    """A message in the subscription."""

    def __init__(self, broker: Broker, text: str) -> None:
        super().__init__(text)
        self._broker = broker
        self.properties["kombu_routing_key"] = "a.b"
        self._delivery: Any = SimpleNamespace(identity=lambda: text.encode())

    def accept(self) -> None:
        pass

    def reject(self) -> None:
        self._broker.letters.append(str(self.text))

    def release(self) -> None:
        self._broker.waiting.appendleft(self)


def bound(broker: Any) -> tuple[Queues, Binding]:
    """Return the queues of a connection, in which ``tasks`` is durable and has a binding."""
    queues = Queues(broker, SimpleNamespace(broker="artemis", protocol="AMQP 1.0"))
    binding = Binding(ExchangeKind.TOPIC, "events", "a.*")
    asyncio.run(queues.bind("tasks", binding))
    return queues, binding


@pytest.mark.parametrize("kind", OF_THE_MESSAGE)
def test_a_message_that_cannot_be_sent_on_becomes_a_dead_letter_when_its_binding_ends(kind: type[JMSException]) -> None:
    """The unbinding failed. The binding was forgotten, and the messages stayed in a subscription without a consumer."""
    broker = Broker("one", "bad", "two")
    broker.errors["bad"] = kind("refused")
    queues, binding = bound(broker)
    asyncio.run(queues.unbind("tasks", binding.name))
    assert (broker.moved, broker.letters, broker.subscribed) == (["one", "two"], ["bad"], False)
    assert queues.durable_queues("events", "a.b") == []


def test_an_unbinding_that_failed_can_be_tried_again_and_loses_no_message() -> None:
    broker = Broker("one", "two", "three")
    broker.errors["two"] = ResourceAllocationException("the queue is full")
    queues, binding = bound(broker)
    with pytest.raises(ResourceAllocationException):
        asyncio.run(queues.unbind("tasks", binding.name))
    assert queues.durable_queues("events", "a.b") == ["tasks"]
    assert broker.subscribed
    asyncio.run(queues.unbind("tasks", binding.name))
    assert (broker.moved, broker.letters, broker.subscribed) == (["one", "two", "three"], [], False)


@pytest.mark.parametrize("kind", [InvalidDestinationException, UnsupportedFeatureException])
def test_a_queue_that_the_broker_does_not_have_makes_no_message_a_dead_letter(kind: type[JMSException]) -> None:
    """The whole subscription became dead letters, and a broker without an address for them drops them."""
    broker = Broker("one", "two")
    broker.errors["one"] = kind("no such queue", error_code="amqp:not-found")
    queues, binding = bound(broker)
    with pytest.raises(JMSException, match="cannot be passed on: no such queue"):
        asyncio.run(queues.unbind("tasks", binding.name))
    assert (broker.moved, broker.letters, broker.subscribed) == ([], [], True)
    assert [each.text for each in broker.waiting] == ["one", "two"]


@pytest.mark.parametrize("kind", [*OF_THE_MESSAGE, ResourceAllocationException])
def test_a_copy_that_the_queue_cannot_take_over_goes_to_the_consumer(kind: type[JMSException]) -> None:
    """The error ended the connection of the worker, at each reconnect again."""
    broker: Any = Broker()
    broker.errors["bad"] = kind("refused")
    copies = Copies(broker, Target("tasks"), durable=True)
    assert asyncio.run(copies.takes(Waiting(broker, "bad"), *COVERED))
    assert not asyncio.run(copies.takes(Waiting(broker, "good"), *COVERED))
    assert broker.moved == ["good"]


@pytest.mark.parametrize("kind", OF_THE_MESSAGE)
def test_a_message_that_its_source_cannot_look_at_becomes_a_dead_letter(kind: type[JMSException]) -> None:
    async def wanted(message: Any) -> bool:
        raise kind("refused")

    broker = Broker()
    source = Source(lambda _: pytest.fail("nobody consumes"), wanted, single=False)
    assert not asyncio.run(source.takes(Waiting(broker, "bad")))
    assert broker.letters == ["bad"]


def test_an_error_of_the_connection_reaches_the_lane() -> None:
    broker: Any = Broker()
    broker.errors["good"] = LOST
    copies = Copies(broker, Target("tasks"), durable=True)
    source = Source(
        lambda _: pytest.fail("nobody consumes"), lambda message: copies.takes(message, *COVERED), single=False
    )
    with pytest.raises(ConnectionLostException):
        asyncio.run(source.takes(Waiting(broker, "good")))
    assert broker.letters == []


def test_the_copy_of_the_second_binding_waits_for_that_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Artemis keeps both of two copies that two workers send at the same moment, so the task ran twice."""
    monkeypatch.setattr("pyjmsack.kombu.copies._APART", 60.0)
    monkeypatch.setattr("pyjmsack.kombu.copies._LATEST", 60.0)

    async def main() -> None:
        broker: Any = Broker()
        copies = Copies(broker, Target("tasks"), durable=True)
        later = asyncio.create_task(copies.takes(Waiting(broker, "one"), ("events", "b"), [("events", "a")]))
        await asyncio.sleep(0)
        assert broker.moved == []
        assert not await copies.takes(Waiting(broker, "one"), ("events", "a"), [("events", "b")])
        assert broker.moved == ["one"]
        assert not later.done()
        later.cancel()
        # the broker has confirmed the message, so no other copy waits or is sent
        assert not await copies.takes(Waiting(broker, "one"), ("events", "b"), [("events", "a")])
        assert broker.moved == ["one"]

    asyncio.run(main())


def test_a_copy_that_waited_is_sent_unless_the_broker_has_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first binding may be younger than the message. Then the second binding brings the only copy."""
    monkeypatch.setattr("pyjmsack.kombu.copies._APART", 0.0)

    async def main() -> None:
        broker: Any = Broker()
        broker.errors["lost"] = LOST
        copies = Copies(broker, Target("tasks"), durable=True)
        found = await asyncio.gather(
            copies.takes(Waiting(broker, "one"), *COVERED),
            copies.takes(Waiting(broker, "one"), ("events", "a.*"), [COVERED[0]]),
            copies.takes(Waiting(broker, "two"), *COVERED),
            copies.takes(Waiting(broker, "lost"), *COVERED),
            return_exceptions=True,
        )
        assert found == [False, False, False, LOST]
        assert broker.moved.count("two") == 1
        assert not await copies.takes(Waiting(broker, "lost"), *COVERED)
        assert broker.moved[-1] == "lost"

    asyncio.run(main())


def test_a_copy_does_not_wait_longer_the_more_bindings_cover_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("pyjmsack.kombu.copies.asyncio", SimpleNamespace(sleep=sleep))
    broker: Any = Broker()
    copies = Copies(broker, Target("tasks"), durable=True)
    for count in (0, 1, 2, 10_000):
        others = [("events", str(number)) for number in range(count)]
        asyncio.run(copies.takes(Waiting(broker, str(count)), ("events", "z"), others))
    assert waits == [0, 0.025, 0.05, 0.1]
