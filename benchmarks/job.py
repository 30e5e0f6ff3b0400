"""The task of a worker process, and its answer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

USERNAME_VARIABLE = "PYJMSACK_BENCH_USERNAME"  # in the environment, so that no process list shows the password
PASSWORD_VARIABLE = "PYJMSACK_BENCH_PASSWORD"  # noqa: S105 - the name of a variable

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
    """The answer of a worker: how many messages, in which time, by which client."""

    count: int
    nanoseconds: int
    client: str

    @classmethod
    def parse(cls, line: str) -> Timing:
        """Read one line of JSON."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))


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
