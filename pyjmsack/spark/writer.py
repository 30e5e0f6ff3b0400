"""Writes for ``df.write.format("jms")`` and ``df.writeStream.format("jms")``. A task succeeds when the broker has all
its rows.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyjmsack import (
    Connection,
    Destination,
    InvalidDestinationException,
    JMSException,
    Message,
    MessageFormatException,
    MessageProducer,
    Queue,
    ResourceAllocationException,
    SendTimedOutException,
    Session,
    UnsupportedFeatureException,
)
from pyjmsack.loggers import get_logger
from pyjmsack.spark.bodies import message_of
from pyjmsack.spark.columns import DUPLICATE_ID, GROUP, PORTABLE, SPARK_SCHEMA, destination_of, property_value
from pyjmsack.spark.options import OptionError, Options

__all__ = ["JmsStreamWriter", "JmsWriter"]

log = get_logger("pyjmsack.spark")

_SHOWN = 300
"""The largest number of characters of an id or of an error's text in a reason, because strangers write such texts."""
_LONGEST = 2000
"""The largest number of characters of the reason of a task that ended early."""
SENT = {
    "body": ("binary", "string"),
    "body_type": ("string",),
    "properties": ("map<string,string>",),
    "property_types": ("map<string,string>",),
    "correlation_id": ("string",),
    "reply_to": ("string",),
    "type": ("string",),
    "group_id": ("string",),
    "priority": ("int",),
    "durable": ("boolean",),
    "time_to_live_ms": ("bigint", "int"),
    "destination": ("string",),
}
"""The columns that become a part of a message, with their allowed types. All columns except ``body`` are optional."""
NOTES = SPARK_SCHEMA.keys() - SENT.keys()
"""The columns of a read that a write ignores, because the broker or the producer sets new values."""
_UNSENDABLE = (
    MessageFormatException,
    UnsupportedFeatureException,
    InvalidDestinationException,
    ResourceAllocationException,
    ValueError,
)
"""The errors, before a row is sent, that may mean that this one row cannot be sent. A stranger may have written the
message that the row was made from."""
_TOO_LARGE = "expected a message of at most"
"""The beginning of the only ``ResourceAllocationException`` that concerns one row, of ``wireFormat.maxFrameSize``."""
_FAULT_OF_ROW = re.compile(
    r"the broker did not accept the message, outcome: rejected: failed \(AMQ(?:149005|229216|229260):"
)
"""Matches the reasons of Artemis that concern one row, however often it is sent: the record is too large, the name of
the queue is wrong, or the address has wildcards. Other refusals may end, such as those of a disk with an error."""
_ID_KEPT = ("failed", "AMQ339011")
"""The codes, over AMQP and STOMP, with which Artemis refuses a message whose duplicate id it may have kept. Artemis
then confirms the next message with this id, and drops it."""
_Pending: TypeAlias = deque[tuple[str, Future[None]]]
"""The rows that are not confirmed yet, with their names."""


@dataclass
class Sent(WriterCommitMessage):
    """The number of rows that one task sent. Each row is one message."""

    count: int = 0
    left_out: int = 0
    """The number of rows that cannot be sent."""
    reason: str | None = None
    """Why the first of these rows cannot be sent."""
    refused: int = 0
    """The number of rows that the broker refused, and would confirm and drop if Spark repeated the task."""
    refusal: str | None = None
    """Why the broker refused the first of these rows."""


