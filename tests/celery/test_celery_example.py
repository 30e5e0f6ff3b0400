"""The program in ``examples/celery`` does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shared_brokers import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "celery" / "main.py"


def test_the_example_runs_a_worker_and_beat(any_broker: Served) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env={**os.environ, "PYJMSACK_URL": any_broker.amqp_url},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    prices = [f"with tax: {price}" for price in (11.9, 23.8, 35.7, 47.6)]
    assert done.stdout.splitlines() == [*prices, "beat: the stock is counted"]
