"""The lanes of a consumer of kombu, on consumers that are scripted."""

from __future__ import annotations

import asyncio
from typing import Any

from pyjmsack import JMSException, ResourceAllocationException, TextMessage
from pyjmsack.kombu.receiving import Feed, Source
from pyjmsack.kombu.window import Window

ALLOWED = 2


class Queue:
    """A queue of a broker that allows two consumers."""

    def __init__(self, count: int) -> None:
        self.messages: asyncio.Queue[TextMessage] = asyncio.Queue()
        for number in range(count):
            self.messages.put_nowait(TextMessage(str(number)))
        self.consumers = self.refused = 0

    async def open(self, prefetch: int) -> Any:
        if self.consumers == ALLOWED:
            self.refused += 1
            raise ResourceAllocationException("maximum consumer count")
        self.consumers += 1
        return self

    async def receive(self) -> TextMessage:
        return await self.messages.get()

    async def close(self) -> None:
        self.consumers -= 1


class Sink:
    """What takes the messages."""

    def __init__(self, count: int) -> None:
        self.bodies: list[str | None] = []
        self.errors: list[BaseException] = []
        self.over = asyncio.Event()
        self._count = count

    def arrived(self, delivery: Any) -> None:
        self.bodies.append(delivery.message.text)
        if len(self.bodies) == self._count:
            self.over.set()

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)
        self.over.set()


async def consumed(count: int) -> tuple[Queue, Sink, Source]:
    queue, sink = Queue(count), Sink(count)
    source = Source(queue.open, single=False)
    feed = Feed(None, "tag", "tasks", [source], Window(100), sink, prefetch=0, releases=True)
    await feed.open()
    await asyncio.wait_for(sink.over.wait(), 60)
    await feed.close()
    return queue, sink, source


def test_a_broker_that_allows_few_consumers_of_a_queue_does_not_end_the_connection() -> None:
    """Each time a worker was busy, it lost its connection, and all its tasks were delivered again."""
    queue, sink, source = asyncio.run(consumed(50))
    assert sink.errors == []
    assert sorted(map(int, map(str, sink.bodies))) == [*range(50)]
    assert queue.refused > 0
    assert (source.lanes, queue.consumers) == (ALLOWED, 0)


def test_a_lane_that_loses_its_consumer_ends_the_connection() -> None:
    class Lost(Queue):
        async def receive(self) -> TextMessage:
            raise JMSException("gone")

    async def run() -> Sink:
        sink = Sink(1)
        feed = Feed(
            None, "tag", "tasks", [Source(Lost(0).open, single=False)], Window(1), sink, prefetch=0, releases=True
        )
        await feed.open()
        await asyncio.wait_for(sink.over.wait(), 60)
        await feed.close()
        return sink

    assert [str(error) for error in asyncio.run(run()).errors] == ["gone"]


def test_a_lane_that_is_cancelled_while_it_looks_at_a_message_gives_the_message_back() -> None:
    """The message stayed with a consumer that was closed, and nobody got it before the connection ended."""

    class Given(TextMessage):
        def release(self) -> None:
            outcomes.append("released")

    outcomes: list[str] = []

    async def run() -> None:
        looking, never = asyncio.Event(), asyncio.Event()

        async def wanted(message: Any) -> bool:
            looking.set()
            return await never.wait()

        queue = Queue(0)
        queue.messages.put_nowait(Given("one"))
        feed = Feed(
            None,
            "tag",
            "tasks",
            [Source(queue.open, wanted, single=False)],
            Window(1),
            Sink(1),
            prefetch=0,
            releases=True,
        )
        await feed.open()
        await asyncio.wait_for(looking.wait(), 60)
        await feed.close()

    asyncio.run(run())
    assert outcomes == ["released"]
