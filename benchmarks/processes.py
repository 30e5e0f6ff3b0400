"""Runs each measurement in a process of its own, so that no peer's garbage or threads disturb another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.job import BenchmarkError, Job, Timing

ROOT = Path(__file__).resolve().parent.parent
_TIME_LIMIT = 300.0  # seconds; a peer that loses a message would wait for ever
_ERROR_LINES = 3


def python_worker(peer: str, job: Job) -> list[str]:
    """Return the command that runs a job on ``benchmarks.peers.<peer>``."""
    return [sys.executable, "-m", "benchmarks.worker", peer, *job.arguments()]


def run(command: list[str]) -> Timing:
    """Run a worker and read its timing.

    Raises:
        BenchmarkError: it failed, or did not end in time.
    """
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"no result within {_TIME_LIMIT:.0f} s") from None
    if done.returncode:
        raise BenchmarkError(last_words(done.stderr, done.returncode))
    return Timing.parse(done.stdout.splitlines()[-1])


def last_words(stderr: str, code: int) -> str:
    """Return the reason why a process failed: the end of its output."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return " / ".join(lines[-_ERROR_LINES:]) or f"exit code {code} without a word"


def run_tool(scenario: str, url: str, queue: str, count: int = 0, size: int = 0) -> Timing:
    """Fill or drain a queue."""
    return run(python_worker("queues", Job(scenario, url, queue, count, size)))
