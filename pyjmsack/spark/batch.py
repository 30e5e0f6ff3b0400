"""``spark.read.format("jms")``: takes all messages of a queue and keeps their rows, or browses the queue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import count, islice

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyjmsack import Message, Queue
from pyjmsack.spark.columns import to_batch
from pyjmsack.spark.options import OptionError, Options
from pyjmsack.spark.pull import Place, identities, is_waiting, read_pull
from pyjmsack.spark.spool import Spool, write_once

__all__ = ["JmsBrowseReader", "JmsDrainReader", "batch_reader"]

_LOOK = 1000
"""The largest number of rows of one Arrow batch in the mode ``browse``."""


def batch_reader(options: Options) -> DataSourceReader:
    """Return the reader for the option ``mode``. There is no default mode, because the mode ``drain`` removes messages.

    Raises:
        OptionError: there is no mode, or an option that the mode needs is missing.
    """
    if options.mode == "drain":
        return JmsDrainReader(options)
    if options.mode == "browse":
        return JmsBrowseReader(options)
    raise OptionError("option 'mode': read needs 'drain', which takes the messages, or 'browse', which leaves them")


class JmsDrainReader(DataSourceReader):
    """Takes the messages of the queue once. Each later read with the same ``drainId`` gives the same rows.

    The reader keeps the messages in the spool, because Spark may read a source several times, for a sort or for each
    action, and the queue has each message only once.
    """

    def __init__(self, options: Options) -> None:
        options.require("queue", "spoolLocation", "drainId")
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks. Their number is the same at each read with this ``drainId``.

        Raises:
            OptionError: the ``drainId`` belongs to another queue or selector.
        """
        options = self._options
        spool = Spool(options.spool, f"drain-{options.drainId}")
        spool.prepare(0)
        mine = {"queue": options.queue, "selector": options.selector}
        wanted = {**mine, "partitions": options.partitions, "limit": options.limit}
        plan = json.loads(write_once(spool.root / "plan.json", json.dumps(wanted)))
        if any(plan[name] != value for name, value in mine.items()):
            raise OptionError(
                f"option 'drainId': {options.drainId} was used for {plan['queue']} with the selector"
                f" {plan['selector']!r}; give another drainId for another queue or selector"
            )
        parts = range(plan["partitions"])
        shares = [_share(plan["limit"], part, len(parts)) for part in parts]
        query = spool.root.name
        return [InputPartition((query, part, share)) for part, share in zip(parts, shares, strict=True)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield all rows of one task. The task makes one pull after the other until the queue is empty.

        A pull with few messages does not prove that the queue is empty, because the broker may be slow, or another task
        may have prefetched the rest. Therefore a browser looks into the queue too. The spool records the end as a
        further pull. Therefore each reading ends after the same pulls.
        """
        query, part, share = partition.value
        spool = Spool(self._options.spool, query)
        cap = self._options.maxMessagesPerPartition
        for number in count():
            left = cap if share is None else share - sum(spool.taken_by(n, part) for n in range(number))
            if left <= 0:
                return
            spool.prepare(number)
            if number and not spool.file(number, part).exists() and self._is_empty(spool, number - 1, part):
                nothing = to_batch([], [], (number, part), None, self._options.includeBody)
                spool.publish(number, part, nothing, identities([], nothing), taken=0, short=True, end=True)
            yield from read_pull(self._options, Place(query, number, part, min(cap, left)))
            if spool.is_end(number, part):
                return

    def _is_empty(self, spool: Spool, last: int, part: int) -> bool:
        if not spool.was_short(last, part):
            return False
        # if two pulls get nothing, the messages that a browser shows are for other consumers, for example in a message
        # group
        in_vain = last > 0 and spool.taken_by(last, part) == spool.taken_by(last - 1, part) == 0
        return in_vain or not is_waiting(self._options, self._options.idleMs)


def _share(limit: int | None, part: int, parts: int) -> int | None:
    return None if limit is None else limit // parts + (part < limit % parts)


class JmsBrowseReader(DataSourceReader):
    """Browses the queue in one partition, because every browser sees all messages.

    The rows are not a snapshot, because other clients may send and receive during the read.
    """

    def __init__(self, options: Options) -> None:
        options.require("queue")
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the only task."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages in the order of the queue, at most ``limit``."""
        options = self._options
        with options.connect() as connection, connection.create_session() as session:
            connection.start()
            with session.create_browser(Queue(str(options.queue)), options.selector) as browser:
                looking = islice(iter(browser), options.limit)
                while messages := _some(looking, options.maxBytesPerPartition):
                    times = [datetime.now(timezone.utc)] * len(messages)
                    yield to_batch(messages, times, (0, 0), options.dedupKey, options.includeBody)


def _some(looking: Iterator[Message], most_bytes: int) -> list[Message]:
    """Return the next messages, at most ``_LOOK``. The last one is the one with which ``most_bytes`` are reached."""
    messages: list[Message] = []
    size = 0
    for message in islice(looking, _LOOK):
        messages.append(message)
        size += message._delivery.size
        if size >= most_bytes:
            break
    return messages
