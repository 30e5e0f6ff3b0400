"""One worker of a listener: a session, a consumer, and a loop over the messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from pyjmsack.app.answer import Answer
from pyjmsack.app.converters import reads_on_thread
from pyjmsack.app.joining import CURRENT, Joined
from pyjmsack.app.listener import Listener, destination_of
from pyjmsack.app.steps import Face, Step, Steps, Task
from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    RequestTimedOutException,
    ResourceAllocationException,
    TransactionRolledBackException,
)
from pyjmsack.loggers import Shortened, get_logger
from pyjmsack.message import Message
from pyjmsack.message.base import shown_id
from pyjmsack.types import AckMode

__all__ = ["Counts", "Worker"]

log = get_logger("pyjmsack.app")
DRAIN: Final = 10.0
"""Seconds to wait for the last messages of a consumer in no-acknowledgement mode."""
_HONEST: Final = 2_500
"""Only an attacker writes an id or a name with more characters. Both brokers take this number, also over STOMP."""

_MAY_SUCCEED_LATER: Final = (
    ConnectionLostException,
    IllegalStateException,
    RequestTimedOutException,
    ResourceAllocationException,
)
"""The errors of a send that do not mean that its destination is gone."""


@dataclass
class Counts:
    """The number of messages that were received, succeeded, failed or were rolled back."""

    received: int = 0
    succeeded: int = 0
    failed: int = 0
    rolled_back: int = 0
    """Messages for which the listener returned, but the broker did not commit. The broker delivers these messages
    again.
    """

    def add(self, other: Counts) -> None:
        """Add the counts of another worker."""
        self.received += other.received
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.rolled_back += other.rolled_back


class Taken(NamedTuple):
    """A message, and headers that are read before its listener runs. If the listener sends the message on, the send
    overwrites these headers in the message.
    """

    message: Message
    message_id: str | None
    destination: Destination | None
    delivery_count: int

    @classmethod
    def of(cls, message: Message) -> Taken:
        """Read the headers of a message. If they cannot be decoded, the id and the destination are ``None``, and the
        listener gets the error if it reads them.
        """
        try:
            return cls(message, message.message_id, message.destination, message.delivery_count)
        except MessageFormatException:
            return cls(message, None, None, message.delivery_count)

    def key(self) -> Hashable | None:
        """Return what all deliveries of this message have in common, and no other message has. Return ``None`` if the
        message has no identity (S105). For a large message the call takes long.
        """
        identity = self.message._delivery.identity()
        return None if identity is None else (self.destination, identity)


def _given(body: Any) -> Callable[[Message, Any], Any]:
    """Return a function that returns a body that was read before."""
    return lambda message, wanted: body


class _Reply(NamedTuple):
    """The answer to a message."""

    message: Message
    where: Destination
    how: dict[str, Any]
    late: bool
    """Whether the answer is sent behind the commit, because the broker refused the answer of an earlier delivery. The
    requester has probably gone, with the temporary queue for its answers, and then each commit would fail."""
    asked: bool
    """Whether the requester chose the destination."""

    def is_impossible(self, error: JMSException) -> bool:
        """Return whether this library refused to send the answer because of what the requester wrote: the name of the
        destination, or the id for the correlation. A refusal of the broker has a code, and may end."""
        if not self.asked or error.error_code is not None:
            return False
        written = (self.message.correlation_id or "", self.where.name)
        return isinstance(error, InvalidDestinationException) or any(
            len(text) > _HONEST or "\0" in text for text in written
        )

    def was_refused(self, error: TransactionRolledBackException) -> bool:
        """Return whether the broker refused this answer, the only send of its transaction, because the temporary
        destination is gone. Otherwise the answer must stay in the transaction, because somebody may wait for it."""
        temporary = isinstance(self.where, TemporaryQueue | TemporaryTopic)
        alone = error.sent == (self.message.message_id,)
        refused = isinstance(error.__cause__, JMSException) and not isinstance(error.__cause__, _MAY_SUCCEED_LATER)
        return temporary and alone and refused and not error.in_doubt

    def send(self, producer: Any) -> Step:
        """Return the step that sends the answer."""
        return partial(producer.send, self.message, self.where, **self.how)


class Worker:
    """Takes messages until its consumer is closed.

    Args:
        face: the face of the app.
        listener: the listener to call.
        stopping: returns whether the worker shall take no further message.
        changed: called when the worker is ready, when more messages wait in its inbox, and when the worker has ended.
        begun: called when the worker has begun a message.
        idle: seconds without a message after which the worker ends; ``None`` = the worker never ends for this reason.
    """

    def __init__(
        self,
        face: Face,
        listener: Listener,
        stopping: Callable[[], bool],
        changed: Callable[[], None],
        begun: Callable[[], None],
        idle: float | None,
    ) -> None:
        self._face = face
        self._listener = listener
        self._away = face.away(f"pyjmsack-app-{listener.name}-reader")
        self._stopping = stopping
        self._changed = changed
        self._begun = begun
        self._idle = idle
        self._warned = False
        self._undone = False
        """Whether the last message failed. Then the next message gets a new producer, because the old producer may be
        broken.
        """
        self.transacted = listener.mode is AckMode.SESSION_TRANSACTED
        self.keeps_all = listener.mode is AckMode.NO_ACKNOWLEDGE
        """Whether the worker handles all prefetched messages before it ends, because the broker has forgotten them
        (S36)."""
        self.counts = Counts()
        self.consumer: Any = None
        self._processing: Callable[[Message], Any] | None = None
        """The function that begins the tracing span of a message; ``None`` if the app writes no spans."""
        self.ready = self.busy = self.ended = False
        self.busy_since = 0.0
        """The time on the monotonic clock when the worker began its present message or, if it has none, its last
        message."""
        self.backlog = False
        """Whether more messages wait in the inbox of this worker."""
        self.error: BaseException | None = None
        self.task: Task | None = None

    def run(self, connection: Any) -> Steps[None]:
        """Take messages until the app stops, the consumer is closed or drained, or the worker is idle too long."""
        try:
            session = yield partial(connection.create_session, self._listener.mode)
            try:
                yield from self._work(session)
            finally:
                self.ready = False
                yield session.close  # an open transaction is rolled back (S84)
        except BaseException as error:  # the container logs the error, and waits before the start of the next worker
            self.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self.ready, self.ended = False, True
            self._changed()

    def _work(self, session: Any) -> Steps[None]:
        producer = yield session.create_producer
        consumer = yield from self._listener.subscribe(session)
        self._processing = consumer._processing()
        self.consumer = consumer  # from now on a stop closes the consumer
        self.ready = True
        self._changed()
        yield from self._take(session, producer, consumer)
        if self.keeps_all:
            yield partial(consumer.drain, DRAIN)
            yield from self._take(session, producer, consumer)

    def _take(self, session: Any, producer: Any, consumer: Any) -> Steps[None]:
        while self.keeps_all or not self._stopping():
            message = yield partial(consumer.receive, self._idle)
            if message is None:  # the consumer is closed or drained, or the worker was idle too long
                return
            self.busy, self.busy_since = True, time.monotonic()
            self._begun()
            try:
                if self._undone:
                    producer = yield from self._renewed(session, producer)
                yield from self._handle(session, producer, message)
            finally:
                self.busy = False
            if consumer.stats.buffered:
                self.backlog = True
                self._changed()

    def end(self) -> Step | None:
        """Return the step that ends the wait of this worker for messages. A worker that has a message finishes this
        message first (S84).
        """
        if self.consumer is None:
            return None
        return partial(self.consumer.drain, DRAIN) if self.keeps_all else self.consumer.close

    def _renewed(self, session: Any, producer: Any) -> Steps[Any]:
        """Return a new producer after a failed message, because the broker may have closed the old producer.

        With a closed producer the sends for the next messages would fail too, although their listener did not fail.
        """
        self._undone = False
        try:
            yield producer.close
        except JMSException as error:
            log.debug("listener %r: closing the old producer: %s", self._name, error)
        return (yield session.create_producer)

    # -- one message --------------------------------------------------------------------------------------------

    def _handle(self, session: Any, producer: Any, message: Message) -> Steps[None]:
        self.counts.received += 1
        taken = Taken.of(message)
        processing = None if self._processing is None else self._processing(message)
        if processing is None:
            yield from self._process(session, producer, taken, None)
            return
        try:
            yield from self._process(session, producer, taken, processing.end)
        finally:
            processing.leave()

    def _process(
        self,
        session: Any,
        producer: Any,
        taken: Taken,
        processed: Callable[[BaseException | None], None] | None,
    ) -> Steps[None]:
        listener = self._listener
        joined = Joined(listener.app, producer, self._face.here(), over=not self.transacted, listener=listener)
        token = CURRENT.set(joined)
        reply: _Reply | None = None
        try:
            try:
                convert: Callable[[Message, Any], Any] = listener.converter.from_message
                if listener.arguments.body is not None:
                    wanted = listener.arguments.body[0]
                    if reads_on_thread(listener.converter, taken.message, wanted):
                        convert = _given((yield self._away(partial(convert, taken.message, wanted))))
                arguments = listener.arguments.bind(taken.message, session, convert)
                result = yield partial(listener.function, **arguments)
                if result is not None:
                    reply = yield from self._reply(taken, result)
                    if reply is not None and not reply.late:
                        reply = yield from self._answer(producer, taken, reply)
            finally:
                joined.over = True
        except BaseException as error:  # a ``sys.exit()`` in a listener does not end the service
            if processed is not None:
                processed(error)
            if self._face.ends(error):
                raise
            yield from self._failed(session, taken, error)
        else:
            if processed is not None:
                processed(None)
            yield from self._succeeded(session, producer, taken, reply)
        finally:
            joined.done = True
            CURRENT.reset(token)

    def _reply(self, taken: Taken, result: object) -> Steps[_Reply | None]:
        """Return the answer that the listener returned. ``None`` if the answer has no destination."""
        listener, message = self._listener, taken.message
        given = result if isinstance(result, Answer) else Answer(result)
        where = message.reply_to or listener.reply_to if given.to is None else destination_of(given.to)
        if where is None:
            self._warn_of_answer()
            return None
        answer = listener.converter.to_message(given.body)
        for name, value in (given.properties or {}).items():
            answer.properties[name] = value
        answer.correlation_id = message.correlation_id or taken.message_id
        late = bool(listener.unanswered) and listener.unanswered.has((yield from self._key(taken)))
        return _Reply(answer, where, given.how(), late, asked=given.to is None and message.reply_to is not None)

    def _answer(self, producer: Any, taken: Taken, reply: _Reply) -> Steps[_Reply | None]:
        """Send an answer, and return it. Return ``None`` if nobody gets the answer, because the requester wrote
        something to which nothing can be sent. Otherwise one such request would stop the listener while it comes again.
        """
        try:
            yield reply.send(producer)
        except (InvalidDestinationException, MessageFormatException) as error:
            if not reply.is_impossible(error):
                raise
            self._warn_of_loss(taken, error)
            return None
        return reply

    def _warn_of_answer(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "listener %r returned a value, but neither the message nor the listener has a reply_to", self._name
            )

    def _succeeded(self, session: Any, producer: Any, taken: Taken, reply: _Reply | None) -> Steps[None]:
        if self.transacted:
            try:
                yield session.commit
            except TransactionRolledBackException as error:
                self.counts.rolled_back += 1
                self._undone = True
                outcome = (
                    "nobody knows whether the broker committed"
                    if error.in_doubt
                    else "the broker rolled back, and the message is delivered again"
                )
                log.warning("listener %r: %s: %s", self._name, outcome, error)
                if reply is not None and reply.was_refused(error):
                    self._listener.unanswered.add((yield from self._key(taken)))
                return
            if self._listener.unanswered:
                self._listener.unanswered.forget((yield from self._key(taken)))
            if reply is not None and reply.late:
                yield from self._answer_late(session, producer, taken, reply)
        elif self._listener.mode is AckMode.INDIVIDUAL_ACKNOWLEDGE:
            yield taken.message.accept  # accept() does nothing if the listener chose an outcome itself
        if self._counts_failures and self._listener.failures:
            self._listener.failures.forget((yield from self._key(taken)))
        self.counts.succeeded += 1

    def _answer_late(self, session: Any, producer: Any, taken: Taken, reply: _Reply) -> Steps[None]:
        """Send an answer behind the commit of its message. Nobody gets the answer if the broker refuses it again."""
        try:
            yield reply.send(producer)
            yield session.commit
        except JMSException as error:
            self._undone = True
            self._warn_of_loss(taken, error)

    def _warn_of_loss(self, taken: Taken, error: JMSException) -> None:
        log.warning("listener %r: nobody gets the answer to %s: %s", self._name, shown_id(taken.message_id), error)

    @property
    def _name(self) -> str:
        return self._listener.name

    # -- a listener that raised ---------------------------------------------------------------------------------

    def _failed(self, session: Any, taken: Taken, error: BaseException) -> Steps[None]:
        self.counts.failed += 1
        self._undone = True
        log.error(
            "listener %r failed with %s, delivery %d: %s",
            self._name,
            shown_id(taken.message_id),
            taken.delivery_count,
            Shortened(error),
        )
        log.debug("listener %r", self._name, exc_info=error)
        then = yield from self._given_up(taken)
        yield from self._tell(taken.message, error)
        yield from self._undo(session, taken.message, then)

    @property
    def _counts_failures(self) -> bool:
        retry = self._listener.retry
        return retry is not None and retry.then == "drop" and self._listener.mode is not AckMode.NO_ACKNOWLEDGE

    def _key(self, taken: Taken) -> Steps[Hashable | None]:
        if taken.message._delivery.heavy:
            key: Hashable | None = yield self._away(taken.key)
            return key
        return taken.key()

    def _given_up(self, taken: Taken) -> Steps[str | None]:
        """Return what happens to a failed message that is over the limit, and log it. Return ``None`` if the message is
        not over the limit.
        """
        retry = self._listener.retry
        if retry is None or self._listener.mode is AckMode.NO_ACKNOWLEDGE:
            return None
        deliveries, key = taken.delivery_count, None
        if self._counts_failures:
            key = yield from self._key(taken)
            deliveries = self._listener.failures.add(key)
        if not retry.last(deliveries):
            return None
        log.error(
            "listener %r gives up %s after %d deliveries: %s",
            self._name,
            shown_id(taken.message_id),
            deliveries,
            retry.then,
        )
        self._listener.failures.forget(key)
        return retry.then

    def _undo(self, session: Any, message: Message, then: str | None) -> Steps[None]:
        undo: Step | None = None
        if self.transacted:
            undo = session.rollback
        elif self._listener.mode is AckMode.INDIVIDUAL_ACKNOWLEDGE:
            undo = self._outcome(message, then)
        if undo is not None:
            yield undo

    @staticmethod
    def _outcome(message: Message, then: str | None) -> Step:
        """Return the step that gives a failed message its outcome in individual mode."""
        if then == "reject":
            return message.reject
        if then == "drop":
            return message.accept
        # also for "release" the redelivery is counted, because otherwise the message would never reach the limit of
        # this client or of the broker
        return partial(message.modify, delivery_failed=True)

    def _tell(self, message: Message, error: BaseException) -> Steps[None]:
        on_error = self._listener.on_error
        if on_error is None:
            return
        try:
            yield partial(on_error, error, message)
        except BaseException as raised:
            if self._face.ends(raised):
                raise
            log.exception("on_error of listener %r raised", self._name)
