"""Sending: what is stamped on a message, when a send waits, and how much may be under way (S61-S74)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyjmsack.core.completions import CompletionListener
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.destination import Destination
from pyjmsack.errors import (
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    ResourceAllocationException,
    SendTimedOutException,
    UnsupportedFeatureException,
)
from pyjmsack.kept import LONGEST
from pyjmsack.message import Message, to_message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Encoder, Outbound
from pyjmsack.spi.resources import ProducerInfo
from pyjmsack.types import DeliveryMode
from pyjmsack.uri import parse_destination_options

if TYPE_CHECKING:
    from pyjmsack.core.session import Session

__all__ = ["Done", "Producer"]

Done = Callable[["BaseException | None"], None]
Seconds = float | timedelta

WINDOW = 4096
"""Sends of one producer that may be unconfirmed before the next one waits, so that a stopped broker cannot fill the
memory; four times the credit that the brokers grant, so that it never slows a pipeline."""


class Send(Outbound):
    """One send of a producer: who is told when it is done."""

    __slots__ = ("_producer", "_then", "_transaction")

    def __init__(self, producer: Producer, payload: bytes, encoder: Encoder, message: Message, then: Done) -> None:
        info = producer.info
        self.producer_id = info.id
        self.payload = payload
        self.encoder = encoder
        self.notifies = self.left = False
        self.message_id = message._message_id
        self.presettled = info.presettled
        self.transacted = producer.transacted
        self._producer = producer
        self._then = then
        self._transaction = producer.session.transaction if producer.transacted else None

    def done(self, error: BaseException | None) -> None:
        """The broker answered: first the caller, then the transaction, which may be waiting to commit."""
        self._producer.on_done(len(self.payload))
        self._then(error)
        if self._transaction is not None:
            self._transaction.on_sent(error)


class Producer:
    """The core of one producer; used by one thread at a time, like its session."""

    def __init__(self, session: Session, info: ProducerInfo, make_send: type[Send] = Send) -> None:
        self.session = session
        self.info = info
        self.closed = False
        self.delivery_mode = DeliveryMode.PERSISTENT
        self.priority = 4
        self.time_to_live: Seconds = 0
        self.delivery_delay: Seconds = 0
        self.disable_message_id = False
        self._connection = session.connection
        self.remote_close = self._connection.remote_close(info.id, "on_producer_closed")
        self._make_send = make_send
        self._provider_send = self._connection.provider.send
        self._hand_over = self._hand_over_transacted if session.info.transacted else self._hand_over_alone
        self._ttl = self._delay = 0
        self._encoders: dict[Destination, Encoder] = {}
        self._last_target: Destination | None = None
        self._last_encoder: Encoder = _no_encoder
        self._id_prefix = f"{self._connection.message_id_prefix}:{info.session_id}:{info.id}-"
        self._uuid_prefix = self._connection.options.message_id_type
        # a bound destination that cannot be deleted needs no check with every message
        self._stays = info.destination is not None and not info.destination.is_temporary
        self._number = 0
        # Each has one side that writes: the caller counts what it submitted, for the window; the loop what it handed to
        # the provider and what was answered. Ctrl-C may come before the caller counts, never between the loop's steps.
        self._submitted = self._bytes_submitted = 0
        self._handed_over = self._settled = self._bytes_settled = 0
        self._byte_window = _byte_window(session, info.destination)
        self._rooms: list[Completion[None]] = []
        """Who waits for room in the window: in asyncio any number of tasks."""
        self._answered: list[Completion[None]] = []
        options = self._connection.options
        self.disable_message_timestamp = options.disable_time_stamps_by_default
        self._force_sync = options.force_sync_send or (
            options.send_timeout is not None and options.send_timeout_forces_sync
        )
        self._force_async = options.force_async_send or info.presettled
        self._send_timeout = options.send_timeout
        self._max_size = self._connection.max_frame_size
        self.transacted = session.info.transacted
        self._user_id = self._connection.info.username if options.populate_jmsx_user_id else None

    def set_delivery_mode(self, value: int) -> None:
        """Set the default, checked (S152)."""
        self.delivery_mode = _delivery_mode(value)

    def set_priority(self, value: int) -> None:
        """Set the default, checked (S152)."""
        self.priority = _priority(value)

    def set_time_to_live(self, value: Seconds) -> None:
        """Set the default, checked (S154)."""
        self._ttl = _millis(value, "time_to_live")
        self.time_to_live = value

    def set_delivery_delay(self, value: Seconds) -> None:
        """Set the default, checked (S157)."""
        self._delay = _millis(value, "delivery_delay")
        self.delivery_delay = value

    # -- one message --------------------------------------------------------------------------------------------

    def prepare(
        self,
        done: Done,
        message: object,
        destination: Destination | None,
        delivery_mode: int | None,
        priority: int | None,
        time_to_live: Seconds | None,
        delivery_delay: Seconds | None,
    ) -> tuple[Message, Send]:
        """Stamp and encode a message (S71); the payload is a snapshot (S72).

        Raises:
            JMSException: see :class:`pyjmsack.MessageProducer`.
        """
        if self.closed or self.session.closed or not self._connection.usable:
            self._check_open()
        if self.transacted and self.session.ending:
            raise IllegalStateException("a commit or rollback of this session is under way; send when it has returned")
        bound = self.info.destination
        target = bound if destination is None and self._stays else self._target(destination)
        assert target is not None  # a producer whose destination stays has one
        message = to_message(message)
        if self._connection.transform_sent is not None:
            message = self._connection.transform_sent(message, target)
        if message._locked:
            raise IllegalStateException("the message is in the hands of a completion listener until that has run (S73)")
        mode = self.delivery_mode if delivery_mode is None else _delivery_mode(delivery_mode)
        message._persistent = mode is DeliveryMode.PERSISTENT
        message._priority = self.priority if priority is None else _priority(priority)
        ttl = self._ttl if time_to_live is None else _millis(time_to_live, "time_to_live")
        delay = self._delay if delivery_delay is None else _millis(delivery_delay, "delivery_delay")
        self._stamp(message, target, ttl, delay)
        if target is not self._last_target:
            self._last_target, self._last_encoder = target, self._encoder(target)
        encoder = self._last_encoder
        payload = encoder(message, ttl)
        if self._max_size is not None and len(payload) > self._max_size:
            raise ResourceAllocationException(
                f"the message takes {len(payload)} bytes, wireFormat.maxFrameSize allows {self._max_size}"
            )
        self._number += 1
        return message, self._make_send(self, payload, encoder, message, done)

    def _new_id(self) -> str:
        return f"{self._uuid_prefix}{uuid4()}" if self._uuid_prefix else f"{self._id_prefix}{self._number}"

    def _stamp(self, message: Message, target: Destination, ttl: int, delay: int) -> None:
        now = time.time_ns() // 1_000_000
        message._message_id = None if self.disable_message_id else self._new_id()
        message._timestamp = 0 if self.disable_message_timestamp else now
        message._expiration = now + ttl if ttl else 0
        message._delivery_time = now + delay if delay else 0
        message._destination = target
        message._redelivery_count = 0
        message._user_id = self._user_id  # never what the caller wrote into it (S71)
        if delay:
            self._connection.require("delivery-delay")  # a broker that ignores it would deliver at once (S157)

    def _target(self, destination: Destination | None) -> Destination:
        bound = self.info.destination
        if destination is None:
            if bound is None:
                raise InvalidDestinationException("this producer has no destination; give one to send() (S67)")
            target = bound
        elif bound is not None and destination is not bound:
            raise UnsupportedFeatureException(
                f"this producer sends to {bound.name} only; one from create_producer() takes any destination (S67)"
            )
        else:
            target = destination
        if not isinstance(target, Destination):
            raise InvalidDestinationException(f"{target!r} is not a destination; use session.create_queue(name)")
        if target.is_temporary and getattr(target, "deleted", False):
            raise InvalidDestinationException(f"temporary destination {target.name} was deleted (S68)")
        return target

    def _encoder(self, target: Destination) -> Encoder:
        encoder = self._encoders.get(target)
        if encoder is None:
            if len(self._encoders) >= 1000:  # an anonymous producer may meet any number of destinations
                self._encoders.clear()
            encoder = self._connection.provider.encoder(target)
            if len(target.name) <= LONGEST:
                self._encoders[target] = encoder
        return encoder

    def forget_encoders(self) -> None:
        """The broker is another one: encode for it from now on. On the loop; a message that is being encoded at this
        moment keeps its encoder and says so."""
        self._last_target = None
        self._encoders.clear()

    # -- the way out --------------------------------------------------------------------------------------------

    def submit(self, outbound: Outbound, *, awaited: bool = False) -> None:
        """Hand a prepared message to the provider: at once if the caller waits for it, else with those that follow."""
        if self.transacted and outbound.message_id is not None:
            self.session.transaction.sent.append(outbound.message_id)
        submit = self._connection.submit if awaited else self._connection.submit_lazily
        submit(self._hand_over, outbound)
        self._submitted += 1
        self._bytes_submitted += len(outbound.payload)

    def _hand_over_alone(self, outbound: Outbound) -> None:
        """Count and send; on the loop."""
        self._handed_over += 1
        self._provider_send(outbound)

    def _hand_over_transacted(self, outbound: Send) -> None:
        """The same; the commit waits for what is counted here."""
        assert outbound._transaction is not None  # made by prepare()
        outbound._transaction.submitted += 1
        self._hand_over_alone(outbound)

    def submit_with_listener(self, listener: CompletionListener, then: Done | None, message: object, *how: Any) -> None:
        """Prepare and submit a message; the listener, and ``then`` if given, are told of its outcome (S73, S74)."""
        completions = self.session.completions
        entry = completions.entry(listener, then)
        try:
            sent, outbound = self.prepare(entry.answered, message, *how)
            outbound.notifies = True
            completions.add(entry, sent)
            self.submit(outbound)
        except BaseException:
            if entry.message is not None:  # Ctrl-C: else the listeners of later sends would wait for this one for ever
                lost = JMSException("the send was interrupted; the message may have been stored")
                self._connection.submit(entry.answered, lost)
            raise

    def waits(self, persistent: bool) -> bool:
        """Whether a plain send waits for the broker (table S62)."""
        if self._force_sync:
            return True
        return persistent and not (self._force_async or self.transacted)

    def confirm(self, outbound: Outbound, done: Completion[None]) -> Steps[None]:
        """Wait for the outcome of a send (S63), bounded by ``jms.sendTimeout`` (S66).

        Raises:
            SendTimedOutException: no credit in time, and the message never left; or no outcome, and it may be stored.
        """
        withdrawn: Completion[bool] = Completion()
        try:
            in_time = done.done or (yield done, self._send_timeout) or done.done
        except BaseException:  # the caller gave up: what did not leave yet never will
            self._connection.submit(self._connection.provider.withdraw, outbound, withdrawn)
            raise
        if not in_time:
            self._connection.submit(self._connection.provider.withdraw, outbound, withdrawn)
            yield withdrawn, None
            why = (
                "timed out waiting for credit; the message was not sent"
                if withdrawn.result()
                else "no outcome from the broker; the message may have been stored"
            )
            raise SendTimedOutException(
                f"send to {self.describe()}: {why}, within jms.sendTimeout ({self._send_timeout:g} s)"
            )
        done.result()

    @property
    def full(self) -> bool:
        """Whether the window of unconfirmed sends is used up, in messages or in bytes (S65)."""
        if self._submitted - self._settled >= WINDOW:
            return True
        return self._byte_window is not None and self._bytes_submitted - self._bytes_settled >= self._byte_window

    def check_room(self) -> None:
        """Raise if the window is full, for a caller who cannot wait (S65).

        Raises:
            ResourceAllocationException: the text says what is unconfirmed, and what to do.
        """
        if self.full:
            limit = f"{WINDOW} messages"
            if self._byte_window is not None:
                limit += f" or {self._byte_window} bytes"
            raise ResourceAllocationException(
                f"send_async to {self.describe()}: nothing was sent, as {self._submitted - self._settled} messages of "
                f"{self._bytes_submitted - self._bytes_settled} bytes are unconfirmed and {limit} are the limit; await "
                "some of the futures first, or await send(), which waits for room (S65)"
            )

    def wait_for_room(self) -> Steps[None]:
        """Wait until half of the window is free.

        Raises:
            SendTimedOutException: the broker gave no credit for ``jms.sendTimeout`` (S66).
        """
        deadline = Deadline(self._send_timeout)
        while self.full and not self.closed:
            room: Completion[None] = Completion()
            self._rooms.append(room)
            if not self.full:
                return
            if not (yield room, deadline.remaining()) and deadline.expired:
                raise SendTimedOutException(
                    f"send to {self.describe()}: {self._submitted - self._settled} messages of "
                    f"{self._bytes_submitted - self._bytes_settled} bytes are unconfirmed and the broker took none "
                    f"within jms.sendTimeout ({self._send_timeout:g} s)"
                )

    def on_done(self, size: int) -> None:
        """One more send, of ``size`` bytes, is answered; on the loop."""
        self._settled += 1
        self._bytes_settled += size
        if self._rooms and self._submitted - self._settled <= WINDOW // 2 and self._has_half_of_its_bytes():
            _wake(self._rooms)
        if self._answered and self._settled >= self._handed_over:
            _wake(self._answered)

    def _has_half_of_its_bytes(self) -> bool:
        return self._byte_window is None or self._bytes_submitted - self._bytes_settled <= self._byte_window // 2

    def report(self, error: BaseException | None) -> None:
        """Outcome of a send nobody waits for: a failure goes to the exception listener (S64)."""
        if error is not None and not self.transacted:
            self._connection.report(error)

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> Steps[None]:
        """Detach; what was sent before is answered first. Idempotent."""
        if self.closed:
            return
        answered: Completion[None] = Completion()
        done: Completion[None] = Completion()
        try:
            self.closed = True
            self.remote_close.forget()
            deadline = Deadline(self._connection.options.close_timeout)
            self.session.producers.pop(self.info.id, None)
            self._connection.submit(self._when_answered, answered)
            yield answered, deadline.remaining()
        except BaseException:  # the caller gave up: detach without waiting, when what was sent is answered
            answered.add_callback(lambda _: self._submit_detach(done))
            self._connection.submit(self._when_answered, answered)
            raise
        self._submit_detach(done)
        yield from self._connection.answer(done, f"closing the producer of {self.describe()}", deadline.remaining())

    def _submit_detach(self, done: Completion[None]) -> None:
        self._connection.submit(self._connection.provider.close_producer, self.info.id, done)

    def all_answered(self, deadline: Deadline) -> Steps[None]:
        """Wait until the broker has answered every send so far (S74)."""
        answered: Completion[None] = Completion()
        self._connection.submit(self._when_answered, answered)
        yield answered, deadline.remaining()

    def _when_answered(self, answered: Completion[None]) -> None:
        if self._settled >= self._handed_over:
            answered.succeed()
        else:
            self._answered.append(answered)

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateException("the producer is closed")
        self.session.check_open()

    def describe(self) -> str:
        """Return the destination's name for messages."""
        return "any destination" if self.info.destination is None else self.info.destination.name


def _byte_window(session: Session, destination: Destination | None) -> int | None:
    """Return ``producer.windowSize`` of the destination, else ``jms.producerWindowSize``; ``None`` = no limit."""
    own = None if destination is None else parse_destination_options(destination).window_size
    return session.connection.options.producer_window_size if own is None else own or None


def _wake(waiting: list[Completion[None]]) -> None:
    """Wake all: each looks again at what it waits for."""
    while waiting:
        waiting.pop(0).succeed()


def _no_encoder(message: Message, ttl_ms: int) -> bytes:
    raise AssertionError("the encoder of a destination is made before it is used")


def _delivery_mode(value: int) -> DeliveryMode:
    try:
        return DeliveryMode(value)
    except ValueError as error:
        raise JMSException(f"delivery mode {value!r}: expected 1 (NON_PERSISTENT) or 2 (PERSISTENT)") from error


def _priority(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise JMSException(f"priority {value!r}: expected a whole number from 0 to 9")
    return value


def _millis(value: Any, name: str) -> int:
    if value == 0:
        return 0
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise MessageFormatException(f"{name} {value!r}: expected seconds (a number of at least 0) or a timedelta")
    return max(1, round(value * 1000))
