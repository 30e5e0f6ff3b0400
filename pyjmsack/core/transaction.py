"""The transactions of a session: the work of the open one, commit, rollback, and the loss of the connection
(S75-S87)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, Protocol

from pyjmsack.core.channel import Channel
from pyjmsack.core.guard import DuplicateGuard, Memory
from pyjmsack.core.runtime import taken
from pyjmsack.core.steps import Steps
from pyjmsack.errors import JMSException, RequestTimedOutException, TransactionRolledBackException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import Outcome

__all__ = ["Runs", "Transaction", "Transactions"]

Runs = list[tuple[Outcome, list[Inbound]]]
"""Outcomes that were chosen and not sent yet, in the order in which the broker is to hear of them."""

_numbers: Iterator[int] = count(1)


class Transaction:
    """Work since the last commit or rollback.

    The loop counts the sends that it gives to the provider (``submitted``) and the sends that the broker answered
    (``settled``). When both numbers are equal, no outcome is missing. The session's thread does not count, because
    Ctrl-C may come between any two of its steps. It asks with ``when_decided``, behind the sends that it submitted.
    """

    __slots__ = (
        "_idle",
        "_outcome",
        "_records",
        "acknowledged",
        "failure",
        "number",
        "sent",
        "settled",
        "submitted",
    )

    def __init__(self) -> None:
        self.submitted = 0
        self.settled = 0
        self.failure: BaseException | None = None
        """The first send that the broker did not take: the transaction can only be rolled back (S86)."""
        self.sent: list[str] = []
        self.acknowledged: list[Message] = []
        self._idle: Completion[None] | None = None
        self.number = next(_numbers)
        self._outcome: str | None = None
        self._records: deque[Callable[[str], None]] = deque()

    def on_sent(self, error: BaseException | None) -> None:
        """Count the answer to a send, on the loop."""
        if error is not None and self.failure is None:
            self.failure = error  # before it counts: the other side may look in between
        self.settled += 1
        if self._idle is not None and self.decided:
            self._idle.succeed()

    @property
    def decided(self) -> bool:
        """True if the end of the transaction is decided, so that no missing answer can change it."""
        return self.failure is not None or self.settled >= self.submitted

    def when_decided(self, done: Completion[None]) -> None:
        """Complete ``done`` once every send is answered, or one was refused; runs on the loop after all of them."""
        if self.decided:
            done.succeed()
        else:
            self._idle = done  # of the last caller: one before it has given up

    def record(self, write: Callable[[str], None]) -> None:
        """Call ``write(outcome)`` once the outcome is known; either side."""
        self._records.append(write)
        if self._outcome is not None:
            self._write(self._outcome)

    def ended(self, outcome: str) -> None:
        """Note how the transaction ended: ``committed``, ``rolled_back`` or ``unknown``. The first call counts."""
        self._outcome = self._outcome or outcome
        self._write(self._outcome)

    def _write(self, outcome: str) -> None:
        """Write each record once: the thread that takes a record out of the list writes it."""
        for write in taken(self._records):
            write(outcome)


class Participant(Protocol):
    """The part of a consumer that a commit or rollback of its session uses."""

    guard: DuplicateGuard | None

    @property
    def takes_part(self) -> bool:
        """Whether it delivered messages of the open transaction (S83, S84)."""
        ...

    def rolled_back(self, inbound: Inbound) -> None:
        """A transaction that received this message is rolled back."""
        ...

    def halt(self) -> Steps[None]:
        """Drain what is on its way: nothing newer may come before what the rollback brings again (S83)."""
        ...

    def take_unseen(self) -> Runs:
        """Take the messages that were never handed out from the inbox, and return them with their outcomes, oldest
        first."""
        ...

    def send_outcomes(self, runs: Runs) -> None:
        """Send chosen outcomes; on the loop."""
        ...

    def resume(self) -> Steps[None]:
        """Finish a close that waited for the end of the rollback (S84)."""
        ...

    def transaction_ended(self) -> None:
        """The transaction is over: finish a close that waited for it, without waiting (S84)."""
        ...

    def leave_transaction(self) -> None:
        """The transaction is ending, and nobody waits for that."""
        ...

    def finish_if_closed(self) -> None:
        """Detach the consumers that were closed, once the caller has no message of theirs."""
        ...


class Transactions:
    """The transactions of one session, one after the other.

    Args:
        channel: the connection.
        number: the id of the session.
        memory: remembers the messages that the session processed.
        consumers: the consumers of the session, by their ids.
        update: called when a commit or rollback begins and when it is over, because no message is handed out meanwhile.
    """

    def __init__(
        self,
        channel: Channel,
        number: int,
        memory: Memory,
        consumers: Mapping[int, Participant],
        update: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._number = number
        self._memory = memory
        self._consumers = consumers
        self._update = update
        self._endings: set[object] = set()
        """Commits and rollbacks under way."""
        self.current = Transaction()

    @property
    def ending(self) -> bool:
        """Whether a commit or rollback is under way."""
        return bool(self._endings)

    def _ending_is_over(self, ending: object) -> None:
        """Note that a commit or rollback is over, or that its caller gave up."""
        self._endings.discard(ending)
        self._update()

    def commit(self) -> Steps[None]:
        """Make the transaction's work take effect (S75, S78).

        Every send must be answered first. Otherwise the broker could refuse a send after the discharge was sent, and
        the others would be committed without it.

        Raises:
            TransactionRolledBackException: it was rolled back, or the outcome is unknown (S79, S86, S87, S94).
        """
        transaction = self.current
        ending = object()
        try:
            self._endings.add(ending)
            self._update()
            yield from self._commit()
        finally:
            self._ending_is_over(ending)
            if transaction is not self.current:  # else nothing was asked of the broker, and it is still open
                transaction.ended("unknown")  # unless it is known

    def _commit(self) -> Steps[None]:
        transaction = self.current
        deadline = self._channel.deadline()
        decided: Completion[None] = Completion()
        self._channel.submit(transaction.when_decided, decided)  # the loop knows: it comes behind all sends
        yield decided, deadline.remaining()
        failure = transaction.failure
        if failure is None and not decided.done:
            failure = RequestTimedOutException(f"a send had no answer within {deadline}")
        if failure is not None:
            yield from self._roll_back()
            raise _rolled_back(transaction, "a send of it failed", failure)
        error = yield from self._discharge(self._channel.provider.commit)
        try:
            if error is None:
                transaction.ended("committed")
                yield from self._remember(transaction)
        finally:  # also if the caller gives up while the guard's file is slow: a close may wait for the end (S84)
            for consumer in [*self._consumers.values()]:
                consumer.transaction_ended()
        if error is not None:
            known = isinstance(error, TransactionRolledBackException) and not error.in_doubt
            transaction.ended("rolled_back" if known else "unknown")
            raise _rolled_back(transaction, "the commit failed", error, in_doubt=not known)

    def _remember(self, transaction: Transaction) -> Steps[None]:
        """Remember that the messages of the transaction were processed (S105). The commit took effect: a file that
        cannot be written is no failure of the commit, and its error goes to the exception listener."""
        if self._memory.store is None:
            return
        for message in transaction.acknowledged:
            consumer = self._consumers.get(message._delivery.consumer_id)
            kept = message._delivery.settled  # else Ctrl-C came before it joined the transaction, and it was put back
            if kept and consumer is not None and consumer.guard is not None:
                consumer.guard.add_one(message._delivery)
        if transaction.acknowledged and self._memory.file is not None:
            written: Completion[None] = Completion()
            self._memory.file.add((), written.succeed)
            yield written, self._channel.options.request_timeout

    def rollback(self) -> Steps[None]:
        """Undo the work of the transaction. Its messages are delivered again before newer ones, and are counted (S80,
        S83)."""
        ending = object()
        try:
            self._endings.add(ending)
            self._update()
            error = yield from self._roll_back()
        finally:
            self._ending_is_over(ending)
        if error is not None and self._channel.failure is None:
            raise error.fresh() if isinstance(error, JMSException) else error

    def _roll_back(self) -> Steps[BaseException | None]:
        transaction = self.current
        if transaction.failure is None:  # a caller who gives up below has still asked for the rollback
            transaction.failure = TransactionRolledBackException("its rollback was interrupted")
        transaction.ended("rolled_back")
        for message in transaction.acknowledged:
            consumer = self._consumers.get(message._delivery.consumer_id)
            if consumer is not None:
                consumer.rolled_back(message._delivery)
        taking_part = [c for c in [*self._consumers.values()] if c.takes_part]
        for consumer in taking_part:
            yield from consumer.halt()
        error = yield from self._discharge(self._channel.provider.rollback, taking_part)
        for consumer in taking_part:
            yield from consumer.resume()
        return error

    def _discharge(self, operation: Any, undone: Iterable[Participant] = ()) -> Steps[BaseException | None]:
        """End the transaction and declare the next one in the same burst; return the error of the first, if any.

        What the consumers of an ``undone`` one prefetched is handed back behind it: ActiveMQ Classic sends again in the
        order in which it got things back, Artemis in the order of the queue. It is before new credit in any case. And
        in one command: a provider that redelivers locally would else, if the broker is quick, put it before what the
        rollback brings again.

        Only here does the next transaction begin for the client too: until its end is asked for, it is the open one,
        also for a caller whom Ctrl-C takes away in between.
        """
        ended: Completion[None] = Completion()
        begun: Completion[None] = Completion()
        unseen = [(consumer, consumer.take_unseen()) for consumer in undone]
        self._channel.submit(self._end_transaction, operation, ended, begun, unseen)
        try:
            self.current = Transaction()
            self._memory.handed_out.clear()
            deadline = self._channel.deadline()
            if not (yield ended, deadline.remaining()) and not ended.done:
                return RequestTimedOutException("the transaction coordinator did not answer within jms.requestTimeout")
            if not begun.done:  # what goes wrong with the next transaction is that one's affair: its commit will say so
                yield begun, deadline.remaining()
        except BaseException:
            self._leave_behind(ended)
            raise
        return ended.error

    def _leave_behind(self, ended: Completion[None]) -> None:
        """The caller gave up while the broker ends the transaction: consumers that were closed in it end behind it."""
        for consumer in [*self._consumers.values()]:
            consumer.leave_transaction()
            ended.add_callback(partial(_finish, consumer))

    def _end_transaction(
        self,
        operation: Any,
        ended: Completion[None],
        begun: Completion[None],
        unseen: Iterable[tuple[Participant, Runs]],
    ) -> None:
        """On the loop."""
        operation(self._number, ended)
        self._channel.provider.begin(self._number, begun)
        for consumer, runs in unseen:
            consumer.send_outcomes(runs)


def _rolled_back(
    transaction: Transaction, what: str, cause: BaseException, *, in_doubt: bool = False
) -> TransactionRolledBackException:
    ids = [message.message_id for message in transaction.acknowledged]
    outcome = "is in doubt" if in_doubt else "was rolled back"
    error = TransactionRolledBackException(
        f"the transaction {outcome}, {what}: {cause}",
        error_code=getattr(cause, "error_code", None),
        sent=transaction.sent,
        acknowledged=[i for i in ids if i is not None],
        in_doubt=in_doubt,
    )
    error.__cause__ = cause
    return error


def _finish(consumer: Participant, _: Completion[None]) -> None:
    consumer.finish_if_closed()
