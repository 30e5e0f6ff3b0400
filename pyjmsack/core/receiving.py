"""Receiving: what may be handed out, and how a caller waits for it (S16-S23, S49-S53, S134-S135, S156, S166)."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyjmsack.core.duplicates import DuplicateGuard, InHand, MemoryStore
from pyjmsack.core.holding import Holding
from pyjmsack.core.inbox import PriorityInbox, emptied
from pyjmsack.core.lanes import Lanes
from pyjmsack.core.limit import RedeliveryLimit
from pyjmsack.core.settling import Settling
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.transformer import received
from pyjmsack.errors import IllegalStateException, JMSException, MessageFormatException, RequestTimedOutException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound, NotOneMessageError
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckType, Outcome

if TYPE_CHECKING:
    from pyjmsack.core.session import Session

__all__ = ["Receiving"]

log = logging.getLogger("pyjmsack")
T = TypeVar("T")
TORN = 1000
"""Messages that may come torn to one consumer before they count as broken at the broker, which may have no limit."""
SHOWN = 1 << 20
"""Messages of one iteration that a browser in a failover URL remembers, to go on where a lost connection stopped it."""


class Receiving(Settling):
    """The half of a consumer that hands out.

    The loop appends to ``inbox``; the session's thread (or dispatcher) takes from it.
    """

    def __init__(self, session: Session, info: ConsumerInfo, *, allow_pull_listener: bool) -> None:
        super().__init__(session, info)
        self.listener: Callable[[Message], Any] | None = None
        self.on_arrival: Callable[[], None] | None = None
        """Told of messages, loss and close, instead of a caller who waits; must not block."""
        self.closed = False
        self.error: BaseException | None = None
        self.acknowledger: Any = None
        self._allow_pull_listener = allow_pull_listener
        self._step = max(1, info.prefetch // 10)
        self._taken = 0
        self._delivered = 0
        self._redelivered = 0
        self._duplicates_skipped = 0
        self._refused = 0
        self._torn = 0
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
        self._unasked: deque[Inbound] = deque()
        """What came, and the guard's file was not asked about yet."""
        self._untold = False
        """Whether the next message waits for what that file says."""
        self._in_work = False
        """Whether the next message waits: a listener is still at work on it, since before the connection was lost."""
        self.drained = False
        """Whether ``drain()`` was called: it hands out nothing any more."""
        self.remote_close = self._connection.remote_close(info.id, "on_consumer_closed")
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
        self._may_repeat = self.guard is not None and (self._asks or self._connection.lost_generation > 0)
        if info.browser and self.session.processed is not None:
            client_id = self._connection.info.client_id
            self._shown = DuplicateGuard(MemoryStore(SHOWN), info, client_id, InHand(), transacted=False)

    # -- from the provider, on the loop -------------------------------------------------------------------------

    def deliver(self, inbound: Inbound) -> None:
        """Buffer one message."""
        self.inbox.append(inbound)
        if self._asks:
            self._unasked.append(inbound)

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put back, before what is buffered, what the caller had; oldest first."""
        self.inbox.extendleft(reversed(inbounds))
        if self._asks:
            self._unasked.extend(inbound for inbound in inbounds if inbound.known is None)
        self.arrived()

    def arrived(self) -> None:
        """Wake who waits; once per burst."""
        if self._unasked and self.guard is not None:
            self.guard.look_up(emptied(self._unasked), partial(self._connection.runtime.submit_from_thread, self._told))
        while self._arrivals:
            try:
                self._arrivals.pop().succeed()
            except IndexError:  # its owner gave up at the same moment
                break
        if self.listener is not None:
            self.schedule()
        elif self.on_arrival is not None:
            self.on_arrival()

    def _told(self) -> None:
        """The guard's file told of some messages, or wrote what waited; on the loop."""
        self._untold = False
        self.arrived()

    def buffered(self) -> int:
        """How many messages wait here."""
        return len(self.inbox) + (0 if self._holding is None else len(self._holding))

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer, or its connection is lost, which reports that itself (S126, S128)."""
        if self.closed:
            return
        self.error = error
        self.session.in_hand.detached.add(self.info.id)
        self.inbox.clear()  # these are the broker's again: no outcome for them would arrive
        if self._holding is not None:
            self._holding.release()
        self.arrived()
        if self._connection.failure is not None:
            return
        if self.session.remote_close.error is None:  # else the end of the session says it all
            self.remote_close.happened(error)
        if self.listener is not None:
            self._connection.report(error)

    def interrupted(self) -> None:
        """The connection is lost and is being rebuilt: what is buffered comes again, and what the caller has stays
        readable (S101)."""
        self.inbox.clear()
        self._unasked.clear()
        self._untold = False
        if self._holding is not None:
            self._holding.release()
        self.flush_acks()
        self._stale.update(dict.fromkeys(self._take_delivered()))
        self.guard = self._shown or self.guard
        self._may_repeat = self.guard is not None
        self.finish_if_closed()

    # -- taking a message ---------------------------------------------------------------------------------------

    @property
    def _stalled(self) -> bool:
        """Whether nothing is handed out although the inbox may hold messages."""
        if self._untold or (self._holding is not None and self._holding.blocks):
            return True
        return self.drained or (self._window is not None and self._window.is_full(len(self.delivered)))

    def take(self) -> Message | None:
        """Return the next message that may be handed out, not acknowledged yet, or ``None`` (S22, S156, S111, S166)."""
        inbound: Inbound | None = None
        try:
            while (inbound := self.take_undecoded()) is not None:
                message = self._admit(inbound)
                if message is not None:
                    return message
        except BaseException:
            self._put_back(inbound)
            raise
        return None

    def take_undecoded(self) -> Inbound | None:
        """Return the next message whose turn it is, as it came: :meth:`take` or :meth:`admit` decides about it."""
        inbox = self.inbox
        self._in_work = False
        if self._stalled:
            return None
        while inbox and self.session.started:
            inbound: Inbound | None = None
            try:
                try:
                    inbound = inbox.popleft()
                except IndexError:  # rollback or recover emptied it
                    return None
                if self._is_lost(inbound) and not inbound.settled:  # the caller's side put it back after the loss
                    self._count_taken()
                    continue
                if self._stale and self.lanes is not None and self.lanes.work_on(inbound):
                    self._in_work = True
                    inbox.appendleft(inbound)
                    return None
                if self._asks and self._must_wait_for_file(inbound):
                    inbox.appendleft(inbound)
                    return None
                if self._holding is not None and self._holding.must_wait(inbound):
                    if self._holding.blocks:
                        return None
                    continue
                self._count_taken()
                return inbound
            except BaseException:
                self._put_back(inbound)
                raise
        return None

    def _count_taken(self) -> None:
        self._taken += 1
        if self._taken % self._step == 0:
            self._connection.submit(self._provider.replenish, self.info.id)

    def _must_wait_for_file(self, inbound: Inbound) -> bool:
        """Whether the guard's file has not told yet of this message, or is too far behind with what was processed."""
        file = self.guard.file if self.guard is not None else None
        if file is None:
            return False
        if inbound.known is None and not inbound.redeliveries:
            self._untold = True  # before the look: the file tells of the message first, and the loop undoes this later
            if inbound.known is None:
                return True
            self._untold = False
        if file.full:
            self._untold = True
            file.add((), self._told)
            return True
        return False

    def admit(self, inbound: Inbound) -> Message | None:
        """Return a message that was taken undecoded, acknowledged as by :meth:`receive_now`; ``None`` if it may not be
        handed out."""
        message = self._admit(inbound)
        if message is not None:
            self._on_handover(message, acknowledge=True)
        return message

    def _admit(self, inbound: Inbound) -> Message | None:
        refusal: Outcome | None = None
        ack_type: AckType | None = None
        message: Message | None = None
        count = inbound.redelivery_count + inbound.redeliveries
        if self._may_repeat and not inbound.redeliveries and self.guard is not None and self.guard.knows(inbound):
            self._duplicates_skipped += 1
            self.in_transaction = self._transacted
            self.settle(inbound, Outcome.ACCEPTED, repeats=True)
            return None
        if self._checks_expiry and inbound.expired(time.time_ns() // 1_000_000):
            refusal, ack_type = Outcome.MODIFIED_FAILED_UNDELIVERABLE, AckType.EXPIRED
        elif self.limit is not None and self.limit.exceeded(inbound):
            refusal, ack_type = self._redelivery_policy.outcome, AckType.POISON
        else:
            try:
                message = inbound.to_message(self.info.destination)
            except NotOneMessageError as error:
                log.error("a message on %s came torn, and is given back: %s", self.info.destination.name, error)
                self._torn += 1
                torn_at_broker = self._torn > TORN
                refusal = Outcome.MODIFIED_FAILED_UNDELIVERABLE if torn_at_broker else Outcome.MODIFIED_FAILED
            except MessageFormatException as error:
                log.error("a message on %s cannot be decoded and is refused: %s", self.info.destination.name, error)
                refusal = Outcome.MODIFIED_FAILED_UNDELIVERABLE
            else:
                message, refusal = self._transformed(message)
        if message is None:
            self._refused += refusal in (Outcome.MODIFIED_FAILED_UNDELIVERABLE, Outcome.REJECTED)
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
        message: Message | None = None
        try:
            message = self.take()
            if message is None:
                return None
            fits = body_type is None or message.is_body_assignable_to(body_type)
            if fits or not self._auto:
                self._on_handover(message, acknowledge=True)
            else:
                self._put_back(message._delivery)
        except BaseException:
            if message is not None:
                self._put_back(message._delivery)
            raise
        if not fits:
            raise MessageFormatException(f"receive_body: {message!r} has no body of type {body_type!r} (S176)")
        return message

    def _put_back(self, inbound: Inbound | None) -> None:
        """Ctrl-C came between the inbox and the caller: it is the next one, unless an outcome was chosen."""
        if inbound is None or inbound.settled or inbound in self.inbox:
            return
        if self._holding is None or inbound not in self._holding:
            self.delivered.pop(inbound, None)
            self.inbox.appendleft(inbound)

    def _on_handover(self, message: Message, *, acknowledge: bool) -> None:
        inbound: Inbound = message._delivery
        if self.record is not None:
            self.record.handed_over(inbound, message)
        if inbound.settled:
            return
        at_once = self._auto and acknowledge and self._batch is None
        if self._may_repeat and self.guard is not None and not at_once:
            self.guard.hold(inbound)
        if self._auto:
            if acknowledge:
                self._consumed(inbound)
            else:
                self._in_hand_now(inbound)
        elif self._transacted:
            self.session.transaction.acknowledged.append(message)
            self.in_transaction = True
            self.settle(inbound, Outcome.ACCEPTED)
        elif self.tracks:
            self._in_hand_now(inbound)
            message._ack = self.acknowledger
            if self._window is not None:
                self._window.check(len(self.delivered), self.info.destination)

    # -- blocking receive ---------------------------------------------------------------------------------------

    def receive(self, timeout: float | None, body_type: type[Any] | None = None) -> Steps[Message | None]:
        """Take a message within ``timeout`` seconds, asking the broker before ``None`` is returned (S22, S50)."""
        deadline = Deadline(timeout)
        options = self._connection.options
        local_only = options.receive_no_wait_local_only if timeout == 0 else options.receive_local_only
        while True:
            message = yield from self._receive_told(body_type)
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
        while True:  # what came may be gone by now: then there may be more behind it
            gone = self._gone
            message = yield from self._receive_drained(body_type)
            if message is not None or self._gone == gone:
                return message

    @property
    def _gone(self) -> int:
        """How many messages came that this consumer does not get, and that do not come again."""
        return self._duplicates_skipped + self._refused

    def _receive_drained(self, body_type: type[Any] | None) -> Steps[Message | None]:
        """Let the broker send what it has, then look again. Unbounded but for ``amqp.drainTimeout``."""
        done: Completion[None] = Completion()
        self._connection.submit(self._provider.drain, self.info.id, done)
        try:
            yield done, None
        finally:  # also if the caller gives up: the drain used the credit up
            if self._prefetch > 0 and not self.drained:
                self._connection.submit(self._provider.start_consumer, self.info.id)
        message = yield from self._receive_told(body_type)
        if message is None and not self.closed:
            self._check_alive()
            done.result()
        return message

    def _receive_told(self, body_type: type[Any] | None) -> Steps[Message | None]:
        """Take a message; if one is there of which the guard's file has not told yet, it may be as good as none."""
        timeout = self._connection.options.request_timeout
        while (message := self.receive_now(body_type)) is None and self._untold and not self.closed:
            arrival: Completion[None] = Completion()
            self._arrivals.append(arrival)
            if self._untold and not (yield arrival, timeout) and self._untold:
                raise RequestTimedOutException(
                    f"receiving from {self.info.destination.name}: the file of failover.duplicateGuard does not answer"
                    f" within jms.requestTimeout ({timeout:g} s)"
                )
            self._check_alive()
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
            self._shown.add_one(message._delivery)
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

    @abstractmethod
    def schedule(self) -> None:
        """Let the dispatcher look for messages, unless it will anyway."""

    @abstractmethod
    def finish_if_closed(self) -> None:
        """Detach what was closed, once nothing of it is in the caller's hands."""
