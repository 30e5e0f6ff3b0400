"""One measurement in a process of its own.

``python -m benchmarks.worker PEER SCENARIO URL QUEUE COUNT SIZE WARMUP``
"""

from __future__ import annotations

import importlib
import sys

import click

from benchmarks.job import BenchmarkError, Job, Scenarios


def scenarios_of(peer: str) -> Scenarios:
    """Return the scenarios of ``benchmarks.peers.<peer>``. They are imported late, so that no peer loads another's
    library.
    """
    scenarios: Scenarios = importlib.import_module(f"benchmarks.peers.{peer}").SCENARIOS
    return scenarios


def main(arguments: list[str]) -> None:
    """Run the job and print its timing as one line of JSON."""
    peer, *rest = arguments
    job = Job.parse(rest)
    try:
        click.echo(scenarios_of(peer)[job.scenario](job).line())
    except BenchmarkError as error:
        sys.exit(str(error))  # one clear line on standard error instead of a traceback


if __name__ == "__main__":
    main(sys.argv[1:])
