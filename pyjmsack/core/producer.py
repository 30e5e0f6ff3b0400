"""A producer: it sets the headers of messages, gives them to the provider, and waits for their outcomes (S61-S74)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from pyjmsack.core.completions import CompletionListener, Completions
from pyjmsack.core.recording import RecordedSend, RecordedSends
from pyjmsack.core.send_window import Done, Send, SendWindow, describe
from pyjmsack.core.state import SessionState
from pyjmsack.core.stats import warn_of_milliseconds
from pyjmsack.core.steps import Deadline, Steps, ended
from pyjmsack.core.tracing import TracedSend
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
from pyjmsack.spi.envelope import Encoder, Payload
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ProducerInfo
from pyjmsack.spi.spellings import (
    LONGEST_TEXT,
    ORDERS,
    check_composite,
    check_destination_name,
    check_orders,
    check_storable,
    check_texts,
)
from pyjmsack.types import DeliveryMode
from pyjmsack.uri import BrokerUrl

__all__ = ["Producer"]

Seconds = float | timedelta


class Encoders:
    """The encoders of one producer, by destination, because making an encoder takes longer than using it."""

    __slots__ = ("_by_target", "_encoder", "_provider", "target")

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._by_target: dict[Destination, Encoder] = {}
        self.target: Destination | None = None
        """The destination of the last message; ``None`` before the first message and after :meth:`forget`."""
        self._encoder: Encoder = _no_encoder

    def to(self, target: Destination) -> Encoder:
        """Return the encoder for messages to this destination."""
        if target is not self.target:
            self.target, self._encoder = target, self._look_up(target)
        return self._encoder

    def _look_up(self, target: Destination) -> Encoder:
        encoder = self._by_target.get(target)
        if encoder is None:
            # limited, because a producer without a destination may meet any number of destinations
            if len(self._by_target) >= 1000:
                self._by_target.clear()
            encoder = self._provider.encoder(target)
            if len(target.name) <= LONGEST:
                self._by_target[target] = encoder
        return encoder

    def forget(self) -> None:
        """Forget all encoders, because the connection was restored, perhaps at another broker. Runs on the loop.

        A message that is being encoded at this moment keeps its old encoder. Its send remembers the encoder, so that
        failover sees that the message must be encoded again.
        """
        self.target = None
        self._by_target.clear()


class Defaults:
    """The values that a send uses if its caller gives no value (S152-S158)."""

    __slots__ = (
        "delay_ms",
        "delivery_delay",
        "delivery_mode",
        "disable_message_id",
        "disable_message_timestamp",
        "priority",
        "time_to_live",
        "ttl_ms",
    )

    def __init__(self, *, disable_message_timestamp: bool) -> None:
        self.delivery_mode = DeliveryMode.PERSISTENT
        self.priority = 4
        self.time_to_live: Seconds = 0
        self.delivery_delay: Seconds = 0
        self.ttl_ms = self.delay_ms = 0
        self.disable_message_id = False
        self.disable_message_timestamp = disable_message_timestamp

    def set_delivery_mode(self, value: int) -> None:
        """Check and set the default of the delivery mode (S152)."""
        self.delivery_mode = _delivery_mode(value)

    def set_priority(self, value: int) -> None:
        """Check and set the default of the priority (S152)."""
        self.priority = _priority(value)

    def set_time_to_live(self, value: Seconds) -> None:
        """Check and set the default of the time to live (S154)."""
        self.ttl_ms = _millis(value, "time_to_live")
        self.time_to_live = value

    def set_delivery_delay(self, value: Seconds) -> None:
        """Check and set the default of the delivery delay (S157)."""
        self.delay_ms = _millis(value, "delivery_delay")
        self.delivery_delay = value


class Producer:
    """The core of one producer. Only one thread at a time may use a producer, because only one thread at a time may use
    its session.

    Args:
        session: the facts about the session that its producers and consumers may read.
        info: id and destination.
        completions: returns the object that calls the session's completion listeners; the first call makes it.
        leave: called with the id of the producer when the link of the closed producer is ended.
    """

    def __init__(
        self,
        session: SessionState,
        info: ProducerInfo,
        completions: Callable[[], Completions],
        leave: Callable[[int], object],
    ) -> None:
        channel, options = session.channel, session.channel.options
        self.info = info
        self.closed = False
        self.correlates = False
        """Whether a message without a correlation id gets its own message id as its correlation id."""
        self.transacted = session.info.transacted
        self.defaults = Defaults(disable_message_timestamp=options.disable_time_stamps_by_default)
        self.window = SendWindow(channel, info)
        self.encoders = Encoders(channel.provider)
        self.remote_close = channel.events.remote_close(info.id, "on_producer_closed")
        self._session = session
        self._channel = channel
        self._completions = completions
        self._leave = leave
        self._traces = channel.traces
        self._records = None if channel.recorder is None else RecordedSends(channel.recorder, info.id)
        self._hand_over = self.window.hand_over_transacted if self.transacted else self.window.hand_over
        self._id_prefix = f"{channel.message_id_prefix}:{info.session_id}:{info.id}-"
        self._number = 0
        # a fixed destination that cannot be deleted is not checked again for each message
        self._stays = info.destination is not None and not info.destination.is_temporary
        self._force_sync = options.force_sync_send or (
            options.send_timeout is not None and options.send_timeout_forces_sync
        )
        self._force_async = options.force_async_send or info.presettled
        self._max_size = max_frame_size(channel.url)
        self._user_id = channel.info.username if options.populate_jmsx_user_id else None

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
        """Set the headers of a message, and encode it (S71). A later change of the message does not change the encoded
        payload (S72).

        Raises:
            JMSException: see :class:`pyjmsack.MessageProducer`.
        """
        if self.closed or self._session.closed or not self._channel.usable:
            self._check_open()
        if self.transacted and self._session.transactions.ending:
            raise IllegalStateException(
                "a commit or rollback of this session is under way; send after commit() or rollback() has returned"
            )
        bound = self.info.destination
        target = bound if destination is None and self._stays else self._target(destination, message)
        assert target is not None  # because ``_stays`` is true only if there is a fixed destination
        message = to_message(message)
        if self._channel.transforms.sent is not None:
            message = self._channel.transforms.sent(message, target)
        if message._locked:
            raise IllegalStateException(
                "the message is read-only until its completion listener was called; send it again after that (S73)"
            )
        if message._properties is not None and not ORDERS.isdisjoint(message._properties):
            check_orders(message, self._channel.the_metadata)
        defaults = self.defaults
        mode = defaults.delivery_mode if delivery_mode is None else _delivery_mode(delivery_mode)
        message._persistent = mode is DeliveryMode.PERSISTENT
        message._priority = defaults.priority if priority is None else _priority(priority)
        ttl = defaults.ttl_ms if time_to_live is None else _millis(time_to_live, "time_to_live")
        delay = defaults.delay_ms if delivery_delay is None else _millis(delivery_delay, "delivery_delay")
        self._stamp(message, target, ttl, delay)
        encoder = self.encoders.to(target)
        trace = None if self._traces is None else self._traces.send(message, target, bound=bound is not None)
        payload = encoder(message, ttl) if trace is None else _encoded(encoder, message, ttl, trace)
        try:
            self._check_size(message, len(payload))
        except JMSException as error:
            if trace is not None:
                trace.end(error)
            raise
        self._number += 1
        transaction = self._session.transactions.current if self.transacted else None
        if self._records is None:
            send = Send(self.window, transaction, payload, encoder, message, done)
        else:
            send = RecordedSend(self._records, self._number, self.window, transaction, payload, encoder, message, done)
        if trace is not None:
            send.trace = trace
        return message, send

    def _check_size(self, message: Message, size: int) -> None:
        """Check the size of an encoded message, and its texts for Classic. A small message cannot contain a text that
        is too long, so the texts of a small message are not checked.
        """
        if self._max_size is not None and size > self._max_size:
            raise ResourceAllocationException(
                f"expected a message of at most {self._max_size} bytes (wireFormat.maxFrameSize), not {size}"
            )
        if size > LONGEST_TEXT // 2:  # Classic writes a NUL as two bytes
            check_texts(message, self._channel.the_metadata)

    def _new_id(self) -> str:
        uuid_prefix = self._channel.options.message_id_type
        return f"{uuid_prefix}{uuid4()}" if uuid_prefix else f"{self._id_prefix}{self._number}"

    def _stamp(self, message: Message, target: Destination, ttl: int, delay: int) -> None:
        now = time.time_ns() // 1_000_000
        message._message_id = None if self.defaults.disable_message_id else self._new_id()
        if self.correlates and message._correlation_id is None:
            message._correlation_id = message._message_id
        message._timestamp = 0 if self.defaults.disable_message_timestamp else now
        message._expiration = now + ttl if ttl else 0
        message._delivery_time = now + delay if delay else 0
        message._destination = target
        message._redelivery_count = 0
        message._user_id = self._user_id  # never a value that the caller wrote into the message (S71)
        if message._reply_to is not None:
            check_composite(message._reply_to, self._channel.metadata)
            check_storable("the reply-to", message._reply_to.name, self._channel.metadata)
        if delay:
            # refused, because a broker that ignores the delay would deliver at once (S157)
            self._channel.require("delivery-delay")

    def _target(self, destination: Destination | None, message: object) -> Destination:
        bound = self.info.destination
        if isinstance(message, Destination):  # in Java the destination comes first
            raise InvalidDestinationException(
                f"send() got the destination {message.name} as the message; expected send(message, destination)"
            )
        if destination is None:
            if bound is None:
                raise InvalidDestinationException("this producer has no destination; give one to send() (S67)")
            target = bound
        elif bound is not None and destination is not bound:
            raise UnsupportedFeatureException(
                f"this producer sends to {bound.name} only; create_producer() without a destination makes a producer"
                " that takes any destination (S67)"
            )
        else:
            target = destination
        if not isinstance(target, Destination):
            raise InvalidDestinationException(f"{target!r} is not a destination; use session.create_queue(name)")
        if target.is_temporary and getattr(target, "deleted", False):
            raise InvalidDestinationException(f"temporary destination {target.name} was deleted (S68)")
        check_destination_name(target, self._channel.metadata)
        return target

    # -- the way out --------------------------------------------------------------------------------------------

    def submit(self, outbound: Send, *, awaited: bool = False) -> None:
        """Give a prepared message to the provider: at once if the caller waits for the answer (``awaited``), and
        otherwise together with the next messages.
        """
        if self.transacted and outbound.message_id is not None:
            self._session.transactions.current.sent.append(outbound.message_id)
        submit = self._channel.submit if awaited else self._channel.submit_lazily
        submit(self._hand_over, outbound)
        window = self.window
        window.submitted += 1
        window.bytes_submitted += len(outbound.payload)

    def submit_with_listener(self, listener: CompletionListener, then: Done | None, message: object, *how: Any) -> None:
        """Prepare and submit a message. The listener, and ``then`` if given, get its outcome (S73, S74)."""
        completions = self._completions()
        entry = completions.entry(listener, then)
        try:
            sent, outbound = self.prepare(entry.answered, message, *how)
            outbound.notifies = True
            completions.add(entry, sent)
            self.submit(outbound)
        except BaseException:
            # after Ctrl-C the send fails, because otherwise the listeners of later sends would wait for it for ever
            if entry.message is not None:
                lost = JMSException("the send was interrupted; the message may have been stored")
                self._channel.submit(entry.answered, lost)
            raise

    def waits(self, persistent: bool) -> bool:
        """Whether ``send()`` waits for the broker's answer (table in S62)."""
        if self._force_sync:
            return True
        return persistent and not (self._force_async or self.transacted)

    def submit_awaited(self, outbound: Send, done: Completion[None]) -> Steps[None]:
        """Submit a send, and return the steps that wait for its outcome (S63). ``jms.sendTimeout`` limits the wait
        (S66).

        Raises:
            SendTimedOutException: the broker gave no credit in time, and the message was not sent; or the broker gave
                no outcome in time, and the message may have been stored.
        """
        steps = self._confirm(outbound, done)
        if outbound.trace is not None:
            steps = outbound.trace.confirmed(steps)
        self.submit(outbound, awaited=True)
        return steps

    def _confirm(self, outbound: Send, done: Completion[None]) -> Steps[None]:
        withdrawn: Completion[bool] = Completion()
        deadline = Deadline(self._channel.options.send_timeout, "jms.sendTimeout")
        try:
            in_time = done.done or (yield done, deadline.remaining()) or done.done
        except BaseException:  # the caller gave up: a message that was not sent yet is never sent
            self._channel.submit(self._channel.provider.withdraw, outbound, withdrawn)
            raise
        if not in_time:
            self._channel.submit(self._channel.provider.withdraw, outbound, withdrawn)
            yield withdrawn, None
            why = (
                f"the broker gave no credit within {deadline}, so the message was not sent"
                if withdrawn.result()
                else f"the broker gave no outcome within {deadline}, so the message may have been stored"
            )
            raise SendTimedOutException(f"send to {self.describe()}: {why}")
        done.result()

    def wait_for_room(self) -> Steps[None]:
        """Wait until half of the window is free.

        Raises:
            SendTimedOutException: the broker gave no credit within ``jms.sendTimeout`` (S66).
        """
        return self.window.wait_for_room(lambda: self.closed)

    def report(self, error: BaseException | None) -> None:
        """Take the outcome of a send for which nobody waits. A failure goes to the exception listener (S64)."""
        if error is not None and not self.transacted:
            self._channel.events.report(error)

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> Steps[None]:
        """Close the producer at the broker after all its sends are answered. A second call has no effect."""
        if self.closed:
            return
        answered: Completion[None] = Completion()
        done: Completion[None] = Completion()
        try:
            self.closed = True
            self.remote_close.forget()
            deadline = Deadline(self._channel.options.close_timeout)
            self._channel.submit(self.window.when_answered, answered)
            yield answered, deadline.remaining()
        except BaseException:  # the caller gave up: detach without waiting, as soon as all sends are answered
            answered.add_callback(lambda _: self._submit_detach(done))
            self._channel.submit(self.window.when_answered, answered)
            raise
        self._submit_detach(done)
        yield from ended(done, deadline, f"closing the producer of {self.describe()}")

    def _submit_detach(self, done: Completion[None]) -> None:
        """Submit the command that ends the link. Only then the session forgets the producer, because a close of the
        session waits for the sends of its producers (S74)."""
        self._channel.submit(self._channel.provider.close_producer, self.info.id, done)
        self._leave(self.info.id)

    def all_answered(self, deadline: Deadline) -> Steps[None]:
        """Wait until the broker has answered all sends so far (S74)."""
        answered: Completion[None] = Completion()
        self._channel.submit(self.window.when_answered, answered)
        yield answered, deadline.remaining()

    def _check_open(self) -> None:
        if self.closed:
            raise IllegalStateException("the producer is closed")
        self._session.check_open()

    def describe(self) -> str:
        """Return the destination's name for error texts."""
        return describe(self.info)


