"""``python -m benchmarks cold``: how long a new process needs until its first message is confirmed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.environment import broker, require_library
from benchmarks.job import BenchmarkError
from benchmarks.processes import ROOT, last_words, run_tool

LIMIT = 0.25
_WARMUP = 2_000  # messages: the broker has a JIT, and this is about the client


@dataclass(frozen=True)
class Cold:
    """The medians, in seconds."""

    protocol: str
    face: str
    rounds: int
    interpreter: float
    """From the start of the process to the first line of the program."""
    imports: float
    connect: float
    """With a session."""
    first: float
    """From there to the confirmation of a persistent message."""
    all: float
    """The sum of the last three, of each round."""

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def sentence(self) -> str:
        """Say it in one line."""
        parts = (("interpreter", self.interpreter), ("import", self.imports), ("connect", self.connect))
        said = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in (*parts, ("first message", self.first)))
        verdict = "within" if self.all <= LIMIT else "over"
        return (
            f"{self.protocol}, {self.face}: {said}; without the interpreter {self.all * 1e3:.0f} ms, {verdict} the "
            f"limit of {LIMIT * 1e3:g} ms (median of {self.rounds})"
        )


def measure(rounds: int) -> Iterator[Cold]:
    """Measure both faces over both protocols on an embedded broker.

    Raises:
        BenchmarkError: a process failed.
    """
    require_library()
    with broker(None) as addresses:
        queue = f"bench-{uuid.uuid4().hex[:8]}-cold"
        run_tool("fill-jms", addresses.tools, queue, _WARMUP, 100)
        for protocol, url in (("amqp", addresses.clients), ("stomp", addresses.stomp)):
            for face in ("sync", "aio"):
                found = [_cold(face, url, queue) for _ in range(rounds)]
                yield Cold(protocol, face, rounds, *(median(part) for part in zip(*found, strict=True)))
        run_tool("drain", addresses.tools, queue)


def _cold(face: str, url: str, queue: str) -> tuple[float, float, float, float, float]:
    command = [sys.executable, "-m", "benchmarks.cold_start", face, url, queue]
    start = time.perf_counter_ns()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(last_words(done.stderr, done.returncode))
    begun, imported, connected, confirmed = json.loads(done.stdout)
    steps = begun - start, imported - begun, connected - imported, confirmed - connected, confirmed - begun
    interpreter, imports, connect, first, everything = (step / 1e9 for step in steps)
    return interpreter, imports, connect, first, everything
