"""``python -m benchmarks spark``, with small numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shared_brokers import Served

pytestmark = pytest.mark.timeout(600)  # Spark starts, on a machine that may be busy


@pytest.mark.whole_tier("it takes minutes; tests/spark runs streams and writes, and the other commands run here")
def test_spark_streams_and_writes_each_row_once(any_broker: Served) -> None:
    """Each job counts its rows, and the messages that it left in the queue. A wrong count is an error of the command.

    The command is a process of its own, because it stops the Spark session, which other tests use.
    """
    pytest.importorskip("pyspark", reason="needs the extra [spark]")
    few = ("--count", "40", "--size", "100", "--rounds", "1", "--json")
    command = [sys.executable, "-m", "benchmarks", "spark", "--url", any_broker.amqp_url, *few]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"stream", "write", "write, dedupColumn"} <= found["rounds"].keys()
    assert all(rate > 0 for rates in found["rounds"].values() for rate in rates)