def max_frame_size(url: BrokerUrl) -> int | None:
    """Return the smallest ``wireFormat.maxFrameSize`` of the brokers, because each broker must take the message."""
    streams = [member.transport for member in url.members or (url,)]
    limits = [stream.max_frame_size for stream in streams if stream.max_frame_size_enabled]
    return min((limit for limit in limits if limit is not None), default=None)


def _encoded(encoder: Encoder, message: Message, ttl: int, trace: TracedSend) -> Payload:
    """Encode the message with the context of its span. The context goes into the encoded bytes only. The message of the
    caller stays as it is, because a later send of the same message has a context of its own.
    """
    own = message._properties
    try:
        if trace.properties is not None:
            message._properties = trace.properties
        return encoder(message, ttl)
    except BaseException as error:
        trace.end(error)
        raise
    finally:
        message._properties = own


def _no_encoder(message: Message, ttl_ms: int) -> Payload:
    raise AssertionError("a message was encoded before its encoder was made; this is a defect of pyjmsack")


def _delivery_mode(value: int) -> DeliveryMode:
    try:
        if isinstance(value, bool):  # True would be NON_PERSISTENT
            raise ValueError
        return DeliveryMode(value)
    except ValueError as error:
        raise JMSException(f"delivery mode {value!r}: expected 1 (NON_PERSISTENT) or 2 (PERSISTENT)") from error


def _priority(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise JMSException(f"priority {value!r}: expected a whole number from 0 to 9")
    return value


_YEAR: Final = 365 * 86_400


def _millis(value: Any, name: str) -> int:
    if value == 0:
        return 0
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise MessageFormatException(f"{name} {value!r}: expected seconds (a number of at least 0) or a timedelta")
    milliseconds: int = max(1, round(value * 1000))
    if isinstance(value, int) and value > _YEAR:
        warn_of_milliseconds(f"a {name}", value)
    return milliseconds
