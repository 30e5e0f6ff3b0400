"""Dead letters: to a table, and back to where they came from, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dead_letters import wait_for_dead_letters
from pyspark.errors import PySparkException
from pyspark.sql import functions

from pyjmsack import AckMode, ConnectionFactory, Queue
from pyjmsack.spark.replay import dead_letters, send_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .conftest import Fill

DEAD = "DLQ"


def reject_all(url: str, queue: str, count: int) -> None:
    factory = ConnectionFactory(url)
    with (
        factory.create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context,
        context.create_consumer(Queue(queue)) as consumer,
    ):
        for _ in range(count):
            message = consumer.receive(60)
            assert message is not None
            message.reject()
    wait_for_dead_letters(url, DEAD, f"_AMQ_ORIG_ADDRESS = '{queue}'", count)


def test_dead_letters_go_back_to_their_queue_once_however_often_it_is_repeated(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Callable[[str], int]
) -> None:
    """The originals carried a duplicate id: with it Artemis would accept the replay and drop it."""
    for number in range(5):
        fill(queue_name, 1, first=number, _AMQ_DUPL_ID=f"{queue_name}-{number}")
    reject_all(broker_url, queue_name, 5)
    letters = dead_letters(
        spark,
        url=broker_url,
        queue=DEAD,
        selector=f"_AMQ_ORIG_ADDRESS = '{queue_name}'",
        spoolLocation=str(tmp_path),
        drainId="letters",
    )
    assert {row.origin for row in letters.collect()} == {queue_name}
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for where in ("Europe/Berlin", "Asia/Tokyo"):  # the machine that repeats it may be elsewhere
            spark.conf.set("spark.sql.session.timeZone", where)
            send_back(letters, url=broker_url)
            assert left(queue_name) == 5
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    send_back(letters, attempt=2, url=broker_url)
    assert left(queue_name) == 10
    with ConnectionFactory(broker_url).create_context() as context, context.create_consumer(Queue(queue_name)) as back:
        message = back.receive(60)
        assert message is not None
        assert dict(message.properties) == {"number": 0}
        assert "_AMQ_ORIG_ADDRESS" not in message.properties


def test_what_has_no_origin_needs_to_be_told_where_to_go(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Callable[[str], int]
) -> None:
    fill(queue_name, 2)
    letters = dead_letters(spark, url=broker_url, queue=queue_name, spoolLocation=str(tmp_path), drainId="letters")
    with pytest.raises(ValueError, match="2 letters have no origin"):
        send_back(letters, url=broker_url)
    with pytest.raises(ValueError, match="2 letters have no message id"):
        send_back(letters.withColumn("message_id", functions.lit(None)), url=broker_url, to=f"{queue_name}-new")
    send_back(letters, url=broker_url, to=f"{queue_name}-new")
    assert left(f"{queue_name}-new") == 2


def test_a_letter_that_cannot_be_sent_back_holds_up_no_other_and_stays_in_the_drain(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, fill: Fill, left: Callable[[str], int]
) -> None:
    """One letter of a stranger stopped all others, and each attempt failed in the same way."""
    with ConnectionFactory(broker_url).create_context() as context:
        nested = context.create_stream_message()
        nested._body = [[1]]  # over AMQP a sender may do this
        context.create_producer(Queue(queue_name)).send(nested)
    fill(queue_name, 10)
    letters = dead_letters(spark, url=broker_url, queue=queue_name, spoolLocation=str(tmp_path), drainId="letters")
    for _ in range(2):
        with pytest.raises(PySparkException, match=f"1 rows cannot be sent, and the 10 others.*{nested.message_id}"):
            send_back(letters, url=broker_url, to=f"{queue_name}-new")
        assert left(f"{queue_name}-new") == 10
    assert letters.where(f"message_id = '{nested.message_id}'").count() == 1
    send_back(letters, url=broker_url, to=f"{queue_name}-new", unsendable="skip")
    assert left(f"{queue_name}-new") == 10
