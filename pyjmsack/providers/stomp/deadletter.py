"""Makes dead letters of rejected messages. A NACK is the STOMP frame that refuses a message. If the broker makes a dead
letter of a message after a NACK, the client sends a NACK. If the broker would lose the message, the client sends a copy
to the dead-letter queue (S118; traps 1 and 8 of broker-facts.md).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from time import monotonic
from uuid import uuid4

from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import ConnectionLostException, MessageFormatException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.stomp.dialect import StompDialect
from pyjmsack.providers.stomp.header_lines import escape, has_colons, raw_header
from pyjmsack.providers.stomp.heads import check_copy
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.redelivery import LocalRedelivery
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.providers.stomp.window import Window
from pyjmsack.spi.aside import Aside, Stop
from pyjmsack.spi.demands import is_dead_letter_queue
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import DUPLICATE_ID
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["DeadLetters"]

log = get_logger("pyjmsack.stomp")

_NOT_COPIED = re.compile(
    rb"\n(?:subscription|message-id|ack|destination|destination-type|content-length|redelivered|receipt|expires"
    rb"|transaction|browser|%b|_AMQ_ORIG_ADDRESS|_AMQ_ORIG_QUEUE|_AMQ_SCHED_DELIVERY|AMQ_SCHEDULED_TIME"
    rb"|_AMQ_LARGE_SIZE|_AMQ_BRIDGE_DUP|_AMQ_ROUTING_TYPE|_AMQ_ROUTE_TO|_AMQ_SCALEDOWN_TO"
    rb"|AMQ_SCHEDULED_(?:DELAY|PERIOD|REPEAT|CRON)|scheduledJobId|JMS_AMQP_ENCODED_(?:DA|MA|FT)_[^:\n]*"
    rb"|_AMQ_GROUP_SEQUENCE(?!:-?1?[0-9]{1,9}(?![^\n]))|_AMQ_INGRESS_TIMESTAMP(?!:[0-9]{1,18}(?![^\n]))"
    rb"|priority(?!:[0-9](?![^\n]))|timestamp(?!:[0-9]{1,18}(?![^\n])))(?::[^\n]*)?(?![^\n])" % DUPLICATE_ID.encode()
)
"""The header lines that a copy does not get, because they belong to one delivery, because the broker would deliver the
copy later or again, because the broker would end the connection when it reads them, or because Artemis could not
convert the copy for a receiver over AMQP (docs/interop.md). A sender over AMQP may give a property the name of a header
of STOMP, with any value. One search finds all these lines, because a search for each line would be slow in a message
with many lines."""


_LOSSY = (
    "a client of another protocol sent it, and over STOMP the broker may have left out its content, because it may be a"
    " map, a stream or an object; consume this queue over AMQP"
)

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0
"""Seconds without copies after the broker refused a copy. The pause doubles with each refusal in a row."""
_MOST_LOSSES = 3
"""The number of connections in a row, each lost while a copy was on its way, that counts as a refusal."""
_MOST_QUEUES = 1_000
"""The number of dead-letter queues whose refusals this module remembers. The oldest refusal is forgotten first."""


class _Refusals:
    """The memory of this process about the copies that brokers refused, for example because the dead-letter queue is
    full, or because the user may not write there.

    Artemis ends the connection when it refuses a copy, and then delivers the original message again. If this message
    were copied again at once, the connection would be lost again and again, with all sessions in it. Therefore no
    message is copied to this queue for some time. The memory outlives the connection, because the next connection of
    the same program gets the same message. Loops on several threads use the memory without a lock. At worst, one of
    them sends one copy more.
    """

    lost: dict[tuple[str, str, str], int] = {}  # noqa: RUF012 - all connections of the process share it
    """For each broker, user and queue of the copies, the number of connections in a row that were lost while a copy was
    on its way. A broker may end the connection for a copy without a word."""
    until: dict[tuple[str, str, str], tuple[float, float]] = {}  # noqa: RUF012 - all connections of the process share it
    """For each broker, user and queue of the copies, the end of the pause and the length of the pause in seconds. The
    newest refusal comes last."""

    @classmethod
    def remaining(cls, place: tuple[str, str, str]) -> float:
        """Return the number of seconds until the end of the pause. The number is not positive if there is no pause."""
        return cls.until.get(place, (0.0, 0.0))[0] - monotonic()

    @classmethod
    def add(cls, place: tuple[str, str, str]) -> float:
        """Begin a pause, because the broker refused a copy. Return the number of seconds until its end."""
        now = monotonic()
        until, pause = cls.until.pop(place, (0.0, _FIRST_PAUSE / 2))
        if now >= until:
            pause = min(2 * pause, _LONGEST_PAUSE)
            until = now + pause
        cls.until[place] = until, pause
        while len(cls.until) > _MOST_QUEUES:
            cls.until.pop(next(iter(cls.until)), None)
        return until - now

    @classmethod
    def connection_lost(cls, place: tuple[str, str, str]) -> None:
        """Count a connection that was lost while a copy was on its way. Several in a row count as a refusal."""
        losses = cls.lost.pop(place, 0) + 1
        cls.lost[place] = losses
        while len(cls.lost) > _MOST_QUEUES:
            cls.lost.pop(next(iter(cls.lost)), None)
        if losses >= _MOST_LOSSES:
            cls.lost.pop(place)
            cls.add(place)

    @classmethod
    def accepted(cls, place: tuple[str, str, str]) -> None:
        """Forget the refusals, because the broker took a copy."""
        cls.until.pop(place, None)
        cls.lost.pop(place, None)


class DeadLetters:
    """Moves the messages that one consumer rejected to the dead-letter queue, and sets aside those that cannot be
    moved.

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        subscriptions: the subscriptions of the consumer, which know for which messages the broker still waits for an
            ACK (an acknowledgement).
        window: the window of the consumer. The window may have to grow, because a message that is set aside stays in
            the window.
        redelivery: delivers a message again if the broker refused the copy.
        aside: counts the messages that are set aside, and the copies on their way.
    """

    def __init__(
        self,
        shared: Shared,
        info: ConsumerInfo,
        subscriptions: Subscriptions,
        window: Window,
        redelivery: LocalRedelivery,
        aside: Aside,
    ) -> None:
        self._shared = shared
        self._engine = shared.engine
        self._dialect = shared.dialect
        self._info = info
        self._subscriptions = subscriptions
        self._window = window
        self._redelivery = redelivery
        self._aside = aside
        self._subscriber = _subscriber(info, shared.client_id)
        self._origin = _origin(info, self._subscriber, shared.dialect)
        self._waiting: dict[StompInbound, Stop] = {}
        """The messages whose copies wait for the end of a pause, each with the argument ``stop`` of :meth:`add`."""
        self._timer: Timer | None = None

    def add(self, inbound: StompInbound, stop: Stop) -> None:
        """Send a NACK if this broker makes a dead letter of a message after a NACK. Otherwise send a copy, and send the
        ACK of the message when the broker has confirmed the copy (S118). If the broker refused a copy a short time ago,
        send the copy after a pause.

        A message that is already in the dead-letter queue stays there. Classic discards such a message after a NACK,
        and a copy would be delivered to the same consumer at once, again and again.

        Args:
            inbound: the message.
            stop: stops the deliveries of the consumer.
        """
        persistent = raw_header(inbound.head, b"\npersistent:") == b"true"
        if not self._dialect.acknowledges(inbound.head):
            self._set_aside(inbound, stop, "the message has no id by which it could be acknowledged")
            return
        if is_dead_letter_queue(self._info.destination, self._shared.dead_letters):
            self._set_aside(inbound, stop, "the message is already in the dead-letter queue")
            return
        if self._dialect.nacks and persistent and inbound in self._subscriptions.outstanding and inbound.ack:
            self._engine.write(b"NACK\n", inbound.ack, b"\n\0")
            self._subscriptions.acknowledged(inbound)
            return
        if not inbound.whole:
            why = f"its {inbound.size} bytes are too many for a copy to the dead-letter queue"
            self._set_aside(inbound, stop, _LOSSY if inbound.lossy else why)
            return
        place = self._place(inbound)
        wait = _Refusals.remaining(place)
        if wait <= 0:
            self._send(inbound, place, stop)
        elif inbound in self._subscriptions.outstanding and self._is_ending(inbound):
            self._set_aside(inbound, stop, "the broker refused a copy for the dead-letter queue a short time ago")
        else:
            self._aside.copying += 1
            self._waiting[inbound] = stop
            self._wait(wait)
            if self._window.is_full:
                self._window.watch()

    def _place(self, inbound: StompInbound) -> tuple[str, str, str]:
        """Return the broker, the user and the queue of the copy of a message. An expired message goes to the queue to
        which the broker itself moves expired messages."""
        shared, expired = self._shared, inbound.expired(time.time_ns() // 1_000_000)
        return shared.place, shared.username, self._dialect.expired if expired else shared.dead_letters

    def _send(self, inbound: StompInbound, place: tuple[str, str, str], stop: Stop) -> None:
        if not has_colons(inbound.head):  # Classic would read the rest of the copy as frames, and end the connection
            self._set_aside(inbound, stop, "a header line has no colon, because Classic does not escape line feeds")
            return
        copy = _copy(inbound, place[2], self._info.destination, self._origin, self._subscriber)
        try:
            check_copy(copy, self._dialect.limits, self._dialect.longest_head)
        except MessageFormatException as error:
            self._set_aside(inbound, stop, f"the broker would refuse a copy for the dead-letter queue: {error}")
            return
        self._aside.copying += 1
        self._engine.ask(b"SEND", copy, partial(self._copied, inbound, place))

    def _wait(self, seconds: float) -> None:
        if self._timer is None:  # no longer than the first pause, because another queue may have a shorter pause
            self._timer = self._shared.connector.call_later(min(seconds, _FIRST_PAUSE), self._try_again)

    def _try_again(self) -> None:
        """Send the copies whose pause is over."""
        self._timer = None
        for inbound, stop in [*self._waiting.items()]:
            place = self._place(inbound)
            wait = _Refusals.remaining(place)
            if wait > 0:
                self._wait(wait)
            else:
                del self._waiting[inbound]
                self._aside.copying -= 1
                self._send(inbound, place, stop)
        self._engine.flush()

    def give_up(self) -> None:
        """Send no copies of the messages that wait for the end of a pause, because their subscriptions end. The
        messages go back to the broker."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        self._aside.copying -= len(waiting)
        for inbound in waiting:
            if inbound in self._subscriptions.outstanding:
                inbound.subscription.returned += 1

    def _is_ending(self, inbound: StompInbound) -> bool:
        return self._subscriptions.stopped or inbound.subscription.retired

    def _set_aside(self, inbound: StompInbound, stop: Stop, why: str) -> None:
        """Set a message aside until its subscription ends, because ``why`` prevents both a NACK and a copy. After the
        end of the subscription the message goes back to the broker (S166). A topic without a named subscription would
        not keep the message, so there the message is dropped at once, and leaves its room to others."""
        inbound.forget()
        subscriptions = self._subscriptions
        name = self._info.destination.name
        if subscriptions.volatile and inbound.ack is not None and inbound in subscriptions.outstanding:
            subscriptions.acknowledge(inbound)
            log.error("a message of %s is dropped, because a topic keeps no message for this consumer: %s", name, why)
            return
        if inbound in subscriptions.outstanding:
            inbound.subscription.returned += 1
            inbound.subscription.aside += inbound.cost
            if self._is_ending(inbound):
                subscriptions.release(inbound.subscription)
            elif self._window.is_full:
                self._window.watch()
            self._aside.add(stop)
        log.error("a message of %s stays unacknowledged until its consumer ends: %s", name, why)

    def _copied(self, inbound: StompInbound, place: tuple[str, str, str], error: BaseException | None) -> None:
        self._aside.copying -= 1
        if self._engine.failed is not None:
            if isinstance(error, ConnectionLostException) and not self._shared.copy_lost:
                self._shared.copy_lost = True  # several copies may be on their way over one connection
                _Refusals.connection_lost(place)
            return
        subscriptions = self._subscriptions
        if error is None:
            _Refusals.accepted(place)
            subscriptions.acknowledge(inbound)
        else:
            log.error(
                "a message of %s cannot be copied to the dead-letter queue and is delivered again; the next copy is"
                " sent in %.0f s: %s",
                self._info.destination.name,
                _Refusals.add(place),
                error,
            )
            if self._engine.errors_end:  # the broker ends the connection, and delivers the message again
                return
            self._redelivery.roll_back(inbound)
            self._redelivery.redeliver_now()
        if subscriptions.closing is not None and not self._aside.copying:
            subscriptions.close(subscriptions.closing)


