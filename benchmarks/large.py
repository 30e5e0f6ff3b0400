"""``python -m benchmarks large``: a large body from a file, through a broker, into a file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from benchmarks.processes import ROOT, last_words

LIMIT_MB = 64.0
_PIECE = 1 << 20
_PATIENCE = 1800.0


@dataclass(frozen=True)
class Large:
    """One direction of one face."""

    face: str
    job: str
    size: int
    extra_mb: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "limit_mb": LIMIT_MB}

    def sentence(self) -> str:
        """Say it in one line."""
        return (
            f"{self.face}, {self.job}: {self.size / 1e6:,.0f} MB in {self.seconds:.1f} s "
            f"({self.size / 1e6 / self.seconds:,.0f} MB/s) with {self.extra_mb:.1f} MB of memory more, "
            f"{'within' if self.extra_mb <= LIMIT_MB else 'over'} the limit of {LIMIT_MB:g} MB"
        )


def measure(size: int, heap: str) -> Iterator[Large]:
    """Send and receive over AMQP in both faces, on an embedded Artemis with this heap.

    Raises:
        BenchmarkError: a process failed, or the file that came is another one.
    """
    with tempfile.TemporaryDirectory(prefix="bench-large-") as directory, embedded(heap) as broker:
        sent, came = Path(directory, "sent"), Path(directory, "came")
        digest = _write(sent, size)
        for face in ("sync", "aio"):
            queue = f"bench-{uuid.uuid4().hex[:8]}-large"
            for job, path in (("send", sent), ("receive", came)):
                # a consumer refuses a message that is larger than its limit, and 1 GB is above the default one
                yield _moved(face, job, f"{broker.amqp_url}?jms.maxMessageSize={2 * size}", queue, path, size)
            if _digest(came) != digest:
                raise BenchmarkError(f"{face}: the body that came is not the one that was sent")
            came.unlink()


def _moved(face: str, job: str, url: str, queue: str, path: Path, size: int) -> Large:
    command = [sys.executable, "-m", "benchmarks.large_body", face, job, url, queue, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise BenchmarkError(f"{face}, {job}: {last_words(done.stderr, done.returncode)}")
    told = json.loads(done.stdout)
    return Large(face, job, size, (told["after"] - told["before"]) / 1e6, told["seconds"])


def _write(path: Path, size: int) -> str:
    """Write so many random bytes, a piece of them again and again, each time with its number."""
    piece = os.urandom(_PIECE - 8)
    with path.open("wb") as file:
        for place in range(0, size, _PIECE):
            file.write((piece + place.to_bytes(8, "big"))[: size - place])
    return _digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
