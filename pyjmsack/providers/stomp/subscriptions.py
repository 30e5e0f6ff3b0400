"""The subscriptions of a consumer, the messages that the consumer has not acknowledged, and the state that all
receivers of one connection share. Here a subscription is the thing that one SUBSCRIBE frame opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol

from pyjmsack.errors import JMSException
from pyjmsack.providers.stomp.caution import Caution
from pyjmsack.providers.stomp.dialect import StompDialect
from pyjmsack.providers.stomp.engine import StompEngine
from pyjmsack.providers.stomp.frames import Refusal
from pyjmsack.providers.stomp.header_lines import raw_header
from pyjmsack.providers.stomp.heads import encode_head
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.memory import DeliveryCounts
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["Receiver", "Redelivers", "Shared", "StompSubscription", "Subscriptions"]


class Receiver(Protocol):
    """The methods of a receiver that the connection calls when frames arrive."""

    info: ConsumerInfo

    def deliver(
        self, subscription: StompSubscription, head: bytes, body: bytes, refusal: Refusal | None = None
    ) -> None:
        """Put a message into the inbox."""

    def burst_end(self) -> None:
        """Wake the consumer, because the burst of frames has ended."""

    def refuse_unread(self, subscription: StompSubscription, head: bytes) -> bool:
        """Send a NACK for the last message. Return False if the broker would discard the message after a NACK, or waits
        for no acknowledgement of the message."""
        ...

    def awaits_another(self, named: bytes, head: bytes) -> bool:
        """Return True if these lines of an ACK name a message of this consumer whose header lines are not ``head``."""
        ...

    def give_up(self, error: JMSException) -> None:
        """Close the consumer alone, before the connection ends."""

    def take_all(self) -> None:
        """From now on let the broker send as many messages ahead as the prefetch allows. Until now the consumer got one
        message at a time.
        """


class Redelivers(Protocol):
    """The part of a receiver that redelivers messages. The connection calls it at the end of a burst of calls."""

    def redeliver(self) -> None:
        """Put the messages that the caller gave back into the inbox again."""


_FULL = 0.9
"""A window that is counted in bytes is full when this part of it is used. The part is below 1, because this client
knows only roughly how the broker counts the bytes of a frame."""


class StompSubscription:
    """One subscription of a consumer, made by one SUBSCRIBE frame."""

    __slots__ = ("aside", "held", "id", "last", "open", "receiver", "retired", "returned", "used")

    def __init__(self, name: bytes, receiver: Receiver) -> None:
        self.id = name
        self.receiver = receiver
        self.held = 0
        """The number of messages of this subscription for which the broker waits for an ACK (acknowledgement)."""
        self.returned = 0
        """The number of unacknowledged messages of this subscription that go back to the broker when the subscription
        ends."""
        self.used = 0
        """The part of the window that the unacknowledged messages of this subscription use, in messages or bytes."""
        self.aside = 0
        """The part of ``used`` for messages that were set aside (S166). It gets free only at the end."""
        self.open = True
        self.last: bytes | None = None
        """The header lines of an ACK of the last message. On Artemis they contain the broker's number of the
        consumer."""
        self.retired = False
        """True if the subscription gets no more messages, and ends when the caller holds none of its messages."""


class Shared:
    """The state that all receivers of one connection share."""

    def __init__(
        self, engine: StompEngine, connector: Connector, dialect: StompDialect, generation: int, place: str
    ) -> None:
        self.engine = engine
        self.connector = connector
        self.dialect = dialect
        self.generation = generation
        self.place = place
        """The address of the broker."""
        self.subscriptions: dict[bytes, StompSubscription] = {}
        self.dirty: list[Receiver] = []
        """The receivers that got a message in this burst of frames."""
        self.giving_back: list[Redelivers] = []
        """The objects that have messages to redeliver at the end of this burst of calls."""
        self.counts = DeliveryCounts()
        self.ack_by_id = True
        """True for STOMP 1.2, in which an ACK names a message by its ``ack`` header. False for STOMP 1.1, in which an
        ACK names a message by its id and its subscription."""
        self.dead_letters = dialect.dead_letters
        self.drain_timeout: float | None = None
        self.client_id = self.username = ""
        self.copy_lost = False
        """True if this connection was lost while a copy for a dead-letter queue was on its way."""
        self.commits = 0
        """The number of COMMIT frames that this connection has sent."""
        self.ids: Iterator[int] = count(1)


class Subscriptions:
    """The subscriptions of one consumer, and the messages of these subscriptions for which the broker waits for an ACK
    (acknowledgement).

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        receiver: the object that gets the messages.

    Raises:
        JMSException: a SUBSCRIBE frame cannot carry a name or the selector of the consumer.
    """

    def __init__(self, shared: Shared, info: ConsumerInfo, receiver: Receiver) -> None:
        self._shared = shared
        self._engine = shared.engine
        self._dialect = shared.dialect
        self._info = info
        self._receiver: Receiver | None = receiver
        """The object that gets the messages. It is ``None`` after a close, because a circle of references would keep
        the closed consumer in memory."""
        self._caution = Caution(shared.place, info.destination.name) if self._loses_counts else None
        """Says whether the consumer gets one message at a time, because its connections were lost again and again."""
        self.single = self._caution is not None and info.prefetch > 1 and self._caution.single
        """True while the consumer gets one message at a time for that reason."""
        self._measure()
        self.all: list[StompSubscription] = []
        """The open subscriptions that get messages, in the order in which they were opened."""
        self._spare: StompSubscription | None = None
        """A subscription that was kept although it had become empty, because all others were full."""
        self._retired: list[StompSubscription] = []
        """The subscriptions that get no more messages. Each of them ends when the caller holds none of its messages."""
        self._reopened: Callable[[BaseException | None], None] | None = None
        """Called with the answer of the broker when the subscription that replaces the retired subscriptions is open.
        ``None`` if no subscription has to be replaced."""
        self.outstanding: dict[StompInbound, None] = {}
        """The messages for which the broker waits for an ACK (acknowledgement), in the order of arrival."""
        self.arrived = 0
        """The number of messages that have arrived."""
        self.stopped = False
        """True if the consumer gets no more messages. In this case, each subscription ends when the caller holds none
        of its messages."""
        self.closing: Completion[None] | None = None
        """The completion of the close of the consumer. It succeeds when the broker has confirmed the end of all
        subscriptions. While it is set, no ACK is sent, because a broker refuses an ACK after the end of its
        subscription."""
        self._unanswered = 0
        """The number of UNSUBSCRIBE frames (each ends a subscription) that wait for a RECEIPT of the broker."""

    @property
    def volatile(self) -> bool:
        """True if the consumer receives from a topic without a named subscription. The broker keeps no messages for
        such a consumer, so only this client can deliver them again."""
        return self._info.destination.is_topic and self._info.subscription is None

    @property
    def prefetch(self) -> int:
        """The number of messages that the broker sends ahead."""
        return 1 if self.single else self._info.prefetch

    @property
    def _loses_counts(self) -> bool:
        """True if a loss of the connection raises the delivery count of each message that the broker sent ahead to this
        consumer. Artemis raises it, and makes dead letters of the messages after several losses. The result is False if
        the consumer is presettled, or receives from a source that ends with the connection.
        """
        info = self._info
        temporary = info.destination.is_temporary or self.volatile
        return self._dialect.routed and not (info.presettled or temporary)

    def _measure(self) -> None:
        dialect = self._dialect
        self._lines = encode_head(dialect.subscribe_lines(replace(self._info, prefetch=self.prefetch)), dialect.limits)
        self.by_bytes = dialect.window_in_bytes and self.prefetch > 1
        """True if the broker counts the window in bytes."""
        self.window = dialect.window_size(self._info) if self.prefetch > 1 else 1
        """The number of messages or bytes that the broker sends on one subscription."""
        info = self._info
        pauses_at = None if info.destination.is_topic or info.exclusive else dialect.pauses_at
        self.full_at = int(self.window * _FULL) if self.by_bytes else min(self.window, pauses_at or self.window)
        """The number of messages or bytes at which a subscription counts as full. A topic does not pause, and an
        exclusive consumer has no second subscription."""
        self._spent_at = self.full_at if self.by_bytes else self.window
        """The number of messages or bytes at which the broker sends no more on a subscription."""

    def is_lost(self, subscription: StompSubscription) -> bool:
        """Return True if only messages that were set aside fill the window of a subscription, so that the broker never
        sends another message on it (S166)."""
        return subscription.aside >= self._spent_at

    # -- begin and end ------------------------------------------------------------------------------------------

    def subscribe(self, answered: Callable[[BaseException | None], None]) -> None:
        """Open a subscription by a SUBSCRIBE frame.

        Args:
            answered: called with the error of the broker, or with ``None``.
        """
        assert self._receiver is not None  # a closed consumer opens no subscription
        subscription = StompSubscription(b"%bs%d" % (self._engine.secret, next(self._shared.ids)), self._receiver)
        self.all.append(subscription)
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
        if subscription is self._spare:
            self._spare = None
        for subscriptions in (self.all, self._retired):
            if subscription in subscriptions:
                subscriptions.remove(subscription)

    def _unsubscribe(self, subscription: StompSubscription) -> None:
        """End a subscription by an UNSUBSCRIBE frame. The broker then takes back the unacknowledged messages of the
        subscription. The broker sends no delivery count when it delivers these messages again, so the client keeps the
        counts (S110)."""
        self._forget(subscription)
        if subscription.held:
            for inbound in [inbound for inbound in self.outstanding if inbound.subscription is subscription]:
                self._shared.counts.remember(inbound)
                del self.outstanding[inbound]
        self._unanswered += 1
        self._engine.ask(b"UNSUBSCRIBE", b"id:%s\n\n\0" % subscription.id, self._unsubscribed)
        self._open_again()

    def _unsubscribed(self, error: BaseException | None) -> None:
        self._unanswered -= 1
        closing = self.closing
        if closing is not None and (error is not None or not self._unanswered):
            closing.settle(error)

    def release(self, subscription: StompSubscription) -> None:
        """End a retired subscription, or the subscription of a stopped consumer, if no message is left that the caller
        can acknowledge."""
        if subscription.open and subscription.held == subscription.returned:
            self._unsubscribe(subscription)

    def release_all(self) -> None:
        """Call :meth:`release` for each subscription, because the consumer is stopped."""
        for subscription in [*self.all, *self._retired]:
            self.release(subscription)

    def release_returned(self) -> None:
        """Call :meth:`release` for each retired subscription with messages that are set aside, because nobody will
        acknowledge a message of it."""
        for subscription in [subscription for subscription in self._retired if subscription.returned]:
            self.release(subscription)

    def retire_all(self) -> None:
        """Let each subscription end as soon as the caller holds none of its messages. From now on these subscriptions
        get no more messages.

        Call this method before the caller's messages are given back, if the broker can deliver them only to another
        subscription.
        """
        for subscription in self.all:
            subscription.retired = True
            self._shared.subscriptions.pop(subscription.id, None)
        self._retired += self.all
        self.all.clear()
        self._spare = None

    def replace_retired(self, answered: Callable[[BaseException | None], None]) -> None:
        """Open one subscription in place of the retired subscriptions. If the broker allows the consumer only one
        subscription, open it after the end of the retired one.

        Args:
            answered: called with the error of the broker, or with ``None``.
        """
        self._reopened = answered
        self._open_again()

    def _open_again(self) -> None:
        info = self._info
        waits = bool(self._retired) and (info.subscription is not None or info.exclusive)
        answered = self._reopened
        if answered is None or waits:
            return
        self._reopened = None
        if not self.all and not self.stopped:
            self.subscribe(answered)

    def close(self, done: Completion[None]) -> None:
        """End all subscriptions. Complete ``done`` when the broker has confirmed the end of each subscription."""
        for subscription in [*self.all, *self._retired]:
            self._unsubscribe(subscription)
        self._receiver = None
        if not self._unanswered:
            done.succeed()

    # -- messages -----------------------------------------------------------------------------------------------

    def hold(self, inbound: StompInbound, subscription: StompSubscription) -> None:
        """Keep a message that has arrived, until it is acknowledged or its subscription ends."""
        shared = self._shared
        inbound.subscription = subscription
        inbound.ack = subscription.last = self.ack_lines(inbound, subscription)
        self._fill(inbound, subscription)
        subscription.held += 1
        self.outstanding[inbound] = None
        if shared.counts:
            inbound.counted = shared.counts.of(inbound)

    def _fill(self, inbound: StompInbound, subscription: StompSubscription) -> None:
        inbound.cost = inbound.size if self.by_bytes else 1
        subscription.used += inbound.cost

    def joined(self, inbound: StompInbound) -> None:
        """Give the room of a message in the window to another message, because the ACK of this one is a part of a
        transaction. The broker does so too, before the transaction ends."""
        inbound.subscription.used -= inbound.cost
        inbound.cost = 0

    def undone(self, inbound: StompInbound) -> None:
        """Let a message fill the window again, because the transaction with its ACK was rolled back."""
        if inbound in self.outstanding and not inbound.cost:
            self._fill(inbound, inbound.subscription)

    def ack_lines(self, inbound: StompInbound, subscription: StompSubscription) -> bytes:
        """Return the header lines that name a message in an ACK or NACK (the frames that acknowledge or refuse a
        message)."""
        if self._shared.ack_by_id:
            # a sender may have set a property ``ack``; on Artemis the message id has the value that the ACK needs
            key = b"\nmessage-id:" if self._dialect.routed else b"\nack:"
            return b"id:%s\n" % (raw_header(inbound.head, key) or b"")
        message_id = raw_header(inbound.head, b"\nmessage-id:") or b""
        return b"message-id:%s\nsubscription:%s\n" % (message_id, subscription.id)

    def acknowledge(self, inbound: StompInbound) -> None:
        """Send an ACK (acknowledgement) for a message, if the broker still waits for this ACK."""
        if inbound in self.outstanding and inbound.ack is not None:
            self._engine.write(b"ACK\n", inbound.ack, b"\n\0")
            self.acknowledged(inbound)
            # the first ACK proves nothing: Artemis sends one message behind the one that it cannot convert
            if self._caution is not None and self._caution.losses and self.arrived > 1:
                self._caution.acknowledged(inbound.size)
                if self.single and not self._caution.single and self._receiver is not None:
                    self._receiver.take_all()

    def take_all(self) -> None:
        """From now on subscribe for the whole prefetch. Until now the consumer subscribed for one message at a time.
        End the present subscriptions first, so that the broker has the next message back before it serves the new
        subscription.
        """
        self.single = False
        self._measure()
        self.retire_all()
        for subscription in [*self._retired]:
            self.release(subscription)

    def lost(self) -> None:
        """Remember that the connection was lost while the broker had sent messages ahead, because the broker may count
        a delivery for each of these messages.
        """
        if self._caution is not None and self._info.prefetch > 1 and len(self.outstanding) > 1:
            self._caution.lost(self._shared.generation, self._waiting)

    def ended(self, certain: bool) -> bool:
        """Remember that Artemis ended a consumer of this queue. Return True if the consumers of the queue must be
        closed, because this has happened too often. ``certain`` is False if the broker only refused an ACK."""
        caution = self._caution
        return caution is not None and caution.ended(self._shared.generation, self._waiting, certain=certain)

    @property
    def _waiting(self) -> int:
        return sum(inbound.size for inbound in self.outstanding)

    def holds(self, number: bytes) -> bool:
        """Return True if the last message of a subscription came from the consumer with this number at Artemis."""
        starts = b"id:%s," % number, b"message-id:%s," % number  # STOMP 1.2 and 1.1
        return any(one.last is not None and one.last.startswith(starts) for one in [*self.all, *self._retired])

    def acknowledged(self, inbound: StompInbound) -> None:
        """Forget a message, because its ACK was sent, alone or as a part of a transaction."""
        if self.outstanding.pop(inbound, self) is self:
            return
        subscription: StompSubscription = inbound.subscription
        subscription.used -= inbound.cost
        subscription.held -= 1
        if self.stopped or subscription.retired:
            self.release(subscription)
        elif len(self.all) > 1 and subscription.open:
            self._end_empty(subscription)

    def _end_empty(self, subscription: StompSubscription) -> None:
        """End a subscription that became empty, or the spare one, if another one has room. The first subscription
        never ends here. If all others are full, the empty one stays as the spare: without it, the consumer would get no
        message until the caller acknowledges those that it holds (S53).

        Args:
            subscription: the subscription of the message that was acknowledged.
        """
        spare = self._spare
        if subscription is spare:
            return
        if subscription.held or subscription is self.all[0]:
            if spare is not None and subscription.used < self.full_at:
                self._spare = None
                if not spare.held:
                    self._unsubscribe(spare)
        elif (spare is not None and not spare.held) or any(
            one.used < self.full_at for one in self.all if one is not subscription
        ):
            self._unsubscribe(subscription)
        else:
            self._spare = subscription
