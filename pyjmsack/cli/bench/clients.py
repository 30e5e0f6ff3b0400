"""One client of a run, in its own thread with its own connection: it sends, receives, or does both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from pyjmsack import (
    BytesMessage,
    Connection,
    DeliveryMode,
    Message,
    MessageConsumer,
    MessageProducer,
    Queue,
    RequestTimedOutException,
    Session,
)
from pyjmsack.cli.bench.histogram import Histogram
from pyjmsack.cli.bench.plan import Plan, Turns

__all__ = ["PATIENCE", "Client", "Receiver", "Roundtrip", "Sender"]

PATIENCE = 10.0
"""The seconds after which a client gives up waiting for an answer of the broker."""
_UNCONFIRMED = 256
"""The largest number of sends of one client that may wait for their answers. With a larger number, the run would
measure how long messages wait for each other."""
_UNCONFIRMED_BYTES = 16 << 20
_SLICE = 0.2
"""The number of seconds that one ``receive()`` waits. The number is small, because the end of the run does not
interrupt ``receive()``."""


class Client:
    """One client of a run. The run calls :meth:`open` before it starts the clock, and :meth:`work` after that."""

    def __init__(self, plan: Plan, body: bytes, queue: str) -> None:
        self._plan = plan
        self._body = body
        self._queue = Queue(queue)
        self.times = Histogram()
        self.sent = 0
        """The number of messages that this client sent or received. ``done`` counts only the messages that were
        confirmed or have arrived."""
        self.done = 0
        self.bytes = 0

    def open(self, connection: Connection) -> None:
        """Open a session with the producer or the consumer of this client."""
        raise NotImplementedError

    def work(self, turns: Turns) -> None:
        """Send or receive one message for each turn, until there are no more turns.

        Raises:
            JMSException: the broker refuses a request, does not answer, or is gone.
        """
        raise NotImplementedError

    def _producer(self, session: Session) -> MessageProducer:
        producer = session.create_producer(self._queue)
        producer.delivery_mode = DeliveryMode.PERSISTENT if self._plan.persistent else DeliveryMode.NON_PERSISTENT
        return producer

    def _count(self, began: float, size: int) -> None:
        self.times.add(time.monotonic() - began)
        self.done += 1
        self.bytes += size


class Sender(Client):
    """Sends without a wait for each answer, and measures the time from each send to the broker's confirmation."""

    def open(self, connection: Connection) -> None:
        """Open a session with a producer."""
        self._made = self._producer(connection.create_session())
        self._room = max(1, min(_UNCONFIRMED, _UNCONFIRMED_BYTES // max(1, len(self._body))))
        self._slots = threading.Semaphore(self._room)
        self._error: BaseException | None = None

    def work(self, turns: Turns) -> None:
        """Send messages, with at most a fixed number of unanswered sends. Then wait for the missing answers."""
        while self._error is None and (moment := turns.next()) is not None:
            if not self._has_slot(lambda: turns.ended):
                break
            self.sent += 1
            self._made.send_async(BytesMessage(self._body)).add_done_callback(partial(self._on_answer, moment))
        until = time.monotonic() + PATIENCE
        for _ in range(self._room):
            if not self._has_slot(lambda: time.monotonic() > until):
                break
        if self._error is not None:
            raise self._error

    def _has_slot(self, enough: Callable[[], bool]) -> bool:
        while not self._slots.acquire(timeout=_SLICE):
            if enough():
                return False
        return True

    def _on_answer(self, moment: float, future: Future[None]) -> None:
        """Count the broker's answer to one send. Only the session's completion thread calls this method."""
        error = future.exception()
        if error is None:
            self._count(moment, len(self._body))
        elif self._error is None:
            self._error = error
        self._slots.release()


class Receiver(Client):
    """Receives and acknowledges messages, throws them away, and measures how long each ``receive()`` takes."""

    def open(self, connection: Connection) -> None:
        """Open a session with a consumer."""
        self._made = connection.create_session().create_consumer(self._queue)

    def work(self, turns: Turns) -> None:
        """Receive until the turns end. Without a time limit, receive until the queue is empty.

        The queue seems empty to this client if the last messages are in the inbox of another client. This client then
        gives up its turn, so that the other client can use the turn.
        """
        while turns.next(keep=True) is not None:
            began = time.monotonic()
            message = _next(self._made, turns, patient=self._plan.seconds is not None)
            turns.settle(used=message is not None)
            if message is None:
                break
            body = message.body
            self.sent += 1
            self._count(began, len(body) if isinstance(body, bytes | str) else 0)


def _next(consumer: MessageConsumer, turns: Turns, *, patient: bool) -> Message | None:
    """Return the next message, or ``None`` if the run ends, or if the queue is empty and ``patient`` is false."""
    while not turns.time_over:
        message = consumer.receive(_SLICE)
        if message is None and not patient:
            return consumer.receive_nowait()  # this call asks the broker; receive() looked only into the inbox
        if message is not None:
            return message
    return None


class Roundtrip(Client):
    """Sends one message at a time to its own queue, receives it, and measures the time from the send to the arrival."""

    def open(self, connection: Connection) -> None:
        """Open one session with a producer and a consumer."""
        session = connection.create_session()
        self._sending = self._producer(session)
        self._receiving = session.create_consumer(self._queue)

    def work(self, turns: Turns) -> None:
        """Send and receive one message for each turn, until there are no more turns."""
        while (moment := turns.next()) is not None:
            self.sent += 1
            self._sending.send(BytesMessage(self._body))
            until = time.monotonic() + PATIENCE
            while self._receiving.receive(_SLICE) is None:
                if turns.ended:
                    return
                if time.monotonic() > until:
                    raise RequestTimedOutException(f"a message did not arrive within {PATIENCE:g} s")
            self._count(moment, len(self._body))
