"""The resources of this process: threads, file descriptors, memory."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Resources", "resident_bytes"]

_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Resources:
    """The numbers of threads and file descriptors, and the memory in bytes, at one moment."""

    threads: int
    descriptors: int
    memory: int

    @classmethod
    def now(cls) -> Resources:
        """Measure the resources of this process."""
        descriptors = len(os.listdir("/dev/fd")) - 1  # the listing itself has one descriptor open
        return cls(threading.active_count(), descriptors, resident_bytes())


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, from ``/proc`` or, on systems without it, from ``ps``."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    answer = subprocess.run(  # noqa: S603 - only the process id of this process varies
        ["/bin/ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(answer.stdout) * 1024
