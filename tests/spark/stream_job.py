"""A stream to Parquet in a driver of its own, to be killed: ``python -m spark.stream_job MASTER HOME OPTIONS``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyjmsack.spark import local_session

from .kill_points import JudgedSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parents[1]
"""What executors need on their path to find the modules of this folder."""


def settings(home: Path) -> dict[str, str]:
    """Return what every session of these tests is made with: its files in ``home``, and JVMs that live for seconds."""
    java = f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={home} -Dderby.system.home={home}"
    return {
        "spark__sql__warehouse__dir": str(home),
        "spark__local__dir": str(home),
        "spark__driver__extraJavaOptions": java,
        "spark__executor__extraJavaOptions": java,
        "spark__executor__memory": "512m",
        "spark__executorEnv__PYTHONPATH": str(TESTS),
    }


def run(spark: SparkSession, source: str, home: Path, options: dict[str, str]) -> None:
    """Run a stream through what is in the queue now, from its checkpoint if there is one."""
    can_count = "stomp" not in options["url"]  # Artemis cannot over STOMP, and availableNow is refused
    frame = spark.readStream.format(source).options(spoolLocation=str(home / "spool"), **options).load()
    writer = (
        frame.select("message_id")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(home / "checkpoint"))
        .option("path", str(home / "out"))
    )
    if can_count:
        writer.trigger(availableNow=True).start().awaitTermination()
    else:
        query = writer.start()
        query.processAllAvailable()
        query.stop()


def main(master: str, home: str, options: str) -> None:
    spark = local_session(master, **settings(Path(home)))
    spark.dataSource.register(JudgedSource)
    run(spark, JudgedSource.name(), Path(home), json.loads(options))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
