"""Writing to queues: a job that succeeded has every row confirmed, and one with keys repeats nothing (S61)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from pyjmsack import ConnectionFactory, Queue
from pyjmsack.providers.amqp.wire_types import ULong

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .conftest import Fill, Left


def orders(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("concat('order ', id) as body", "concat('key ', id) as order_key")


def save(frame: DataFrame, url: str, queue: str | None, **options: str) -> None:
    given = {"url": url, **({} if queue is None else {"queue": queue}), **options}
    frame.write.format("jms").mode("append").options(**given).save()


def test_a_repeated_write_with_the_same_keys_adds_nothing(
    spark: SparkSession, broker_url: str, queue_name: str, left: Left
) -> None:
    for _ in range(2):
        save(orders(spark, 500), broker_url, queue_name, dedupColumn="order_key")
    assert left(queue_name) == 500


def test_each_row_may_name_its_destination(spark: SparkSession, broker_url: str, queue_name: str, left: Left) -> None:
    frame = spark.range(10).selectExpr(f"concat('{queue_name}-', id % 2) as destination", "cast(id as string) as body")
    save(frame, broker_url, None)
    assert (left(f"{queue_name}-0"), left(f"{queue_name}-1")) == (5, 5)


def test_a_row_that_the_broker_refused_fails_the_job_and_its_tasks_are_not_repeated(
    spark: SparkSession, broker_url: str, queue_name: str, left: Left
) -> None:
    """The second attempt of the task was confirmed, so that the job succeeded without the row."""
    frame = spark.range(10).selectExpr(
        f"if(id = 5, '{queue_name}#', '{queue_name}') as destination",
        "'x' as body",
        f"concat('{queue_name}-', id) as order_key",
    )
    with pytest.raises(PySparkException, match=f"1 rows, and the 9 others.*{queue_name}-5.*AMQ229260"):
        save(frame, broker_url, None, dedupColumn="order_key")
    assert left(queue_name) == 9


def test_overwrite_is_refused(spark: SparkSession, broker_url: str, queue_name: str) -> None:
    with pytest.raises(AnalysisException, match="a queue cannot be overwritten"):
        orders(spark, 1).write.format("jms").mode("overwrite").options(url=broker_url, queue=queue_name).save()


def test_a_stream_goes_from_queue_to_queue_and_a_repeated_batch_adds_nothing(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Left
) -> None:
    """A driver that dies between a batch and its note in the checkpoint runs the batch again, with the same rows."""
    fill(queue_name, 200)
    options = {"url": broker_url, "queue": queue_name, "spoolLocation": str(tmp_path / "spool"), "idleMs": "150"}
    checkpoint = tmp_path / "checkpoint"

    def run() -> int:
        frame = spark.readStream.format("jms").options(**options).load()
        writer = frame.writeStream.format("jms").option("checkpointLocation", str(checkpoint))
        writer = writer.options(url=broker_url, queue=f"{queue_name}-out", dedupColumn="dedup_key")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    assert run() == 200
    assert (left(queue_name), left(f"{queue_name}-out")) == (0, 200)
    for note in (checkpoint / "commits").glob("*[0-9]*"):
        note.unlink()
    assert run() == 200, "sent again"
    assert left(f"{queue_name}-out") == 200


def test_a_stream_that_a_message_of_a_stranger_stopped_goes_on_when_it_skips_what_cannot_be_sent(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, left: Left
) -> None:
    """The query died at each start, and the messages behind this one never passed."""
    with ConnectionFactory(broker_url).create_context() as context:
        nested = context.create_map_message()
        nested._body = {"a": [1]}  # over AMQP a sender may do this
        late = context.create_text_message("late")
        late._properties = {"u": ULong((1 << 64) - 1)}
        never = context.create_text_message("never")
        producer = context.create_producer(Queue(queue_name))
        for body in ("a", nested, "b", late, never, "c"):
            producer.send(body)
    frame = spark.readStream.format("jms").options(url=broker_url, queue=queue_name, spoolLocation=str(tmp_path / "sp"))
    good = frame.load().where("decode_error is null and body_type != 'other'")
    hostile = "if(body = 'never', map('_AMQ_SCHED_DELIVERY', 'x'), properties) as properties"
    rows = good.selectExpr("body", "body_type", "message_id", "message_id as key", hostile)

    def run(unsendable: str) -> None:
        writer = rows.writeStream.format("jms").option("checkpointLocation", str(tmp_path / "cp"))
        writer = writer.options(url=broker_url, queue=f"{queue_name}-out", dedupColumn="key", unsendable=unsendable)
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException):
        run("fail")
    run("skip")
    assert (left(queue_name), left(f"{queue_name}-out")) == (0, 3)


def test_a_stream_leaves_out_what_the_broker_refuses_or_ends_without_a_repeated_task(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Left
) -> None:
    """A row that the broker refuses stopped the stream for ever, or was lost in silence if it had a key."""
    fill(queue_name, 3)
    frame = spark.readStream.format("jms").options(url=broker_url, queue=queue_name, spoolLocation=str(tmp_path / "sp"))
    target = f"if(properties['number'] = '1', '{queue_name}#', '{queue_name}-out') as destination"

    def run(name: str, unsendable: str) -> None:
        rows = frame.load().selectExpr("body", target, f"concat('{name}', dedup_key) as key", "message_id")
        writer = rows.writeStream.format("jms").option("checkpointLocation", str(tmp_path / "cp"))
        writer = writer.options(url=broker_url, dedupColumn="key", unsendable=unsendable)
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match=r"1 rows, and the 2 others.*AMQ229260"):
        run("first", "fail")
    assert left(f"{queue_name}-out") == 2
    run("second", "skip")
    assert (left(queue_name), left(f"{queue_name}-out")) == (0, 4)
