"""The blocking producer."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta

from pyjmsack.core.completions import CompletionListener
from pyjmsack.core.facade import ProducerFacade
from pyjmsack.core.producer import Producer
from pyjmsack.core.requestor import reply_to
from pyjmsack.destination import Destination
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.sync._face import SessionFace
from pyjmsack.sync._future import SendFuture

__all__ = ["MessageProducer"]


class MessageProducer(ProducerFacade):
    """Sends messages; belongs to its session's thread. Closed by ``close()`` or as a context manager."""

    def __init__(self, core: Producer, face: SessionFace) -> None:
        super().__init__(core)
        self._face = face
        self._run = face.run
        self._guard = face.guard

    def send(
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
        """Send a message, or a ``str``, ``bytes``, mapping or list turned into one (S151).

        A persistent message outside a transaction is confirmed by the broker when this returns (S61-S63). With a
        ``completion_listener`` it returns at once, and the message stays read-only until the listener was called (S73).

        Args:
            destination: for an anonymous producer only (S67).
            delivery_mode, priority: override the producer's for this message (S152).
            time_to_live, delivery_delay: seconds or ``timedelta`` (S154, S157).

        Raises:
            JMSException: the broker rejected, released or modified the message (S63).
            SendTimedOutException: no credit or no outcome within ``jms.sendTimeout`` (S66).
            InvalidDestinationException, UnsupportedFeatureException: the destination does not fit (S67).
            MessageFormatException: not a message, or a value in it that JMS forbids.
        """
        with self._guard:
            core = self._core
            if core.window.full:
                self._run(core.wait_for_room())
            how = (destination, delivery_mode, priority, time_to_live, delivery_delay)
            if completion_listener is not None:
                core.submit_with_listener(completion_listener, None, message, *how)
                return
            done: Completion[None] = Completion()
            sent, outbound = core.prepare(done.settle, message, *how)
            if core.waits(sent._persistent):
                self._run(core.submit_awaited(outbound, done))
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
    ) -> Future[None]:
        """Send without waiting; the future is done when the broker has confirmed, and fails as ``send`` would.

        At most 4096 sends of a producer may be unconfirmed; the next one waits for room, bounded by
        ``jms.sendTimeout``. Arguments and immediate errors as for ``send``.
        """
        guard = self._guard
        guard.acquire()
        try:
            core = self._core
            if core.window.full:
                self._run(core.wait_for_room())
            future = SendFuture(self._face)
            if completion_listener is not None:
                how = (destination, delivery_mode, priority, time_to_live, delivery_delay)
                core.submit_with_listener(completion_listener, future.settle, message, *how)
                return future
            _, outbound = core.prepare(
                future.settle, message, destination, delivery_mode, priority, time_to_live, delivery_delay
            )
            core.submit(outbound)
            return future
        finally:
            guard.release()

    def reply(
        self,
        request: Message,
        reply: object,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> None:
        """Send the reply to a request: to its ``reply_to``, with its correlation id, else its message id.

        For a producer without a destination. Arguments and errors as for ``send``. Nobody may wait for the reply any
        more: Artemis accepts messages to a temporary queue that is gone, and drops them.

        Raises:
            InvalidDestinationException: the request names no ``reply_to``.
        """
        message, where = reply_to(request, reply)
        self.send(
            message,
            where,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )

    def close(self) -> None:
        """Close when the broker has answered all sends. A second call has no effect."""
        self._run(self._core.close())

    def __enter__(self) -> MessageProducer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
