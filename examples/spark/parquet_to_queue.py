"""Write a Parquet file to a queue, twice: the keys keep the second time from adding anything."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyjmsack import ConnectionFactory, Queue
from pyjmsack.spark import local_session

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
QUEUE = "examples.spark.invoices"


def main() -> None:
    spark = local_session()
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home, "invoices"))
        invoices = spark.range(50).selectExpr("concat('invoice ', id) as body", "concat('key ', id) as invoice")
        invoices.write.parquet(path)
        for _ in range(2):
            (
                spark.read.parquet(path)
                .write.format("jms")
                .mode("append")
                .option("url", URL)
                .option("queue", QUEUE)
                .option("dedupColumn", "invoice")
                .save()
            )
    with ConnectionFactory(URL).create_context() as context, context.create_browser(Queue(QUEUE)) as browser:
        print(f"{sum(1 for _ in browser)} invoices in the queue")


if __name__ == "__main__":
    main()
