"""A stream in a driver of its own, to be killed: ``stream_job.py URL QUEUE HOME``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyjmsack.spark import local_session


def main(url: str, queue: str, home: str) -> None:
    spark = local_session(master="local[2,4]", spark__sql__warehouse__dir=home)
    options = {"url": url, "queue": queue, "spoolLocation": str(Path(home, "spool")), "idleMs": "150"}
    frame = spark.readStream.format("jms").options(**options, maxMessagesPerPartition="100").load()
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(Path(home, "checkpoint")))
        .option("path", str(Path(home, "out")))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
