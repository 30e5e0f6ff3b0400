"""How much memory a process has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident set of this process: from ``/proc``, or where there is none from ``ps``."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    answer = subprocess.run(
        ["/bin/ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(answer.stdout) * 1024