def _subscriber(info: ConsumerInfo, client_id: str) -> str:
    """Return the name of this subscriber of a topic. The name is empty for a queue. Only a durable subscriber has the
    same name after a reconnect."""
    if not info.destination.is_topic:
        return ""
    return f"{client_id}.{info.subscription.name}" if info.subscription is not None else uuid4().hex


def _origin(info: ConsumerInfo, subscriber: str, dialect: StompDialect) -> str:
    """Return the name of the queue that a consumer's messages come from, as the broker notes it on a dead letter.

    On Artemis a durable subscription has a queue, and a letter may go back there. Nothing may go back to a topic,
    because each of its subscribers would get the letter. So the name of a topic begins with ``topic://``.
    """
    if not info.destination.is_topic:
        return info.destination.name
    if info.subscription is not None and dialect.routed:
        return subscriber
    return f"topic://{info.destination.name}"


def _copy(inbound: StompInbound, queue: str, source: Destination, origin_queue: str, subscriber: str) -> bytes:
    """Return the header lines and the body of the SEND frame that copies a message to the dead-letter queue.

    The copy names the origin of the message, and has no expiry. If the connection is lost before the original is
    acknowledged, the client may make a second copy. Artemis drops the second copy, because its duplicate mark is made
    from the id of the original.

    Args:
        origin_queue: the queue that the message came from, for ``_AMQ_ORIG_QUEUE``.
        subscriber: the name of a subscriber of a topic, which becomes a part of the duplicate mark. Several subscribers
            may reject the same message, and the broker must keep the copy of each. The name is empty for a queue.
    """
    # the dead-letter queue belongs to the broker, so its name has no prefix of the user
    dialect = replace(inbound.dialect, queue_prefix="")
    lines = [copied] if (copied := _NOT_COPIED.sub(b"", inbound.head)[1:]) else []
    origin = escape(source.name).encode()
    lines.append(b"_AMQ_ORIG_ADDRESS:" + origin)
    lines.append(b"_AMQ_ORIG_QUEUE:" + escape(origin_queue).encode())
    number = inbound.broker_id
    if dialect.routed and number:
        owner = b"-" + escape(subscriber).encode() if subscriber else b""
        lines.append(DUPLICATE_ID.encode() + b":" + origin + owner + b"-" + number)
    if inbound.is_bytes or b"\0" in inbound.body:
        lines.append(b"content-length:%d" % len(inbound.body))
    return b"".join((dialect.send_lines(Queue(queue)).encode(), b"\n".join(lines), b"\n\n", inbound.body, b"\0"))