def check_columns(options: Options, schema: StructType) -> None:
    """Check the columns of a data frame before a task starts. Raise ``OptionError`` if they cannot be written."""
    known = {*SENT, *NOTES, options.dedupColumn}
    for field in schema.fields:
        if field.name not in known:
            close = get_close_matches(field.name, SENT, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise OptionError(
                f"column {field.name!r} cannot be sent; expected {', '.join(SENT)} or the dedupColumn{hint}"
            )
        kind = field.dataType.simpleString()
        if field.name in SENT and kind not in SENT[field.name]:
            raise OptionError(f"column {field.name!r}: expected {' or '.join(SENT[field.name])}, not {kind}")
    if "body" not in schema.names:
        raise OptionError("column 'body' is missing")
    if options.dedupColumn is not None and options.dedupColumn not in schema.names:
        raise OptionError(f"option 'dedupColumn': there is no column {options.dedupColumn!r}")
    if options.queue is None and "destination" not in schema.names:
        raise OptionError("option 'queue' is missing, and there is no column 'destination' instead")


def send_rows(options: Options, batches: Iterator[pa.RecordBatch]) -> Sent:
    """Send all rows, and wait until the broker has confirmed each row.

    If there is a ``dedupColumn``, and the broker refused a row, no error is raised, and :attr:`Sent.refused` is not 0.
    Spark would repeat the task, and the broker would confirm and drop the row.

    Raises:
        JMSException: a row was refused or not confirmed. Spark then runs the task again, and sends all its rows again.
        JMSException, ValueError: a row cannot be sent, and the option ``unsendable`` is ``fail``.
    """
    fixed = None if options.queue is None else Queue(options.queue)
    done = Sent()
    with options.connect() as connection, connection.create_session() as session:
        if options.dedupColumn is not None:
            _require_detection(connection)
        with session.create_producer(fixed) as producer:
            pending: _Pending = deque()
            try:
                for batch in batches:
                    before = len(pending)
                    for row in batch.to_pylist():
                        try:
                            pending.append((_name(options, row), _send(session, producer, options, fixed, row)))
                        except _UNSENDABLE as error:
                            if not _may_be_left_out(options, error):
                                raise
                            _leave_out(done, _name(options, row), error)
                    _confirm(done, pending, before, options)  # the batch before, while this batch is on its way
                _confirm(done, pending, len(pending), options)
            except Exception as error:
                if options.dedupColumn is None or not _refused_one(done, pending, options):
                    raise
                log.exception("a task ended early, and is not repeated, because the broker refused rows")
                done.refusal = f"{done.refusal}; then the task ended early: {type(error).__name__}: {error}"[:_LONGEST]
    return done


def _refused_one(done: Sent, pending: _Pending, options: Options) -> bool:
    """Return whether the broker refused a row of a task that ends with another error."""
    with suppress(JMSException):  # the caller has the first error
        _confirm(done, pending, len(pending), options)
    return done.refused > 0


def _may_be_left_out(options: Options, error: Exception) -> bool:
    if isinstance(error, ResourceAllocationException) and not str(error).startswith(_TOO_LARGE):
        return False
    # an error of the broker has a code, and may concern all rows
    return options.unsendable != "fail" and getattr(error, "error_code", None) is None


def _name(options: Options, row: dict[str, Any]) -> str:
    """Return the names by which a person finds the row."""
    key = "" if options.dedupColumn is None else f", {options.dedupColumn} {str(row[options.dedupColumn])[:_SHOWN]!r}"
    return f"message id {str(row.get('message_id'))[:_SHOWN]!r}{key}"


def _reason(name: str, error: Exception) -> str:
    return f"{name}: {type(error).__name__}: {str(error)[:_SHOWN]}"


def _leave_out(done: Sent, name: str, error: Exception) -> None:
    """Count and log a row that cannot be sent."""
    reason = _reason(name, error)
    log.warning("a row cannot be sent and was left out: %s", reason)
    done.left_out += 1
    done.reason = done.reason or reason


def _is_final(done: Sent, name: str, error: JMSException, options: Options) -> bool:
    """Return whether a row that was not confirmed must not be sent again. If so, count and log it."""
    keeps_id = options.dedupColumn is not None and error.error_code in _ID_KEPT
    # with failAtEnd, rows whose ids are kept get the error that says so
    leaves_out = options.unsendable == "skip" or (options.unsendable == "failAtEnd" and not keeps_id)
    if leaves_out and _FAULT_OF_ROW.match(str(error)):
        _leave_out(done, name, error)
        return True
    if keeps_id:
        reason = _reason(name, error)
        log.error("the broker refused a row, and may confirm and drop its next copy: %s", reason)
        done.refused += 1
        done.refusal = done.refusal or reason
    return keeps_id


def _require_detection(connection: Connection) -> None:
    if "duplicate-detection" not in connection.capabilities:
        why = connection.capabilities.support("duplicate-detection").note
        raise UnsupportedFeatureException(f"option 'dedupColumn': {why}")


def _send(
    session: Session, producer: MessageProducer, options: Options, fixed: Destination | None, row: dict[str, Any]
) -> Future[None]:
    message = message_of(session, row["body"], row.get("body_type"))
    _set_headers(message, row, any_name=options.anyPropertyName)
    if options.dedupColumn is not None:
        key = row[options.dedupColumn]
        if key is None:
            raise ValueError(f"column {options.dedupColumn!r} is the dedupColumn, and must not be null in any row")
        message.properties[DUPLICATE_ID] = str(key)
    priority = row.get("priority")
    if priority is not None and not 0 <= priority <= 9:
        raise ValueError(f"column 'priority': expected a number from 0 to 9, not {priority}")
    target = None
    if fixed is None:
        if row["destination"] is None:
            raise ValueError("column 'destination' must not be null in any row, unless the option 'queue' is given")
        target = destination_of(row["destination"])
    durable = row.get("durable")
    ttl = row.get("time_to_live_ms")
    return producer.send_async(
        message,
        target,
        priority=priority,
        delivery_mode=None if durable is None else 2 if durable else 1,
        time_to_live=None if ttl is None else ttl / 1000,
    )


def _set_headers(message: Message, row: dict[str, Any], *, any_name: bool) -> None:
    message.correlation_id = row.get("correlation_id")
    message.type = row.get("type")
    if row.get("reply_to") is not None:
        message.reply_to = destination_of(row["reply_to"])
    if row.get("group_id") is not None:
        message.properties[GROUP] = row["group_id"]
    kinds = dict(row.get("property_types") or ())
    for name, text in row.get("properties") or ():
        value = property_value(text, kinds.get(name))
        if kinds.get(name) == PORTABLE:
            message._properties = {**(message._properties or {}), name: value}
            continue
        try:
            message.properties[name] = value
        except MessageFormatException:
            if not any_name:
                raise
            message._properties = {**(message._properties or {}), name: value}


def _confirm(done: Sent, pending: _Pending, number: int, options: Options) -> None:
    """Wait for this number of the oldest rows, and count them. Raise the first error after that."""
    end = time.monotonic() + options.confirmMs
    failed: JMSException | None = None
    for left in range(number, 0, -1):
        name, future = pending.popleft()
        try:
            future.result(max(0, end - time.monotonic()))
            done.count += 1
        except JMSException as error:  # first, because from Python 3.11 some of these are Late, too
            if not _is_final(done, name, error, options):
                failed = failed or error
        except Late:
            late = f"{left} rows were not confirmed within confirmMs ({options.confirmMs:g} s)"
            failed = failed or SendTimedOutException(late)
    if failed is not None:
        raise failed


class _Writer:
    """The common part of the batch writer and the stream writer."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send the rows of one task, in an executor."""
        return send_rows(self._options, iterator)

    def _committed(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Check the counts of all tasks. Log a warning if more rows were sent than the broker can recognise when Spark
        repeats a task.

        Raises:
            JMSException: rows cannot be sent, and the option ``unsendable`` is ``failAtEnd``. Or the broker refused
                rows with a duplicate id.
        """
        sent = [message for message in messages if isinstance(message, Sent)]
        rows, most = sum(each.count for each in sent), self._options.brokerIdCacheSize
        if self._options.dedupColumn is not None and rows * 2 > most:
            log.warning(
                "%d rows were written at once; the broker remembers %d ids (id-cache-size of the address, option "
                "brokerIdCacheSize). Repeated tasks may have stored rows twice: write at most half as many rows as"
                " this number of ids",
                rows,
                most,
            )
        if refused := sum(each.refused for each in sent):
            refusal = next(each.refusal for each in sent if each.refusal)
            raise JMSException(
                f"the broker refused or did not confirm {refused} rows, and the {rows} others were sent. Artemis keeps"
                " the duplicate id of a refused row: when it is sent again with the same"
                f" {self._options.dedupColumn!r}, Artemis may confirm and drop it. So mend the row and give it another"
                f" key, or leave it out. The logs of the executors name each. The first is {refusal}"
            )
        left_out = sum(each.left_out for each in sent)
        if left_out and self._options.unsendable == "failAtEnd":
            reason = next(each.reason for each in sent if each.reason)
            raise JMSException(
                f"{left_out} rows cannot be sent, and the {rows} others were sent. The logs of the executors name each."
                f" The first is {reason}"
            )
        if left_out:
            log.warning("%d rows cannot be sent and were left out; the logs of the executors name each", left_out)


class JmsWriter(_Writer, DataSourceArrowWriter):
    """Writes a data frame. If Spark repeats a task, the broker stores its rows twice, unless ``dedupColumn`` is set and
    the broker recognises the rows.
    """

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Check the counts in the driver, after the broker has confirmed the rows of all tasks."""
        self._committed(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing, because the broker already has the sent messages and a sent message cannot be taken back."""


class JmsStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream.

    If Spark repeats a batch after a crash, its rows are stored twice, unless ``dedupColumn`` lets the broker recognise
    them.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.unsendable == "failAtEnd":
            raise OptionError("option 'unsendable': a stream would repeat its batch for ever; expected fail or skip")
        super().__init__(options, schema)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Check the counts in the driver, after the broker has confirmed the rows of all tasks."""
        self._committed(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, because the broker already has the sent messages and a sent message cannot be taken back."""
