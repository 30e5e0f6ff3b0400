"""Receiving: what may be handed out, who acknowledges it and when, and what comes again (S16-S38, S49-S53)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from pyjmsack.core.duplicates import DuplicateGuard, MemoryStore
from pyjmsack.core.holding import Holding
from pyjmsack.core.inbox import PriorityInbox
from pyjmsack.core.lanes import Lanes
from pyjmsack.core.limit import RedeliveryLimit
from pyjmsack.core.settling import Runs, Settling
from pyjmsack.core.stats import ConsumerStats
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.transformer import received
from pyjmsack.errors import IllegalStateException, JMSException, MessageFormatException, RequestTimedOutException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckMode, AckType, Outcome

if TYPE_CHECKING:
    from pyjmsack.core.session import Session

__all__ = ["Consumer"]

log = logging.getLogger("pyjmsack")
T = TypeVar("T")
SHOWN = 1 << 20
"""Messages of one iteration that a browser in a failover URL remembers, to go on where a lost connection stopped it."""


class Consumer(Settling):
    """The core of one consumer.

    The loop appends to ``inbox``; the session's thread (or dispatcher) takes from it.
    """

    def __init__(self, session: Session, prefetch: int, *, allow_pull_listener: bool) -> None:
        super().__init__(session, prefetch)
        self.listener: Callable[[Message], Any] | None = None
        self.on_arrival: Callable[[], None] | None = None
        """Told of messages, loss and close, instead of a caller who waits; must not block."""
        self.closed = False
        self.error: BaseException | None = None
        self.acknowledger: Any = None
        self._allow_pull_listener = allow_pull_listener
        self._step = max(1, prefetch // 10)
        self._taken = 0
        self._delivered = 0
        self._redelivered = 0
        self._duplicates_skipped = 0
        self._may_repeat = False
        """Whether a message may come that was processed before: one connection brings none twice (S105)."""
        self._shown: DuplicateGuard | None = None
        """What a browser showed: after a failover it starts at the head again."""
        self._arrivals: list[Completion[None]] = []
        self._scheduled = False
        self.in_transaction = False
        """Whether it delivered messages of the open transaction (S83, S84)."""
        self._finishing = False
        self.lanes: Lanes | None = None
        self.drained = False
        """Whether ``drain()`` was called: it hands out nothing any more."""

    def bind(self, info: ConsumerInfo) -> None:
        """Take the descriptor and prepare what every message needs."""
        super().bind(info)
        options = self._connection.options
        self._checks_expiry = options.local_message_expiry and not info.browser
        self._redelivery_policy = options.redelivery_policy_for(info.destination)
        self.limit: RedeliveryLimit | None = None
        if self._redelivery_policy.max_redeliveries is not None and not info.browser:
            self.limit = RedeliveryLimit(self._redelivery_policy, transacted=self._transacted)
        self._validate_names = options.validate_property_names
        if options.local_message_priority and not info.browser:  # a browser shows the order of the queue
            self.inbox = PriorityInbox()
        self._holding: Holding | None = None
        if self._redelivery_policy.delays and not info.browser:
            call_later, blocking = self._connection.runtime.call_later, not options.non_blocking_redelivery
            self._holding = Holding(self._redelivery_policy, blocking, self.inbox, call_later, self.arrived)
        self._may_repeat = self.guard is not None and (self.guard.outlives or self._connection.lost_generation > 0)
        if info.browser and self.session.processed is not None:
            self._shown = DuplicateGuard(MemoryStore(SHOWN), info, self._connection.info.client_id)

    # -- from the provider, on the loop -------------------------------------------------------------------------

    def deliver(self, inbound: Inbound) -> None:
        """Buffer one message."""
        self.inbox.append(inbound)

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put back, before what is buffered, what the caller had; oldest first."""
        self.inbox.extendleft(reversed(inbounds))
        self.arrived()

    def arrived(self) -> None:
        """Wake who waits; once per burst."""
        while self._arrivals:
            try:
                self._arrivals.pop().succeed()
            except IndexError:  # its owner gave up at the same moment
                break
        if self.listener is not None:
            self.schedule()
        elif self.on_arrival is not None:
            self.on_arrival()

    def buffered(self) -> int:
        """How many messages wait here."""
        return len(self.inbox) + (0 if self._holding is None else len(self._holding))

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer, or its connection is lost, which reports that itself (S126, S128)."""
        if self.closed:
            return
        self.error = error
        self.inbox.clear()  # these are the broker's again: no outcome for them would arrive
        if self._holding is not None:
            self._holding.release()
        self.arrived()
        if self.listener is not None and self._connection.failure is None:
            self._connection.report(error)

    def interrupted(self) -> None:
        """The connection is lost and is being rebuilt: what is buffered comes again, and what the caller has stays
        readable (S101)."""
        self.inbox.clear()
        if self._holding is not None:
            self._holding.release()
        self.flush_acks()
        self._stale = dict.fromkeys(self._take_delivered())
        self.guard = self._shown or self.guard
        self._may_repeat = self.guard is not None
        self.finish_if_closed()

    # -- taking a message ---------------------------------------------------------------------------------------

    @property
    def _stalled(self) -> bool:
        """Whether nothing is handed out although the inbox may hold messages."""
        if self._holding is not None and self._holding.blocks:
            return True
        return self.drained or (self._window is not None and self._window.is_full(len(self.delivered)))

    def take(self) -> Message | None:
        """Return the next message that may be handed out, not acknowledged yet, or ``None`` (S22, S156, S111, S166)."""
        inbox = self.inbox
        if self._stalled:
            return None
        while inbox and self.session.started:
            try:
                inbound = inbox.popleft()
            except IndexError:  # rollback or recover emptied it
                return None
            if self._holding is not None and self._holding.must_wait(inbound):
                if self._holding.blocks:
                    return None
                continue
            self._taken += 1
            if self._taken % self._step == 0:
                self._connection.submit(self._provider.replenish, self.info.id)
            message = self._admit(inbound)
            if message is not None:
                return message
        return None

    def _admit(self, inbound: Inbound) -> Message | None:
        refusal: Outcome | None = None
        ack_type: AckType | None = None
        message: Message | None = None
        count = inbound.redelivery_count + inbound.redeliveries
        if self._may_repeat and not inbound.redeliveries and self.guard is not None and self.guard.knows(inbound):
            self._duplicates_skipped += 1
            self.in_transaction = self._transacted
            refusal = Outcome.ACCEPTED
        elif self._checks_expiry and inbound.expired(time.time_ns() // 1_000_000):
            refusal, ack_type = Outcome.MODIFIED_FAILED_UNDELIVERABLE, AckType.EXPIRED
        elif self.limit is not None and self.limit.exceeded(inbound):
            refusal, ack_type = self._redelivery_policy.outcome, AckType.POISON
        else:
            try:
                message = inbound.to_message(self.info.destination)
            except MessageFormatException as error:
                log.error("a message on %s cannot be decoded and is refused: %s", self.info.destination.name, error)
                refusal = Outcome.MODIFIED_FAILED_UNDELIVERABLE
            else:
                message, refusal = self._transformed(message)
        if message is None:
            self.settle(inbound, refusal or Outcome.RELEASED, ack_type)
            return None
        message._redelivery_count = count
        message._delivery = inbound
        message._validate_names = self._validate_names
        self._delivered += 1
        if count:
            self._redelivered += 1
        return message

    def _transformed(self, message: Message) -> tuple[Message | None, Outcome | None]:
        """Return what the hook makes of a message, or what becomes of one on which it raises: counted, it comes again,
        as when a listener raises (S18, S192)."""
        transform = self._connection.transform_received
        if transform is None:
            return message, None
        try:
            return received(transform, message, self.info.destination), None
        except JMSException as error:
            log.warning("%s", error, exc_info=error.__cause__)
            self._connection.report(error)
            return None, Outcome.MODIFIED_FAILED

    def receive_now(self, body_type: type[Any] | None = None) -> Message | None:
        """Take a message and acknowledge it as its mode wants for ``receive()`` (S16): before it is handed out.

        Raises:
            MessageFormatException: its body is not a ``body_type``; in the automatic modes it is put back (S176).
        """
        message = self.take()
        if message is not None:
            fits = body_type is None or message.is_body_assignable_to(body_type)
            if not fits and self._auto:
                self.inbox.appendleft(message._delivery)
            else:
                self._on_handover(message, acknowledge=True)
            if not fits:
                raise MessageFormatException(f"receive_body: {message!r} has no body of type {body_type!r} (S176)")
        return message

    def _on_handover(self, message: Message, *, acknowledge: bool) -> None:
        inbound: Inbound = message._delivery
        if self.record is not None:
            self.record.handed_over(inbound, message)
        if inbound.settled:
            return
        if self._auto:
            if acknowledge:
                self._consumed(inbound)
            else:
                self.delivered[inbound] = None
        elif self._transacted:
            self.session.transaction.acknowledged.append(message)
            self.in_transaction = True
            self.settle(inbound, Outcome.ACCEPTED)
        elif self.tracks:
            self.delivered[inbound] = None
            message._ack = self.acknowledger
            if self._window is not None:
                self._window.check(len(self.delivered), self.info.destination)

    # -- blocking receive ---------------------------------------------------------------------------------------

    def receive(self, timeout: float | None, body_type: type[Any] | None = None) -> Steps[Message | None]:
        """Take a message within ``timeout`` seconds, asking the broker before ``None`` is returned (S22, S24, S50)."""
        deadline = Deadline(timeout)
        options = self._connection.options
        local_only = options.receive_no_wait_local_only if timeout == 0 else options.receive_local_only
        while True:
            message = self.receive_now(body_type)
            if message is not None or self.closed or self.drained:
                return message
            self._check_alive()
            if deadline.expired:
                break
            if self._prefetch == 0 and self.session.started and not self.inbox:
                self._connection.submit(self._provider.pull, self.info.id)
            yield from self._wait_for_arrival(deadline)
        if not self.session.started or (local_only and self._prefetch > 0):
            return None
        return (yield from self._receive_drained(body_type))

    def _receive_drained(self, body_type: type[Any] | None) -> Steps[Message | None]:
        """Let the broker send what it has, then look once more (S24). Unbounded but for ``amqp.drainTimeout``."""
        done: Completion[None] = Completion()
        self._connection.submit(self._provider.drain, self.info.id, done)
        try:
            yield done, None
        finally:  # also if the caller gives up: the drain used the credit up
            if self._prefetch > 0 and not self.drained:
                self._connection.submit(self._provider.start_consumer, self.info.id)
        message = self.receive_now(body_type)
        if message is None and not self.closed:
            self._check_alive()
            done.result()
        return message

    def receive_body(self, body_type: type[T], timeout: float | None) -> Steps[T | None]:
        """Receive, and return the body alone (S176)."""
        message = yield from self.receive(timeout, body_type)
        return None if message is None else message.get_body(body_type)

    def browse(self) -> Steps[Message | None]:
        """Return the next message of a browser, ``None`` at the end, and on a stopped connection (S134, S135).

        Raises:
            RequestTimedOutException: the broker does not say what else there is.
        """
        self.session.check_open()
        timeout = self._connection.options.request_timeout
        message = self.take()
        looks = 2  # Artemis 2.56 sometimes answers a browser's drain before it delivers: one empty look proves nothing
        while message is None and looks and self.session.started and not self.closed:
            looks -= 1
            done: Completion[None] = Completion()
            self._connection.submit(self._provider.start_consumer, self.info.id)
            self._connection.submit(self._provider.drain, self.info.id, done)
            answered = (yield done, timeout) or done.done
            message = self.take()
            if message is None:
                self._check_alive()
            if message is None and not self.closed:
                if not answered:
                    name = self.info.destination.name
                    raise RequestTimedOutException(
                        f"browsing {name}: no answer within jms.requestTimeout ({timeout:g} s)"
                    )
                done.result()
        if message is not None and self._shown is not None:
            self._shown.add((message._delivery,))
        return message

    def _wait_for_arrival(self, deadline: Deadline) -> Steps[None]:
        arrival: Completion[None] = Completion()
        self._arrivals.append(arrival)
        # The loop appends to the inbox before it looks for arrivals, and we add ours before we look at the inbox again,
        # so one of the two sees the other. A stopped connection lets the inbox fill: only start() wakes us then.
        try:
            ready = self.inbox and self.session.started and not self._stalled
            if not ready and not self.closed and not self.drained and self.error is None:
                yield arrival, deadline.remaining()
        finally:
            with suppress(ValueError):  # it was taken out to be woken
                self._arrivals.remove(arrival)

    def _check_alive(self) -> None:
        if self.error is not None:
            cause = self.error
            raise cause.fresh() if isinstance(cause, JMSException) else cause

    def check_open(self) -> None:
        """Raise if this consumer is closed (S125)."""
        if self.closed:
            error = IllegalStateException("the consumer is closed")
            error.__cause__ = self.error
            raise error
        self.session.check_open()

    def check_receive(self) -> None:
        """Raise if ``receive`` is not allowed now (S8, S125)."""
        self.check_open()
        if self.session.has_listener:
            raise IllegalStateException("receive() is not allowed while a consumer of this session has a listener (S8)")

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
        if self.inbox and not self._stalled and not (self.lanes is not None and self.lanes.full):
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
        self.closed = True
        self.session.listener_changed()
        self.arrived()
        try:
            yield from self.session.handler_idle()
            self.flush_acks()
            done: Completion[None] = Completion()
            self._connection.submit(self._provider.stop_consumer, self.info.id, done)
            yield done, self._connection.options.close_timeout
        except GeneratorExit:  # the caller gave up: finish without waiting
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
        self._connection.submit(self.close_link, self.info.id, done)

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
