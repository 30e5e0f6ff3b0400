"""Makes one pull in an executor: receives in a transaction, writes to the spool, commits. This order loses no message.

The commit of the transaction acknowledges the messages, and the answer to the commit proves the acknowledgement. An
acknowledgement outside of a transaction gets no answer in AMQP (AMQP 1.0, 2.6.12). If this process dies before the
commit, the broker delivers all messages again. Then the rows in the spool are the rows of this pull. A message that
arrives again is recognised by its identity, and dropped.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa

from pyjmsack import AckMode, JMSException, Message, Queue, Session, UnsupportedFeatureException
from pyjmsack.loggers import get_logger
from pyjmsack.spark.columns import arrow_schema, to_batch
from pyjmsack.spark.options import OptionError, Options
from pyjmsack.spark.spool import Span, Spool

__all__ = ["Place", "Received", "count_waiting", "identities", "is_waiting", "pull", "read_pull", "receive"]

log = get_logger("pyjmsack.spark")


class Place(NamedTuple):
    """The work of one task: one part of one numbered pull of a query, and the most messages that the part may take."""

    query: str
    pull: int
    part: int
    cap: int


class Received(NamedTuple):
    """The result of a pull."""

    messages: list[Message]
    times: list[datetime]
    short: bool
    """Whether the queue was empty before the pull had as many messages as it may take."""


def read_pull(options: Options, place: Place) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a pull: from the spool if a task has spooled the pull already, otherwise from the broker.

    Raises:
        JMSException: the broker cannot be reached, or refuses the pull. Spark then runs the task again.
        FileNotFoundError: the batch of this late task is already processed, or the hosts do not share the directory of
            the spool.
        OptionError: the program asks for bodies, but the rows were spooled without bodies.
        OSError: the spool cannot be written to, or has no room. Nothing was taken.
    """
    spool = Spool(options.spool, place.query)
    if not spool.file(place.pull, place.part).exists():
        pull(options, spool, place)
    names = arrow_schema(options.includeBody).names
    for batch in spool.read(place.pull, place.part):
        if "body" in names and "body" not in batch.schema.names:
            raise OptionError(
                "option 'includeBody' asks for bodies, but the rows of this batch were spooled without their bodies,"
                " and the broker does not have the bodies any more; set includeBody to false for this batch"
            )
        yield batch.select(names)


def pull(options: Options, spool: Spool, place: Place) -> None:
    """Take messages from the queue into the spool."""
    spool.require_room(place.pull, options.maxBytesPerPartition)
    credit = min(options.credit, place.cap)  # a higher prefetch would withhold messages from other consumers
    with options.connect(credit) as connection, connection.create_session(AckMode.SESSION_TRANSACTED) as session:
        connection.start()
        with _without_collector():
            received = receive(session, options, place.cap)
            batch = to_batch(
                received.messages, received.times, (place.pull, place.part), options.dedupKey, options.includeBody
            )
            known = identities(received.messages, batch)
        if options.dedup:
            # this comes after receive(), because a message is delivered again only after its earlier connection has
            # ended, and the row was spooled before that end
            batch, known = _without_known(batch, known, spool)
        taken = len(received.messages)
        if not spool.publish(place.pull, place.part, batch, known, taken=taken, short=received.short):
            session.rollback()  # another task spooled this pull first, so these messages go back to the queue
            return
        try:
            session.commit()
        except JMSException as error:
            log.warning(
                "%s: it is not known whether the broker got the acknowledgement (%s); messages that come again are"
                " dropped",
                place,
                error,
            )
        else:
            spool.confirm(place.pull, place.part)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn off Python's search for cyclic garbage while the context is open.

    The search would take a tenth of the time, because it visits all messages of a pull again and again, and would find
    nothing. A pull takes only seconds, and the process does nothing else meanwhile.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def receive(session: Session, options: Options, cap: int) -> Received:
    """Receive messages, and stop at the first of four limits: ``cap`` messages have arrived, ``maxBytesPerPartition``
    bytes have arrived, no message has arrived for ``idleMs``, or ``maxWaitMs`` are over.
    """
    assert options.queue is not None
    messages: list[Message] = []
    times: list[datetime] = []
    size = 0
    end = time.monotonic() + options.maxWaitMs
    with session.create_consumer(Queue(options.queue), options.selector) as consumer:
        while len(messages) < cap and size < options.maxBytesPerPartition:
            left = end - time.monotonic()
            message = consumer.receive(min(options.idleMs, left)) if left > 0 else None
            if message is None:
                return Received(messages, times, left > 0)
            messages.append(message)
            times.append(datetime.now(timezone.utc))
            size += message._delivery.size
    return Received(messages, times, False)


