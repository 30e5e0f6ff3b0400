"""A consumer: its listener, what comes again, and its end (S19, S20, S29-S38, S57, S125, S141)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import groupby
from typing import Any

from pyjmsack.core.receiving import Receiving
from pyjmsack.core.settling import Runs
from pyjmsack.core.stats import ConsumerStats
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import AckMode, AckType, Outcome

__all__ = ["Consumer"]

log = logging.getLogger("pyjmsack")


class Consumer(Receiving):
    """The core of one consumer."""

    # -- listener -----------------------------------------------------------------------------------------------

    def set_listener(self, listener: Callable[[Message], Any] | None, concurrency: int = 1) -> None:
        """Install or remove a listener (S9), for ``concurrency`` messages at a time."""
        self.check_open()
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise ValueError(f"concurrency {concurrency!r}: expected a whole number of at least 1")
        mode = self.session.info.ack_mode
        if concurrency > 1 and mode in (AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED):
            raise IllegalStateException(
                f"{mode.name} acknowledges messages together, so a listener with concurrency {concurrency} would "
                "acknowledge those that others are still working on; use INDIVIDUAL_ACKNOWLEDGE or AUTO_ACKNOWLEDGE"
            )
        if listener is not None and not callable(listener):
            raise TypeError(f"message_listener: expected a callable, not {type(listener).__name__}")
        if self._prefetch == 0 and not self._allow_pull_listener:
            raise IllegalStateException(
                "a listener needs a prefetch of at least 1; prefetch 0 fetches only in receive() "
                "(destination option consumer.allowPullListener=true allows it, S9)"
            )
        if listener is not None:
            self._check_alive()
        self.listener = listener
        self.lanes = None if concurrency == 1 else self.session.lanes(concurrency)
        self.session.listener_changed()
        if listener is not None:
            self.schedule()

    def schedule(self) -> None:
        """Let the session's dispatcher come by, unless it is already on its way."""
        if not self._scheduled and self.listener is not None and self.session.started and not self.closed:
            self._scheduled = True
            self.session.dispatch(self)

    def unscheduled(self) -> None:
        """The dispatcher has emptied the inbox: look again, for what came meanwhile."""
        self._scheduled = False
        waits = self._stalled or self._in_work or (self.lanes is not None and self.lanes.full)
        if self.inbox and not waits:
            self.schedule()
        elif self._prefetch == 0 and not self.inbox and self.listener is not None and self.session.started:
            self._connection.submit(self._provider.pull, self.info.id)

    def begin_dispatch(self) -> Message | None:
        """Take a message for a listener, which the caller has in hand: nobody else would get it any more.

        In a transaction the message joins it now, so that a commit inside the listener covers it.
        """
        if self.closed or (self.lanes is not None and self.lanes.full):
            return None
        message = self.take()
        if message is not None:
            self._on_handover(message, acknowledge=False)
        return message

    def end_dispatch(self, message: Message, error: BaseException | None) -> bool:
        """The listener returned or raised (S17-S21). What it settled or recovered itself is left alone (S33).

        Returns:
            True if the session's work must be undone now: ``jms.rollbackOnListenerError``.
        """
        inbound: Inbound = message._delivery
        if error is not None:
            log.warning("the listener of %s raised", self.info.destination.name, exc_info=error)
        if self._auto:
            failed = self._connection.options.listener_error_outcome
            self.settle_one(inbound, Outcome.ACCEPTED if error is None else failed)
        elif error is not None and self.session.info.ack_mode.individual:
            self.settle_one(inbound, Outcome.MODIFIED_FAILED)
        elif error is not None:
            what = f"{type(error).__name__}: {error}"
            failure = JMSException(f"the listener of {self.info.destination.name} raised {what}")
            failure.__cause__ = error
            self._connection.report(failure)
            return self._connection.options.rollback_on_listener_error
        return False

    # -- recover, rollback, close -------------------------------------------------------------------------------

    def recover(self) -> None:
        """Put back what the caller has, oldest first and before newer messages, counted once more (S32)."""
        if self.closed:
            self.settle_delivered(Outcome.MODIFIED_FAILED)
            return
        self._stale.clear()
        delivered = self._take_delivered()
        for inbound in delivered:
            inbound.redeliveries += 1
        self.redeliver(delivered)

    def halt(self) -> Steps[None]:
        """Drain what is on its way: nothing newer may come before what the rollback brings again (S83)."""
        if self._prefetch > 0:
            done: Completion[None] = Completion()
            self._connection.submit(self._provider.drain, self.info.id, done)
            yield done, None

    def release_inbox(self) -> None:
        """Hand back what nobody saw: uncounted, unless an earlier recover() had shown it (S30, S31)."""
        self.settle_runs(self.take_unseen())

    def take_unseen(self) -> Runs:
        """Take what nobody saw out of the inbox, and return it with its outcomes, oldest first."""
        inbox, taken = self.inbox, []
        if self._holding is not None:
            inbox.extend(self._holding.release())
        while inbox:
            try:
                taken.append(inbox.popleft())
            except IndexError:  # the loop emptied it: the broker has them already
                break
        return self.mark_runs((outcome, run) for outcome, run in groupby(taken, _handed_back))

    def resume(self) -> Steps[None]:
        """The rollback is over: finish a close that waited for it (S84)."""
        self.in_transaction = False
        if self.closed:
            yield from self._detach()

    def transaction_ended(self) -> None:
        """A commit needs no drain."""
        self.in_transaction = False
        self.finish_if_closed()

    def close(self) -> Steps[None]:
        """Close for the caller; the link stays as long as delivered messages may still be acknowledged (S29, S84)."""
        if self.closed:
            return
        try:
            self.closed = True
            self.session.listener_changed()
            self.arrived()
            yield from self.session.handler_idle()
            self.flush_acks()
            done: Completion[None] = Completion()
            self._connection.submit(self._provider.stop_consumer, self.info.id, done)
            yield done, self._connection.options.close_timeout
        except BaseException:  # the caller gave up: finish without waiting
            self.flush_acks()
            self._connection.submit(self._provider.stop_consumer, self.info.id, Completion())
            self.release_inbox()
            self.finish_if_closed()
            raise
        self.release_inbox()
        if not self.delivered and not self.in_transaction:
            yield from self._detach()

    def _after_settling(self) -> None:
        """The caller holds less: a closed consumer may end, one at its window go on (S56)."""
        self.finish_if_closed()
        if self._window is not None and self.inbox:
            self.arrived()

    def finish_if_closed(self) -> None:
        """The last delivered message of a closed consumer is settled: detach without waiting."""
        if self.closed and not self.delivered and not self.in_transaction and not self._finishing:
            self._submit_detach(Completion())

    def _submit_detach(self, done: Completion[None]) -> None:
        self._finishing = True
        self._end_record()
        self.session.consumers.pop(self.info.id, None)
        self.submit_behind(self.close_link, self.info.id, done)

    def _end_record(self) -> None:
        if self.record is not None:
            self.record.over()

    def close_link(self, number: int, done: Completion[None]) -> None:
        """Detach, on the loop; the name of its subscription is free once the broker has answered (S141)."""
        if self.info.subscription is not None:
            self._connection.subscriptions.release_after(self.info.subscription, done)
        self._provider.close_consumer(number, done)

    def _detach(self) -> Steps[None]:
        if self._finishing:
            return
        done: Completion[None] = Completion()
        self._submit_detach(done)
        yield from self._connection.answer(
            done, f"closing the consumer of {self.info.destination.name}", self._connection.options.close_timeout
        )

    def abandon(self) -> None:
        """The session is closing: delivered messages go back counted, prefetched ones uncounted (S30, S31)."""
        self.closed = True
        self.flush_acks()
        self._stale.clear()
        self.settle_batch(self._take_delivered(), Outcome.MODIFIED_FAILED)
        self._end_record()
        self.release_inbox()
        self.arrived()

    def drain(self, timeout: float | None) -> Steps[bool]:
        """End without loss: hand out nothing more, let the listener at work finish, send the acknowledgements that
        wait, and give back uncounted what nobody saw. What the caller holds may still be acknowledged.

        Returns:
            False if the listener at work did not finish within ``timeout`` seconds; then nothing of what it does is
            lost: its message keeps the outcome that it gets.
        """
        self.check_open()
        deadline = Deadline(timeout)
        self.drained = True
        self.arrived()
        done: Completion[None] = Completion()
        self._connection.submit(self._provider.stop_consumer, self.info.id, done)
        yield done, deadline.remaining()
        yield from self.session.handler_idle(deadline)
        self.flush_acks()
        self.release_inbox()
        return not deadline.expired

    @property
    def stats(self) -> ConsumerStats:
        """Counts now."""
        return ConsumerStats(
            buffered=self.buffered(),
            delivered=self._delivered,
            unacknowledged=self._unacknowledged,
            acknowledged=self._acknowledged,
            redelivered=self._redelivered,
            duplicates_skipped=self._duplicates_skipped,
            expired=self._ended[AckType.EXPIRED],
            poisoned=self._ended[AckType.POISON],
            stale=self._acknowledged_late,
        )


def _handed_back(inbound: Inbound) -> Outcome:
    return Outcome.MODIFIED_FAILED if inbound.redeliveries else Outcome.RELEASED
