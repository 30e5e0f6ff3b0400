"""Takes messages from the broker: sources, and the lanes that consume from them.

A lane is a consumer without prefetch, which asks the broker for one message at a time. So a worker never holds more
messages than its prefetch count allows. The window of the channel says whether a lane may ask. A source that has
messages gets more lanes, so that a worker can ask for several messages at the same time.

Everything here runs on the loop of the connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from pyjmsack import JMSException, Message
from pyjmsack.aio import MessageConsumer
from pyjmsack.kombu.envelope import ROUTING_KEY
from pyjmsack.kombu.names import ExchangeKind, Pattern, checked_name, key_of
from pyjmsack.kombu.refused import OF_THE_MESSAGE, reason
from pyjmsack.kombu.window import Window
from pyjmsack.loggers import get_logger

__all__ = ["LANES", "Binding", "Delivery", "Feed", "Lane", "Source", "settle"]

log = get_logger("pyjmsack.kombu")
LANES: Final = 8
"""The largest number of lanes that one worker has on a busy queue."""
_MOST_RETURNED: Final = 1_000
"""The largest number of returned messages that a lane remembers."""
Opener = Callable[[int], Awaitable[MessageConsumer]]


class Lane:
    """A consumer without prefetch, which asks the broker for one message at a time.

    Args:
        source: where the messages come from.
        consumer: the consumer of pyjmsack.
    """

    __slots__ = ("consumer", "returned", "source")

    def __init__(self, source: Source, consumer: MessageConsumer) -> None:
        self.source = source
        self.consumer = consumer
        self.returned: Counter[str | None] = Counter()
        """The ids of the messages that went back to the broker, and how often. Over AMQP Classic delivers such a
        message to the same consumer only, as long as this consumer is open, and before other messages. So this lane
        must ask, whatever the other lanes have asked for."""

    @property
    def asked(self) -> int:
        """The number of messages that count as asked for when this lane wants to ask; see :class:`.Asker`."""
        return 0 if self.returned else self.source.asked

    def received(self, message: Message) -> None:
        """Remember that a message came. If the lane did not return this message, the broker has none of the returned
        messages any more, because they expired or somebody removed them."""
        name = message.message_id
        if self.returned[name] > 1:
            self.returned[name] -= 1
        elif name in self.returned:
            del self.returned[name]
        else:
            self.returned.clear()


class Delivery:
    """A message that was received and has no outcome yet. kombu may already have the message.

    Args:
        queue: the queue of kombu.
        message: the message of JMS.
        window: the window in which the message takes a place.
        feed: the consumer of kombu that gets the message. ``None`` means that a program asked for this one message.
        lane: the lane that gets the message again if it goes back to the broker. ``None`` means that any lane may.
    """

    __slots__ = ("_ended", "doubted", "feed", "forget", "given", "lane", "message", "queue", "window")

    def __init__(
        self, queue: str, message: Message, window: Window, feed: Feed | None = None, lane: Lane | None = None
    ) -> None:
        self.queue = queue
        self.message = message
        self.window = window
        self.feed = feed
        self.lane = lane
        self.given = False
        """Whether kombu has the message, or has given it an outcome."""
        self.doubted = False
        """Whether two readings of the message failed by different errors."""
        self.forget: Callable[[], object] = int
        """Called when the message has its outcome."""
        self._ended = False

    def end(self, outcome: str) -> None:
        """Give the message its outcome, ``accept``, ``reject`` or ``release``, and its place to another message. Only
        the first call has an effect, because callers repeat a call that a signal handler has cut.

        Raises:
            JMSException: the outcome could not be sent, so the broker delivers the message again.
        """
        if self._ended:
            return
        self._ended = True
        self.forget()
        self.window.held -= 1
        lane = self.lane
        if lane is not None and outcome == "release" and len(lane.returned) < _MOST_RETURNED:
            lane.returned[self.message.message_id] += 1
        self.window.wake()
        getattr(self.message, outcome)()


class Sink(Protocol):
    """Gets the messages of the lanes."""

    def arrived(self, delivery: Delivery) -> None:
        """Take a message that a lane received."""
        ...

    def failed(self, error: BaseException) -> None:
        """Remember that a lane, a consumer without prefetch, ended with an error. The connection is useless now."""
        ...


class Binding:
    """The binding of a queue: an exchange, with a routing key."""

    def __init__(self, kind: ExchangeKind, exchange: str, routing_key: str) -> None:
        self.kind = kind
        self.exchange = exchange
        self.routing_key = routing_key
        self._pattern = Pattern(routing_key)

    @property
    def name(self) -> tuple[str, str]:
        """The exchange and the routing key."""
        return self.exchange, self.routing_key

    def matches(self, exchange: str, routing_key: str) -> bool:
        """Whether the binding covers a message with this exchange and this routing key."""
        if exchange != self.exchange:
            return False
        if self.kind is ExchangeKind.DIRECT:
            return routing_key == self.routing_key
        return self.kind is ExchangeKind.FANOUT or self._pattern.matches(routing_key)

    def key_of(self, message: Message) -> str:
        """Return the routing key of a message that came by this binding.

        Raises:
            InvalidDestinationException: the sender wrote a key that is too long to be one of kombu.
            MessageFormatException: the properties of the message cannot be decoded.
        """
        key = message.properties.get(ROUTING_KEY)
        if isinstance(key, str):
            return checked_name(key)
        return key_of(self.kind, self.exchange, message.destination.name if message.destination else "")


class Source:
    """One place from which the messages of a queue of kombu come.

    Args:
        open_consumer: opens a consumer with a prefetch.
        wanted: returns whether the queue takes a message from this source. The queue does not take a message that is
            for another queue, or that it gets from another source. ``None`` means that the queue takes every message.
        consumer: a consumer that stays open as long as the queue exists, because the subscription ends with it.
            ``None`` means that there is no such consumer.
        single: whether the source may have one consumer only.
    """

    def __init__(
        self,
        open_consumer: Opener,
        wanted: Callable[[Message], Awaitable[bool]] | None = None,
        consumer: MessageConsumer | None = None,
        *,
        single: bool,
    ) -> None:
        self.open_consumer = open_consumer
        self.wanted = wanted
        self.consumer = consumer
        self.lanes = 1 if single or consumer is not None else LANES
        self.asked = 0

    async def takes(self, message: Message) -> bool:
        """Return whether the queue takes a message from this source. If the queue does not take the message, settle it.

        Raises:
            JMSException: the connection was lost, or the broker refused to take the message over into the queue.
        """
        if self.wanted is None:
            return True
        try:
            wanted = await self.wanted(message)
        except OF_THE_MESSAGE as error:  # a bad message must not end the lane
            log.error("a message of an exchange becomes a dead letter: %s", reason(error))
            settle(message.reject)
            return False
        except asyncio.CancelledError:  # otherwise nobody would get the message before the connection ends
            settle(message.release)
            raise
        if not wanted:
            settle(message.accept)
        return wanted


class Feed:
    """Takes messages from the sources of a queue for one consumer of kombu. Each lane of the feed is a consumer of
    pyjmsack on one of these sources.

    Args:
        owner: the channel of kombu that has the consumer.
        tag: the consumer tag of kombu.
        queue: the queue of kombu.
        sources: the places that messages come from.
        window: the room for messages.
        sink: gets the messages.
        prefetch: the prefetch of each lane. It is 0, unless the window has no limit or the protocol has no credit.
        releases: whether a message goes back to the broker, for another worker, if the window has no room for it.
    """

    def __init__(
        self,
        owner: Any,
        tag: str,
        queue: str,
        sources: list[Source],
        window: Window,
        sink: Sink,
        *,
        prefetch: int,
        releases: bool,
    ) -> None:
        self.owner = owner
        self.tag = tag
        self.queue = queue
        self.window = window
        self._sources = sources
        self._sink = sink
        self._prefetch = prefetch
        self._releases = releases
        self._lanes: list[tuple[Source, asyncio.Task[None]]] = []
        self._own: list[MessageConsumer] = []
        self._closed = False

    async def open(self) -> None:
        """Open a lane on each source.

        Raises:
            JMSException: the broker refused a consumer.
        """
        try:
            for source in self._sources:
                consumer = source.consumer or await self._opened(source)
                self._start(source, consumer)
        except BaseException:
            await self.close()
            raise

    async def _opened(self, source: Source) -> MessageConsumer:
        consumer = await source.open_consumer(self._prefetch)
        self._own.append(consumer)
        return consumer

    def _start(self, source: Source, consumer: MessageConsumer) -> None:
        self._lanes.append((source, asyncio.get_running_loop().create_task(self._run(Lane(source, consumer)))))

    async def close(self) -> None:
        """End all lanes. Messages that kombu has got may still be settled after this."""
        self._closed = True
        while self._lanes:
            tasks = [task for _, task in self._lanes]
            self._lanes.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.window.wake()  # these lanes do not ask any more
        own = [*self._own]
        self._own.clear()
        await asyncio.gather(*map(self._end, own))

    @staticmethod
    async def _end(consumer: MessageConsumer) -> None:
        with suppress(JMSException):  # the consumer has ended, because the connection was lost
            await consumer.close()

    async def _run(self, lane: Lane) -> None:
        try:
            while not self._closed:
                message = await self._receive(lane)
                if message is None:  # somebody closed the consumer
                    return
                await self._pass_on(lane, message)
                self._widen(lane.source)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._sink.failed(error)

    async def _receive(self, lane: Lane) -> Message | None:
        window, source = self.window, lane.source
        await window.room(lane)
        window.asked += 1
        source.asked += 1
        try:
            message = await lane.consumer.receive()
        finally:
            window.asked -= 1
            source.asked -= 1
        if message is not None and lane.returned:
            lane.received(message)
        return message

    async def _pass_on(self, lane: Lane, message: Message) -> None:
        window = self.window
        if not await lane.source.takes(message):
            return
        try:
            # the window may be full, because the broker was asked for messages of several queues, and several came
            if window.limit and window.held >= window.limit:
                if self._releases:
                    settle(message.release)
                    return
                await window.room(None)
        except asyncio.CancelledError:  # otherwise nobody would get the message before the connection ends
            settle(message.release)
            raise
        window.held += 1
        window.arrived += 1
        self._sink.arrived(Delivery(self.queue, message, window, self, None if self._releases else lane))

    def _widen(self, source: Source) -> None:
        """Open one more lane on a source that has messages, unless the prefetch count allows no more lanes."""
        if self._prefetch > 0 or self._closed:
            return
        lanes = sum(1 for one, _ in self._lanes if one is source)
        if lanes < min(source.lanes, self.window.limit or source.lanes):
            self._lanes.append((source, asyncio.get_running_loop().create_task(self._lane(source))))

    async def _lane(self, source: Source) -> None:
        try:
            consumer = await self._opened(source)
        except JMSException as error:
            # the broker may limit the consumers of a queue; then the open lanes go on. If the connection is lost, the
            # open lanes notice the loss
            log.info("%s gets no more consumers: %s", self.queue, error)
            this = asyncio.current_task()
            self._lanes = [lane for lane in self._lanes if lane[1] is not this]
            source.lanes = max(1, sum(1 for one, _ in self._lanes if one is source))
            return
        await self._run(Lane(source, consumer))


def settle(outcome: Callable[[], Any]) -> None:
    """Give a message an outcome. If the connection is lost, do nothing, because the broker delivers the message
    again.
    """
    try:
        outcome()
    except JMSException:
        return
