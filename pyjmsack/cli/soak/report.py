"""The result of a soak: the verdict, the tables for people and one document for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyjmsack.cli.resources import Resources
from pyjmsack.cli.soak.ledger import Ledger

__all__ = ["MEMORY_LIMIT", "Flow", "Report", "as_document", "as_tables"]

_MB = 1_000_000
MEMORY_LIMIT = 20 * _MB
"""The largest number of bytes by which the process may grow. The numbers of threads and of descriptors must not
grow."""


@dataclass(frozen=True)
class Flow:
    """The numbers of one flow at its end."""

    face: str
    title: str
    ledger: Ledger
    skipped: int
    """The number of messages that were delivered again and that the guard did not hand out."""
    atomic: bool

    @property
    def problems(self) -> list[str]:
        """The promises of this flow that were broken, as texts."""
        return [f"{self.title} ({self.face}): {problem}" for problem in self.ledger.problems(atomic=self.atomic)]


@dataclass(frozen=True)
class Growth:
    """The growth of one resource: the medians of the first and of the last quarter of the samples."""

    name: str
    first: float
    last: float
    limit: float
    before: float
    after: float

    @property
    def problems(self) -> list[str]:
        """The problems of this resource, as texts: it grew by more than ``limit``, or more of it is in use after
        closing than before the run. For memory only the growth counts."""
        grown, left = self.last - self.first, self.after - self.before
        found = [f"{self.name}: grew by {grown:,.0f}, more than {self.limit:,.0f}"] if grown > self.limit else []
        if self.name != "memory" and left > 0:
            found.append(f"{self.name}: {left:,.0f} left after closing")
        return found


@dataclass(frozen=True)
class Report:
    """The result of a run. All times are in seconds."""

    broker: str
    what: str
    seconds: float
    outages: Sequence[float]
    """For each kill, the seconds from the kill until every flow has received a message again."""
    interruptions: int
    flows: Sequence[Flow]
    samples: Sequence[Resources]
    """The resources of the process before each kill except the first, and at the end."""
    before: Resources
    after: Resources
    stuck: Sequence[str]

    @cached_property
    def growths(self) -> list[Growth]:
        """How much the threads, file descriptors and memory of the process grew."""
        limits = {"threads": 0, "descriptors": 0, "memory": MEMORY_LIMIT}
        quarter = max(1, len(self.samples) // 4)
        samples = self.samples or [self.before]
        return [
            Growth(
                name,
                median(getattr(sample, name) for sample in samples[:quarter]),
                median(getattr(sample, name) for sample in samples[-quarter:]),
                limit,
                getattr(self.before, name),
                getattr(self.after, name),
            )
            for name, limit in limits.items()
        ]

    @cached_property
    def problems(self) -> list[str]:
        """The reasons why the soak failed, as texts: lost or doubled messages, stuck flows, resources that grew."""
        return [*self.stuck, *self._found()]

    def _found(self) -> Iterator[str]:
        if not self.outages:
            yield "nothing was killed: the time was too short"
        elif not self.interruptions:
            yield "no kill interrupted a connection"
        for flow in self.flows:
            yield from flow.problems
        for growth in self.growths:
            yield from growth.problems


def as_tables(report: Report) -> RenderableType:
    """Return the tables of a soak, with the verdict below the tables."""
    return Group(_flows(report), _resources(report), *_verdict(report))


def _table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _flows(report: Report) -> Table:
    title = f"{report.broker}, {report.seconds:,.0f} s, {len(report.outages)} times {report.what}"
    headings = ("confirmed", "received", "lost", "doubled", "skipped", "rolled back", "in doubt", "torn")
    table = _table(title, ("flow", "face"), headings)
    for flow in report.flows:
        ledger = flow.ledger
        numbers = (
            *(len(ledger.confirmed), len(ledger.received), ledger.lost, ledger.repeated),
            *(flow.skipped, ledger.rolled_back, ledger.in_doubt, ledger.torn),
        )
        style = "red" if flow.problems else None
        table.add_row(flow.title, flow.face, *(f"{number:,}" for number in numbers), style=style)
    return table


def _resources(report: Report) -> Table:
    headings = ("first quarter", "last quarter", "growth", "limit", "before all", "after closing")
    table = _table("What the process holds", ("",), headings)
    for growth in report.growths:
        values = (growth.first, growth.last, growth.last - growth.first, growth.limit, growth.before, growth.after)
        memory = growth.name == "memory"
        cells = [f"{value / _MB:,.1f} MB" if memory else f"{value:,.0f}" for value in values]
        table.add_row(growth.name, *cells, style="red" if growth.problems else None)
    return table


def _verdict(report: Report) -> list[Text]:
    if report.problems:
        return [Text(problem, style="red") for problem in report.problems]
    lines = [
        f"Nothing lost, nothing doubled, nothing torn. From a kill until every flow received a message again: "
        f"{median(report.outages):.1f} s, at most {max(report.outages):.1f} s.",
    ]
    if any(flow.ledger.repeated for flow in report.flows):
        lines.append(
            "Some messages came twice behind the relay. Transactions over STOMP allow this at this broker (S88)."
        )
    return [Text(line, style="green") for line in lines]


def as_document(report: Report) -> dict[str, Any]:
    """Return the result of a soak as one JSON document, for scripts."""
    return {
        "ok": not report.problems,
        "problems": report.problems,
        "broker": report.broker,
        "seconds": round(report.seconds, 1),
        "kills": len(report.outages),
        "interruptions": report.interruptions,
        "outages": [round(outage, 2) for outage in report.outages],
        "flows": [_flow(flow) for flow in report.flows],
        "resources": {
            growth.name: {name: getattr(growth, name) for name in ("first", "last", "limit", "before", "after")}
            for growth in report.growths
        },
        "samples": [asdict(sample) for sample in report.samples],
    }


def _flow(flow: Flow) -> dict[str, Any]:
    ledger = flow.ledger
    return {
        "flow": flow.title,
        "face": flow.face,
        "confirmed": len(ledger.confirmed),
        "unconfirmed": ledger.unconfirmed,
        "received": len(ledger.received),
        "lost": ledger.lost,
        "doubled": ledger.repeated,
        "skipped": flow.skipped,
        "rolled_back": ledger.rolled_back,
        "in_doubt": ledger.in_doubt,
        "torn": ledger.torn,
        "atomic": flow.atomic,
    }
