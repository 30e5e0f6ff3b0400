"""The asyncio producer."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

from pyjmsack.aio._face import SessionFace
from pyjmsack.core.completions import CompletionListener
from pyjmsack.core.facade import ProducerFacade
from pyjmsack.core.producer import Producer
from pyjmsack.core.requestor import reply_to
from pyjmsack.destination import Destination
from pyjmsack.errors import JMSException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion

__all__ = ["MessageProducer"]


class MessageProducer(ProducerFacade):
    """Sends messages. A producer is made by :meth:`Session.create_producer`. End it with ``close()`` or ``async
    with``.
    """

    def __init__(self, core: Producer, face: SessionFace) -> None:
        super().__init__(core)
        self._lock = face.lock
        self._run = face.run
        self._loop = face.loop

    async def send(
        self,
        message: object,
        destination: Destination | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None:
        """Send a message, or a ``str``, ``bytes``, mapping or list, which becomes a message (S151).

        When this call returns, the broker has confirmed the message, if it is persistent and outside a transaction
        (S61-S63). With a ``completion_listener`` this call returns at once, and the message stays read-only until the
        listener was called (S73). At most 4096 sends of a producer, and ``jms.producerWindowSize`` bytes, may be
        unconfirmed. The next send waits for room, for ``jms.sendTimeout`` at most (S65). If the task is cancelled while
        the message waits for credit, the message is never sent. If the task is cancelled later, the broker may have
        stored the message.

        Args:
            message: the message, or a value that becomes one: ``str`` a text message, ``bytes`` a bytes message, a
                mapping a map message, a list or tuple a stream message.
            destination: the destination of the message, if the producer has no destination of its own (S67).
            delivery_mode: 1 (not persistent) or 2 (persistent), a :class:`DeliveryMode`. ``None`` takes the value
                of the producer (S152).
            priority: 0 to 9. ``None`` takes the value of the producer (S152).
            time_to_live: seconds or ``timedelta`` until the message expires; 0 means never. ``None`` takes the value
                of the producer (S154).
            delivery_delay: seconds or ``timedelta`` before the broker delivers the message. ``None`` takes the value
                of the producer (S157).
            completion_listener: an object with ``on_completion(message)`` and ``on_exception(message, error)``, which
                may be coroutine functions. One of them is called when the broker has answered. ``None`` means that this
                call waits instead.

        Raises:
            JMSException: the broker rejected, released or modified the message (S63); or a mode or priority is out of
                range.
            SendTimedOutException: the broker gave no credit or no outcome within ``jms.sendTimeout`` (S66).
            ResourceAllocationException: the message is larger than ``wireFormat.maxFrameSize``, or the broker has no
                room.
            InvalidDestinationException, UnsupportedFeatureException: the destination is missing or wrong, or the
                producer has another destination (S67).
            UnsupportedFeatureException: this broker would ignore the delay (S157).
            MessageFormatException: ``message`` cannot become a message, or contains a value that JMS forbids; or a time
                is not a number of at least 0.
            IllegalStateException: the producer is closed, or the message waits for its completion listener (S73).
        """
        how = (destination, delivery_mode, priority, time_to_live, delivery_delay)
        send = partial(self._send, message, completion_listener, how)
        await (self._lock.in_turn(send) if self._core.transacted else send())

    async def _send(self, message: object, listener: CompletionListener | None, how: tuple[Any, ...]) -> None:
        core = self._core
        if core.window.full:
            await self._run(core.wait_for_room())
        if listener is not None:
            core.submit_with_listener(listener, None, message, *how)
            return
        done: Completion[None] = Completion()
        sent, outbound = core.prepare(done.settle, message, *how)
        if core.waits(sent._persistent):
            await self._run(core.submit_awaited(outbound, done))
        else:
            done.add_callback(lambda answered: core.report(answered.error))
            core.submit(outbound)

    def send_async(
        self,
        message: object,
        destination: Destination | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> asyncio.Future[None]:
        """Send without waiting for the broker. The future is done when the broker has answered. It fails with the error
        that :meth:`send` would raise. ``jms.sendTimeout`` does not limit how long the future takes, so wait for the
        future with a time-out of your own.

        At most 4096 sends of a producer, and ``jms.producerWindowSize`` bytes, may be unconfirmed (S65). This call
        cannot wait for room, so it raises an error if there is no room. Await some of the futures first.

        Args:
            message, destination, delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`send`.
            completion_listener: as for :meth:`send`. The listener is called, and the future is done as well.

        Returns:
            A future whose result is ``None``. Cancelling the future does not stop the send.

        Raises:
            ResourceAllocationException: too much is unconfirmed. Nothing was sent.
            JMSException: as for :meth:`send`, if the message, the destination or the state of the producer is wrong.
        """
        core = self._core
        core.window.check_room()
        future: asyncio.Future[None] = self._loop.create_future()

        def settle(error: BaseException | None) -> None:
            if not future.done():  # the caller may have cancelled the future; the send goes on
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error.fresh() if isinstance(error, JMSException) else error)

        if completion_listener is not None:
            how = (destination, delivery_mode, priority, time_to_live, delivery_delay)
            core.submit_with_listener(completion_listener, settle, message, *how)
            return future
        _, outbound = core.prepare(settle, message, destination, delivery_mode, priority, time_to_live, delivery_delay)
        core.submit(outbound)
        return future

    async def reply(
        self,
        request: Message,
        reply: object,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> None:
        """Send the reply to a request, to the ``reply_to`` of the request.

        The reply gets the correlation id of the request. If the request has none, the reply gets the message id of the
        request as its correlation id. The producer must have no destination. If nobody waits for the reply any more,
        the call may succeed all the same, because Artemis accepts messages to a temporary queue that is gone, and drops
        them.

        Args:
            request: the received message.
            reply: a message, or a value that becomes one, as for :meth:`send`.
            delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`send`.

        Raises:
            InvalidDestinationException: the request names no ``reply_to``.
            JMSException: as for :meth:`send`.
        """
        message, where = reply_to(request, reply)
        await self.send(
            message,
            where,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )

    async def close(self) -> None:
        """Close the producer when the broker has answered all sends. A second call has no effect."""
        await self._run(self._core.close())

    async def __aenter__(self) -> MessageProducer:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
