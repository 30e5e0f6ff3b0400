"""Interleaves scenarios and peers: in every round each has its turn, on the same broker, on a fresh queue."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from tempfile import TemporaryDirectory

from benchmarks.environment import Addresses
from benchmarks.java_peer import JavaPeer
from benchmarks.job import BenchmarkError, Job
from benchmarks.processes import empty, python_worker, run, run_tool
from benchmarks.results import Round, Row
from benchmarks.scenarios import Peer, Scenario, Settings

_PRIMING = 10_000  # messages through a fresh broker before anything is timed: it has a JIT, too
_PRIMING_BYTES = 100_000_000  # at most, so that the broker does not page


Turn = tuple[Row, Peer, int]


class Harness:
    """Runs the measurements."""

    def __init__(self, addresses: Addresses, settings: Settings, java: JavaPeer | None) -> None:
        self._url = addresses.tools
        self._client_url = addresses.clients
        self._settings = settings
        self._java = java

    def prime(self) -> str:
        """Let the broker compile its hot code; returns the broker's name."""
        queue, size = f"bench-{uuid.uuid4().hex[:8]}-priming", self._settings.size
        run_tool("fill-plain", self._url, queue, max(1, min(_PRIMING, _PRIMING_BYTES // size)), size)
        return run_tool("drain", self._url, queue).client

    def rows(self, scenarios: Sequence[Scenario]) -> list[Row]:
        """Return empty rows for the scenarios."""
        return [Row(scenario, self._settings.counts[scenario.name]) for scenario in scenarios]

    def turns(self, rows: Sequence[Row], peers: Sequence[Peer]) -> Iterator[Turn]:
        """Yield the measurements, in order."""
        for turn in range(self._settings.rounds):
            for row in rows:  # in every round, because some rows are compared with others
                able = [peer for peer in peers if row.scenario.includes(peer)]
                first = turn % max(1, len(able))  # no peer shall always follow the same other one
                for peer in (*able[first:], *able[:first]):
                    yield row, peer, turn

    def measure(self, scenario: Scenario, peer: Peer, turn: int) -> Round:
        """Make one measurement; a failed one is a result, too."""
        settings = self._settings
        count = settings.counts[scenario.name]
        warmup = settings.warmups[scenario.name] if peer.warmup else 0
        queue = f"bench-{uuid.uuid4().hex[:8]}-{scenario.name}-{peer.name}-{turn}"
        url = scenario.url.format(url=self._client_url)
        with TemporaryDirectory(prefix="bench-ledger-") if scenario.ledger else nullcontext("") as ledger:
            job = Job(scenario.job, url, queue, count, settings.size, warmup, ledger)
            return self._timed(scenario, peer, job)

    def _timed(self, scenario: Scenario, peer: Peer, job: Job) -> Round:
        settings, queue, count, warmup = self._settings, job.queue, job.count, job.warmup
        try:
            if not scenario.sends and scenario.fills:
                run_tool(f"fill-{settings.fill}", self._url, queue, count + warmup, settings.size)
            timing = run(self._command(peer, replace(job, queue=scenario.destination.format(queue=queue))))
            _verify("worker counted", timing.count, count)
            _verify_ledger(job, "sends" if scenario.sends else "receives")
        except BenchmarkError as error:
            self._discard(queue)
            return Round(error=str(error))
        return self._checked(Round(timing), queue, count + warmup if scenario.sends else 0)

    def _command(self, peer: Peer, job: Job) -> list[str]:
        if peer.name == "java":
            if self._java is None:
                raise BenchmarkError("Java is not there")
            return self._java.command(job)
        return python_worker(peer.name, job)

    def _checked(self, measured: Round, queue: str, left: int) -> Round:
        """Empty the queue, which also keeps the broker from paging, and compare the count with the expected one."""
        try:
            _verify("messages in the queue", empty(self._url, queue, left), left)
        except BenchmarkError as error:
            return Round(error=str(error))
        return measured

    def _discard(self, queue: str) -> None:
        try:
            run_tool("drain", self._url, queue)
        except BenchmarkError:
            return  # the failure that led here is the one to report


def _verify_ledger(job: Job, table: str) -> None:
    if job.ledger:
        from pyjmsack.ledger import read_ledgers  # late: not everybody has pyarrow

        _verify(f"{table} in the ledger", read_ledgers([job.ledger]).table(table).num_rows, job.count)


def _verify(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise BenchmarkError(f"{what}: {found}, expected {expected}")
