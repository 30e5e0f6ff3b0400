"""The order of the rows, and the number of rows that run at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.demo.job import Job, Result
from pyjmsack.cli.demo.killing import Kills, killing
from pyjmsack.cli.demo.rows import FAILOVER_ROWS, ROWS, Row
from pyjmsack.cli.demo.source import Source
from pyjmsack.cli.options import Login

__all__ = ["Run", "Wave", "plan", "run_wave"]

_SIDE_BY_SIDE = 4
"""The number of rows that run side by side. More would not be faster, because all rows share one interpreter."""


@dataclass
class Run:
    """One row of the demo, a :class:`Row`, run over one protocol. The printed table has one entry for each run."""

    row: Row
    protocol: str
    job: Job
    running: bool = False
    result: Result | None = None

    def execute(self) -> None:
        """Run this row of the demo over its protocol, unless another row has failed already.

        Raises:
            JMSException: the connection failed, or the broker refused something.
        """
        if not self.job.abandoned:
            self.running = True
            self.result = self.row.run(self.job, self.protocol)


@dataclass(frozen=True)
class Wave:
    """Runs that may work at the same time, because the same kills hit all of them, or because there is no kill."""

    runs: tuple[Run, ...]
    kills: Kills


def plan(logins: Mapping[str, Login], own: bool, full: bool, source: Source, patience: float) -> list[Wave]:
    """Return all runs of the demo, in waves. The waves in which the broker is killed come last.

    Args:
        logins: how to reach the broker, by protocol.
        own: whether the broker may be killed.
        full: True to do one run after the other, so that each run that kills the broker has kills of its own. False to
            do runs side by side, which share the kills.
        source: the lines to send.
        patience: seconds without an arrival after which missing lines count as lost.
    """
    waves: list[Wave] = []
    for rows in (ROWS, FAILOVER_ROWS if own else ()):
        pairs = [*product(rows, logins.items())]
        for together in [[pair] for pair in pairs] if full else [pairs]:
            kills = Kills(max((row.kills for row, _ in together), default=0))
            runs = (Run(row, protocol, row.job(login, source, patience, kills)) for row, (protocol, login) in together)
            waves.append(Wave(tuple(runs), kills))
    return waves


def run_wave(wave: Wave, broker: EmbeddedArtemis | None) -> None:
    """Run the rows of a wave side by side; the first failure ends all rows.

    Args:
        broker: the broker to kill, if there are kills.

    Raises:
        JMSException: the connection failed, or the broker refused something.
        BrokerError: a killed broker does not start again.
    """
    jobs = [run.job for run in wave.runs]
    at_once = len(jobs) if wave.kills.left else _SIDE_BY_SIDE  # the broker dies only while all rows are at work
    with killing(broker, wave.kills, jobs), ThreadPoolExecutor(max(1, at_once), "pyjmsack-demo-row") as executor:
        try:
            for done in as_completed([executor.submit(run.execute) for run in wave.runs]):
                done.result()
        finally:
            _abandon(jobs)


def _abandon(jobs: Sequence[Job]) -> None:
    """Make the ends of all jobs give up. A job that is done is not changed."""
    for job in jobs:
        job.abandoned = True