def identities(messages: Sequence[Message], batch: pa.RecordBatch) -> pa.Array:
    """Return the identity of each message: a text that is the same at each delivery, and that no other message has.

    The message id alone is not enough, because two senders may choose the same id, and because the dead letters of
    several subscribers have the id of the same message. The identity of a message without an id is null, because its
    sender may send the message twice on purpose.

    Args:
        messages: the messages, as they were received.
        batch: their rows.
    """
    pairs = zip(messages, batch["origin"].to_pylist(), strict=True)
    return pa.array([_identity(message, origin) for message, origin in pairs], pa.string())


def _identity(message: Message, origin: str | None) -> str | None:
    try:
        identity = message._delivery.identity()
    except MemoryError:
        raise
    except Exception as error:  # the row of this message has the error, and the pull goes on
        log.warning("a message has no identity, because it cannot be read: %s", error)
        return None
    if identity is None:
        return None
    return blake2b(b"%b\0%b" % ((origin or "").encode(), identity), digest_size=16).hexdigest()


def _without_known(batch: pa.RecordBatch, identity: pa.Array, spool: Spool) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the rows of the messages that the spool does not have yet, and the identities of these messages. If a
    message is twice in the batch, only its first row is returned.
    """
    seen = spool.known(Span.of(batch["created"]), identity)
    fresh = []
    for number, found in enumerate(identity.to_pylist()):
        if found is None:
            fresh.append(number)
        elif found not in seen:
            fresh.append(number)
            seen.add(found)
    if nameless := identity.null_count:
        log.warning("%d messages have no id; after a crash they may be in the rows twice", nameless)
    if len(fresh) == batch.num_rows:
        return batch, identity
    log.info("%d redelivered messages dropped", batch.num_rows - len(fresh))
    kept = pa.array(fresh, pa.int32())
    return batch.take(kept), identity.take(kept)


def is_waiting(options: Options, timeout: float) -> bool:
    """Return whether the queue has a message for this query, or gets such a message within ``timeout`` seconds.

    A browser is used, because a browser takes no message and leaves out the messages that other consumers hold. Over
    STOMP Artemis has no browsers. There this function receives one message and gives it back to the front of the queue,
    without counting a delivery.
    """
    queue = Queue(str(options.queue))
    with options.connect(credit=1) as connection, connection.create_session(AckMode.CLIENT_ACKNOWLEDGE) as session:
        connection.start()
        if "browser" not in connection.capabilities:
            with session.create_consumer(queue, options.selector) as consumer:
                return consumer.receive(max(timeout, options.idleMs)) is not None
        end = time.monotonic() + timeout
        with session.create_browser(queue, options.selector) as browser:
            while next(iter(browser), None) is None:
                if time.monotonic() > end:
                    return False
                time.sleep(0.05)
    return True


def count_waiting(options: Options) -> int:
    """Return how many messages the queue has for this query. A browser counts all of them.

    Raises:
        UnsupportedFeatureException: the broker has no browsers.
    """
    with options.connect() as connection, connection.create_session() as session:
        if "browser" not in connection.capabilities:
            note = connection.capabilities.support("browser").note
            raise UnsupportedFeatureException(
                f"trigger(availableNow=True) needs a browser to count the messages: {note}"
            )
        connection.start()
        with session.create_browser(Queue(str(options.queue)), options.selector) as browser:
            return sum(1 for _ in browser)
