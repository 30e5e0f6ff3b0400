"""A session's transaction: commit, rollback, and what is known of one whose connection was lost (S75-S87)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.duplicates import FileStore, InHand, make_store
from pyjmsack.core.settling import Runs
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.transaction import Transaction
from pyjmsack.errors import (
    IllegalStateException,
    JMSException,
    RequestTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import SessionInfo

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection

__all__ = ["Transacting"]


class Transacting(ABC):
    """The half of a session that commits and rolls back."""

    def __init__(self, connection: Connection, info: SessionInfo) -> None:
        self.connection = connection
        self.info = info
        self.started = False
        """Whether messages may be handed out; see ``update``."""
        self._endings: set[object] = set()
        """Commits and rollbacks under way."""
        self.transaction = Transaction()
        self.consumers: dict[int, Consumer] = {}
        self.processed = make_store(connection)
        """Which messages were processed in this session, so that none is twice after a failover (S105)."""
        self.in_hand = InHand()
        """What the callers of its consumers have, for the same purpose; the guards of the consumers fill it."""

    def opened(self) -> Steps[None]:
        """Wait until the session can remember what was processed.

        Raises:
            JMSException: the file for that cannot be used.
        """
        if isinstance(self.processed, FileStore):
            yield from self.processed.opened()

    def forget(self) -> None:
        """Nothing more is processed in this session."""
        if self.processed is not None:
            self.processed.close()

    @abstractmethod
    def check_open(self) -> None:
        """Raise if the session or its connection is closed."""

    @abstractmethod
    def check_not_in_callback(self, what: str) -> None:
        """Raise if the caller is in a completion listener of this session (S74)."""

    @abstractmethod
    def update(self) -> None:
        """Let messages flow, or stop them, as is right now."""

    @property
    def ending(self) -> bool:
        """Whether a commit or rollback is under way."""
        return bool(self._endings)

    def _ending_is_over(self, ending: object) -> None:
        """It is over, or its caller gave up in the middle."""
        self._endings.discard(ending)
        self.update()

    def commit(self) -> Steps[None]:
        """Make the transaction's work take effect (S75, S78).

        Every send must be answered first: a discharge sent behind one that the broker then refuses would commit the
        others without it.

        Raises:
            IllegalStateException: the session is not transacted (S7), or the caller is in a completion listener (S74).
            TransactionRolledBackException: it was rolled back, or the outcome is unknown (S79, S86, S87, S94).
        """
        self._check_transacted("commit()")
        transaction = self.transaction
        ending = object()
        try:
            self._endings.add(ending)
            self.started = False
            yield from self._commit()
        finally:
            self._ending_is_over(ending)
            if transaction is not self.transaction:  # else nothing was asked of the broker, and it is still open
                transaction.ended("unknown")  # unless it is known

    def _commit(self) -> Steps[None]:
        transaction = self.transaction
        timeout = self.connection.options.request_timeout
        deadline = Deadline(timeout)
        decided: Completion[None] = Completion()
        self.connection.submit(transaction.when_decided, decided)  # the loop knows: it comes behind all sends
        yield decided, deadline.remaining()
        failure = transaction.failure
        if failure is None and not decided.done:
            failure = RequestTimedOutException(f"a send had no answer within jms.requestTimeout ({timeout:g} s)")
        if failure is not None:
            yield from self._roll_back()
            raise self._rolled_back(transaction, "a send of it failed", failure)
        error = yield from self._discharge(self.connection.provider.commit)
        if error is None:
            transaction.ended("committed")
            if self.processed is not None:
                yield from self._remember(transaction)
        for consumer in [*self.consumers.values()]:
            consumer.transaction_ended()
        if error is not None:
            known = isinstance(error, TransactionRolledBackException) and not error.in_doubt
            transaction.ended("rolled_back" if known else "unknown")
            raise self._rolled_back(transaction, "the commit failed", error, in_doubt=not known)

    def _remember(self, transaction: Transaction) -> Steps[None]:
        """What the transaction received is processed now (S105). It took effect: a file that cannot be written is no
        failure of it, and its error goes to the exception listener."""
        for message in transaction.acknowledged:
            consumer = self.consumers.get(message._delivery.consumer_id)
            kept = message._delivery.settled  # else Ctrl-C came before it joined the transaction, and it was put back
            if kept and consumer is not None and consumer.guard is not None:
                consumer.guard.add_one(message._delivery)
        if transaction.acknowledged and isinstance(self.processed, FileStore):
            written: Completion[None] = Completion()
            self.processed.add((), written.succeed)
            yield written, self.connection.options.request_timeout

    def rollback(self) -> Steps[None]:
        """Undo the transaction's work; its messages come again, before newer ones, counted (S80, S83).

        Raises:
            IllegalStateException: the session is not transacted (S7), or the caller is in a completion listener (S74).
        """
        self._check_transacted("rollback()")
        ending = object()
        try:
            self._endings.add(ending)
            self.started = False
            error = yield from self._roll_back()
        finally:
            self._ending_is_over(ending)
        if error is not None and self.connection.failure is None:
            raise error.fresh() if isinstance(error, JMSException) else error

    def _roll_back(self) -> Steps[BaseException | None]:
        if self.transaction.failure is None:  # a caller who gives up below has still asked for the rollback
            self.transaction.failure = TransactionRolledBackException("its rollback was interrupted")
        self.transaction.ended("rolled_back")
        for message in self.transaction.acknowledged:
            consumer = self.consumers.get(message._delivery.consumer_id)
            if consumer is not None and consumer.limit is not None:
                consumer.limit.rolled_back(message._delivery)
        taking_part = [c for c in [*self.consumers.values()] if c.in_transaction]
        for consumer in taking_part:
            yield from consumer.halt()
        error = yield from self._discharge(self.connection.provider.rollback, taking_part)
        for consumer in taking_part:
            yield from consumer.resume()
        return error

    def _discharge(self, operation: Any, undone: Iterable[Consumer] = ()) -> Steps[BaseException | None]:
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
        self.connection.submit(self._end_transaction, operation, ended, begun, unseen)
        try:
            self.transaction = Transaction()
            self.in_hand.clear()
            deadline = Deadline(self.connection.options.request_timeout)
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
        for consumer in [*self.consumers.values()]:
            consumer.in_transaction = False
            ended.add_callback(partial(_finish, consumer))

    def _end_transaction(
        self, operation: Any, ended: Completion[None], begun: Completion[None], unseen: Iterable[tuple[Consumer, Runs]]
    ) -> None:
        """On the loop."""
        operation(self.info.id, ended)
        self.connection.provider.begin(self.info.id, begun)
        for consumer, runs in unseen:
            consumer.settle_now(runs)

    @staticmethod
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

    def _check_transacted(self, what: str) -> None:
        self.check_open()
        if not self.info.transacted:
            raise IllegalStateException(f"{what} needs a transacted session (S7)")
        self.check_not_in_callback(what)


def _finish(consumer: Consumer, _: Completion[None]) -> None:
    consumer.finish_if_closed()
