"""``python -m benchmarks growth``: what a message costs with more consumers, more processes and larger bodies."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.table import Table

from benchmarks.chart import Panel
from benchmarks.environment import Addresses, broker, machine, require_library
from benchmarks.harness import Harness
from benchmarks.job import BenchmarkError, Job, Timing
from benchmarks.peers.sync import CONSUMERS
from benchmarks.processes import empty, python_worker, run_together, run_tool
from benchmarks.scenarios import Peer, Scenario, Settings

AXES = ("consumers", "queues", "processes", "bodies")
"""What grows: the consumers of one queue, the consumers with a queue each, the processes, or the bytes of a body."""
PROCESSES = (1, 2, 4, 8)
BODIES = (100, 1_000, 100_000, 1_000_000)
_SIZE = 1_000
_MOST_BYTES = 100_000_000
"""Of one measurement, so that the broker does not page."""
_NAMES = {"send-async": "send", "receive": "receive"}


@dataclass(frozen=True)
class Case:
    """One measurement. ``value`` is the number of consumers or processes, or the size of a body.

    ``axis`` is one of ``AXES``. All consumers belong to one session of one connection.
    """

    axis: str
    protocol: str
    face: str
    scenario: str
    value: int
    size: int
    count: int

    @property
    def title(self) -> str:
        """The work and the face."""
        work = "receive" if self.axis in ("consumers", "queues") else self.scenario.partition("-")[0]
        return f"{work}, {self.protocol}, {'asyncio' if self.face == 'aio' else 'blocking'}"


@dataclass(frozen=True)
class Point:
    """The best round of a case: messages a second, megabytes a second, and microseconds of processor time a message of
    all processes of the client.
    """

    case: Case
    rate: float
    megabytes: float
    processor: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self.case), "rate": self.rate, "megabytes": self.megabytes, "processor": self.processor}


@dataclass(frozen=True)
class Growth:
    """All points, and the machine that they were measured on."""

    machine: dict[str, Any]
    points: Sequence[Point]
    errors: Sequence[str]
    """The measurements that failed, or lost or doubled a message."""

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        points = [point.as_json() for point in self.points]
        return {"machine": self.machine, "points": points, "errors": [*self.errors]}


def cases(axes: Sequence[str], protocols: Sequence[str], faces: Sequence[str], count: int) -> Iterator[Case]:
    """Yield the measurements."""
    for protocol in protocols:
        for face in faces:
            for axis in ("consumers", "queues"):
                if axis in axes:
                    for number in CONSUMERS:
                        yield Case(axis, protocol, face, f"{axis}-{number}", number, _SIZE, count)
            for scenario in _NAMES:
                if "processes" in axes:
                    for number in PROCESSES:
                        yield Case("processes", protocol, face, scenario, number, _SIZE, count)
                if "bodies" in axes:
                    for size in BODIES:
                        many = max(1, min(count, _MOST_BYTES // size))
                        yield Case("bodies", protocol, face, scenario, size, size, many)


def measure(chosen: Sequence[Case], rounds: int, progress: Callable[[int], None]) -> Growth:
    """Measure on an embedded broker.

    Raises:
        BenchmarkError: something that the benchmark needs is not there.
    """
    require_library()
    about = machine(None)
    found: dict[Case, list[tuple[float, float]]] = {}
    errors = []
    with broker(None) as over_amqp:
        over = {"amqp": over_amqp, "stomp": replace(over_amqp, clients=over_amqp.stomp)}
        for turn in range(rounds):
            for place, case in enumerate(chosen):
                try:
                    found.setdefault(case, []).append(_measured(over[case.protocol], case, turn))
                except BenchmarkError as error:
                    errors.append(f"{case.title}, {case.value:,} {case.axis}: {error}")
                progress(turn * len(chosen) + place + 1)
    return Growth(about, [_best(case, measured) for case, measured in found.items() if measured], errors)


def _best(case: Case, measured: Sequence[tuple[float, float]]) -> Point:
    rate, processor = max(rate for rate, _ in measured), min(cost for _, cost in measured)
    return Point(case, rate, rate * case.size / 1e6, processor)


def _measured(addresses: Addresses, case: Case, turn: int) -> tuple[float, float]:
    """Return messages a second, and microseconds of processor time a message."""
    if case.axis == "processes":
        timings = _together(addresses, case)
        start = min(timing.started for timing in timings)
        nanoseconds = max(timing.started + timing.nanoseconds for timing in timings) - start
    else:
        settings = Settings(case.size, 1, {case.scenario: case.count}, {}, "jms", case.protocol)
        sends = case.scenario.startswith("send")
        fills = case.axis != "queues"  # there the client puts the messages on the queues itself
        scenario = Scenario(case.scenario, case.scenario, sends, pipelined=True, raw_target=None, fills=fills)
        round_ = Harness(addresses, settings, None).measure(scenario, Peer(case.face, case.face, ours=True), turn)
        if round_.timing is None:
            raise BenchmarkError(round_.error or "no result")
        timings, nanoseconds = [round_.timing], round_.timing.nanoseconds
    count = sum(timing.count for timing in timings)
    return count * 1e9 / nanoseconds, sum(timing.processor for timing in timings) / 1e3 / count


def _together(addresses: Addresses, case: Case) -> list[Timing]:
    """Let so many processes work at the same time, each on a queue of its own."""
    name = f"bench-{uuid.uuid4().hex[:8]}-growth"
    jobs = [
        Job(case.scenario, addresses.clients, f"{name}-{number}", case.count, case.size) for number in range(case.value)
    ]
    receives = case.scenario == "receive"
    if receives:
        for job in jobs:
            run_tool("fill-jms", addresses.tools, job.queue, case.count, case.size)
    timings = run_together([python_worker(case.face, job) for job in jobs])
    for job in jobs:
        expected = 0 if receives else case.count
        left = empty(addresses.tools, job.queue, expected)
        if left != expected:
            raise BenchmarkError(f"{left} messages are left in a queue")
    return timings


def tables(growth: Growth) -> Iterator[Table]:
    """Yield a table for each axis."""
    for axis in AXES:
        points = [point for point in growth.points if point.case.axis == axis]
        if not points:
            continue
        made = Table(title=f"{axis}: messages/s (MB/s), and µs of the client's processor time a message")
        made.add_column("work")
        values = list(dict.fromkeys(point.case.value for point in points))
        for value in values:
            made.add_column(f"{value:,}", justify="right")
        for title, row in _series(points).items():
            made.add_row(title, *(_words(row[value]) if value in row else "" for value in values))
        yield made


def _words(point: Point) -> str:
    return f"{point.rate:,.0f} ({point.megabytes:,.0f}) {point.processor:,.1f} µs"


def _series(points: Sequence[Point]) -> dict[str, dict[int, Point]]:
    found: dict[str, dict[int, Point]] = {}
    for point in points:
        found.setdefault(point.case.title, {})[point.case.value] = point
    return found


def panels(growth: Growth) -> list[Panel]:
    """Return the charts: processor time a message by consumers, rates by processes, megabytes a second by bodies."""
    wanted: tuple[tuple[str, str, Callable[[Point], float]], ...] = (
        ("consumers", "consumers of one queue: µs of processor time a message", lambda point: point.processor),
        ("queues", "consumers with a queue each: µs of processor time a message", lambda point: point.processor),
        ("processes", "processes: messages a second", lambda point: point.rate),
        ("bodies", "bytes of a body: MB a second", lambda point: point.megabytes),
    )
    made = []
    for axis, title, value in wanted:
        points = [point for point in growth.points if point.case.axis == axis]
        if points:
            ticks = list(dict.fromkeys(point.case.value for point in points))
            lines = {
                name: [value(row[tick]) if tick in row else None for tick in ticks]
                for name, row in _series(points).items()
            }
            made.append(Panel(title, [f"{tick:,}" for tick in ticks], lines))
    return made
