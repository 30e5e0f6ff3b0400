"""Runs each measurement in a process of its own, so that no peer's garbage or threads disturb another."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.job import GATE_VARIABLE, READY, BenchmarkError, Job, Timing

ROOT = Path(__file__).resolve().parent.parent
_TIME_LIMIT = 300.0  # seconds; a peer that loses a message would wait for ever
_ERROR_LINES = 3
_SECOND_LOOK = 3.0  # seconds until a queue is looked at again


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


def run_together(commands: Sequence[list[str]]) -> list[Timing]:
    """Run workers that begin at the same moment, and read their timings.

    Raises:
        BenchmarkError: one failed, or did not end in time.
    """
    environment = {**os.environ, GATE_VARIABLE: "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ExitStack() as stack:
        workers = []
        for command in commands:
            worker = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)
            stack.enter_context(worker)
            stack.callback(worker.kill)
            workers.append(worker)
        for worker in workers:
            assert worker.stdin is not None  # these are pipes
            assert worker.stdout is not None
            if worker.stdout.readline().strip() != READY:
                raise BenchmarkError(last_words(worker.communicate()[1], worker.wait()))
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        return [_finished(worker) for worker in workers]


def _finished(worker: subprocess.Popen[str]) -> Timing:
    try:
        out, words = worker.communicate(timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"no result within {_TIME_LIMIT:.0f} s") from None
    if worker.returncode:
        raise BenchmarkError(last_words(words, worker.returncode))
    return Timing.parse(out.splitlines()[-1])


def last_words(stderr: str, code: int) -> str:
    """Return the reason why a process failed: the end of its output."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return " / ".join(lines[-_ERROR_LINES:]) or f"exit code {code} without a word"


def run_tool(scenario: str, url: str, queue: str, count: int = 0, size: int = 0) -> Timing:
    """Fill or drain a queue."""
    return run(python_worker("limit" if scenario == "drain" else "queues", Job(scenario, url, queue, count, size)))


def empty(url: str, queue: str, expected: int) -> int:
    """Empty a queue, and return how many messages it had. If there are fewer than expected, look again after a moment,
    because a busy Artemis may say that a queue is empty before it delivers a large message.
    """
    found = run_tool("drain", url, queue).count
    if found < expected:
        time.sleep(_SECOND_LOOK)
        found += run_tool("drain", url, queue).count
    return found
