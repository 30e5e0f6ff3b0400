"""The receiver of one consumer: its subscriptions, their unacknowledged messages, acknowledgements, and local
redelivery.

STOMP lacks two parts of AMQP. No frame gives one message back, so a message that the caller gives back stays in the
client and is put before the others again, until UNSUBSCRIBE gives all back. And messages that the caller holds fill the
window. So the client opens another subscription beside the first when the window is full, and the consumer cannot stall
(S53).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from pyjmsack.errors import ConnectionLostException, JMSException, MessageFormatException, RequestTimedOutException
from pyjmsack.providers.stomp.deadletter import dead_letter
from pyjmsack.providers.stomp.frames import Refusal, raw_header
from pyjmsack.providers.stomp.heads import check_copy, encode_head
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.late import LateAcks
from pyjmsack.providers.stomp.subscriptions import Shared, StompSubscription
from pyjmsack.spi.aside import Aside
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.demands import is_dead_letter_queue
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["StompReceiver"]

log = logging.getLogger("pyjmsack.stomp")

_QUIET = 0.05
"""Seconds that a drain waits for messages before it sends its request. The wait is needed because a broker delivers
messages independently of its answers: Artemis mostly took 0.1 ms for a message, and up to 30 ms on a busy machine."""
_STALL = 0.02
"""Seconds after which a full window is checked again."""
_FOREIGN_ID = (
    "an id that its AMQP sender chose, by which ActiveMQ Classic cannot acknowledge it over STOMP; consume this queue"
    " over AMQP, or let the sender set disable_message_id"
)
_FULL = 0.9
"""A window in bytes counts as full when this part of it is used, because we know only roughly how the broker counts a
frame."""


class StompReceiver:
    """The receiver of one consumer.

    Args:
        sink: gets the messages.
        serial: True if the session acknowledges each message before it hands out the next one. Then prefetch 1 needs no
            second subscription.
    """

    def __init__(self, shared: Shared, info: ConsumerInfo, sink: InboundSink, *, serial: bool) -> None:
        self.info = info
        self._sink = sink
        self._lines = encode_head(shared.dialect.subscribe_lines(info), shared.dialect.limits)
        self._shared = shared
        self._engine = shared.engine
        self._dialect = shared.dialect
        self._own_ids = shared.dialect.own_ids and not info.browser
        self._subscriber = _subscriber(info, shared.client_id)
        self._by_bytes = shared.dialect.window_in_bytes and info.prefetch > 1
        window = shared.dialect.window_size(info) if info.prefetch > 1 else 1
        self._window = int(window * _FULL) if self._by_bytes else window
        self._widens = not info.presettled and not (serial and info.prefetch <= 1)
        self._subscriptions: list[StompSubscription] = []
        self.outstanding: dict[StompInbound, None] = {}
        """Messages for which the broker waits for an ACK, in the order of arrival."""
        self._back: list[StompInbound] = []
        self._sequence = 0
        self._is_dirty = self._warned = False
        self.stopped = False
        self._drained: list[Completion[None]] = []
        self._drain_timer: Timer | None = None
        self._late = False
        """True if the request of a drain was not answered at once."""
        self._limit_timer: Timer | None = None
        self._stall_timer: Timer | None = None
        self._acks = LateAcks(shared.engine, sink, info.prefetch)
        self.replenish = self._acks.send
        """Called when the caller took messages."""
        self._aside = Aside(info, sink, shared.connector)
        self._browsed = False
        self._closing: Completion[None] | None = None
        self._unanswered = 0
        """The number of UNSUBSCRIBE frames that wait for a RECEIPT."""

    @property
    def is_closing(self) -> bool:
        """True if the subscriptions end or have ended, so that the broker would refuse an ACK."""
        return self._closing is not None

    @property
    def volatile(self) -> bool:
        """True if the messages are lost with the consumer, as for a topic without a durable subscription. The broker
        keeps no message for redelivery then, so only this client can redeliver."""
        return self.info.destination.is_topic and self.info.subscription is None

    # -- subscriptions ------------------------------------------------------------------------------------------

    def open(self, done: Completion[None]) -> None:
        """Subscribe, and complete ``done`` with the answer."""
        self._subscribe(done.settle)

    def _subscribe(self, answered: Callable[[BaseException | None], None]) -> None:
        subscription = StompSubscription(b"s%d" % next(self._shared.ids), self)
        self._subscriptions.append(subscription)
        self._shared.subscriptions[subscription.id] = subscription
        self._engine.ask(
            b"SUBSCRIBE",
            b"id:%s\n%s\n\0" % (subscription.id, self._lines),
            partial(self._subscribed, subscription, answered),
            unnamed=True,
        )

    def _subscribed(
        self,
        subscription: StompSubscription,
        answered: Callable[[BaseException | None], None],
        error: BaseException | None,
    ) -> None:
        if error is not None:
            self._forget(subscription)
        answered(error)

    def _forget(self, subscription: StompSubscription) -> None:
        subscription.open = False
        self._shared.subscriptions.pop(subscription.id, None)
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _unsubscribe(self, subscription: StompSubscription) -> None:
        """End a subscription: the broker takes back its unacknowledged messages. The broker sends no count when it
        delivers them again, so the client keeps the counts (S110).
        """
        self._forget(subscription)
        if subscription.held:
            for inbound in [inbound for inbound in self.outstanding if inbound.subscription is subscription]:
                self._shared.counts.remember(inbound)
                del self.outstanding[inbound]
        self._unanswered += 1
        self._engine.ask(b"UNSUBSCRIBE", b"id:%s\n\n\0" % subscription.id, self._unsubscribed)

    def _unsubscribed(self, error: BaseException | None) -> None:
        self._unanswered -= 1
        closing = self._closing
        if closing is not None and (error is not None or not self._unanswered):
            closing.settle(error)

    # -- deliveries ---------------------------------------------------------------------------------------------

    def deliver(
        self, subscription: StompSubscription, head: bytes, body: bytes, refusal: Refusal | None = None
    ) -> None:
        """Put a message into the inbox without decoding it. A message that nobody wants goes back with its
        subscription.
        """
        if self.stopped or not subscription.open:
            return
        if self.info.browser and raw_header(head, b"\nbrowser:") == b"end":
            self._browsed = True
            self._end_drain(None)
            return
        inbound = StompInbound(head, body, self._dialect, refusal)
        inbound.consumer_id = self.info.id
        inbound.generation = self._shared.generation
        self._sequence += 1
        inbound.sequence = self._sequence
        presettled = self.info.presettled and (refusal is None or self._dialect.auto_acks)
        if presettled:
            inbound.settled = True
        else:
            if self._own_ids and not self._dialect.acknowledges(head):
                inbound.refusal = refusal or Refusal(_FOREIGN_ID, True, len(head) + len(body))
            self._hold(inbound, subscription)
        self._sink.deliver(inbound)
        if presettled and not self._dialect.auto_acks:
            self._acks.add(self._ack_lines(inbound, subscription))
        if not self._is_dirty:
            self._is_dirty = True
            self._shared.dirty.append(self)
        if self._drained and not self.info.browser:
            self._end_drain(None)

    def _hold(self, inbound: StompInbound, subscription: StompSubscription) -> None:
        shared = self._shared
        inbound.subscription = subscription
        inbound.ack = self._ack_lines(inbound, subscription)
        inbound.cost = inbound.size if self._by_bytes else 1
        subscription.used += inbound.cost
        subscription.held += 1
        self.outstanding[inbound] = None
        if shared.counts:
            inbound.counted = shared.counts.of(inbound)
        if subscription.used >= self._window and self._widens:
            self._watch()

    def _ack_lines(self, inbound: StompInbound, subscription: StompSubscription) -> bytes:
        """Return the header lines that name a message in ACK and NACK."""
        if self._shared.ack_by_id:
            # Artemis writes its own last, behind a property of that name; and there it is the same as the message id
            key = b"\nmessage-id:" if self._dialect.routed else b"\nack:"
            return b"id:%s\n" % (raw_header(inbound.head, key) or b"")
        message_id = raw_header(inbound.head, b"\nmessage-id:") or b""
        return b"message-id:%s\nsubscription:%s\n" % (message_id, subscription.id)

    def burst_end(self) -> None:
        """Wake the consumer, once for all that arrived."""
        self._is_dirty = False
        self._sink.arrived()

    # -- window -------------------------------------------------------------------------------------------------

    def _full(self) -> bool:
        return all(subscription.used >= self._window for subscription in self._subscriptions)

    def _watch(self) -> None:
        if self._stall_timer is None:
            self._stall_timer = self._shared.connector.call_later(_STALL, self._look)

    def _look(self) -> None:
        """Look at the window again, because it was full a moment ago. If it is still full, and the caller has taken all
        messages and still holds them, widen the window.
        """
        self._stall_timer = None
        if self.stopped or self._engine.failed is not None or not self._full():
            return
        if self._sink.buffered():
            self._watch()
        else:
            self._widen()
            self._engine.flush()

    def pull(self) -> None:
        """Ask for one message (S50). Usually one is on its way already. If the caller holds the messages of all
        subscriptions, open another subscription."""
        if not self.stopped and self._full() and not self._sink.buffered():
            self._widen()

    def _widen(self) -> None:
        info = self.info
        if self.volatile:
            self._acknowledge_early()
        elif self._aside.busy:
            self._watch()
        elif not self._dialect.routed and (info.subscription is not None or info.exclusive):
            self._warn_of_stall()
        else:
            self._subscribe(self._subscription_opened)

    def _subscription_opened(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, ConnectionLostException):
            self._sink.detached(error)

    def _acknowledge_early(self) -> None:
        """Acknowledge the messages that the caller holds, to make room for more. The messages are safe in this client
        as long as their subscription lives."""
        handed_out = len(self.outstanding) - self._sink.buffered()
        for inbound in [*self.outstanding][: max(0, handed_out)]:
            self.acknowledge(inbound)
            inbound.subscription = None

    def _warn_of_stall(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "the consumer of %s holds its whole prefetch of %d unacknowledged; this broker sends no more until some"
                " are acknowledged (S56)",
                self.info.destination.name,
                self.info.prefetch,
            )

    # -- outcomes -----------------------------------------------------------------------------------------------

    def settle(self, inbound: StompInbound, outcome: Outcome) -> None:
        """Apply an outcome outside of a transaction (S118)."""
        if outcome is Outcome.ACCEPTED:
            self.acknowledge(inbound)
        elif outcome is Outcome.RELEASED:
            self._give_back(inbound)
        elif outcome is Outcome.MODIFIED_FAILED:
            self.count(inbound, max(1, inbound.redeliveries))
            self._give_back(inbound)
        else:
            self._dead_letter(inbound)

    def acknowledge(self, inbound: StompInbound) -> None:
        """Send an ACK, if the broker still wants one."""
        if inbound in self.outstanding and inbound.ack is not None:
            self._engine.write(b"ACK\n", inbound.ack, b"\n\0")
            self.acknowledged(inbound)

    def acknowledged(self, inbound: StompInbound) -> None:
        """Forget a message whose ACK was sent or is a part of a transaction."""
        if self.outstanding.pop(inbound, self) is self:
            return
        subscription: StompSubscription = inbound.subscription
        subscription.used -= inbound.cost
        subscription.held -= 1
        if self.stopped:
            self._release(subscription)
        elif not subscription.held and subscription.open and subscription is not self._subscriptions[0]:
            self._unsubscribe(subscription)

    @staticmethod
    def count(inbound: StompInbound, times: int) -> None:
        """Add to the delivery count of a message that was delivered without success (S80, S110)."""
        inbound.counted = inbound.redelivery_count + times
        inbound.redeliveries = 0

    def roll_back(self, inbound: StompInbound) -> None:
        """Deliver a message again and count it, because its transaction was rolled back (S80)."""
        self.count(inbound, inbound.redeliveries + 1)
        self._give_back(inbound)

    def _give_back(self, inbound: StompInbound) -> None:
        if self.stopped:
            if inbound in self.outstanding:
                inbound.subscription.returned += 1
                self._release(inbound.subscription)
            return
        if not self._back:
            self._shared.giving_back.append(self)
        self._back.append(inbound)

    def redeliver(self) -> None:
        """Put the messages that were given back in this burst into the inbox again, in the order of their arrival."""
        back, self._back = self._back, []
        back.sort(key=lambda inbound: inbound.sequence)
        for inbound in back:
            inbound.settled = False
        self._sink.redeliver(back)

    def redeliver_now(self) -> None:
        """Call :meth:`redeliver` after an answer of the broker, because no call of the core ends this burst."""
        if self._back:
            self._shared.giving_back.remove(self)
            self.redeliver()

    def _release(self, subscription: StompSubscription) -> None:
        """End the subscription of a stopped consumer as soon as the caller can acknowledge none of its messages."""
        if subscription.open and subscription.held == subscription.returned:
            self._unsubscribe(subscription)

    def _dead_letter(self, inbound: StompInbound) -> None:
        """Send a NACK if this broker then makes the message a dead letter. Otherwise send a copy, and the ACK when the
        copy is confirmed (S118).

        A message that is already in the dead-letter queue stays there: Classic discards it if it gets a NACK, and a
        copy would be delivered again at once, again and again.
        """
        persistent = raw_header(inbound.head, b"\npersistent:") == b"true"
        if not self._dialect.acknowledges(inbound.head):
            self._set_aside(inbound, "it has no id by which it could be acknowledged")
            return
        if is_dead_letter_queue(self.info.destination, self._shared.dead_letters):
            self._set_aside(inbound, "this is the dead-letter queue itself")
            return
        if self._dialect.nacks and persistent and inbound in self.outstanding and inbound.ack:
            self._engine.write(b"NACK\n", inbound.ack, b"\n\0")
            self.acknowledged(inbound)
            return
        if not inbound.whole:
            self._set_aside(inbound, f"with {inbound.size} bytes it is too large to be copied to the dead-letter queue")
            return
        copy = dead_letter(inbound, self._shared.dead_letters, self.info.destination, self._subscriber)
        try:
            check_copy(copy, self._dialect.limits, self._dialect.longest_head)
        except MessageFormatException as error:
            self._set_aside(inbound, f"the broker would not take its copy for the dead-letter queue: {error}")
            return
        self._aside.copying += 1
        self._engine.ask(b"SEND", copy, partial(self._copied, inbound))

    def _set_aside(self, inbound: StompInbound, why: str) -> None:
        """Hold a message back until its subscription ends. After that the message goes back to the broker (S166)."""
        log.error("a message of %s waits for the end of this consumer: %s", self.info.destination.name, why)
        inbound.forget()
        if inbound in self.outstanding:
            inbound.subscription.returned += 1
            if self.stopped:
                self._release(inbound.subscription)
            elif self._full():
                self._watch()
            self._aside.add(self.stop)

    def _copied(self, inbound: StompInbound, error: BaseException | None) -> None:
        self._aside.copying -= 1
        if self._engine.failed is not None:
            return
        if error is None:
            self.acknowledge(inbound)
        else:
            log.error("a message of %s cannot be dead-lettered: %s", self.info.destination.name, error)
            self.roll_back(inbound)
            self.redeliver_now()
        if self._closing is not None and not self._aside.copying:
            self._close_subscriptions(self._closing)

    # -- drain, stop, close -------------------------------------------------------------------------------------

    def drain(self, done: Completion[None]) -> None:
        """Give the broker time to deliver, then send a request, because its messages come before its answer.

        STOMP has no drain, and brokers deliver messages independently of their answers. So this method finds only the
        messages that the broker delivers within the time.
        """
        if self.stopped or self._engine.failed is not None or (self.info.browser and self._browsed):
            done.settle(self._engine.failed)
            return
        self._drained.append(done)
        if len(self._drained) == 1:
            self._limit_drain()
            if not self.info.browser:
                self._give_time(last=False)

    def _limit_drain(self) -> None:
        """Start the timer that ends a drain, because a broker that finds no message for a selector never ends a
        browser."""
        timeout = self._shared.drain_timeout
        if timeout is not None:
            overdue = partial(self._drain_overdue, self._sequence, timeout)
            self._limit_timer = self._shared.connector.call_later(timeout, overdue)

    def _drain_overdue(self, sequence: int, timeout: float) -> None:
        if sequence != self._sequence:  # messages came in the meantime
            self._limit_drain()
            return
        what = f"{'a browser' if self.info.browser else 'the consumer'} of {self.info.destination.name}"
        self._end_drain(
            RequestTimedOutException(f"{what}: the broker said nothing within stomp.drainTimeout ({timeout:g} s)")
        )

    def _give_time(self, *, last: bool) -> None:
        self._drain_timer = self._shared.connector.call_later(_QUIET, partial(self._fence, last))

    def _fence(self, last: bool) -> None:
        self._late = False
        self._drain_timer = self._shared.connector.call_later(_QUIET, self._answer_is_late)
        fence = b"fence-%d" % next(self._shared.ids)
        self._engine.write(b"BEGIN\ntransaction:", fence, b"\n\n\0")
        self._engine.ask(b"ABORT\ntransaction:" + fence, b"\n\0", partial(self._fence_answered, self._drained, last))
        self._engine.flush()

    def _answer_is_late(self) -> None:
        self._late = True

    def _fence_answered(self, drained: list[Completion[None]], last: bool, error: BaseException | None) -> None:
        """End the drain. If the answer took long, give the broker time to deliver once more, because it may have been
        too busy to deliver before."""
        if drained is not self._drained:  # a message ended that drain; this may be another one
            return
        if self._late and not last and error is None:
            self._give_time(last=True)
        else:
            self._end_drain(error)

    def _end_drain(self, error: BaseException | None) -> None:
        for timer in (self._drain_timer, self._limit_timer):
            if timer is not None:
                timer.cancel()
        self._drain_timer = self._limit_timer = None
        waiting, self._drained = self._drained, []
        for done in waiting:
            done.settle(error)

    def stop(self, done: Completion[None]) -> None:
        """Deliver nothing more. Messages that the caller holds may still be settled."""
        self.stopped = True
        self._acks.send_all()
        self._end_drain(None)
        for subscription in [*self._subscriptions]:
            self._release(subscription)
        done.succeed()

    def close(self, done: Completion[None]) -> None:
        """Unsubscribe; a durable subscription stays (S141)."""
        self.stopped = True
        self._closing = done
        self._end_drain(None)
        self._cancel_timers()
        if not self._aside.copying:
            self._close_subscriptions(done)

    def _close_subscriptions(self, done: Completion[None]) -> None:
        for subscription in [*self._subscriptions]:
            self._unsubscribe(subscription)
        if not self._unanswered:
            done.succeed()

    def fail(self, error: JMSException) -> None:
        """End the receiver with an error, because the connection ended."""
        self.stopped = True
        self._end_drain(error)
        self._cancel_timers()
        if self._closing is not None:
            self._closing.fail(error)

    def _cancel_timers(self) -> None:
        self._aside.cancel()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _subscriber(info: ConsumerInfo, client_id: str) -> str:
    """Return the name of this subscriber of a topic. It is the same after a reconnect only if it is durable."""
    if not info.destination.is_topic:
        return ""
    return f"{client_id}.{info.subscription.name}" if info.subscription is not None else uuid4().hex
