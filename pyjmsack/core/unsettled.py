"""The messages that the caller of a consumer holds, and their acknowledgement (S16-S48, S56)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, MutableMapping, Sized
from contextlib import suppress
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from pyjmsack.core.batching import AckBatch, AckWindow, ack_threshold
from pyjmsack.core.guard import DuplicateGuard
from pyjmsack.core.recording import Deliveries
from pyjmsack.core.state import SessionState
from pyjmsack.core.stats import Counts
from pyjmsack.core.tracing import TracedConsumer
from pyjmsack.core.transaction import Runs
from pyjmsack.destination import Destination
from pyjmsack.loggers import get_logger
from pyjmsack.message import Acknowledger, Message
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckMode, AckType, Outcome

__all__ = ["Unsettled"]

ack_log = get_logger("pyjmsack.ack")
PLENTY = 32
"""While the inbox holds at least this number of messages, an acknowledgement or a request for more messages may wait.
Then several of them leave together. Neither the consumer nor the broker runs out of work meanwhile."""
_FAILED = (Outcome.MODIFIED_FAILED, Outcome.MODIFIED_FAILED_UNDELIVERABLE)
"""The outcomes that give a message back and count its delivery."""
GONE: Final = object()
"""The result of a pop from a table of messages, if another thread has taken the message out before."""
ACK_TYPES = {
    Outcome.ACCEPTED: AckType.STANDARD,
    Outcome.REJECTED: AckType.POISON,
    Outcome.RELEASED: AckType.REDELIVERED,
    Outcome.MODIFIED_FAILED: AckType.REDELIVERED,
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: AckType.POISON,
}
"""The ActiveMQ name of each outcome."""


class Messages(Protocol):
    """The part of an inbox that :class:`Unsettled` uses."""

    @property
    def messages(self) -> Sized:
        """The messages that nobody has yet."""
        ...

    def failed(self, inbound: Inbound) -> None:
        """Remember that a message that was handed out goes back as failed. Called before its outcome is chosen."""
        ...


class Unsettled:
    """The messages of one consumer that the caller has and has not acknowledged, and their acknowledgement.

    A message is in ``delivered`` while the caller has it. When the connection is lost, the loop moves the message to
    ``stale``. Three threads may use this object at the same time: the thread of the session, the thread of the loop,
    and a thread that closes the consumer. They follow three rules:

    - A thread first chooses the outcome of a message, once and under a lock, and then removes the message from
      ``delivered``. So when ``delivered`` is empty, all outcomes were given to the loop, and the link may end.
    - The thread that removes a message from ``delivered`` decides where the message goes. The other threads do nothing
      with the message.
    - The loop moves messages to ``stale`` under the lock. So a thread that finds a message neither in ``delivered`` nor
      in ``stale`` looks again under the lock.

    Args:
        session: the facts about the session that its producers and consumers may read.
        info: the consumer.
        inbox: the inbox of the consumer.
        guard: remembers processed messages. ``None`` means that nothing is remembered.
        counts: the counters of the consumer.
        acknowledger: carries out ``message.acknowledge()`` in this face.
        released: called when the caller holds fewer messages than before.
        trace: makes spans. ``None`` means that there are no spans.

    Raises:
        IllegalStateException: the options contradict each other (S10).
    """

    __slots__ = (
        "_acknowledger",
        "_batch",
        "_channel",
        "_choosing",
        "_counts",
        "_destination",
        "_inbox",
        "_plenty",
        "_provider",
        "_released",
        "_session",
        "_traces",
        "_transacted",
        "_writes",
        "auto",
        "delivered",
        "guard",
        "in_transaction",
        "record",
        "stale",
        "tracks",
        "window",
    )

    def __init__(
        self,
        session: SessionState,
        info: ConsumerInfo,
        inbox: Messages,
        guard: DuplicateGuard | None,
        counts: Counts,
        acknowledger: Acknowledger,
        released: Callable[[], None],
        trace: TracedConsumer | None,
    ) -> None:
        channel, mode, options = session.channel, session.info.ack_mode, session.channel.options
        self._session = session
        self._channel = channel
        self._destination = info.destination
        self._provider = channel.provider
        self._acknowledger = acknowledger
        self._released = released
        self._inbox = inbox
        self._plenty = max(1, min(info.prefetch // 2, PLENTY))
        self._traces = ack_log.isEnabledFor(logging.DEBUG)
        self._transacted = mode is AckMode.SESSION_TRANSACTED
        self.tracks = (mode is AckMode.CLIENT_ACKNOWLEDGE or mode.individual) and not info.browser
        self.auto = mode in (AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE) and not info.browser
        self.delivered: dict[Inbound, None] = {}
        """The messages that the caller has, oldest first."""
        self.stale: MutableMapping[Inbound, None] = {} if mode is AckMode.CLIENT_ACKNOWLEDGE else WeakKeyDictionary()
        """The messages that the caller had when the connection was lost. The broker delivers them again, so an
        acknowledgement has no effect (S95). In CLIENT mode this table keeps the messages alive, because in this mode
        ``acknowledge()`` includes messages to which the caller has no reference any more."""
        self.in_transaction = False
        """Whether the open transaction has messages of this consumer (S83, S84)."""
        self._choosing = channel.runtime.lock()
        """A lock that protects the choice of an outcome, the counters of outcomes, and ``stale``. The caller chooses
        outcomes, and so does the loop, for instance when the time of a batch is over."""
        self._counts = counts
        size = ack_threshold(mode, info.destination, info.prefetch, options.optimize_acknowledge) if self.auto else 1
        limits = (options.optimize_acknowledge_time_out, options.optimized_ack_scheduled_ack_interval)
        timeout = min((limit for limit in limits if limit), default=None)
        settle = self.settle_batch if trace is None else trace.batches(self.settle_batch)
        self._batch = AckBatch(settle, channel.runtime.call_later, size, timeout) if size > 1 else None
        self.window = AckWindow(info.prefetch, options.ack_window) if self.tracks else None
        """Limits the messages that the caller may hold. ``None`` in modes in which the caller does not acknowledge."""
        self.record: Deliveries | None = None
        """Writes records for the ledger. ``None`` if there is no ledger."""
        if channel.recorder is not None and not info.browser:
            self.record = Deliveries(channel.recorder, session, info)
        self.guard = guard
        self._writes = guard is not None and guard.file is not None and not self._transacted
        """Whether a processed message is written to the guard's file before it is acknowledged. In a transaction it is
        written after the commit."""

    # -- handing out --------------------------------------------------------------------------------------------

    def hand_over(self, message: Message, *, acknowledge: bool) -> None:
        """Remember that the caller gets this message now. In the automatic modes the message is acknowledged if
        ``acknowledge`` is true. In a transacted session the message joins the transaction.
        """
        inbound: Inbound = message._delivery
        if self.record is not None:
            self.record.handed_over(inbound, message)
        if inbound.settled:
            return
        if self.guard is not None and self.guard.alert:
            at_once = self.auto and acknowledge and self._batch is None
            if not at_once:
                self.guard.note_handed_out(inbound)
        if self.auto:
            if acknowledge:
                self.consumed(inbound)
            else:
                self._add(inbound)
        elif self._transacted:
            self._session.transactions.current.acknowledged.append(message)
            self.in_transaction = True
            self.settle(inbound, Outcome.ACCEPTED)
        elif self.tracks:
            self._add(inbound)
            message._ack = self._acknowledger
            if self.window is not None:
                self.window.check(len(self.delivered), self._destination)

    def _add(self, inbound: Inbound) -> None:
        """Remember that the caller has a message without an acknowledgement.

        The connection may be lost at the same moment. The loop first notes the loss, and then looks at ``delivered``.
        This method first writes to ``delivered``, and then checks whether a loss was noted. So either the loop sees the
        message, or this method sees the loss.
        """
        self.delivered[inbound] = None
        if inbound.generation <= self._channel.lost_generation:  # the broker delivers it again (S95)
            self._to_stale([inbound])

    def _to_stale(self, inbounds: Iterable[Inbound]) -> None:
        with self._choosing:
            for inbound in inbounds:
                if self.delivered.pop(inbound, GONE) is not GONE and not inbound.settled:
                    self.stale[inbound] = None

    def forget(self, inbound: Inbound) -> None:
        """Remember that the caller does not have the message any more, because its outcome is chosen or it was put
        back.
        """
        if self.delivered.pop(inbound, GONE) is GONE:
            with self._choosing:
                self.stale.pop(inbound, None)

    def consumed(self, inbound: Inbound) -> None:
        """Acknowledge a message automatically, at once or together with others (S40, S45, S46)."""
        if self._batch is None:
            self.settle(inbound, Outcome.ACCEPTED)
            return
        self._batch.add(inbound)
        # the loop notes a loss and then flushes the batch, perhaps before this message was added to the batch
        if inbound.generation <= self._channel.lost_generation:
            self.flush()

    def skip(self, inbound: Inbound) -> None:
        """Acknowledge a message that was processed before, without handing it out (S105)."""
        self.in_transaction = self._transacted
        self.settle(inbound, Outcome.ACCEPTED, repeats=True)

    def lost(self) -> None:
        """Remember that the connection is lost. The messages that the caller has stay readable, and the broker will
        deliver them again (S101).
        """
        self.flush()
        self._to_stale(list(self.delivered))

    # -- outcomes -----------------------------------------------------------------------------------------------

    def settle(
        self,
        inbound: Inbound,
        outcome: Outcome,
        ack_type: AckType | None = None,
        *,
        repeats: bool = False,
        joins: bool = True,
    ) -> None:
        """Choose the outcome of a message and send it. A second call has no effect.

        Args:
            inbound: the message.
            outcome: the outcome.
            ack_type: the ActiveMQ name of the acknowledgement. ``None`` means that the outcome determines the name.
            repeats: whether this delivery is a copy of a message that the caller still holds. Such a copy is not
                remembered as processed, because the caller may yet give the original back.
            joins: whether the outcome becomes part of the open transaction. The outcome of a refused message does not,
                because a rollback would undo the refusal.
        """
        stale = inbound.generation <= self._channel.lost_generation
        accepted = outcome is Outcome.ACCEPTED
        if not accepted and joins and outcome in _FAILED and not inbound.settled:  # a refused message did not fail
            self._inbox.failed(inbound)
        with self._choosing:
            if inbound.settled:
                return
            inbound.settled = True
            self._counts.acknowledged_late += stale
            if accepted:
                self._counts.acknowledged += 1
            if not accepted or ack_type is not None:
                self._counts.ended[ack_type or ACK_TYPES[outcome]] += 1
        if accepted and self.guard is not None and not self._transacted and not repeats and not self._writes:
            self.guard.add_one(inbound)
        if self.record is not None:
            self.record.settled(inbound, outcome, stale=stale)
        if self._traces:
            _log_ack(ack_type or self._ack_type(outcome), 1, self._destination)
        if self._writes and accepted and self.guard is not None:
            self.guard.acknowledge(() if repeats else (inbound,), self._send, inbound, outcome, joins)
            return
        many = len(self._inbox.messages) >= self._plenty
        submit = self._channel.submit_lazily if many else self._channel.submit
        submit(self._send, inbound, outcome, joins)

    def settle_batch(self, inbounds: Iterable[Inbound], outcome: Outcome = Outcome.ACCEPTED) -> None:
        """Give several messages the same outcome in one command. Over AMQP, one frame settles consecutive deliveries
        (S27).
        """
        self.settle_runs(self.mark_runs([(outcome, inbounds)], []))

    def mark_runs(self, runs: Iterable[tuple[Outcome, Iterable[Inbound]]], marked: Runs) -> Runs:
        """Choose the outcome of each message that has no outcome yet. Return ``marked``, after these messages were
        added with their outcomes, for :meth:`settle_runs`, which sends them."""
        for outcome, inbounds in runs:
            self._mark(inbounds, outcome, marked)
        return marked

    def settle_runs(self, runs: Runs) -> None:
        """Send the outcomes of all runs in one command, in the order of ``runs``, because ActiveMQ Classic delivers
        messages again in the order in which their outcomes arrive.
        """
        accepted = [inbound for outcome, inbounds in runs if outcome is Outcome.ACCEPTED for inbound in inbounds]
        if accepted and self._writes and self.guard is not None:
            self.guard.acknowledge(accepted, self.send_outcomes, runs)
        elif runs:
            self._channel.submit(self.send_outcomes, runs)

    def _mark(self, inbounds: Iterable[Inbound], outcome: Outcome, marked: Runs) -> None:
        """Choose the outcome of each message that has no outcome yet, and add these messages to ``marked``. They are
        added first, so that the caller finds them there after Ctrl-C."""
        lost = self._channel.lost_generation
        accepted = outcome is Outcome.ACCEPTED
        if outcome in _FAILED:
            inbounds = [*inbounds]
            for inbound in inbounds:
                if not inbound.settled:
                    self._inbox.failed(inbound)
        with self._choosing:
            unsettled = [inbound for inbound in inbounds if not inbound.settled]
            if not unsettled:
                return
            marked.append((outcome, unsettled))
            for inbound in unsettled:
                inbound.settled = True
            self._counts.acknowledged_late += sum(inbound.generation <= lost for inbound in unsettled)
            if accepted:
                self._counts.acknowledged += len(unsettled)
            else:
                self._counts.ended[ACK_TYPES[outcome]] += len(unsettled)
        if accepted and self.guard is not None and not self._transacted and not self._writes:
            self.guard.add(unsettled)
        if self.record is not None:
            for inbound in unsettled:
                self.record.settled(inbound, outcome, stale=inbound.generation <= lost)
        if self._traces:
            _log_ack(self._ack_type(outcome), len(unsettled), self._destination)

    def submit_behind(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Let the loop run a command. If acknowledgements wait for the guard's file, they leave before the command."""
        if self._writes and self.guard is not None:
            self.guard.acknowledge((), command, *arguments)
        else:
            self._channel.submit(command, *arguments)

    def send_outcomes(self, runs: Runs) -> None:
        """Send outcomes that were chosen before, each of them once. Runs on the loop."""
        try:
            settle = self._provider.settle
            for outcome, inbounds in runs:
                for inbound in inbounds:
                    if not inbound.sent:
                        inbound.sent = True
                        settle(inbound, outcome)
        except BaseException as error:
            self._provider.lose(error)
            raise

    def on_failed_command(self, error: BaseException) -> None:
        """End the connection, because a command of this object failed, perhaps before its first step. The runtime calls
        this method."""
        self._provider.lose(error)

    def _send(self, inbound: Inbound, outcome: Outcome, joins: bool) -> None:
        """Send an outcome that was chosen before, once. Runs on the loop."""
        try:
            if not inbound.sent:
                inbound.sent = True
                self._provider.settle(inbound, outcome, joins)
        except BaseException as error:  # such as MemoryError; the caller believes that the outcome is on its way
            self._provider.lose(error)
            raise

    def send_after_all(self, runs: Runs) -> None:
        """Submit outcomes again, because the call of the caller that chose them was interrupted."""
        with suppress(Exception):  # for example, the connection is closed: the caller gets the first error
            for outcome, inbounds in runs:
                for inbound in inbounds:
                    inbound.settled = True
                    if self._writes and outcome is Outcome.ACCEPTED and self.guard is not None:
                        self.guard.acknowledge((inbound,), self._send, inbound, outcome, True)
                    else:
                        self._channel.submit(self._send, inbound, outcome, True)

    def _ack_type(self, outcome: Outcome) -> AckType:
        if outcome is Outcome.ACCEPTED and self._session.info.ack_mode.individual:
            return AckType.INDIVIDUAL
        return ACK_TYPES[outcome]

    def accepts(self, inbound: Inbound) -> bool:
        """Whether :meth:`hand_over` acknowledges this message at once."""
        return self.auto and self._batch is None and not inbound.settled

    @property
    def batches(self) -> bool:
        """Whether several automatic acknowledgements are collected and sent together."""
        return self._batch is not None

    def settle_delivered(self, outcome: Outcome) -> None:
        """Give all messages that the caller has the same outcome (S25, S27)."""
        self._settle_all(list(self.delivered), outcome)

    def settle_stale(self, outcome: Outcome) -> None:
        """Choose an outcome for all messages that the caller had when the connection was lost. The client remembers
        them as processed, but it cannot send the outcome any more. The loop may not have moved all of them to ``stale``
        yet, so this method also looks into ``delivered``."""
        lost = self._channel.lost_generation
        self._settle_all([inbound for inbound in list(self.delivered) if inbound.generation <= lost], outcome)

    def _settle_all(self, delivered: list[Inbound], outcome: Outcome) -> None:
        """Choose one outcome for the stale messages and for ``delivered``. The calling method collected ``delivered``
        before this method looks into ``stale``. So a message that the loop moves to ``stale`` meanwhile is not missed.
        """
        with self._choosing:
            stale = list(self.stale)
            self.stale.clear()
        marked: Runs = []
        try:
            self._mark(dict.fromkeys([*stale, *delivered]) if stale else delivered, outcome, marked)
            self.settle_runs(marked)
        except BaseException:  # as in :meth:`settle_one`
            self.send_after_all(marked)
            raise
        for inbound in delivered:
            self.delivered.pop(inbound, None)
        self._released()

    def take_back(self) -> list[Inbound]:
        """Forget all messages that the caller has. Return them oldest first, because ActiveMQ Classic delivers messages
        again in the order in which their outcomes arrive. Stale messages are not returned, because the broker delivers
        them again by itself. Nor are messages with an outcome: a signal handler may have ended the call that chose the
        outcome, before the call could forget the message.
        """
        taken_back = [inbound for inbound in list(self.delivered) if self.delivered.pop(inbound, GONE) is not GONE]
        with self._choosing:  # after the pops, because a message that the loop popped first is in ``stale`` by now
            self.stale.clear()
        return [inbound for inbound in taken_back if not inbound.settled]

    def flush(self) -> None:
        """Send the automatic acknowledgements that wait in a batch (S43, S47)."""
        if self._batch is not None:
            self._batch.flush()

    def settle_one(self, inbound: Inbound, outcome: Outcome) -> None:
        """Give one message its outcome. A second call does nothing (S28, S34)."""
        if inbound in self.delivered or self._is_stale(inbound):
            if outcome is Outcome.ACCEPTED and self.auto:
                self.consumed(inbound)
            else:
                try:
                    self.settle(inbound, outcome)
                except BaseException:  # Ctrl-C: a chosen outcome must leave, because a second call does nothing
                    if inbound.settled and not inbound.sent:
                        self.send_after_all([(outcome, [inbound])])
                    raise
            self.forget(inbound)
            self._released()

    @property
    def has_stale(self) -> bool:
        """Whether the caller has messages that a lost connection delivered."""
        with self._choosing:  # because the loop may be about to move a message there
            return bool(self.stale)

    def _is_stale(self, inbound: Inbound) -> bool:
        with self._choosing:
            return inbound in self.stale

    @property
    def unacknowledged(self) -> int:
        return len(self.delivered) + (0 if self._batch is None else len(self._batch))


def _log_ack(kind: AckType, count: int, destination: Destination) -> None:
    """Log an acknowledgement by its name in ActiveMQ."""
    ack_log.debug("%s ack of %d message(s) of %s", kind.name, count, destination.name)
