"""The whole driver is killed with SIGKILL in the middle of a stream, and the stream goes on from its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .conftest import Fill

JOB = Path(__file__).with_name("stream_job.py")
PATIENCE = 150


class Driver:
    """A driver with its JVM and Python workers, all known by a variable in their environment."""

    def __init__(self, *arguments: str) -> None:
        self._mark = f"PYJMSACK_TEST_DRIVER={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self._process = subprocess.Popen(
            [sys.executable, str(JOB), *arguments],
            env={**os.environ, name: value},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait_for(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not happened():
            assert self._process.poll() is None, "the driver ended by itself"
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL to all of its processes, until none is left."""
        while found := self._processes():
            for number in found:
                os.kill(number, signal.SIGKILL)
            self._process.poll()
        self._process.wait()

    def _processes(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:  # gone, or not ours
                continue
        return found


@pytest.fixture
def start() -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def make(*arguments: str) -> Driver:
        drivers.append(Driver(*arguments))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.kill()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the processes of a driver in /proc")
def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    spark: SparkSession,
    start: Callable[..., Driver],
    broker_url: str,
    queue_name: str,
    tmp_path: Path,
    fill: Fill,
    left: Callable[[str], int],
) -> None:
    """Killed between spool and sink of its second batch; then run on by another driver, in this process."""
    sent = fill(queue_name, 1500)
    driver = start(broker_url, queue_name, str(tmp_path))
    driver.wait_for(lambda: any((tmp_path / "spool").glob("*/0000000002/*.arrow")))
    driver.kill()
    assert left(queue_name) > 0, "it was in the middle"
    options = {"url": broker_url, "queue": queue_name, "spoolLocation": str(tmp_path / "spool"), "idleMs": "150"}
    frame = spark.readStream.format("jms").options(**options).load()
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    stored = sorted(row.message_id for row in spark.read.parquet(str(tmp_path / "out")).select("message_id").collect())
    assert stored == sorted(sent), "sent, stored, unique: 1500 each; lost: 0"
    assert left(queue_name) == 0
