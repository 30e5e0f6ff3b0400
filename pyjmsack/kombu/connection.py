"""One connection to a broker, as kombu sees it: channels, queues, and the messages that arrived for them."""

from __future__ import annotations

import asyncio
import socket
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

from kombu.transport.virtual.base import BrokerState

from pyjmsack import (
    AckMode,
    ConnectionLostException,
    Destination,
    JMSException,
    Message,
    ResourceAllocationException,
)
from pyjmsack.aio import Connection as JmsConnection
from pyjmsack.aio import ConnectionFactory, MessageProducer, Session
from pyjmsack.kombu.envelope import Outgoing
from pyjmsack.kombu.loop import LoopThread
from pyjmsack.kombu.queues import Queues
from pyjmsack.kombu.receiving import Delivery, Feed
from pyjmsack.kombu.settings import Settings
from pyjmsack.kombu.window import Window
from pyjmsack.loggers import get_logger

__all__ = ["Connection"]

log = get_logger("pyjmsack.kombu")
T = TypeVar("T")
_SIGNAL: Final = b"."
CLOSE_TIMEOUT: Final = 10.0
"""The number of seconds to wait for the close of a connection. After this time the loop of the connection is
stopped."""
REMEMBERED: Final = 1000
"""The largest number of requeued messages that a connection recognises when they are delivered again."""
WITHOUT_LIMIT: Final = 100
"""The prefetch of a consumer whose channel has no prefetch count."""


