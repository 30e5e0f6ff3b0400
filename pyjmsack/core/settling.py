"""What a consumer's caller has, and the outcomes that the broker is told (S16-S38)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyjmsack.core.acking import ACK_TYPES, AckBatch, AckWindow, ack_threshold, log_ack, traces_acks
from pyjmsack.core.duplicates import DuplicateGuard
from pyjmsack.core.inbox import PriorityInbox
from pyjmsack.core.recording import Deliveries
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckMode, AckType, Outcome

if TYPE_CHECKING:
    from pyjmsack.core.session import Session

__all__ = ["Runs", "Settling"]

Runs = list[tuple[Outcome, list[Inbound]]]
"""Outcomes that were chosen and not sent yet, in the order in which the broker is to hear of them."""

PLENTY = 32
"""Messages in the buffer with which an acknowledgement may wait for company: neither consumer nor broker runs dry."""


class Settling(ABC):
    """The half of a consumer that acknowledges. ``delivered`` holds what the caller has and nobody has acknowledged,
    oldest first."""

    def __init__(self, session: Session, info: ConsumerInfo) -> None:
        self.session = session
        self.info = info
        prefetch = info.prefetch
        self.delivered: dict[Inbound, None] = {}
        self._connection = session.connection
        self._provider = session.connection.provider
        self._prefetch = prefetch
        self.inbox: deque[Inbound] | PriorityInbox = deque()
        self._plenty = max(1, min(prefetch // 2, PLENTY))
        self._choosing = session.connection.runtime.lock()
        """For the choice of an outcome and its counters. The caller chooses, and so does the loop, for instance when
        the time of a batch is over."""
        self._acknowledged = 0
        self._acknowledged_late = 0
        self._ended = dict.fromkeys(AckType, 0)
        """How many messages ended otherwise than accepted, by the name that ActiveMQ has for it (S190)."""
        self._stale: MutableMapping[Inbound, None] = {}
        """What the caller had when the connection was lost: it comes again, acknowledging it has no effect (S95). Only
        CLIENT mode can acknowledge what nobody has any more, so only there it is kept alive."""
        self.guard: DuplicateGuard | None = None
        """Knows what was processed; ``None`` outside failover."""
        self._asks = self._writes = False
        """Whether the guard has a file: what comes is looked up there, and what was processed is written there before
        it is acknowledged; in a transaction when that is committed."""
        self.record: Deliveries | None = None
        """What a ledger is told; ``None`` without one."""
        mode = self.session.info.ack_mode
        options = self._connection.options
        self._transacted = mode is AckMode.SESSION_TRANSACTED
        if mode is not AckMode.CLIENT_ACKNOWLEDGE:
            self._stale = WeakKeyDictionary()
        self.tracks = (mode is AckMode.CLIENT_ACKNOWLEDGE or mode.individual) and not info.browser
        self._auto = mode in (AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE) and not info.browser
        size = ack_threshold(mode, info.destination, self._prefetch, options.optimize_acknowledge) if self._auto else 1
        limits = (options.optimize_acknowledge_time_out, options.optimized_ack_scheduled_ack_interval)
        self._batch = AckBatch(self, size, min((t for t in limits if t), default=None)) if size > 1 else None
        self._window = AckWindow(self._prefetch, options.ack_window) if self.tracks else None
        self._traces = traces_acks()
        if self._connection.recorder is not None and not info.browser:
            self.record = Deliveries(self._connection.recorder, self.session, info)
        if self.session.processed is not None and not info.browser and not info.presettled:
            client_id, in_hand = self._connection.info.client_id, self.session.in_hand
            transacted = self._transacted
            self.guard = DuplicateGuard(self.session.processed, info, client_id, in_hand, transacted=transacted)
            self._asks = self.guard.file is not None
            self._writes = self._asks and not transacted

    def _is_lost(self, inbound: Inbound) -> bool:
        """Whether a connection that is lost delivered this message: the broker delivers it again (S95)."""
        return inbound.generation <= self._connection.lost_generation

    def _in_hand_now(self, inbound: Inbound) -> None:
        """The caller has it, not acknowledged. The loop notes a loss, then looks at what the caller has; we look for a
        loss after that is written, so one of the two sees the other."""
        self.delivered[inbound] = None
        if self._is_lost(inbound):
            self.delivered.pop(inbound, None)
            self._stale[inbound] = None

    def _consumed(self, inbound: Inbound) -> None:
        """Acknowledge automatically: now, or with others (S40, S45, S46)."""
        if self._batch is None:
            self.settle(inbound, Outcome.ACCEPTED)
        else:
            self._batch.add(inbound)

    def settle(
        self, inbound: Inbound, outcome: Outcome, ack_type: AckType | None = None, *, repeats: bool = False
    ) -> None:
        """Choose an outcome, once; an explicit outcome other than accepted works outside transactions only.

        ``ack_type`` is what ActiveMQ calls it, where the outcome alone does not say it. What ``repeats`` another
        message was not processed for that: the caller may still have the other one, and give it back.
        """
        stale = inbound.generation <= self._connection.lost_generation
        accepted = outcome is Outcome.ACCEPTED
        with self._choosing:
            if inbound.settled:
                return
            inbound.settled = True
            self._acknowledged_late += stale
            if accepted:
                self._acknowledged += 1
            if not accepted or ack_type is not None:
                self._ended[ack_type or ACK_TYPES[outcome]] += 1
        if accepted and self.guard is not None and not self._transacted and not repeats and not self._writes:
            self.guard.add_one(inbound)
        if self.record is not None:
            self.record.settled(inbound, outcome, stale=stale)
        if self._traces:
            log_ack(ack_type or self._ack_type(outcome), 1, self.info.destination)
        if self._writes and accepted and self.guard is not None:
            self.guard.acknowledge(() if repeats else (inbound,), self._provider.settle, inbound, outcome)
            return
        many = len(self.inbox) >= self._plenty
        submit = self._connection.submit_lazily if many else self._connection.submit
        submit(self._provider.settle, inbound, outcome)

    def settle_batch(self, inbounds: Iterable[Inbound], outcome: Outcome = Outcome.ACCEPTED) -> None:
        """One outcome for several messages, in one command: consecutive ones leave as one range (S27)."""
        self.settle_runs(self.mark_runs([(outcome, inbounds)]))

    def mark_runs(self, runs: Iterable[tuple[Outcome, Iterable[Inbound]]]) -> Runs:
        """Choose outcomes, for a command to send."""
        marked = [(outcome, self._marked(inbounds, outcome)) for outcome, inbounds in runs]
        return [(outcome, inbounds) for outcome, inbounds in marked if inbounds]

    def settle_runs(self, runs: Runs) -> None:
        """Send outcomes in one command, in this order: one broker redelivers in the order in which it is told."""
        accepted = [inbound for outcome, inbounds in runs if outcome is Outcome.ACCEPTED for inbound in inbounds]
        if accepted and self._writes and self.guard is not None:
            self.guard.acknowledge(accepted, self.settle_now, runs)
        elif runs:
            self._connection.submit(self.settle_now, runs)

    def _marked(self, inbounds: Iterable[Inbound], outcome: Outcome) -> list[Inbound]:
        """Choose the outcome of those that have none yet, and return them."""
        lost = self._connection.lost_generation
        accepted = outcome is Outcome.ACCEPTED
        with self._choosing:
            unsettled = [inbound for inbound in inbounds if not inbound.settled]
            for inbound in unsettled:
                inbound.settled = True
            self._acknowledged_late += sum(inbound.generation <= lost for inbound in unsettled)
            if accepted:
                self._acknowledged += len(unsettled)
            else:
                self._ended[ACK_TYPES[outcome]] += len(unsettled)
        if accepted and self.guard is not None and not self._transacted and not self._writes:
            self.guard.add(unsettled)
        if self.record is not None:
            for inbound in unsettled:
                self.record.settled(inbound, outcome, stale=inbound.generation <= lost)
        if self._traces and unsettled:
            log_ack(self._ack_type(outcome), len(unsettled), self.info.destination)
        return unsettled

    def submit_behind(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Let the loop run a command behind the acknowledgements that wait for the guard's file."""
        if self._writes and self.guard is not None:
            self.guard.acknowledge((), command, *arguments)
        else:
            self._connection.submit(command, *arguments)

    def settle_now(self, runs: Runs) -> None:
        """Send chosen outcomes; on the loop."""
        settle = self._provider.settle
        for outcome, inbounds in runs:
            for inbound in inbounds:
                settle(inbound, outcome)

    def _ack_type(self, outcome: Outcome) -> AckType:
        if outcome is Outcome.ACCEPTED and self.session.info.ack_mode.individual:
            return AckType.INDIVIDUAL
        return ACK_TYPES[outcome]

    def settle_delivered(self, outcome: Outcome) -> None:
        """One outcome for all that the caller has (S25, S27)."""
        self.settle_stale(outcome)
        self.settle_batch(self._take_delivered(), outcome)
        self._after_settling()

    def settle_stale(self, outcome: Outcome) -> None:
        """One outcome for all that the caller had when the connection was lost: it counts as processed, no more."""
        stale: list[Inbound] = []
        with suppress(KeyError):  # none is left; no iteration, as the loop may add meanwhile
            while True:
                stale.append(self._stale.popitem()[0])
        self.settle_batch(reversed(stale), outcome)

    def _take_delivered(self) -> list[Inbound]:
        """Return what the caller has, oldest first, and forget it: one broker redelivers in the order it is told."""
        delivered = list(self.delivered)
        self.delivered.clear()
        return delivered

    def flush_acks(self) -> None:
        """Send the automatic acknowledgements that wait for company (S43, S47)."""
        if self._batch is not None:
            self._batch.flush()

    def settle_one(self, inbound: Inbound, outcome: Outcome) -> None:
        """An outcome for one delivered message; a second one is a no-op (S28, S34)."""
        held: MutableMapping[Inbound, None] = self.delivered if inbound in self.delivered else self._stale
        if inbound in held:
            del held[inbound]
            if outcome is Outcome.ACCEPTED and self._auto:
                self._consumed(inbound)
            else:
                self.settle(inbound, outcome)
            self._after_settling()

    def acknowledge(self) -> None:
        """Acknowledge what this consumer alone delivered (S25)."""
        if self.tracks:
            self.settle_delivered(Outcome.ACCEPTED)

    @property
    def _unacknowledged(self) -> int:
        return len(self.delivered) + (0 if self._batch is None else len(self._batch))

    @abstractmethod
    def _after_settling(self) -> None:
        """The caller holds less."""
