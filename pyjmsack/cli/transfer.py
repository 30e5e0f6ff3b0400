"""Moves messages from one queue to others in this process.

It moves them in transactions, or acknowledges each message after its copy is confirmed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyjmsack import (
    AckMode,
    Connection,
    ConnectionLostException,
    Destination,
    IllegalStateException,
    JMSException,
    Message,
    MessageConsumer,
    Queue,
    RequestTimedOutException,
    SendTimedOutException,
    Session,
    TransactionRolledBackException,
)
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.managing import remark
from pyjmsack.cli.options import Login
from pyjmsack.cli.resending import died_of_age, renewed, send_options, unsendable
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import Counter, amount

__all__ = ["DEFAULT_BATCH", "Pace", "Transfer", "check_apart", "check_left"]

DEFAULT_BATCH = 100
_SLICE = 0.2
"""The number of seconds that one ``receive()`` waits. The number is small, because a signal does not interrupt
``receive()``."""
_MOST_LEFT = 10_000
"""The largest number of messages that a session may receive without taking them off the queue.

The session holds each of these messages until the session closes, because a message that is given back would be
delivered again at once.
"""

_RETURN = 30.0
"""Seconds to wait for a message that was rolled back."""

Target = Callable[[Message], "Destination | None"]


class Pace:
    """Lets ``rate`` messages pass per second; ``None`` lets all pass at once."""

    def __init__(self, rate: float | None, stop: Stop) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._stop = stop
        self._next = time.monotonic()

    def wait(self) -> None:
        """Wait until the next message may pass, or for a stop."""
        if not self._gap:
            return
        while (left := self._next - time.monotonic()) > 0 and not self._stop.requested:
            self._stop.wait(left)
        self._next = max(self._next + self._gap, time.monotonic() - self._gap)


def check_apart(connection: Connection, source: str, target: str) -> None:
    """Check that the target is none of the queues of the source, because the command would receive its own messages.

    Args:
        connection: an open connection, which says what kind of broker this is.
        source, target: the names of the queues, perhaps with options.

    Raises:
        Failure: the names mean the same queue, or the source is a pattern of ActiveMQ Classic that covers the target.
    """
    first, second = Queue(source).name, Queue(target).name
    if connection.metadata.broker == "artemis":  # on Artemis no two queues have the same name
        first, second = first.rpartition("::")[2], second.rpartition("::")[2]
    if first == second:
        raise Failure(f"SOURCE {source} and TARGET {target} are the same queue, {first}; expected two queues")
    if connection.metadata.broker != "artemis" and _covers(first, second):
        raise Failure(f"SOURCE {source} covers TARGET {target}; expected a TARGET that is none of these queues")


def _covers(pattern: str, name: str) -> bool:
    """Return whether ActiveMQ Classic takes messages of the queue ``name`` for a consumer of ``pattern``.

    ``*`` stands for one word, ``>`` at the end for any number of words. A comma separates several names.
    """
    return any(_matches(each.strip().split("."), name.split(".")) for each in pattern.split(","))


def _matches(pattern: list[str], words: list[str]) -> bool:
    if pattern[-1] == ">":
        pattern, words = pattern[:-1], words[: len(pattern) - 1]
    return len(pattern) == len(words) and all(each in ("*", word) for each, word in zip(pattern, words, strict=True))


def check_left(left: int, done: str) -> None:
    """Raise an error if more messages stay in the queue than a session may hold.

    Args:
        left: how many messages were looked at and stay.
        done: a text about the work so far, such as ``Removed 7 messages``.

    Raises:
        Failure: the messages are too many.
    """
    if left > _MOST_LEFT:
        raise Failure(
            f"{done}. The rest was not looked at: more than {_MOST_LEFT:,} messages were received and have to stay in"
            " the queue, and one session cannot hold more. Use --selector, so that the broker sends only what you want"
        )


@dataclass
class Transfer:
    """One move of messages out of a queue. A kill at any time loses no message. :meth:`run` says when a kill may double
    a message."""

    source: str
    target: Target
    """A function that returns the destination to which a message goes, or ``None`` to leave the message in the
    source."""
    selector: str | None = None
    choosy: bool = False
    """Whether ``target`` may return ``None``."""
    limit: int | None = None
    batch: int = DEFAULT_BATCH
    moved: int = 0
    left: int = 0
    unsendable: int = 0
    """The number of messages that stay in the source because they cannot be sent."""
    refused: int = 0
    """The number of messages that the consumer refused, because nobody can decode them, or they were delivered too
    often. Artemis keeps in the source what nobody can decode."""
    only_target: Destination | None = None
    """The target if all messages go to the same queue. This queue must not be the source.

    The producer is bound to this queue, because ActiveMQ Classic finds no target in some odd messages of a producer
    that is not bound, and one refused message stops all others.
    """
    each_its_own: bool = False
    """Whether each message has a target of its own. Then a broker that refuses one message may take the others."""
    returning: int = field(default=0, init=False)
    """The number of messages of a transaction that was rolled back. The broker delivers them again, after a delay if
    the queue has a ``redelivery-delay``."""

    def run(self, login: Login, pace: Pace, stop: Stop, show: Counter) -> int:
        """Move messages until the queue is empty, the limit is reached or a stop is requested. Return their number.

        Where a transaction of this broker and protocol is atomic, the received and the sent messages are committed
        together. A kill then loses and doubles no message. Where transactions are not atomic, the broker confirms the
        copy of each message before this process acknowledges the original. After a kill in between, the message is in
        both queues, and the next run sends a second copy. Artemis drops the second copy, because both copies carry the
        same duplicate mark, made of the number by which the broker stores the message. Other brokers keep both copies.

        A message that cannot be sent stays in the queue, and the rest of the messages are then moved one by one. In a
        transaction, one message that cannot be sent would stop all messages of the transaction, and each try would
        count as one more delivery of each of these messages. While messages are moved one by one, a kill may double the
        message that is under way.
        """
        # one more than a transaction holds, because over STOMP a full window would warn that it holds too many
        prefetch = self.batch if self.choosy else min(self.batch + 1, self.limit or self.batch + 1)
        factory = login.factory(jms__receiveLocalOnly=True, jms__prefetchPolicy__queuePrefetch=prefetch)
        with factory.create_connection() as connection:
            # this listener ignores the error of the connection, because receive() raises it
            connection.exception_listener = lambda error: None
            if self.only_target is not None:
                check_apart(connection, self.source, self.only_target.name)
            connection.start()
            atomic = connection.metadata.transaction_guarantee == "atomic" and not self.choosy
            try:
                if atomic:
                    atomic = self._in_transactions(connection, pace, stop, show)
                if not atomic:
                    recognised = "duplicate-detection" in connection.metadata.capabilities
                    self._one_by_one(connection, recognised, factory._url.connection.send_timeout, pace, stop, show)
            except JMSException:
                remark(f"The error came after {amount(self.moved)} of {self.source} had been moved.")
                raise
        return self.moved

    @property
    def not_sent(self) -> int:
        """The number of messages that were to move and did not, as :meth:`reasons` says."""
        return self.unsendable + self.refused

    def reasons(self) -> list[str]:
        """Return why messages were not moved although they were to move. The list is empty if all were moved."""
        reasons = []
        if self.unsendable:
            why = "they cannot be sent" if self.each_its_own else "this protocol or broker cannot carry them"
            reasons.append(f"{amount(self.unsendable)} had to stay in {self.source}, because {why}")
        if self.refused:
            reasons.append(
                f"{amount(self.refused)} of {self.source} could not be moved, because nobody can decode them, or they"
                " were delivered too often"
            )
        return reasons

    @contextmanager
    def _consumer(self, session: Session) -> Iterator[MessageConsumer]:
        """Yield a consumer of the source, and count what it refused. If a transaction was rolled back, the next
        consumer may refuse the same messages again, so the larger number counts."""
        consumer = session.create_consumer(Queue(self.source), self.selector)
        try:
            yield consumer
        finally:
            self.refused = max(self.refused, consumer.stats.poisoned)

    def _in_transactions(self, connection: Connection, pace: Pace, stop: Stop, show: Counter) -> bool:
        """Move messages in transactions. Return False if a message cannot be sent, or the broker refuses the commit."""
        with connection.create_session(AckMode.SESSION_TRANSACTED) as session, self._consumer(session) as consumer:
            producer = session.create_producer(self.only_target)
            under_way = 0
            while (message := self._next(consumer, under_way, stop)) is not None:
                self.returning = under_way + 1
                target = self.target(message)
                if target is None:
                    return False
                expires = not died_of_age(message, self.source)
                pace.wait()
                try:
                    producer.send(renewed(message), *self._named(target), **send_options(message, expires=expires))
                except JMSException as error:
                    if self._stops_all(error, message):
                        raise
                    return False  # the end of the session rolls the transaction back
                under_way += 1
                if under_way >= self.batch:
                    if not self._committed(session, under_way, show):
                        return False
                    under_way = 0
                self.returning = under_way
            return not under_way or self._committed(session, under_way, show)

    def _committed(self, session: Session, under_way: int, show: Counter) -> bool:
        """Commit. Return False if the broker refused one of the messages, so that none was moved."""
        try:
            session.commit()
        except TransactionRolledBackException as error:
            if error.in_doubt or not self.each_its_own:
                raise
            return False
        self.moved += under_way
        show(self.moved, "")
        return True

    def _stops_all(self, error: JMSException, message: Message) -> bool:
        """Whether an error of a send means that the later messages cannot be sent either."""
        if unsendable(error, message):
            return False
        lost = ConnectionLostException, RequestTimedOutException, IllegalStateException
        return not self.each_its_own or isinstance(error, lost)

    def _one_by_one(
        self,
        connection: Connection,
        recognised: bool,
        patience: float | None,
        pace: Pace,
        stop: Stop,
        show: Counter,
    ) -> None:
        with connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE) as session, self._consumer(session) as consumer:
            producer = session.create_producer(self.only_target)
            while (message := self._next_again(consumer, stop)) is not None:
                self.returning -= 1
                target = self.target(message)
                if target is None:
                    self._leave()
                    continue
                duplicate_id = self._duplicate_id(message) if recognised else None
                expires = not died_of_age(message, self.source)
                pace.wait()
                try:
                    copy = renewed(message, duplicate_id)
                    # send() would not wait for the outcome of a message that is not persistent
                    options = send_options(message, expires=expires)
                    _await(producer.send_async(copy, *self._named(target), **options), patience)
                except JMSException as error:
                    if self._stops_all(error, message):
                        raise
                    if not self.unsendable:
                        remark(f"A message stays in {self.source}: {error}")
                    self.unsendable += 1
                    self._leave()
                    producer.close()  # a broker that refuses a message may have ended its link
                    producer = session.create_producer(self.only_target)
                    continue
                message.acknowledge()
                self.moved += 1
                show(self.moved, "")

    def _named(self, target: Destination) -> tuple[Destination, ...]:
        """Return the target for a send. A send of a bound producer must name none."""
        return (target,) if self.only_target is None else ()

    def _leave(self) -> None:
        self.left += 1
        check_left(self.left, f"{amount(self.moved)} moved")

    def _duplicate_id(self, message: Message) -> str | None:
        """Return a duplicate id that stays the same if this message is moved again, and that no other message gets.

        The message id is not used, because the copies of a message for several subscribers have the same message id,
        and a sender may use an id twice. Artemis would drop the second message with the same id, and this message would
        be lost.
        """
        stored: bytes | None = message._delivery.stored_id()
        if stored is None:
            return None
        return hashlib.sha256(b"pyjmsack-transfer\0%b\0%b" % (self.source.encode(), stored)).hexdigest()

    def _next_again(self, consumer: MessageConsumer, stop: Stop) -> Message | None:
        """Return the next message. Wait if messages that were rolled back must come again."""
        message = self._next(consumer, 0, stop)
        until = time.monotonic() + _RETURN
        while message is None and self.returning > 0 and self.moved != self.limit and not stop.requested:
            if time.monotonic() > until:
                remark(
                    f"{amount(self.returning)} went back to {self.source} and did not come again within {_RETURN:g} s,"
                    " because the queue delays redeliveries or another consumer took them. Run the command again later."
                )
                return None
            message = consumer.receive(_SLICE)
        return message

    def _next(self, consumer: MessageConsumer, under_way: int, stop: Stop) -> Message | None:
        if stop.requested or self.moved + under_way == self.limit:
            return None
        message = consumer.receive(_SLICE)
        return consumer.receive_nowait() if message is None else message  # the second receive asks the broker


def _await(answer: Future[None], patience: float | None) -> None:
    """Wait for the broker's answer to a send.

    Args:
        answer: the result of the send.
        patience: the seconds of ``jms.sendTimeout``; ``None`` means no limit.

    Raises:
        SendTimedOutException: there was no answer in time (S66).
        JMSException: the send failed.
    """
    try:
        answer.result(patience)
    except JMSException:  # from Python 3.11 the next clause takes some of these, too
        raise
    except FutureTimeoutError:
        raise SendTimedOutException(
            f"the broker did not confirm a copy within jms.sendTimeout ({patience:g} s); the copy may have been stored"
        ) from None
