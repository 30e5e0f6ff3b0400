"""The transactions of a session: the work of the open transaction, commit, rollback, and the loss of the connection
(S75-S87).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import count
from typing import Any, Protocol, TypeVar

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

T = TypeVar("T")
Runs = list[tuple[Outcome, list[Inbound]]]
"""Outcomes that were chosen and not sent yet, in the order in which they must reach the broker."""

_numbers: Iterator[int] = count(1)


class Transaction:
    """The work of a session since its last commit or rollback.

    The loop counts the sends that it gives to the provider (``submitted``) and the sends that the broker answered
    (``settled``). When both numbers are equal, no outcome is missing. The session's thread does not count, because
    Ctrl-C may come between any two of its steps. Instead, this thread submits ``when_decided``, which runs on the loop
    after the sends that the thread submitted before.
    """

    __slots__ = (
        "_idle",
        "_outcome",
        "_records",
        "acknowledged",
        "failure",
        "noted",
        "number",
        "sent",
        "settled",
        "submitted",
    )

    def __init__(self) -> None:
        self.submitted = 0
        self.settled = 0
        self.failure: BaseException | None = None
        """The error of the first send that the broker did not take. With such an error the transaction can only be
        rolled back (S86)."""
        self.sent: list[str] = []
        self.acknowledged: list[Message] = []
        self.noted = False
        """Whether the consumers know that the messages went back as failed (S115)."""
        self._idle: Completion[None] | None = None
        self.number = next(_numbers)
        self._outcome: str | None = None
        self._records: deque[Callable[[str], None]] = deque()

    def on_sent(self, error: BaseException | None) -> None:
        """Count the answer to a send, on the loop."""
        if error is not None and self.failure is None:
            self.failure = error  # set before the count, because the session's thread may look in between
        self.settled += 1
        if self._idle is not None and self.decided:
            self._idle.succeed()

    @property
    def decided(self) -> bool:
        """True if no further answer can change the end of the transaction: a send failed, or all sends are answered."""
        return self.failure is not None or self.settled >= self.submitted

    def when_decided(self, done: Completion[None]) -> None:
        """Complete ``done`` when all sends are answered, or one has failed. Runs on the loop. The caller submits this
        call after its last send, so the loop has counted every send before."""
        if self.decided:
            done.succeed()
        else:
            self._idle = done  # only the last caller waits, because a caller before it has given up

    def record(self, write: Callable[[str], None]) -> None:
        """Call ``write(outcome)`` when the outcome is known. Any thread may call this."""
        self._records.append(write)
        if self._outcome is not None:
            self._write(self._outcome)

    def ended(self, outcome: str) -> None:
        """Remember how the transaction ended: ``committed``, ``rolled_back`` or ``unknown``. Only the first call has an
        effect.
        """
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
        """Whether the open transaction has messages of this consumer (S83, S84)."""
        ...

    def failed(self, inbound: Inbound) -> None:
        """Remember that a message that was handed out goes back as failed (S115)."""
        ...

    def rolled_back(self, inbound: Inbound, *, by_caller: bool) -> None:
        """Remember that a transaction that received this message is rolled back: by the caller, or because the commit
        failed."""
        ...

    def committed(self, inbound: Inbound) -> None:
        """Remember that a transaction that received this message is committed."""
        ...

    def halt(self) -> Steps[None]:
        """Drain the link: the broker sends the messages that are on their way, and then stops. Otherwise a newer
        message could come before the messages that the rollback delivers again (S83).
        """
        ...

    def take_unseen(self, runs: Runs) -> None:
        """Empty the inbox, and add its messages to ``runs``, oldest first, with the outcomes by which they go back to
        the broker."""
        ...

    def send_after_all(self, runs: Runs) -> None:
        """Send outcomes that were chosen before, because Ctrl-C ended the call that chose them."""
        ...

    def send_outcomes(self, runs: Runs) -> None:
        """Send outcomes that were chosen before. Runs on the loop."""
        ...

    def resume(self) -> Steps[None]:
        """Finish a close that waited for the end of the rollback (S84)."""
        ...

    def transaction_ended(self) -> None:
        """Finish, without waiting, a close that waited for the end of the commit (S84)."""
        ...

    def leave_transaction(self) -> None:
        """Remember that the transaction ends and that nobody waits for its end."""
        ...

    def finish_if_closed(self) -> None:
        """End the link of the consumer if it was closed and the caller has none of its messages."""
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
        self._endings: set[Steps[Any]] = set()
        """The steps of commits and rollbacks under way. A signal handler that raises may leave steps here that are
        over, so :attr:`ending` looks whether they are."""
        self._session_ended = False
        """Whether the loop rolled the open transaction back because the session ends."""
        self.current = Transaction()

    @property
    def ending(self) -> bool:
        """Whether a commit or rollback is under way."""
        return bool(self._endings) and not all(map(_over, [*self._endings]))

    def look_again(self) -> None:
        """Let messages flow again, if a signal handler that raised ended a commit or rollback before it did so."""
        if self._endings and not self.ending:
            self._update()
            for steps in [*self._endings]:
                if _over(steps):
                    self._endings.discard(steps)

    def _alone(self, steps: Steps[T]) -> Steps[T]:
        """Run the steps of a commit or rollback. No message is handed out meanwhile."""
        try:
            self._endings.add(steps)
            self._update()
            return (yield from steps)
        finally:
            steps.close()  # before the update, which looks whether the steps are over
            self._update()
            self._endings.discard(steps)

    def commit(self) -> Steps[None]:
        """Make the transaction's work take effect (S75, S78).

        Every send must be answered first. Otherwise the broker could refuse one send after the commit was sent, and
        would commit the other sends without this send.

        Raises:
            TransactionRolledBackException: the transaction was rolled back, or its outcome is unknown (S79, S86, S87,
                S94).
        """
        transaction = self.current
        try:
            yield from self._alone(self._commit())
        finally:
            # if the transaction is still the current one, the broker was not asked to end it
            if transaction is not self.current:
                transaction.ended("unknown")  # has no effect if the outcome is known

    def _commit(self) -> Steps[None]:
        transaction = self.current
        deadline = self._channel.deadline()
        decided: Completion[None] = Completion()
        self._channel.submit(transaction.when_decided, decided)  # on the loop, so that this comes after all sends
        yield decided, deadline.remaining()
        failure = transaction.failure
        if failure is None and not decided.done:
            failure = RequestTimedOutException(f"a send had no answer within {deadline}")
        if failure is not None:
            yield from self._roll_back(by_caller=False)
            raise _rolled_back(transaction, "because one of its sends failed", failure)
        error = yield from self._discharge(self._ask_to_commit)
        try:
            if error is not None:
                self.note_failures(transaction)
            else:
                transaction.ended("committed")
                self._forget_rollbacks(transaction)
                yield from self._remember(transaction)
        finally:  # also if the caller gives up while the guard's file is slow: a close may wait for the end (S84)
            for consumer in [*self._consumers.values()]:
                consumer.transaction_ended()
        if error is not None:
            known = isinstance(error, TransactionRolledBackException) and not error.in_doubt
            transaction.ended("rolled_back" if known else "unknown")
            raise _rolled_back(transaction, "because the commit failed", error, in_doubt=not known)

    def _ask_to_commit(self, number: int, done: Completion[None]) -> None:
        """Ask the broker to commit, unless another thread has closed the session (S84). A close has rolled back the
        work of the transaction. Without this check, some providers would commit an empty transaction, and the caller
        would believe that its work took effect. Runs on the loop.
        """
        if self._session_ended:
            done.fail(TransactionRolledBackException("the session was closed before the broker was asked to commit"))
        else:
            self._channel.provider.commit(number, done)

    def end(self, done: Completion[None]) -> None:
        """Roll the open transaction back, because the session ends. A later commit fails. Runs on the loop."""
        self._session_ended = True
        self._channel.provider.rollback(self._number, done)

    def note_failures(self, transaction: Transaction) -> None:
        """Remember that the messages of the transaction go back as failed, once for each transaction (S115)."""
        if not transaction.noted:
            transaction.noted = True
            for consumer, inbound in self._received(transaction):
                consumer.failed(inbound)

    def _received(self, transaction: Transaction) -> Iterator[tuple[Participant, Inbound]]:
        """Yield each message that the transaction acknowledged, with its consumer, unless the consumer is gone."""
        for message in transaction.acknowledged:
            consumer = self._consumers.get(message._delivery.consumer_id)
            if consumer is not None:
                yield consumer, message._delivery

    def _forget_rollbacks(self, transaction: Transaction) -> None:
        if self._channel.rolled_back:
            for consumer, inbound in self._received(transaction):
                consumer.committed(inbound)

    def _remember(self, transaction: Transaction) -> Steps[None]:
        """Remember that the messages of the transaction were processed (S105). The commit took effect already. So if
        the file cannot be written, the commit has not failed, and the error goes to the exception listener.
        """
        if self._memory.store is None:
            return
        for consumer, inbound in self._received(transaction):
            # a message without an outcome was put back, because Ctrl-C came before it joined the transaction
            if inbound.settled and consumer.guard is not None:
                consumer.guard.add_one(inbound)
        if transaction.acknowledged and self._memory.file is not None:
            written: Completion[None] = Completion()
            self._memory.file.add((), written.succeed)
            yield written, self._channel.options.request_timeout

    def rollback(self) -> Steps[None]:
        """Undo the work of the transaction. The messages that it received are delivered again, before newer messages,
        and the redelivery is counted (S80, S83)."""
        error = yield from self._alone(self._roll_back(by_caller=True))
        if error is not None and self._channel.failure is None:
            raise error.fresh() if isinstance(error, JMSException) else error

    def _roll_back(self, *, by_caller: bool) -> Steps[BaseException | None]:
        transaction = self.current
        # set before the waits, so that this transaction cannot be committed if the caller gives up during a wait
        if transaction.failure is None:
            transaction.failure = TransactionRolledBackException("an earlier rollback was interrupted")
        transaction.ended("rolled_back")
        for consumer, inbound in self._received(transaction):
            consumer.rolled_back(inbound, by_caller=by_caller)
        taking_part = [c for c in [*self._consumers.values()] if c.takes_part]
        for consumer in taking_part:
            yield from consumer.halt()
        error = yield from self._discharge(self._channel.provider.rollback, taking_part)
        for consumer in taking_part:
            yield from consumer.resume()
        return error

    def _discharge(self, operation: Any, undone: Iterable[Participant] = ()) -> Steps[BaseException | None]:
        """End the transaction, and begin the next one in the same burst. Return the error if the end failed.

        If the transaction is rolled back, the consumers in ``undone`` give their prefetched messages back:

        - after the rollback, because ActiveMQ Classic delivers messages again in the order in which they went back to
          the queue (Artemis keeps the order of the queue in any case);
        - before new credit is granted;
        - in the same command as the rollback. Some providers do not give messages to the broker, but deliver them again
          themselves. If the broker is quick, such a provider could otherwise deliver the prefetched messages before the
          messages of the rollback.

        The new :class:`Transaction` is made only after the request was submitted. So if Ctrl-C ends the caller before
        that, the old transaction is still the open one.
        """
        ended: Completion[None] = Completion()
        begun: Completion[None] = Completion()
        unseen: list[tuple[Participant, Runs]] = []
        try:
            for consumer in undone:
                unseen.append((consumer, []))
                consumer.take_unseen(unseen[-1][1])
            self._channel.submit(self._end_transaction, operation, ended, begun, unseen)
        except BaseException:
            for consumer, runs in unseen:
                consumer.send_after_all(runs)
            raise
        try:
            self.current = Transaction()
            self._memory.handed_out.clear()
            deadline = self._channel.deadline()
            if not (yield ended, deadline.remaining()) and not ended.done:
                return RequestTimedOutException("the broker did not end the transaction within jms.requestTimeout")
            # an error of the next transaction does not matter here, because the next commit raises it
            if not begun.done:
                yield begun, deadline.remaining()
        except BaseException:
            self._leave_behind(ended)
            raise
        return ended.error

    def _leave_behind(self, ended: Completion[None]) -> None:
        """Let the closed consumers end as soon as the broker has ended the transaction, because the caller gave up and
        does not wait for the end.
        """
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
        """Ask the broker to end the transaction and to begin the next one, and send the outcomes. Runs on the loop."""
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
        f"the transaction {outcome} {what}: {cause}",
        error_code=getattr(cause, "error_code", None),
        sent=transaction.sent,
        acknowledged=[i for i in ids if i is not None],
        in_doubt=in_doubt,
    )
    error.__cause__ = cause
    return error


def _over(steps: Steps[Any]) -> bool:
    return getgeneratorstate(steps) == GEN_CLOSED


def _finish(consumer: Participant, _: Completion[None]) -> None:
    consumer.finish_if_closed()
