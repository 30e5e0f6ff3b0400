"""Stream a queue into Parquet files, each order once, although its producer sent some of them twice."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyjmsack import ConnectionFactory, Queue
from pyjmsack.spark import local_session

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
QUEUE = "examples.spark.orders"


def produce() -> None:
    """A producer that sends messages twice under new message ids, as after the loss of its broker's answer."""
    with ConnectionFactory(URL).create_context() as context:
        producer = context.create_producer(Queue(QUEUE))
        for number in [*range(100), *range(10)]:
            order = context.create_text_message(f"order {number}")
            order.properties["order_key"] = f"key {number}"
            producer.send(order)


def main() -> None:
    produce()
    spark = local_session()
    with tempfile.TemporaryDirectory() as home:  # in earnest: a disk that driver and executors share, and that stays
        orders = (
            spark.readStream.format("jms")
            .option("url", URL)
            .option("queue", QUEUE)
            .option("spoolLocation", str(Path(home, "spool")))
            .option("dedupKey", "order_key")
            .load()
        )
        once = orders.withWatermark("created", "1 hour").dropDuplicatesWithinWatermark(["dedup_key"])
        query = (
            once.writeStream.format("parquet")
            .option("path", str(Path(home, "orders")))
            .option("checkpointLocation", str(Path(home, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(f"{spark.read.parquet(str(Path(home, 'orders'))).count()} orders stored")


if __name__ == "__main__":
    main()
