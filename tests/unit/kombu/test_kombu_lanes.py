"""The lanes of a consumer of kombu, on consumers that are scripted."""

from __future__ import annotations

import asyncio
from typing import Any

from pyjmsack import JMSException, ResourceAllocationException, TextMessage
from pyjmsack.kombu.receiving import Feed, Lane, Source
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


def test_the_lanes_of_a_consumer_end_at_the_same_time() -> None:
    """At a broker that stands still each took ten seconds, one after another: eight lanes more than a minute."""

    class Slow(Queue):
        async def close(self) -> None:
            await super().close()
            closing.append(self.consumers)
            if len(closing) == ALLOWED:
                all_began.set()
            await all_began.wait()

    closing: list[int] = []
    all_began = asyncio.Event()

    async def run() -> None:
        queue = Slow(0)
        sources = [Source(queue.open, single=True) for _ in range(ALLOWED)]
        feed = Feed(None, "tag", "tasks", sources, Window(1), Sink(1), prefetch=0, releases=True)
        await feed.open()
        await asyncio.wait_for(feed.close(), 60)

    asyncio.run(run())
    assert closing == [1, 0]


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


class Given(TextMessage):
    """A message that goes back to the consumer that received it."""

    link: Link

    def accept(self) -> None:
        pass

    def release(self) -> None:
        self.link.messages.put_nowait(self)


class Classic(Queue):
    """A queue that delivers a message that was given back to the same consumer only."""

    async def open(self, prefetch: int) -> Any:
        return Link(self)

    def put(self, text: str) -> None:
        self.messages.put_nowait(Given(text))


class Link(Queue):
    def __init__(self, queue: Queue) -> None:
        super().__init__(0)
        self._queue = queue

    async def receive(self) -> TextMessage:
        if not self.messages.empty():
            return self.messages.get_nowait()
        message = await self._queue.messages.get()
        assert isinstance(message, Given)
        message.link = self
        return message

    async def close(self) -> None:
        pass


class Taking(Sink):
    """Waits for each message, and gives it an outcome."""

    def __init__(self) -> None:
        super().__init__(0)
        self.deliveries: asyncio.Queue[Any] = asyncio.Queue()

    def arrived(self, delivery: Any) -> None:
        self.deliveries.put_nowait(delivery)

    async def take(self) -> Any:
        return await asyncio.wait_for(self.deliveries.get(), 60)


async def turns() -> None:
    """The loop does all that waits for nothing from outside."""
    for _ in range(20):
        await asyncio.sleep(0)


async def two_idle_lanes(window: Window, sink: Taking) -> tuple[Classic, list[Feed]]:
    """All places of the window are asked for, by lanes of two queues to which nobody sends."""
    busy, idle = Classic(0), Classic(0)
    busy.put("first")
    feeds = [
        Feed(None, "tag", "tasks", [Source(queue.open, single=False)], window, sink, prefetch=0, releases=False)
        for queue in (busy, idle)
    ]
    await feeds[0].open()
    (await sink.take()).end("accept")
    await turns()
    await feeds[1].open()
    await turns()
    assert window.asked == 3
    return busy, feeds


def test_a_message_in_the_hand_of_a_lane_waits_for_a_place_and_not_for_what_other_lanes_asked_for() -> None:
    """On Classic, tasks of Celery waited until another message came, while the worker was idle."""

    async def run() -> str | None:
        window, sink = Window(2), Taking()
        queue, feeds = await two_idle_lanes(window, sink)
        window.take()
        window.take()
        queue.put("late")
        await turns()
        window.held -= 2
        window.wake()
        text = (await sink.take()).message.text
        for feed in feeds:
            await feed.close()
        return text

    assert asyncio.run(run()) == "late"


def test_a_lane_to_which_classic_delivers_a_requeued_message_asks_although_other_lanes_have_asked() -> None:
    """A task that was requeued waited in the broker until the worker ended."""

    async def run() -> list[int]:
        window, sink = Window(2), Taking()
        queue, feeds = await two_idle_lanes(window, sink)
        queue.put("again")
        delivery = await sink.take()
        await turns()  # the other lane of the queue asks first
        window.asked += 1  # as if a lane of a third queue had asked
        delivery.end("release")
        again = await sink.take()
        assert again.message is delivery.message
        again.end("release")
        await sink.take()
        for feed in feeds:
            await feed.close()
        return [len(lane.returned) for lane in (delivery.lane, again.lane)]

    assert asyncio.run(run()) == [0, 0]


def named(name: str) -> TextMessage:
    message = TextMessage(name)
    message._message_id = name
    return message


def test_a_lane_asks_first_until_each_message_that_it_returned_came_again_or_is_gone() -> None:
    """Messages that expired at the broker let the lane ask for ever, beyond the prefetch count of the worker."""
    source = Source(Queue(0).open, single=False)
    lane = Lane(source, Queue(0))  # type: ignore[arg-type]  # nobody receives
    source.asked = 3
    lane.returned.update(["a", "a", "b"])
    for name in ("a", "b"):
        lane.received(named(name))
        assert lane.asked == 0
    lane.received(named("a"))
    assert lane.asked == 3
    lane.returned.update(["c", "d"])
    lane.received(named("other"))  # Classic delivers returned messages before others
    assert lane.asked == 3
