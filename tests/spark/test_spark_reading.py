"""Reading queues: what is sent becomes a row once, whatever is read again (S85, spool-then-commit)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from pyjmsack import (
    Byte,
    BytesMessage,
    ConnectionFactory,
    Float,
    MapMessage,
    Message,
    Queue,
    StreamMessage,
    TextMessage,
)
from pyjmsack.spark import recover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .conftest import Fill


class Stream:
    """A stream from a queue to Parquet files, run to what is there (AvailableNow), and again."""

    def __init__(self, spark: SparkSession, url: str, queue: str, home: Path, **options: str) -> None:
        self._spark, self.home = spark, home
        self.options = {"url": url, "queue": queue, "spoolLocation": str(home / "spool"), "idleMs": "150", **options}

    def run(self, checkpoint: str = "checkpoint") -> list[Any]:
        """Return the progress reports of one run."""
        frame = self._spark.readStream.format("jms").options(**self.options).load()
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(self.home / checkpoint))
            .option("path", str(self.home / "out"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return list(query.recentProgress)

    def rows(self) -> DataFrame:
        """What was written so far."""
        return self._spark.read.parquet(str(self.home / "out"))

    def ids(self) -> list[str]:
        """The message ids that were written so far, sorted."""
        return sorted(row.message_id for row in self.rows().select("message_id").collect())

    def spools(self) -> list[Path]:
        """The files with rows that are kept."""
        return sorted((self.home / "spool").glob("*/[0-9]*/*.arrow"))


@pytest.fixture
def stream(spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path) -> Stream:
    return Stream(spark, broker_url, queue_name, tmp_path, maxMessagesPerPartition="400")


def test_available_now_takes_all_that_is_there_once_in_bounded_batches(
    stream: Stream, fill: Fill, queue_name: str, left: Callable[[str], int]
) -> None:
    ids = fill(queue_name, 1000)
    batches = [progress["numInputRows"] for progress in stream.run()]
    assert max(batches) <= 800, "two partitions of at most 400"
    assert stream.ids() == sorted(ids)
    assert left(queue_name) == 0


def test_a_second_run_goes_on_where_the_first_ended_and_keeps_no_rows_of_it(
    stream: Stream, fill: Fill, queue_name: str
) -> None:
    ids = fill(queue_name, 300)
    stream.run()
    ids += fill(queue_name, 300, first=300)
    stream.run()
    assert stream.ids() == sorted(ids)
    last = {path.parent for path in stream.spools()}
    assert len(last) == 1, "the rows of processed batches are deleted; Spark never commits the last batch of a run"


def test_a_spool_with_rows_of_another_checkpoint_is_refused_and_can_be_read(
    spark: SparkSession, stream: Stream, fill: Fill, queue_name: str, tmp_path: Path
) -> None:
    ids = fill(queue_name, 50)
    stream.run()
    with pytest.raises(StreamingQueryException, match="acknowledged and not processed"):
        stream.run(checkpoint="another")
    found = recover(spark, tmp_path / "spool")
    assert sorted(row.message_id for row in found.collect()) == sorted(ids)


def drain(spark: SparkSession, url: str, queue: str, home: Path, **options: str) -> DataFrame:
    given = {"url": url, "queue": queue, "spoolLocation": str(home), "drainId": "one", "idleMs": "150", **options}
    return spark.read.format("jms").option("mode", "drain").options(**given).load()


def test_a_drained_batch_reads_the_same_again_also_by_a_sort(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Callable[[str], int]
) -> None:
    ids = fill(queue_name, 500)
    frame = drain(spark, broker_url, queue_name, tmp_path, maxMessagesPerPartition="100")
    assert sorted(row.message_id for row in frame.orderBy("created").collect()) == sorted(ids)
    assert left(queue_name) == 0
    fill(queue_name, 5)
    again = drain(spark, broker_url, queue_name, tmp_path, partitions="1")
    assert sorted(row.message_id for row in again.collect()) == sorted(ids)
    assert left(queue_name) == 5


def test_browsing_takes_nothing_and_knows_selectors(
    spark: SparkSession, broker_url: str, queue_name: str, fill: Fill, left: Callable[[str], int]
) -> None:
    fill(queue_name, 30)
    options = {"url": broker_url, "queue": queue_name, "mode": "browse", "selector": "number >= 20"}
    rows = spark.read.format("jms").options(**options).load().collect()
    assert [row.properties["number"] for row in rows] == [str(n) for n in range(20, 30)]
    assert rows[0].property_types == {"number": "int"}
    assert bytes(rows[0].body) == b"body 20"
    assert spark.read.format("jms").options(**options, includeBody="false").load().columns.count("body") == 0
    assert left(queue_name) == 30


def test_every_kind_of_message_becomes_a_row_and_a_message_again(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path
) -> None:
    messages: list[Message] = [
        TextMessage("grüße"),
        TextMessage(None),
        BytesMessage(b"\x00\xff"),
        MapMessage({"a": 1, "b": b"\x00", "c": Byte(3), "d": None}),
        StreamMessage([1.5, "x", Float(0.5)]),
        Message(),
    ]
    factory = ConnectionFactory(broker_url)
    with factory.create_context() as context:
        for number, message in enumerate(messages):
            message.properties.update({"n": number, "b": True, "f": Float(0.1), "s": "text", "JMSXGroupID": "g"})
            message.correlation_id, message.type, message.reply_to = "c", "t", Queue("answers")
            context.create_producer(Queue(queue_name)).send(message, priority=7)
    frame = drain(spark, broker_url, queue_name, tmp_path, partitions="1")
    target = f"{queue_name}-copies"
    frame.coalesce(1).write.format("jms").mode("append").options(url=broker_url, queue=target).save()
    with factory.create_context() as context, context.create_consumer(Queue(target)) as consumer:
        for original in messages:
            copy = consumer.receive(60)
            assert copy is not None
            assert type(copy) is type(original)
            assert copy.body == original.body
            assert dict(copy.properties) == dict(original.properties)
            assert {type(v) for v in copy.properties.values()} >= {bool, str}
            assert (copy.correlation_id, copy.type, copy.priority) == ("c", "t", 7)
            assert copy.reply_to == Queue("answers")
    row = frame.where("body_type = 'map'").collect()[0]
    assert json.loads(row.body) == {"a": 1, "b": {"bytes": "AA=="}, "c": {"byte": 3}, "d": None}
    assert row.group_id == "g"
    assert row.dedup_key == row.message_id
