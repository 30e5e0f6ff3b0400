"""A blocking socket to the broker of a job."""

from __future__ import annotations

import select
import socket
from urllib.parse import urlsplit

from benchmarks.job import PATIENCE, BenchmarkError, Job

CLIENT = "a bare socket"
_READ = 1 << 18


class Line:
    """A socket that waits at most :data:`PATIENCE` seconds."""

    def __init__(self, job: Job) -> None:
        address = urlsplit(job.url)
        self._socket = socket.create_connection((address.hostname or "", address.port or 0), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.write = self._socket.sendall

    def comes(self, seconds: float) -> bool:
        """Wait for something to read, and return whether something came."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def read(self) -> bytes:
        """Return what has come, or what comes next."""
        data = self._socket.recv(_READ)
        if not data:
            raise BenchmarkError("the broker ended the connection of the bare socket")
        return data

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class Outbox:
    """Ready-made frames in one piece of memory, so that writing copies nothing."""

    def __init__(self, frames: list[bytes]) -> None:
        self._bytes = memoryview(b"".join(frames))
        self._ends = [0]
        for frame in frames:
            self._ends.append(self._ends[-1] + len(frame))

    def part(self, first: int, after: int) -> memoryview:
        """Return the frames from ``first`` to the one before ``after``."""
        return self._bytes[self._ends[first] : self._ends[after]]
