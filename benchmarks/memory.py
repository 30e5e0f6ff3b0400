"""``python -m benchmarks memory``: the memory that a million messages through one consumer leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from benchmarks.environment import broker, require_library
from benchmarks.job import BenchmarkError, Job
from benchmarks.processes import ROOT, last_words, run_tool

STEP = 10_000  # messages between two samples; the others are compared with the first sample
LIMIT_MB = 30.0
_BATCH = 20_000  # filled at a time, and at most two of them wait: the broker shall not page
_MB = 1_000_000


@dataclass(frozen=True)
class MemoryReport:
    """The resident set of the consumer's process, after every :data:`STEP` messages."""

    face: str
    count: int
    samples: list[int]

    @property
    def growth_mb(self) -> float:
        """From the first sample to the last."""
        return (self.samples[-1] - self.samples[0]) / _MB

    @property
    def met(self) -> bool:
        """Whether the growth is within the limit."""
        return self.growth_mb <= LIMIT_MB

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "face": self.face,
            "count": self.count,
            "step": STEP,
            "growth_mb": self.growth_mb,
            "limit_mb": LIMIT_MB,
            "met": self.met,
            "samples": self.samples,
        }

    def sentence(self) -> str:
        """Say it in one line."""
        first, last, peak = (value / _MB for value in (self.samples[0], self.samples[-1], max(self.samples)))
        return (
            f"{self.face}: {first:.1f} MB after {STEP:,} messages, {last:.1f} MB after {self.count:,}, "
            f"at most {peak:.1f} MB between: {self.growth_mb:+.1f} MB, "
            f"{'within' if self.met else 'over'} the limit of {LIMIT_MB:g} MB"
        )


def measure(url: str | None, face: str, count: int, size: int, progress: Callable[[int], None]) -> MemoryReport:
    """Send ``count`` messages through one consumer of ``pyjmsack`` (``sync``) or ``pyjmsack.aio`` (``aio``).

    Raises:
        BenchmarkError: they did not all come.
    """
    if count < 2 * STEP or count % STEP:
        raise BenchmarkError(f"the count must be a multiple of {STEP:,}, and {2 * STEP:,} at least")
    require_library()
    with broker(url) as addresses:
        job = Job("memory", addresses.tools, f"bench-{uuid.uuid4().hex[:8]}-memory", count, size)
        return MemoryReport(face, count, _watch(face, job, progress))


def _watch(face: str, job: Job, progress: Callable[[int], None]) -> list[int]:
    command = [sys.executable, "-m", "benchmarks.consume", face, str(STEP), *job.arguments()]
    with tempfile.TemporaryFile("w+") as words:
        consumer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=words, text=True)
        try:
            samples = _feed(job, consumer.stdout, progress)
            code = consumer.wait()
        finally:
            consumer.kill()
            consumer.wait()
        if code or len(samples) != job.count // STEP:
            words.seek(0)
            raise BenchmarkError(last_words(words.read(), code))
        return samples


def _feed(job: Job, lines: IO[str] | None, progress: Callable[[int], None]) -> list[int]:
    """Fill the queue as fast as it is emptied; returns the samples."""
    samples = []
    filled = _fill(job, 0) + _fill(job, _BATCH)
    for line in lines or ():
        sample = json.loads(line)
        samples.append(sample["rss"])
        progress(sample["received"])
        if filled < job.count and filled - sample["received"] <= _BATCH:
            filled += _fill(job, filled)
    return samples


def _fill(job: Job, filled: int) -> int:
    wanted = min(_BATCH, job.count - filled)
    return run_tool("fill-jms", job.url, job.queue, wanted, job.size).count if wanted else 0
