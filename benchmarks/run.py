"""``python -m benchmarks run``: all clients do the same work in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.environment import broker, machine, require_library
from benchmarks.harness import Harness
from benchmarks.java_peer import JavaMissingError, JavaPeer, prepare
from benchmarks.job import BenchmarkError
from benchmarks.results import Report, Row
from benchmarks.scenarios import Peer, Scenario, Settings


def run(
    url: str | None,
    peers: Sequence[Peer],
    scenarios: Sequence[Scenario],
    settings: Settings,
    stomp_url: str | None = None,
) -> Report:
    """Measure the peers in turn.

    Raises:
        BenchmarkError: nothing can be measured.
    """
    stderr = Console(stderr=True)
    if any(peer.ours for peer in peers):
        require_library()
    java = _java(stderr) if any(peer.name == "java" for peer in peers) else None
    peers = [peer for peer in peers if peer.name != "java" or java is not None]
    if not peers:
        raise BenchmarkError("there is nothing to measure")
    about = machine(None if java is None else java.version)
    start = time.monotonic()
    with broker(url, settings.protocol, stomp_url) as addresses:
        harness = Harness(addresses, settings, java)
        name = harness.prime()
        rows = harness.rows(scenarios)
        _measure(harness, rows, peers, stderr)
    return Report(settings, about, name, rows, time.monotonic() - start)


def _java(stderr: Console) -> JavaPeer | None:
    try:
        with stderr.status("building the Java peer, once"):
            return prepare()
    except JavaMissingError as reason:
        stderr.print(f"Qpid JMS is skipped: {reason}", markup=False)
        return None


def _measure(harness: Harness, rows: Sequence[Row], peers: Sequence[Peer], stderr: Console) -> None:
    turns = list(harness.turns(rows, peers))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as progress:
        task = progress.add_task("", total=len(turns))
        for row, peer, turn in turns:
            progress.update(task, description=f"{row.scenario.name}, round {turn + 1}, {peer.title}")
            row.add(peer, harness.measure(row.scenario, peer, turn))
            progress.advance(task)
