"""A broker that dies while the lines flow, and comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.demo.job import Job

__all__ = ["killing"]

_LOOK_SECONDS = 0.002


@contextmanager
def killing(broker: EmbeddedArtemis, job: Job) -> Iterator[None]:
    """Kill the broker (SIGKILL) and start it again as often as the job says, spread evenly over its lines.

    Raises:
        BrokerError: it does not start again.
    """
    over = threading.Event()
    with ThreadPoolExecutor(1, "pyjmsack-demo-killer") as executor:
        work = executor.submit(_kill, broker, job, over)
        try:
            yield
        finally:
            over.set()
        work.result()


def _kill(broker: EmbeddedArtemis, job: Job, over: threading.Event) -> None:
    times = job.kills_left
    for number in range(1, times + 1):
        enough = len(job.source.lines) * number // (times + 1)
        while job.ledger.received < enough:
            if over.wait(_LOOK_SECONDS):
                return  # a row that loses lines does not come so far
        job.outage = True
        try:
            broker.kill()
            broker.restart()
        finally:
            job.restarted = time.monotonic()
            job.outage = False
        job.kills_left -= 1