class Connection:
    """The connection that :meth:`Transport.establish_connection` returns.

    :class:`kombu.transport.virtual.Channel` uses :attr:`client`, :attr:`state`, :attr:`channels` and the attributes for
    channel numbers.

    Args:
        client: the :class:`kombu.Connection`.
        settings: how to connect.

    Raises:
        JMSException: the broker cannot be reached, or refuses the login.
    """

    channel_max = 65_535

    def __init__(self, client: Any, settings: Settings) -> None:
        self.client = client
        self.settings = settings
        self.state = BrokerState()
        self.channels: list[Any] = []
        self._used_channel_ids = array("H")
        self.error: BaseException | None = None
        """The error that ended the connection. ``None`` means that the connection works."""
        self._told = False
        """Whether a call has raised the error."""
        self._bereft = False
        """Whether a channel with consumers was closed, and the program may not know."""
        self.owes = False
        """Whether :meth:`drain` must say that the consumers of an earlier connection have ended."""
        self.closed = False
        self._ready: deque[Delivery] = deque()
        self._requeued: OrderedDict[int, None] = OrderedDict()
        """The hashes of the ids of requeued messages. The ids are not kept, because a sender may choose long ones."""
        self._signalled = False
        self._closing: set[asyncio.Task[None]] = set()
        """The tasks that close producers and consumers. Nobody may wait for them, and asyncio does not keep tasks."""
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._hubs: list[Any] = []
        self._loop = LoopThread()
        try:
            self._loop.call(self._open())
        except BaseException:
            self._end()
            raise

    async def _open(self) -> None:
        settings = self.settings
        factory = ConnectionFactory(
            settings.url,
            username=settings.username,
            password=settings.password,
            options=settings.options,
            ssl_context=settings.ssl_context,
        )
        self._jms: JmsConnection = await factory.create_connection()
        self._jms.exception_listener = self._reported
        self._jms.add_connection_listener(self)
        self._session: Session = await self._jms.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        self._producer: MessageProducer = await self._session.create_producer()
        self.queues = Queues(self._session, self._jms.metadata)
        await self._jms.start()

    # -- calls from any thread ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise an error if the connection is closed or lost.

        Raises:
            ConnectionLostException: the connection is closed or lost.
        """
        if self.error is not None:
            self._told = True
            raise ConnectionLostException(f"the connection to the broker is lost: {self.error}") from self.error
        if self.closed:
            raise ConnectionLostException("the connection to the broker is closed")

    @property
    def alive(self) -> bool:
        """Whether the connection can be used in this process."""
        return not self.closed and self.error is None and not self._loop.foreign

    @property
    def owes_error(self) -> bool:
        """Whether the connection is lost, and a program with consumers has not learned of it yet.

        Before kombu waits for messages, it replaces a connection that cannot be used. To connect would take time, and
        the new connection would have none of the consumers. Therefore kombu is told that a lost connection can be used,
        until a call has raised the error.
        """
        return self.error is not None and not self._told and not self.closed and self.consuming

    @property
    def consuming(self) -> bool:
        """Whether the connection has consumers in this process, or had them when it was lost."""
        return not self._loop.foreign and (self._bereft or any(channel.consumed for channel in [*self.channels]))

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the connection and wait for it.

        Raises:
            ConnectionLostException: the connection is closed or lost.
        """
        try:
            self.check()
        except BaseException:
            coroutine.close()
            raise
        return self._loop.call(coroutine)

    def post(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Run a call on the loop of the connection soon, and do not wait for it.

        Raises:
            ConnectionLostException: the connection is closed or lost.
        """
        self.check()
        self._loop.post(call, *arguments)

    def send(self, destination: Destination, outgoing: Outgoing, how: dict[str, Any]) -> None:
        """Send a message, and return when the broker has it. With ``jms.forceAsyncSend`` the call does not wait.

        Args:
            destination: where the message goes.
            outgoing: the message.
            how: arguments of the producer: delivery mode, priority, time to live, delay.

        Raises:
            ConnectionLostException: the connection was lost before the broker answered.
            JMSException: the broker refused the message.
        """
        self.call(self._send(destination, outgoing, how))

    async def _send(self, destination: Destination, outgoing: Outgoing, how: dict[str, Any]) -> None:
        body, session = outgoing.body, self._session
        message: Message
        message = session.create_text_message(body) if isinstance(body, str) else session.create_bytes_message(body)
        message.correlation_id = outgoing.correlation_id
        message.reply_to = outgoing.reply_to
        for name, value in outgoing.properties.items():
            message.properties[name] = value
        producer = self._producer
        try:
            await producer.send(message, destination, **how)
        except ResourceAllocationException:
            await self._replace(producer)
            raise

    async def _replace(self, producer: MessageProducer) -> None:
        """Send with a new producer from now on.

        This is needed if Artemis refused a message of the old producer because a queue is full. Until this queue has
        room, Artemis gives the old producer no credit, not even for other queues.
        """
        if self._producer is producer:
            new = await self._session.create_producer()
            if self._producer is producer:
                self._producer, unused = new, producer
            else:  # another thread, whose message was refused too, has replaced the producer meanwhile
                unused = new
            closing = asyncio.get_running_loop().create_task(self._close(unused))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    @staticmethod
    async def _close(producer: MessageProducer) -> None:
        with suppress(JMSException):  # the connection was lost
            await producer.close()

    def consume(self, owner: Any, tag: str, queue: str, window: Window, keep: Callable[[Feed], None]) -> None:
        """Open a consumer of kombu on a queue.

        Args:
            owner: the channel.
            tag: the name of the consumer.
            queue: the queue.
            window: the room for messages.
            keep: called with the open consumer, on the loop. So the owner can end it, also if a signal handler has cut
                this call.

        Raises:
            JMSException: the broker refused the consumer.
        """
        self.call(self._consume(owner, tag, queue, window, keep))

    async def _consume(self, owner: Any, tag: str, queue: str, window: Window, keep: Callable[[Feed], None]) -> None:
        by_credit = self._jms.metadata.protocol.startswith("AMQP")
        prefetch = 0 if window.limit and by_credit else window.limit or WITHOUT_LIMIT
        releases = by_credit and self.queues.is_artemis
        sources = self.queues.sources(queue)
        feed = Feed(owner, tag, queue, sources, window, self, prefetch=prefetch, releases=releases)
        await feed.open()
        keep(feed)
        self.owes = False

    def cancel(self, feeds: list[Feed]) -> None:
        """End consumers of kombu. Messages that kombu has not got yet go back to the broker. A second call is fine."""
        self.call(self._cancel(feeds))

    def cancel_all(self, patience: float | None = None) -> None:
        """End the consumers of all channels at the same time, because each takes long if the broker stands still. The
        channels keep them, and end them once more.

        Args:
            patience: seconds to wait. The consumers end after this time, too. ``None`` means no limit.

        Raises:
            ConnectionLostException: the connection is lost.
            TimeoutError: the time is over.
        """
        if self.alive:
            feeds = [feed for channel in [*self.channels] for feed in channel.feeds]
            self._loop.call(self._cancel(feeds), patience)

    async def _cancel(self, feeds: list[Feed]) -> None:
        # tasks of their own, which go on if a signal handler cuts the wait for them
        endings = [asyncio.get_running_loop().create_task(self._ended(feed)) for feed in feeds]
        for ending in endings:
            self._closing.add(ending)
            ending.add_done_callback(self._closing.discard)
        await asyncio.gather(*map(asyncio.shield, endings))

    async def _ended(self, feed: Feed) -> None:
        await feed.close()
        for delivery in [one for one in [*self._ready] if one.feed is feed]:
            try:
                self._ready.remove(delivery)
            except ValueError:  # a thread that drains has taken it meanwhile
                continue
            self.give_back(delivery)

    def get(self, queue: str, window: Window, hand: list[Delivery]) -> None:
        """Put a message that the broker has in a queue now into ``hand``, if there is one.

        A signal handler may raise at any step. So a caller that cannot use what is in ``hand`` calls :meth:`abandon`,
        also if this call has raised an error.
        """

        def take(message: Message) -> None:
            window.take()
            hand.append(Delivery(queue, message, window))

        self.call(self.queues.get(queue, take))

    def abandon(self, hand: list[Delivery]) -> None:
        """Give messages back to the broker that kombu did not get. Do not wait for it."""
        with suppress(ConnectionLostException):  # the broker has them already
            self.post(self._abandon, hand)

    def _abandon(self, hand: list[Delivery]) -> None:
        for delivery in hand:
            if not delivery.given:
                self._settle(delivery, "release")

    def settle(self, delivery: Delivery, outcome: str) -> None:
        """Give a message its outcome: ``accept``, ``reject`` or ``release``. Only the first outcome has an effect.

        The call returns when the outcome is written to the socket. Otherwise a task that was acknowledged before it ran
        could run again if its worker is killed. If a signal handler cuts the wait, the message gets its outcome anyway.

        Raises:
            ConnectionLostException: the connection is closed or lost, and the broker delivers the message again.
        """
        self.post(self._settle, delivery, outcome)
        self.call(asyncio.sleep(0))  # the connection writes at the end of the turn of the loop that makes the call

    def requeue(self, delivery: Delivery) -> None:
        """Give a message back to the broker, because its consumer wants it requeued, and remember the message.

        The connection remembers the message, because the broker does not count such a delivery and does not mark the
        next delivery as a redelivery.

        Raises:
            ConnectionLostException: the connection is closed or lost, and the broker delivers the message again.
        """
        name = delivery.message.message_id
        if name is not None:
            self._requeued[hash(name)] = None
            if len(self._requeued) > REMEMBERED:
                self._requeued.popitem(last=False)
        self.settle(delivery, "release")

    def came_before(self, message: Message) -> bool:
        """Return whether a message was delivered before: the broker marked it as redelivered, or this connection
        requeued it.
        """
        return bool(message.redelivered) or hash(message.message_id) in self._requeued

    def _settle(self, delivery: Delivery, outcome: str) -> None:
        try:
            delivery.end(outcome)
        except JMSException as error:
            log.warning(
                "a message of %s is delivered again, because its outcome %s could not be sent: %s",
                delivery.queue,
                outcome,
                error,
            )

    def give_back(self, delivery: Delivery) -> None:
        """Give a message back to the broker, because kombu did not take it. Only the loop calls this."""
        delivery.window.arrived -= 1
        self._settle(delivery, "release")

    # -- messages that arrived ----------------------------------------------------------------------------------

    def arrived(self, delivery: Delivery) -> None:
        """Keep a message that a lane received, until kombu takes it. Only the loop calls this."""
        self._ready.append(delivery)
        self._signal()

    def failed(self, error: BaseException) -> None:
        """Remember an error that ended the connection. Only the loop calls this."""
        if self.error is None and not self.closed:
            self.error = error
            self._ready.clear()  # the broker delivers these messages again
            self._signal()

    def on_connection_failure(self, error: JMSException) -> None:
        """Remember that the connection is lost. This is the connection listener that pyjmsack calls."""
        self.failed(error)

    def _reported(self, error: JMSException) -> None:
        log.warning("the broker reports an error that no caller waits for: %s", error)

    def _signal(self) -> None:
        """Make the descriptor of :meth:`fileno` readable, once per burst of messages."""
        if not self._signalled:
            self._signalled = True
            with suppress(OSError):  # closed meanwhile
                self._writer.send(_SIGNAL)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when messages arrive or the connection is lost."""
        return self._reader.fileno()

    def deliver(self) -> bool:
        """Give the next message that has arrived to the kombu consumer that it is for. Return False if there is none.

        If an error ends the call before the consumer has the message, the message is the next one again. A signal
        handler may raise such an error at any step.
        """
        hand: list[Delivery] = []
        try:
            with suppress(IndexError):  # there is none
                # one step, after which a signal handler finds the message in the hand
                hand.extend(map(deque.popleft, (self._ready,)))
            for delivery in hand:
                self._give(delivery)
        except BaseException:
            for delivery in hand:
                if not delivery.given:
                    self._ready.appendleft(delivery)
                    self._signal()
            raise
        return bool(hand)

    def _give(self, delivery: Delivery) -> None:
        assert delivery.feed is not None  # only messages for consumers are kept
        window = delivery.window
        try:
            if not delivery.feed.owner.deliver(delivery):  # its consumer or its channel has ended
                self.settle(delivery, "release")
            self.took(delivery)
        finally:
            if window.blocked:
                with suppress(ConnectionLostException):
                    self.post(window.wake)

    @staticmethod
    def took(delivery: Delivery) -> None:
        """Note that kombu has a message, or has given it an outcome. A second call has no effect.

        This is short, because a signal handler that raises between this call and the callback of the consumer leaves a
        message unacknowledged that the program does not have.
        """
        if not delivery.given:
            delivery.window.taken += 1
            delivery.given = True

    @property
    def has_more(self) -> bool:
        """Whether messages have arrived that kombu has not taken yet."""
        return bool(self._ready)

    def drain(self, timeout: float | None) -> None:
        """Wait for the next message and give it to its consumer.

        Args:
            timeout: seconds; ``None`` waits for ever.

        Raises:
            socket.timeout: no message came in time.
            ConnectionLostException: the connection is lost; or it is in the place of a lost one, and the program has
                opened no consumer since. Otherwise the program would wait for ever.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            self._unless_closed(self.clear_signal)
            self.check()
            if self.owes:
                self.owes = False
                raise ConnectionLostException(
                    "the connection to the broker was lost, and the consumers with it: open them again"
                )
            if self.deliver():
                return
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("timed out")
            self._unless_closed(self._wait, left)

    def _wait(self, timeout: float | None) -> None:
        self._reader.settimeout(timeout)
        self._reader.recv(1, socket.MSG_PEEK)

    def _unless_closed(self, call: Callable[..., None], *arguments: Any) -> None:
        """Use the socket. If another thread has closed it with the connection, say so."""
        try:
            call(*arguments)
        except OSError:
            self.check()
            raise

    def clear_signal(self) -> None:
        """Make the descriptor of :meth:`fileno` unreadable until the next message arrives. Call :meth:`deliver`
        after this, because the descriptor does not become readable for messages that are there already.
        """
        self._reader.settimeout(0)
        try:
            self._reader.recv(4096)
        except BlockingIOError:
            pass
        finally:
            # also if a signal handler has just raised, or has done so before: the loop would write no byte any more.
            # Not before the bytes are read, because a byte that is written in between would be lost
            self._signalled = False

    def consumers(self, queue: str) -> int:
        """Return how many consumers the channels of this connection have on a queue."""
        return sum(channel.consumed.count(queue) for channel in [*self.channels])

    # -- the end ------------------------------------------------------------------------------------------------

    def register(self, hub: Any, callback: Callable[..., Any]) -> None:
        """Let a hub, which is an event loop of kombu, call ``callback`` when messages have arrived."""
        if hub not in self._hubs:
            self._hubs.append(hub)
        hub.add_reader(self.fileno(), callback, self, hub)

    def unregister(self, hub: Any) -> None:
        """Undo :meth:`register`: the hub makes no more calls for this connection."""
        if hub in self._hubs:
            self._hubs.remove(hub)
            # a hub that was reset does not know the descriptor any more, and raises errors of many kinds
            with suppress(Exception):
                hub.remove_reader(self.fileno())

    def close(self) -> None:
        """Close the connection, after all acknowledgements were sent. The broker delivers unacknowledged messages
        again.
        """
        if self.closed:
            return
        self.closed = True
        for hub in [*self._hubs]:
            self.unregister(hub)
        try:
            if not self._loop.foreign:
                with suppress(JMSException, TimeoutError, OSError):
                    self._loop.call(self._jms.close(), CLOSE_TIMEOUT)
        finally:  # also if a signal handler has raised, because a second call has no effect
            self._end()

    def forget(self) -> None:
        """Close the connection. In a child made by ``fork`` close nothing, because the connection belongs to the
        parent.
        """
        if not self._loop.foreign:
            self.close()
            return
        self.closed = True
        self._end()

    def replaced(self) -> None:
        """Close a lost connection that kombu has replaced, so that its thread ends, and take it away from its channels.
        kombu gives a new channel to a producer or consumer whose channel has no connection. Before there is a new
        connection, kombu would not find its way from the channel to the :class:`kombu.Connection`.

        If an event loop of kombu waits for the messages of the connection, do nothing, because it must learn of the
        loss first.
        """
        if self._hubs:
            return
        for channel in [*self.channels]:
            channel.connection = None
        self.forget()

    def _end(self, patience: float = 5.0) -> None:
        with suppress(ConnectionLostException):  # the loop has ended already
            self._loop.stop(patience)
        self._reader.close()
        self._writer.close()
        self._ready.clear()

    def __del__(self) -> None:
        """End the thread and close the sockets of a lost connection, which kombu drops without closing it."""
        if not self.closed and hasattr(self, "_loop"):
            self.closed = True
            self._end(patience=0.0)

    def ends_consumers(self, channel: Any) -> None:
        """Remember that a channel with consumers is closed, if the program may not know: the connection is lost, or
        kombu closes it because it has several brokers, and tries the next one.
        """
        if channel.consumed and (self.error is not None or self.client.cycle is not None):
            self._bereft = True

    def close_channel(self, channel: Any) -> None:
        """Forget a channel that has closed itself."""
        self.ends_consumers(channel)
        with suppress(ValueError):
            self._used_channel_ids.remove(channel.channel_id)
        with suppress(ValueError):
            self.channels.remove(channel)
