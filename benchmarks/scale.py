"""``python -m benchmarks scale``: many idle consumers in one asyncio process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from benchmarks.processes import ROOT, last_words
from benchmarks.restore import address, after_restart
from pyjmsack.testing import Wire

ATTACH_LIMIT, MEMORY_LIMIT_KB, RESTORE_LIMIT = 10.0, 5.0, 5.0
SESSIONS = 1000
PATIENCE = 600.0
"""Seconds for a step. A broker without memory for so many queues ends, and its clients would wait for ever."""
_HEAP = "6g"  # Artemis takes about 100 KB for a queue and its consumer
STEPS = 3
_OPTIONS = "failover.maxReconnectDelay=100&failover.warnAfterReconnectAttempts=0"


@dataclass(frozen=True)
class Scale:
    """What was measured. Memory is that of the client's process."""

    protocol: str
    consumers: int
    connections: int
    attached: float
    """Seconds until the broker has answered all consumers."""
    after_cut: float
    """Seconds from the end of a cut of all connections until all is restored."""
    after_kill: float
    """Seconds from the first answer of a broker that was killed and started again until all is restored."""
    kb_connection: float
    kb_session: float
    kb_consumer: float
    kb_listener: float
    """Of a consumer with a listener."""

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def sentences(self) -> str:
        """Say it in some lines."""
        many = f"{self.protocol}: {self.consumers:,} consumers on {self.connections} connections"
        return (
            f"{many}: attached in {self.attached:.1f} s (aim {ATTACH_LIMIT:g}), restored {self.after_cut:.1f} s after "
            f"a cut and {self.after_kill:.1f} s after a kill (aim {RESTORE_LIMIT:g})\n"
            f"{self.protocol}: memory of a connection {self.kb_connection:.1f} KB, of a session "
            f"{self.kb_session:.1f} KB, of a consumer {self.kb_consumer:.1f} KB (aim {MEMORY_LIMIT_KB:g}), with a "
            f"listener {self.kb_listener:.1f} KB"
        )


def measure(protocol: str, consumers: int, connections: int, progress: Callable[[int], None]) -> Scale:
    """Measure on an embedded Artemis, with a queue for each consumer.

    Raises:
        BenchmarkError: the process failed, or was not restored.
    """
    with embedded(_HEAP) as broker:
        member = address(broker, protocol)
        with _idle(member, connections, SESSIONS, 0) as empty:
            kb_connection, kb_session = (
                empty.kilobytes("connections", connections),
                empty.kilobytes("sessions", SESSIONS),
            )
        progress(1)
        with Wire(member) as wire, _idle(wire.url, connections, connections, consumers) as plain:
            kb_consumer, attached = plain.kilobytes("consumers", consumers), plain.seconds("consumers")
            wire.cut()
            begun = time.monotonic()
            wire.heal()
            plain.await_step("restored")
            after_cut = time.monotonic() - begun
        progress(2)
        with _idle(member, connections, connections, consumers, listens=True) as listening:
            kb_listener = listening.kilobytes("consumers", consumers)
            after_kill = after_restart(broker, protocol, lambda: listening.await_step("restored"))
        progress(3)
    memory = kb_connection, kb_session, kb_consumer, kb_listener
    return Scale(protocol, consumers, connections, attached, after_cut, after_kill, *memory)


class _Idle:
    """The process."""

    def __init__(self, process: subprocess.Popen[str], words: Callable[[], str]) -> None:
        self._process = process
        self._words = words
        self._steps: dict[str, dict[str, Any]] = {}
        self._before: dict[str, str] = {}

    def await_step(self, name: str) -> None:
        """Return when the process has told this step.

        Raises:
            BenchmarkError: the process ended, or did not tell the step within :data:`PATIENCE`.
        """
        assert self._process.stdout is not None  # it is a pipe
        overdue = threading.Event()
        clock = threading.Timer(PATIENCE, lambda: (overdue.set(), self._process.kill()))
        clock.start()
        try:
            for line in self._process.stdout:
                told = json.loads(line)
                self._before[told["step"]] = next(reversed(self._steps), "")
                self._steps[told["step"]] = told
                if told["step"] == name:
                    return
        finally:
            clock.cancel()
        if overdue.is_set():
            raise BenchmarkError(
                f"the idle consumers were not {name!r} after {PATIENCE:g} s; is the broker still there?"
            )
        raise BenchmarkError(last_words(self._words(), self._process.wait()))

    def seconds(self, step: str) -> float:
        """Return how long a step took."""
        return float(self._steps[step]["seconds"])

    def kilobytes(self, step: str, count: int) -> float:
        """Return the memory of each thing that a step made."""
        before = self._steps[self._before[step]]
        return float(self._steps[step]["resident"] - before["resident"]) / 1000 / count


@contextmanager
def _idle(member: str, connections: int, sessions: int, consumers: int, *, listens: bool = False) -> Iterator[_Idle]:
    """Start the process, and wait until all is attached."""
    queue = f"bench-{uuid.uuid4().hex[:8]}-idle"
    plan = {
        "queue": queue,
        "connections": connections,
        "sessions": sessions,
        "consumers": consumers,
        "listens": listens,
    }
    command = [sys.executable, "-m", "benchmarks.idle", f"failover:({member})?{_OPTIONS}", json.dumps(plan)]
    with tempfile.TemporaryFile("w+") as words:

        def said() -> str:
            words.seek(0)
            return words.read()

        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": words}
        process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)  # type: ignore[call-overload]
        try:
            idle = _Idle(process, said)
            idle.await_step("consumers")
            yield idle
        finally:
            process.kill()
            process.communicate()
