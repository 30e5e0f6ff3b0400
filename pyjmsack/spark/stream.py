"""``spark.readStream.format("jms")``: a micro-batch is a numbered pull, which the spool keeps until it is processed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from pyjmsack.spark.options import OptionError, Options
from pyjmsack.spark.pull import Place, count_waiting, is_waiting, read_pull
from pyjmsack.spark.spool import Spool

__all__ = ["JmsStreamReader"]


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue as a stream. An offset has the keys ``q`` (uuid of the query), ``n`` (number of the pull), ``p``
    (number of partitions) and ``c`` (messages per partition).

    The partitions and the size of a pull come from its offset and not from the options. Therefore a pull that is read
    again has as many parts as before, even if the options have changed.
    """

    def __init__(self, options: Options) -> None:
        options.require("queue", "spoolLocation")
        if options.mode not in (None, "stream"):
            raise OptionError(f"option 'mode': expected 'stream' for readStream, not {options.mode!r}")
        self._options = options
        self._initial: dict[str, Any] | None = None
        self._retired = False
        self._target: int | None = None
        """The number of messages that a run with the trigger AvailableNow still has to take. ``None`` for other
        triggers.
        """
        self._counted: int | None = None
        """The last pull whose messages were subtracted from ``_target``."""
        self._in_vain = 0
        """The number of pulls without a message since the last pull with a message."""

    # -- in the driver ------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset at which a new query begins. Spark calls this twice, and both results must be the same.

        Spark also calls this before it repeats the first batch of a checkpoint. In this case Spark does not use the
        result, because the offset of the batch names the spool.
        """
        if self._initial is None:
            self._initial = self._offset(str(uuid.uuid4()), 0, self._options.maxMessagesPerPartition)
        return self._initial

    def _begin(self, query: str) -> None:
        """Make the spool of a new query.

        Raises:
            OptionError: the spool has unprocessed rows of another query.
        """
        for other in self._options.spool.glob("*-*-*-*-*"):
            if not other.name.startswith("drain-") and Spool(self._options.spool, other.name).has_rows():
                raise OptionError(
                    f"option 'spoolLocation': {other} holds messages that are acknowledged and not processed. They "
                    "belong to a query with another checkpoint. Use the checkpoint of that query, or read the messages "
                    "with pyjmsack.spark.recover() and delete the directory"
                )
        Spool(self._options.spool, query).prepare(0)

    def _offset(self, query: str, number: int, cap: int) -> dict[str, Any]:
        return {"q": query, "n": number, "p": self._options.partitions, "c": cap}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the largest number of rows of a micro-batch, in all partitions together."""
        return ReadMaxRows(self._options.partitions * self._options.maxMessagesPerPartition)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the next pull, or ``start`` if no message came within ``pollMs``.

        Raises:
            OptionError: the query is new, and the spool has unprocessed rows of another query.
        """
        if not self._retired:
            if start == self._initial:
                self._begin(start["q"])
            # Spark never commits the last batch of a run, so this call retires the pulls before start
            self._spool(start).retire(start["n"], self._options.dedupWindow)
            self._spool(start).sweep()
            self._retired = True
        self._count(start)
        cap = self._cap(limit)
        if cap == 0 or not is_waiting(self._options, 0 if self._target is not None else self._options.pollMs):
            return start
        return self._offset(start["q"], start["n"] + 1, cap)

    def _cap(self, limit: ReadLimit) -> int:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if self._target is not None:
            rows = self._target if rows is None else min(rows, self._target)
        most = self._options.maxMessagesPerPartition
        return most if rows is None else min(most, -(-rows // self._options.partitions))

    def prepareForTriggerAvailableNow(self) -> None:
        """Count the waiting messages, because this run takes that number of messages and no more. A run until the queue
        is empty might never end, because producers go on sending.
        """
        self._target = count_waiting(self._options)

    def _count(self, reached: dict[str, Any]) -> None:
        """Subtract from ``_target`` the number of messages that the pulls up to ``reached`` took."""
        if self._target is None:
            return
        first = reached["n"] if self._counted is None else self._counted
        spool = self._spool(reached)
        for number in range(first + 1, reached["n"] + 1):
            taken = spool.taken(number)
            self._target = max(0, self._target - taken)
            self._in_vain = 0 if taken else self._in_vain + 1
        if self._in_vain > 1:
            # two pulls got no message, although a browser shows messages. The queue is paused, or the messages are for
            # other consumers
            self._target = 0
        self._counted = max(first, reached["n"])

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch. A repeated call after a restart gives the same tasks.

        Raises:
            OptionError: the spool of this checkpoint is missing, and with it the acknowledged messages; or the spool is
                newer than the checkpoint.
        """
        spool = self._spool(end)
        if not spool.root.exists():
            raise OptionError(
                f"option 'spoolLocation': {spool.root} is missing. The spool belongs to the checkpoint. Without the"
                " spool, messages that were acknowledged and not processed are lost. Restore the spool, or begin with"
                " a new "
                "checkpoint"
            )
        pulls = range(start["n"] + 1, end["n"] + 1)
        try:
            for number in pulls:
                spool.prepare(number)
        except FileExistsError as error:
            raise OptionError(
                f"option 'spoolLocation': {error}. The checkpoint is older than its spool, or a query with the same "
                "checkpoint runs elsewhere. A sink that knows this batch would drop the new rows. Use the newest "
                "checkpoint, or begin with a new checkpoint and a new spool"
            ) from error
        return [
            InputPartition(tuple(Place(end["q"], number, part, end["c"])))
            for number in pulls
            for part in range(end["p"])
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Delete the rows of all pulls up to ``end``. Spark calls this when it plans the next batch."""
        self._count(end)
        self._spool(end).retire(end["n"] + 1, self._options.dedupWindow)

    def stop(self) -> None:
        """Do nothing. The next run deletes old files, because Spark does not always call ``stop``."""

    def _spool(self, offset: dict[str, Any]) -> Spool:
        return Spool(self._options.spool, offset["q"])

    # -- in an executor -----------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return read_pull(self._options, Place(*partition.value))
