"""Kills a broker while the lines flow, and starts it again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyjmsack.broker import EmbeddedArtemis

if TYPE_CHECKING:
    from pyjmsack.cli.demo.job import Job

__all__ = ["Kills", "is_time", "killing"]

_LOOK_SECONDS = 0.002


@dataclass
class Kills:
    """The state of the kills: how many are left, and whether the broker is down now."""

    left: int = 0
    """The number of kills that are still to come."""
    outage: bool = False
    """Whether the broker is down on purpose, so that no line can arrive."""
    restarted: float = 0.0
    """The time of the broker's last start, on the clock of :func:`time.monotonic`."""


@contextmanager
def killing(broker: EmbeddedArtemis | None, kills: Kills, jobs: Sequence[Job]) -> Iterator[None]:
    """Kill the broker (SIGKILL) and start it again as often as ``kills`` says, while all of ``jobs`` are at work.

    Raises:
        BrokerError: the broker does not start again.
    """
    if broker is None or not kills.left:
        yield
        return
    over = threading.Event()
    with ThreadPoolExecutor(1, "pyjmsack-demo-killer") as executor:
        work = executor.submit(_kill, broker, kills, jobs, over)
        try:
            yield
        finally:
            over.set()
        work.result()


def _kill(broker: EmbeddedArtemis, kills: Kills, jobs: Sequence[Job], over: threading.Event) -> None:
    times = kills.left
    for number in range(1, times + 1):
        while not is_time(jobs, number / (times + 1)):
            if over.wait(_LOOK_SECONDS):
                return  # all jobs are done, and one of them lost lines
        kills.outage = True
        try:
            broker.kill()
            broker.restart()
        finally:
            kills.restarted = time.monotonic()
            kills.outage = False
        kills.left -= 1


def is_time(jobs: Sequence[Job], part: float) -> bool:
    """Return whether it is time for a kill: all jobs have begun, and the fastest job has received ``part`` (0 to 1) of
    its lines.
    """
    received = [job.ledger.received for job in jobs]
    return min(received) > 0 and max(received) >= part * len(jobs[0].source.lines)
