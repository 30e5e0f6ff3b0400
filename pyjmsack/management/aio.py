"""The manager of the asyncio face."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from pyjmsack import JMSException, Message, Queue
from pyjmsack.aio import ConnectionFactory, Session
from pyjmsack.aio._runtime import OwnThreads
from pyjmsack.management._asking import TIMEOUT, Verbs, explained, understood, verbs_of
from pyjmsack.management.artemis import ADDRESS, answer_of, removal_message, request_message
from pyjmsack.management.classic import Classic
from pyjmsack.management.jolokia import Jolokia
from pyjmsack.management.model import (
    BrokerStatus,
    ConnectionStatus,
    ConsumerStatus,
    QueueStatus,
    Request,
    Steps,
)

__all__ = ["Manager"]

T = TypeVar("T")
_MOST_THREADS = 8
"""The largest number of threads with which a manager asks Jolokia and reads answers."""
Ask = Callable[[Request], Awaitable[Callable[[], Any]]]
"""Sends a request, and returns a function that reads the answer. The function may take long."""


class Manager:
    """Asks a broker about its queues and changes them.

    The manager asks ActiveMQ Artemis by messages to a special address, over AMQP or STOMP. The manager asks ActiveMQ
    Classic through Jolokia, the HTTP interface for management in the broker's web console. Every method raises
    :class:`pyjmsack.management.ManagementDeniedError` if the user may not manage the broker,
    :class:`pyjmsack.management.UnknownQueueError` if there is no such queue,
    :class:`pyjmsack.RequestTimedOutException` if no answer comes in time, and
    :class:`pyjmsack.UnsupportedFeatureException` if this broker cannot do what the method asks for.

    ``async with`` or :meth:`open` makes the connection. The manager has threads of its own, at most eight, which speak
    with Jolokia and read the answers, so that the loop is not blocked.

    Args:
        factory: makes the connection. It is not used if ``jolokia`` is given.
        jolokia: URL of Jolokia, for ActiveMQ Classic.
        timeout: seconds to wait for each answer.

    Raises:
        InvalidURLException: ``jolokia`` is not an HTTP URL.
    """

    def __init__(self, factory: ConnectionFactory, *, jolokia: str | None = None, timeout: float = TIMEOUT) -> None:
        self._factory, self._timeout = factory, timeout
        self._jolokia = None if jolokia is None else Jolokia(jolokia, timeout)
        self._opened = AsyncExitStack()
        self._verbs: Verbs = Classic()
        self._ask: Ask | None = None
        self._threads = OwnThreads("pyjmsack-management", _MOST_THREADS)

    async def open(self) -> Manager:
        """Connect to the broker. If the manager is connected already, do nothing.

        Raises:
            UnsupportedFeatureException: the broker is ActiveMQ Classic, and ``jolokia`` is missing.
            JMSException: the broker cannot be reached, or refuses the login.
        """
        if self._ask is None and self._jolokia is not None:
            self._ask = self._asks_jolokia(self._jolokia)
        if self._ask is None:
            async with AsyncExitStack() as opened:
                ask = await self._asks_by_messages(opened)
                if self._ask is None:  # otherwise another call was quicker, and this connection is closed
                    self._ask, self._opened = ask, opened.pop_all()
        return self

    @staticmethod
    def _asks_jolokia(jolokia: Jolokia) -> Ask:
        async def ask(request: Request) -> Callable[[], Any]:
            return partial(jolokia.ask, request)

        return ask

    async def _asks_by_messages(self, opened: AsyncExitStack) -> Ask:
        connection = await opened.enter_async_context(self._factory.create_connection())
        self._verbs = verbs_of(connection.metadata.broker)
        # this listener ignores the error of the connection, because the request under way raises the same error
        connection.exception_listener = lambda error: None
        await connection.start()
        try:
            session = await opened.enter_async_context(connection.create_session())
            asked: list[Message] = []
            opened.push_async_callback(self._remove_replies, session, asked)
            requestor = await opened.enter_async_context(session.create_requestor(Queue(ADDRESS)))
        except JMSException as error:
            raise explained(error) from error

        async def ask(request: Request) -> Callable[[], Any]:
            message = request_message(request)
            asked[:] = [message]
            try:
                reply = await requestor.request(message, self._timeout)
            except JMSException as error:
                raise explained(error) from error
            return partial(answer_of, request, reply)

        return ask

    @staticmethod
    async def _remove_replies(session: Session, asked: list[Message]) -> None:
        """Tell the broker to delete the queue of the replies if the broker would keep it. Do not wait for an answer."""
        removal = removal_message(asked[0]) if asked else None
        if removal is not None:
            with suppress(JMSException):
                producer = await session.create_producer(Queue(ADDRESS))
                producer.send_async(removal)

    async def _run(self, verb: Callable[[Verbs], Steps[T]]) -> T:
        await self.open()
        assert self._ask is not None
        steps = verb(self._verbs)
        request, value = _advanced(partial(next, steps))
        while request is not None:
            try:
                read = await self._ask(request)
            except JMSException as error:
                read = partial(_raised, error)
            request, value = await self._threads.run(partial(_next_step, steps, read))
        return value  # type: ignore[no-any-return]  # of the steps

    async def broker(self) -> BrokerStatus:
        """Return name, kind and version of the broker."""
        return await self._run(lambda verbs: verbs.broker())

    async def queues(self, pattern: str = "*") -> list[QueueStatus]:
        """Return the queues whose names fit a pattern, sorted by name.

        Args:
            pattern: a pattern as in a shell: ``*`` stands for any text, ``?`` for one character, and ``[ab]`` for a or
                b. Case matters.
        """
        return await self._run(lambda verbs: verbs.queues(pattern))

    async def queue(self, name: str) -> QueueStatus:
        """Return the state of one queue.

        Args:
            name: the name of the queue.

        Raises:
            UnknownQueueError: there is no such queue. Its ``nearest`` has names that look alike.
        """
        return await self._run(lambda verbs: verbs.queue(name))

    async def oldest(self, queue: str) -> float | None:
        """Return the age of the first message in the queue, in seconds.

        Return ``None`` if no message waits for a consumer, or if the first message has no time stamp.

        Args:
            queue: the name of the queue.

        Raises:
            UnknownQueueError: there is no such queue.
            UnsupportedFeatureException: the broker is ActiveMQ Classic, which does not tell the age.
        """
        return await self._run(lambda verbs: verbs.oldest(queue))

    async def consumers(self, queue: str | None = None) -> list[ConsumerStatus]:
        """Return the consumers of one queue, or of all queues.

        Args:
            queue: the name of the queue. ``None`` means all queues. If no queue has this name, the list is empty.
        """
        return await self._run(lambda verbs: verbs.consumers(queue))

    async def connections(self) -> list[ConnectionStatus]:
        """Return the connections of all clients."""
        return await self._run(lambda verbs: verbs.connections())

    async def count(self, queue: str, selector: str | None = None) -> int:
        """Return the number of messages in a queue.

        Args:
            queue: the name of the queue.
            selector: counts only messages that fulfil this condition; ``None`` counts all.

        Raises:
            UnknownQueueError: there is no such queue.
            InvalidSelectorException: the broker cannot read the selector.
            UnsupportedFeatureException: a selector is given, and the broker is ActiveMQ Classic.
        """
        return await self._run(lambda verbs: verbs.count(queue, selector))

    async def purge(self, queue: str, selector: str | None = None) -> int:
        """Destroy messages of a queue, for ever. Messages that consumers hold stay.

        Args:
            queue: the name of the queue.
            selector: destroys only messages that fulfil this condition; ``None`` destroys all.

        Returns:
            The number of messages that were destroyed.

        Raises:
            UnknownQueueError: there is no such queue.
            InvalidSelectorException: the broker cannot read the selector.
        """
        return await self._run(lambda verbs: verbs.purge(queue, selector))

    async def move(self, source: str, target: str, selector: str | None = None, *, limit: int | None = None) -> int:
        """Let the broker move messages to another queue.

        The broker moves each message in a transaction of its own. Therefore a crash loses and doubles no message.

        Args:
            source: the name of the queue to take messages from.
            target: the name of the queue that gets the messages. The queue must exist.
            selector: moves only messages that fulfil this condition; ``None`` moves all.
            limit: the largest number of messages to move. ``None`` means no limit.

        Returns:
            The number of messages that were moved.

        Raises:
            UnknownQueueError: one of the queues does not exist.
            InvalidSelectorException: the broker cannot read the selector.
        """
        return await self._run(lambda verbs: verbs.move(source, target, selector, limit))

    async def retry(self, queue: str, selector: str | None = None) -> int:
        """Let the broker send each dead letter back to the queue that the letter came from.

        Args:
            queue: the name of the dead-letter queue.
            selector: sends only messages that fulfil this condition; ``None`` sends all.

        Returns:
            The number of messages that left the queue. A letter stays in the dead-letter queue if the queue that it
                came from does not exist any more.

        Raises:
            UnknownQueueError: there is no such queue.
            InvalidSelectorException: the broker cannot read the selector.
            UnsupportedFeatureException: the broker is ActiveMQ Classic, whose retry loses the dead letters of topics.
        """
        return await self._run(lambda verbs: verbs.retry(queue, selector))

    async def pause(self, queue: str) -> None:
        """Stop the deliveries of a queue until :meth:`resume`. The queue still takes new messages. A restart of the
        broker ends the pause on ActiveMQ Classic, but not on Artemis.

        Args:
            queue: the name of the queue.

        Raises:
            UnknownQueueError: there is no such queue.
        """
        await self._run(lambda verbs: verbs.pause(queue))

    async def resume(self, queue: str) -> None:
        """Let a paused queue deliver again.

        Args:
            queue: the name of the queue.

        Raises:
            UnknownQueueError: there is no such queue.
        """
        await self._run(lambda verbs: verbs.resume(queue))

    async def create_queue(self, name: str) -> None:
        """Create a queue. An existing queue stays as it is.

        Args:
            name: the name of the queue.
        """
        await self._run(lambda verbs: verbs.create_queue(name))

    async def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages, for ever.

        Args:
            name: the name of the queue.

        Raises:
            UnknownQueueError: there is no such queue.
            JMSException: the queue still has consumers.
        """
        await self._run(lambda verbs: verbs.delete_queue(name))

    async def close(self) -> None:
        """Close the connection. A second call has no effect."""
        await self._opened.aclose()

    async def __aenter__(self) -> Manager:
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} of {type(self._verbs).__name__}>"


def _advanced(call: Callable[[], Request]) -> tuple[Request | None, Any]:
    """Return the next request of some steps, or ``None`` and the result of the steps."""
    try:
        return call(), None
    except StopIteration as end:
        return None, end.value


def _next_step(steps: Steps[Any], read: Callable[[], Any]) -> tuple[Request | None, Any]:
    """Read an answer, and give it to the steps, as :func:`_advanced`."""
    with understood():
        try:
            answer = read()
        except JMSException as error:
            return _advanced(partial(steps.throw, error))
        return _advanced(partial(steps.send, answer))


def _raised(error: JMSException) -> NoReturn:
    raise error
