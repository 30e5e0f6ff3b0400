"""The task of a worker process, and its answer."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

USERNAME_VARIABLE = "PYJMSACK_BENCH_USERNAME"  # in the environment, so that no process list shows the password
PASSWORD_VARIABLE = "PYJMSACK_BENCH_PASSWORD"  # noqa: S105 - the name of a variable

GATE_VARIABLE = "PYJMSACK_BENCH_GATE"
"""Set for workers that begin at the same moment (:func:`pass_gate`)."""
READY = "ready"

PATIENCE = 30.0  # seconds a receiver waits for the next message before it gives up


@dataclass(frozen=True)
class Job:
    """One measurement: ``count`` timed messages of ``size`` characters, after ``warmup`` that are not timed."""

    scenario: str
    url: str
    queue: str
    count: int
    size: int
    warmup: int = 0
    ledger: str = ""  # ours only: the directory of the ledger to write

    @classmethod
    def parse(cls, arguments: list[str]) -> Job:
        """Read the task that :meth:`arguments` wrote."""
        scenario, url, queue, count, size, warmup, *ledger = arguments
        return cls(scenario, url, queue, int(count), int(size), int(warmup), *ledger)

    def arguments(self) -> list[str]:
        """Return the command line of a worker; the Java program reads the same, and writes no ledger."""
        numbers = (str(self.count), str(self.size), str(self.warmup))
        return [self.scenario, self.url, self.queue, *numbers, *([self.ledger] if self.ledger else [])]

    @property
    def text(self) -> str:
        """The body of every message."""
        return "x" * self.size


@dataclass(frozen=True)
class Timing:
    """The answer of a worker: how many messages, in which time, by which client. All times are in nanoseconds; 0 stands
    for a time that the client does not tell.
    """

    count: int
    nanoseconds: int
    client: str
    processor: int = 0
    """The processor time of the client's process."""
    started: int = 0
    """The moment of the start, by the monotonic clock, which all processes of a machine share."""
    p50: int = 0
    p99: int = 0

    @classmethod
    def parse(cls, line: str) -> Timing:
        """Read one line of JSON."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))


Number = TypeVar("Number", int, float)


def percentile(ordered: Sequence[Number], share: float) -> Number:
    """Return the value below which a share (0 to 1) of the ordered values lies."""
    return ordered[int(share * (len(ordered) - 1))]


class Stopwatch:
    """Runs from its creation."""

    def __init__(self) -> None:
        self._processor = time.process_time_ns()
        self._start = time.perf_counter_ns()

    def timing(self, count: int, client: str, latencies: Sequence[int] = ()) -> Timing:
        """Stop, and return the timing. ``latencies`` are the nanoseconds of each round trip."""
        end = time.perf_counter_ns()
        processor = time.process_time_ns() - self._processor
        ordered = sorted(latencies) or [0]
        p50, p99 = (percentile(ordered, share) for share in (0.5, 0.99))
        return Timing(count, end - self._start, client, processor, self._start, p50, p99)


def pass_gate() -> None:
    """Say on standard output that all is prepared, and wait for a line on standard input, if the parent process asks
    for this.
    """
    if GATE_VARIABLE in os.environ:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        sys.stdin.readline()


Scenarios = dict[str, Callable[[Job], Timing]]


class BenchmarkError(Exception):
    """A measurement that cannot be trusted, or could not be made."""


def login() -> tuple[str | None, str | None]:
    """Return user name and password for the broker; ``None`` means anonymous."""
    return os.environ.get(USERNAME_VARIABLE), os.environ.get(PASSWORD_VARIABLE)


def check_text(text: object, job: Job) -> None:
    """Touch the body, as an application would; every peer calls this for every message."""
    if not isinstance(text, str) or len(text) != job.size:
        raise BenchmarkError(f"expected a text of {job.size} characters, got {text!r:.60}")
