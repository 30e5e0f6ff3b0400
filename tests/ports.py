"""Ports that are free now, and that the system gives nobody else: those below the range of sockets without a port."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress

__all__ = ["free_ports"]

_RANGE = range(10_000, 32_000)
"""Linux gives sockets without a port one from 32768 on, other systems one from 49152 on."""
_random = random.SystemRandom()
"""The other generator has the same seed in all processes of a test run, and so two brokers got the same port."""


def free_ports(count: int = 1) -> list[int]:
    """Return free ports in a row. A port in the system's own range could be gone before it is used."""
    for _ in range(1000):
        first = _random.randrange(_RANGE.start, _RANGE.stop - count)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("", port))
            return [*range(first, first + count)]
    raise AssertionError(f"no {count} free ports in a row")
