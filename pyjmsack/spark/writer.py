"""Writes for ``df.write.format("jms")`` and ``df.writeStream.format("jms")``. A task succeeds when the broker has all
its rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

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
_UNSENDABLE = (MessageFormatException, UnsupportedFeatureException, InvalidDestinationException, ValueError)
"""The errors, before a row is sent, that mean that this one row cannot be sent. A stranger may have written the message
that the row was made from."""


@dataclass
class Sent(WriterCommitMessage):
    """The number of rows that one task sent. Each row is one message."""

    count: int = 0
    left_out: int = 0
    """The number of rows that cannot be sent."""
    reason: str | None = None
    """Why the first of these rows cannot be sent."""


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
            pending: list[Future[None]] = []
            for batch in batches:
                sent = []
                for row in batch.to_pylist():
                    try:
                        sent.append(_send(session, producer, options, fixed, row))
                    except _UNSENDABLE as error:
                        if not _may_be_left_out(options, error):
                            raise
                        _leave_out(done, row, error)
                done.count += len(sent)
                _confirm(pending, options)  # wait for the batch before, while this batch is on its way
                pending = sent
            _confirm(pending, options)
    return done


def _may_be_left_out(options: Options, error: Exception) -> bool:
    # an error of the broker has a code, and may concern all rows
    return options.unsendable != "fail" and getattr(error, "error_code", None) is None


def _leave_out(done: Sent, row: dict[str, Any], error: Exception) -> None:
    """Count and log a row that cannot be sent."""
    reason = f"message id {str(row.get('message_id'))[:_SHOWN]!r}: {type(error).__name__}: {str(error)[:_SHOWN]}"
    log.warning("a row cannot be sent and was left out: %s", reason)
    done.left_out += 1
    done.reason = done.reason or reason


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
        priority=row.get("priority"),
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


def _confirm(pending: Sequence[Future[None]], options: Options) -> None:
    end = time.monotonic() + options.confirmMs
    for number, future in enumerate(pending):
        try:
            future.result(max(0, end - time.monotonic()))
        except Late as late:
            raise SendTimedOutException(
                f"{len(pending) - number} rows were not confirmed within confirmMs ({options.confirmMs:g} s)"
            ) from late


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
            JMSException: rows cannot be sent, and the option ``unsendable`` is ``failAtEnd``.
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
