"""The asyncio consumer and browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TypeVar

from pyjmsack.aio._face import SessionFace
from pyjmsack.core.browsing import Browser
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.facade import ConsumerFacade, OfOneProcess
from pyjmsack.core.session import Session
from pyjmsack.core.stats import seconds
from pyjmsack.destination import Destination
from pyjmsack.message import Message

__all__ = ["MessageConsumer", "QueueBrowser"]

T = TypeVar("T")


class MessageConsumer(ConsumerFacade):
    """Receives messages. A consumer is made by :meth:`Session.create_consumer` and similar methods. An ``async for``
    loop over a consumer receives messages until the consumer is closed.
    """

    def __init__(self, core: Consumer, face: SessionFace) -> None:
        super().__init__(core)
        self._run = face.run
        self._work = face.work

    async def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """Wait for the next message.

        In AUTO and DUPS_OK mode the message is acknowledged before it is returned (S16). If the task is cancelled while
        it waits, no message is lost and none is acknowledged.

        Args:
            timeout: seconds or a ``timedelta``; ``None`` waits for ever, 0 asks the broker once.

        Returns:
            The message. ``None`` if no message came in time, or if the consumer was closed meanwhile (S123).

        Raises:
            TypeError, ValueError: the timeout is not a number, or is negative, NaN, or more than 1,000,000,000.
            IllegalStateException: the consumer is closed, or a consumer of this session has a listener (S8).
            ConnectionLostException: the connection failed (S128).
            RequestTimedOutException: the broker did not say within ``amqp.drainTimeout`` whether it has more messages;
                or the timeout is 0, and for 60 s the client refused all messages that came.
        """
        limit = None if timeout is None else seconds(timeout)
        core = self._core
        core.check_receive()
        if self._work.too_long:  # before a message is taken, so that a cancellation loses none
            await asyncio.sleep(0)
        began, receiving = self._work.begin(), core.receiving
        try:
            return receiving.receive_now() or await self._run(receiving.receive(limit))
        finally:
            self._work.end(began)

    async def receive_nowait(self) -> Message | None:
        """Return a message that the broker has now, or ``None``. This is ``receive(timeout=0)``.

        Raises:
            IllegalStateException, ConnectionLostException, RequestTimedOutException: as for :meth:`receive`.
        """
        return await self.receive(0)

    async def receive_body(self, type: type[T], timeout: float | timedelta | None = None) -> T | None:
        """Receive a message and return its body as ``type``.

        Args:
            type: the type that the body must have: ``str``, ``bytes``, ``dict`` or ``list``, or the type of the value
                in an object message.
            timeout: as for :meth:`receive`.

        Returns:
            The body. ``None`` if no message came in time, or if the consumer was closed meanwhile.

        Raises:
            MessageFormatException: the body has another type. In AUTO and DUPS_OK mode, such a message is not
                acknowledged, and the next call receives it again (S176).
            IllegalStateException, ConnectionLostException, RequestTimedOutException: as for :meth:`receive`.
        """
        core = self._core
        core.check_receive()
        return await self._work.run(self._run, core.receiving.receive_body(type, seconds(timeout)))

    async def acknowledge(self) -> None:
        """Acknowledge all messages that this consumer delivered, in CLIENT and individual mode (S25). In other modes
        this call does nothing.

        Raises:
            IllegalStateException: the consumer is closed.
        """
        self._core.check_open()
        self._core.acknowledge()

    async def drain(self, timeout: float | timedelta | None = None) -> bool:
        """Stop without loss. No more messages are handed out, the running listener finishes, and the acknowledgements
        that wait are sent. Prefetched messages go back to the broker, and their redelivery is not counted. Messages
        that the caller holds may still be acknowledged. Close the consumer afterwards.

        In no-acknowledgement mode prefetched messages cannot go back, because the broker has forgotten them (S36). So
        ``receive`` hands these messages out until ``receive`` returns ``None``. A consumer with a listener drops them.
        On ActiveMQ Classic a few messages may be lost, which the broker has settled and not sent, or which are on their
        way. If the timeout ends before Artemis has sent all, the rest may be lost.

        Args:
            timeout: seconds or a ``timedelta`` to wait for the listener and the broker. ``None`` waits as long as it
                takes.

        Returns:
            False if the running listener or the broker did not finish in time. A listener's message gets an outcome
            when the listener ends.

        Raises:
            IllegalStateException: the consumer is closed.
            TypeError, ValueError: the timeout is not a number, or is negative, NaN, or more than 1,000,000,000.
        """
        return await self._run(self._core.drain(seconds(timeout)))

    async def close(self) -> None:
        """Close the consumer. Delivered messages may still be acknowledged while the session is open (S29). A second
        call has no effect.
        """
        await self._run(self._core.close())

    async def __aiter__(self) -> AsyncIterator[Message]:
        while not self._core.closed:
            message = await self.receive()
            if message is None:
                return
            yield message

    async def __aenter__(self) -> MessageConsumer:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class QueueBrowser(OfOneProcess):
    """Looks at the messages of a queue and takes none. Each ``async for`` starts at the head of the queue (S134).
    :meth:`Session.create_browser` makes a browser.
    """

    def __init__(self, core: Session, face: SessionFace, queue: Destination, selector: str | None) -> None:
        self._core = core
        self._run = face.run
        self._work = face.work
        self._queue = queue
        self._selector = selector
        self._open: set[Browser] = set()
        self._closed = False
        self._refused = 0
        """The number of messages that the ended iterations did not show."""

    @property
    def unreadable(self) -> int:
        """The number of messages that the iterations so far did not show, because nobody can decode them (S134). A
        program that copies or empties a queue needs this number, because the queue has more messages than it was shown.
        """
        return self._refused + sum(browser.refused for browser in self._open)

    async def __aiter__(self) -> AsyncIterator[Message]:
        run, core = self._run, self._core
        browser = Browser(await run(core.create_consumer(self._queue, self._selector, False, browser=True)))
        self._open.add(browser)
        try:
            while not self._closed:
                message = await self._work.run(run, browser.next())
                if message is None:
                    return
                yield message
        finally:
            self._refused += browser.refused
            self._open.discard(browser)
            await run(browser.close())

    async def close(self) -> None:
        """End all iterations under way. A second call has no effect."""
        self._closed = True
        while self._open:
            await self._run(self._open.pop().close())

    async def __aenter__(self) -> QueueBrowser:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
