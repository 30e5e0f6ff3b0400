"""The receiving end of the blocking face: one function per way to acknowledge, each with failures on purpose."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from pyjmsack import Connection, Message, MessageConsumer, Session
from pyjmsack.cli.demo.job import LOOK_SECONDS, Job
from pyjmsack.cli.demo.ledger import Key, ProcessingError
from pyjmsack.cli.demo.sending import send_all

__all__ = ["listen_and_recover", "listen_and_return", "listen_individually", "receive_in_transactions"]

ACK_BATCH = 50
"""The number of messages of one acknowledgement in CLIENT mode, and of one transaction."""

Listener = Callable[[Message], None]


class _Ends(NamedTuple):
    connection: Connection
    session: Session
    consumer: MessageConsumer
    sending: Future[None]


@contextlib.contextmanager
def _ends(job: Job) -> Iterator[_Ends]:
    """Start the sending end on a thread of its own, and open the receiving end."""
    with ThreadPoolExecutor(1, "pyjmsack-demo-sender") as executor:
        try:
            with (
                job.login.factory(jms__receiveLocalOnly=True).create_connection() as connection,
                connection.create_session(job.mode) as session,
            ):
                connection.exception_listener = job.on_exception
                consumer = session.create_consumer(session.create_queue(job.queue))
                connection.start()
                job.begin()
                sending = executor.submit(send_all, job)
                yield _Ends(connection, session, consumer, sending)
                sending.result()
        finally:
            job.abandoned = True


def _listen(job: Job, make_listener: Callable[[Session], Listener]) -> None:
    """Let a listener receive until all lines arrived, or until no line arrived for too long."""
    finished = threading.Event()
    with _ends(job) as ends:
        listener = make_listener(ends.session)

        def listen(message: Message) -> None:
            try:
                listener(message)
            finally:
                if job.ledger.complete:
                    finished.set()

        ends.consumer.message_listener = listen
        while job.waiting(not ends.sending.done()):
            finished.wait(LOOK_SECONDS)
        ends.connection.stop()  # waits until the listener has acknowledged its last message


def listen_and_return(job: Job) -> None:
    """Receive with a listener that only returns or raises.

    In AUTO and DUPS_OK mode a return acknowledges the message and an error does not (S17, S18). In no-ack mode the
    broker learns of neither a return nor an error (S36).
    """

    def listener(message: Message) -> None:
        job.ledger.deliver(message)

    _listen(job, lambda session: listener)


def listen_individually(job: Job) -> None:
    """Receive in an individual mode: each message is acknowledged alone, and a failed message is given back (S21,
    S34).
    """

    def listener(message: Message) -> None:
        job.ledger.deliver(message)
        message.acknowledge()

    _listen(job, lambda session: listener)


def listen_and_recover(job: Job) -> None:
    """Receive in CLIENT mode, and recover the session after a failure (S20, S32).

    The listener recovers the session itself and does not raise, because the next acknowledgement covers all earlier
    messages, including the failed message.
    """
    unacknowledged: list[Key] = []

    def make_listener(session: Session) -> Listener:
        def listener(message: Message) -> None:
            try:
                unacknowledged.append(job.ledger.deliver(message))
            except ProcessingError:
                job.ledger.expect_again(unacknowledged)
                unacknowledged.clear()
                session.recover()
                return
            if len(unacknowledged) >= ACK_BATCH or job.ledger.complete:
                message.acknowledge()
                unacknowledged.clear()

        return listener

    _listen(job, make_listener)


def receive_in_transactions(job: Job) -> None:
    """Receive with ``receive()`` in transactions.

    The transaction is rolled back after a failure, and once in the middle of the run (S75, S83).
    """
    with _ends(job) as ends:
        transactions = _Transactions(job, ends.session)
        while job.waiting(not ends.sending.done()):
            message = ends.consumer.receive(LOOK_SECONDS)
            if message is not None:
                transactions.take(message)


class _Transactions:
    """Processes messages in transactions of a fixed size. Rolls back if a message fails, and once on purpose."""

    def __init__(self, job: Job, session: Session) -> None:
        self._ledger = job.ledger
        self._middle = len(job.source.lines) // 2
        self._session = session
        self._uncommitted: list[Key] = []
        self._rolled_back = False

    def take(self, message: Message) -> None:
        """Process one message. Commit the transaction if it has enough messages."""
        try:
            self._uncommitted.append(self._ledger.deliver(message))
        except ProcessingError:
            self._roll_back()
            return
        if not self._rolled_back and self._ledger.received >= self._middle:
            self._rolled_back = True
            self._roll_back()
        elif len(self._uncommitted) >= ACK_BATCH or self._ledger.complete:
            self._session.commit()
            self._uncommitted.clear()

    def _roll_back(self) -> None:
        self._ledger.expect_again(self._uncommitted)
        self._uncommitted.clear()
        self._session.rollback()
