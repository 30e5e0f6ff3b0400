"""The receiver of one consumer, which takes its messages and sends their outcomes.

STOMP lacks two features of AMQP. First, no frame gives one message back to the broker. Therefore this client redelivers
such a message itself (``redelivery.py``). Second, the client cannot ask for more messages while the caller holds many.
Therefore this client opens more subscriptions (``window.py``, ``subscriptions.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from pyjmsack.errors import JMSException
from pyjmsack.providers.stomp.deadletter import DeadLetters
from pyjmsack.providers.stomp.drain import Drain
from pyjmsack.providers.stomp.errors import ConsumerEnded, unconvertible
from pyjmsack.providers.stomp.frames import Refusal
from pyjmsack.providers.stomp.header_lines import is_forged, raw_header
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.late import LateAcks
from pyjmsack.providers.stomp.redelivery import LocalRedelivery
from pyjmsack.providers.stomp.subscriptions import Shared, StompSubscription, Subscriptions
from pyjmsack.providers.stomp.window import Window
from pyjmsack.spi.aside import Aside
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["StompReceiver", "end_consumers"]

_FOREIGN_ID = (
    "an id that its sender chose; over STOMP, ActiveMQ Classic accepts no acknowledgement with such an id; consume this"
    " queue over AMQP, or let an AMQP sender set disable_message_id"
)

_FORGED = (
    "header lines that its sender has forged by line feeds in the name of a property, because ActiveMQ Classic does not"
    " escape them; an acknowledgement could hit another message; remove it over AMQP"
)


class StompReceiver:
    """The receiver of one consumer.

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        sink: the inbox of the core, which gets the messages.
        serial: True if the session acknowledges each message before it hands out the next one. In this case, a consumer
            with prefetch 1 needs no second subscription.

    Raises:
        JMSException: a SUBSCRIBE frame cannot carry a name or the selector of the consumer.
    """

    def __init__(self, shared: Shared, info: ConsumerInfo, sink: InboundSink, *, serial: bool) -> None:
        self.info = info
        self._sink = sink
        self._shared = shared
        self._dialect = shared.dialect
        self._own_ids = shared.dialect.own_ids and not info.browser
        self._is_dirty = False
        self._aside = Aside(info, sink, shared.connector)
        self.subscriptions = Subscriptions(shared, info, self)
        """The subscriptions, with the messages for which the broker waits for an ACK (acknowledgement)."""
        self._window = Window(shared, info, sink, self.subscriptions, self._aside, serial=serial)
        self.pull = self._window.pull
        """The function to call when the caller waits for a message."""
        self.make_room = self._window.make_room
        """The function to call when the caller has put a message aside."""
        self.redelivery = LocalRedelivery(shared, sink, self.subscriptions, info.destination.name)
        """Delivers again the messages that the caller gave back."""
        self._dead_letters = DeadLetters(shared, info, self.subscriptions, self._window, self.redelivery, self._aside)
        self._acks = LateAcks(shared.engine, sink, info.prefetch)
        self.replenish = self._acks.send
        """The function to call when the caller has taken messages."""
        self._drain = Drain(shared, info, self.subscriptions)

    def open(self, done: Completion[None]) -> None:
        """Send the SUBSCRIBE frame, and complete ``done`` with the answer of the broker."""
        self.subscriptions.subscribe(done.settle)

    # -- deliveries ---------------------------------------------------------------------------------------------

    def deliver(
        self, subscription: StompSubscription, head: bytes, body: bytes, refusal: Refusal | None = None
    ) -> None:
        """Put a message into the inbox without decoding it. If the consumer is stopped, ignore the message, because the
        message goes back to the broker when its subscription ends."""
        subscriptions = self.subscriptions
        if subscriptions.stopped or not subscription.open:
            return
        if self.info.browser and _ends_browsing(head):
            self._drain.browse_ended()
            return
        inbound = StompInbound(head, body, self._dialect, refusal)
        inbound.consumer_id = self.info.id
        inbound.generation = self._shared.generation
        subscriptions.arrived += 1
        inbound.sequence = subscriptions.arrived
        presettled = self.info.presettled and (refusal is None or self._dialect.auto_acks)
        if presettled:
            inbound.settled = True
        else:
            foreign = self._own_ids and not self._dialect.acknowledges(head)
            if foreign:
                why = _FORGED if is_forged(head) else _FOREIGN_ID
                inbound.refusal = refusal or Refusal(why, True, len(head) + len(body))
            if subscription.used > self._window.limit and not self.info.browser:
                self._shared.engine.fail(self._window.overrun(subscription))
                return
            subscriptions.hold(inbound, subscription)
            if foreign:  # the broker ends the connection when it gets an ACK with such an id
                inbound.ack = None
            if subscription.used >= subscriptions.full_at and self._window.widens:
                self._window.watch()
        self._sink.deliver(inbound)
        if presettled and not self._dialect.auto_acks:
            self._acks.add(subscriptions.ack_lines(inbound, subscription))
        if not self._is_dirty:
            self._is_dirty = True
            self._shared.dirty.append(self)
        if self._drain.waiting and not self.info.browser:
            self._drain.end(None)

    def burst_end(self) -> None:
        """Wake the consumer once, after all messages of the burst."""
        self._is_dirty = False
        self._sink.arrived()

    # -- outcomes -----------------------------------------------------------------------------------------------

    def settle(self, inbound: StompInbound, outcome: Outcome) -> None:
        """Apply an outcome outside of a transaction (S118)."""
        if outcome is Outcome.ACCEPTED and (inbound.ack is not None or inbound not in self.subscriptions.outstanding):
            self.subscriptions.acknowledge(inbound)
        elif outcome is Outcome.RELEASED:
            self.redelivery.give_back(inbound)
        elif outcome is Outcome.MODIFIED_FAILED:
            self.redelivery.count(inbound, max(1, inbound.redeliveries))
            self.redelivery.give_back(inbound)
        else:  # also a message with an id that no ACK can name, whatever its outcome
            self._dead_letters.add(inbound, self.stop)

    def refuse_unread(self, subscription: StompSubscription, head: bytes) -> bool:
        """Send a NACK for the last message, because the connection ends behind it and nobody can read it (S166).

        Returns:
            False if the broker would discard the message after a NACK, or waits for no acknowledgement of it.
        """
        inbound = StompInbound(head, b"", self._dialect)
        persistent = raw_header(head, b"\npersistent:") == b"true"
        if self.info.presettled or self.info.browser or not persistent or not self._dialect.acknowledges(head):
            return False
        named = self.subscriptions.ack_lines(inbound, subscription)
        receivers = {each.receiver for each in self._shared.subscriptions.values()}
        if any(receiver.awaits_another(named, head) for receiver in receivers):
            return False  # the line ``ack`` is forged
        self._shared.engine.write(b"NACK\n", named, b"\n\0")
        return True

    def awaits_another(self, named: bytes, head: bytes) -> bool:
        """Return True if these lines of an ACK name a message of this consumer whose header lines are not ``head``."""
        return any(one.ack == named and one.head != head for one in self.subscriptions.outstanding)

    def retire(self) -> None:
        """Let the broker deliver again all messages of this consumer that are not acknowledged. For this, the present
        subscription ends, and :meth:`renew` opens another one."""
        self._dead_letters.give_up()
        self.subscriptions.retire_all()
        self.subscriptions.release_returned()

    def renew(self) -> None:
        """Open a subscription in place of the one that :meth:`retire` ended, unless the consumer was closed."""
        self.subscriptions.replace_retired(self._renewed)

    def take_all(self) -> None:
        """Subscribe for the whole prefetch, because the time with one message at a time is over."""
        self._dead_letters.give_up()
        self.subscriptions.take_all()
        self._window.measure()
        self.renew()

    def _renewed(self, error: BaseException | None) -> None:
        if error is not None and self._shared.engine.failed is None:
            self._sink.detached(error)

    # -- drain, stop, close -------------------------------------------------------------------------------------

    def drain(self, done: Completion[None]) -> None:
        """Complete ``done`` when the broker seems to have no more messages for this consumer."""
        failed = self._shared.engine.failed
        if self.subscriptions.stopped or failed is not None or self._drain.browsed:
            done.settle(failed)
        else:
            self._drain.start(done)

    def stop(self, done: Completion[None]) -> None:
        """Deliver no more messages. The caller may still settle the messages that it holds."""
        self.subscriptions.stopped = True
        self._acks.send_all()
        self._drain.end(None)
        self.subscriptions.release_all()
        done.succeed()

    def close(self, done: Completion[None]) -> None:
        """End all subscriptions of the consumer. A durable subscription itself stays at the broker (S141)."""
        self.subscriptions.stopped = True
        self.subscriptions.closing = done
        self._drain.end(None)
        self._cancel_timers()
        if not self._aside.copying:
            self.subscriptions.close(done)

    def fail(self, error: JMSException) -> None:
        """End the receiver with an error, because the connection ended."""
        if not self.subscriptions.stopped:
            self.subscriptions.lost()
        self.subscriptions.stopped = True
        self._drain.end(error)
        self._cancel_timers()
        if self.subscriptions.closing is not None:
            self.subscriptions.closing.fail(error)

    @property
    def address(self) -> str:
        """The name of the destination at the broker."""
        return self._dialect.prefixed(self.info.destination)

    @property
    def source(self) -> tuple[str, str | None, str | None]:
        """What this consumer receives: the destination, the selector, and the name of the subscription."""
        info = self.info
        return self.address, info.selector, None if info.subscription is None else info.subscription.name

    def ended(self, certain: bool) -> None:
        """Handle the end of a consumer of this queue, which Artemis ended because it cannot convert a message. At the
        third end in a row close this consumer alone, so that the other consumers of the connection go on (S101).

        Args:
            certain: True if the broker named the queue. False if it only refused an ACK.
        """
        if self.subscriptions.ended(certain):
            self._sink.detached(unconvertible(self.info.destination.name))

    def give_up(self, error: JMSException) -> None:
        """Close this consumer alone, before the connection ends. Failover does not open it again."""
        self._sink.detached(error)

    def _cancel_timers(self) -> None:
        self._dead_letters.give_up()
        self._aside.cancel()
        self._window.cancel()


def end_consumers(ended: ConsumerEnded, receivers: Collection[StompReceiver]) -> None:
    """Tell a consumer that Artemis ended it, and those that would get the same message next. These are the consumers of
    the same destination with the same selector and subscription.

    If consumers with different selectors may be meant, nobody is told, because an innocent one would be closed.
    """
    meant = [one for one in receivers if one.subscriptions.holds(ended.number)]
    if not meant:
        meant = [one for one in receivers if one.address in ended.names]
    sources = {one.source for one in meant}
    if len(sources) == 1:
        for receiver in receivers:
            if receiver.source in sources:
                receiver.ended(bool(ended.names))


def _ends_browsing(head: bytes) -> bool:
    """Return True for the frame with which ActiveMQ Classic says that the browser has shown all messages.

    The frame of a message also has the line ``browser:end`` if the message has such a property. But the frame of a
    message always has a priority.
    """
    return raw_header(head, b"\nbrowser:") == b"end" and raw_header(head, b"\npriority:") is None
