"""``python -m benchmarks.sizing growth.json``: the model of ``docs/sizing.md``, its tables and its charts.

``growth.json`` is what ``python -m benchmarks growth --json`` printed. The model has two costs for each kind of work,
in microseconds of processor time a message. ``c`` of the client is measured. ``b`` of the broker follows from the rate
at which clients and broker together use all cores.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import click

from benchmarks.chart import Panel, draw

DOCS = Path(__file__).resolve().parent.parent / "docs"
MILLION = 1_000_000
MACHINES = 50
BROKER_CORES, BROKER_LOAD = 16, 0.5
"""The brokers of the example: their cores, and the share of them that is used when all is well."""
AUDIT_ROWS = 20_000_000 / 28.9 / 2
"""Rows of a ledger that one core audits in a second (docs/performance.md)."""
SPARK_PULL = 39.0
"""Microseconds of a Python worker of Spark for a row (docs/performance.md)."""
_KILO = 1_000


@dataclass(frozen=True)
class Work:
    """Sending or receiving by one face over one protocol, with bodies of 1 KB."""

    title: str
    cores: int
    """Of the machine that clients and broker shared."""
    rates: Mapping[int, float]
    """Measured messages a second, by number of processes."""
    client: float
    broker: float

    def predict(self, processes: int) -> float:
        """Return messages a second: each process has one core, and all of them share the cores with the broker."""
        return min(processes * MILLION / self.client, self.cores * MILLION / (self.client + self.broker))


def works(growth: Mapping[str, Any]) -> list[Work]:
    """Return what the growth over processes tells."""
    cores = growth["machine"]["cores"]
    groups: dict[tuple[str, str, str], dict[int, Mapping[str, Any]]] = {}
    for point in growth["points"]:
        if point["axis"] == "processes":
            key = point["scenario"].partition("-")[0], point["protocol"], point["face"]
            groups.setdefault(key, {})[point["value"]] = point
    made = []
    for (work, protocol, face), points in groups.items():
        most = max(points.values(), key=lambda point: float(point["rate"]))
        client = float(points[1]["processor"])
        broker = max(0.0, cores * MILLION / most["rate"] - most["processor"])
        rates = {number: float(point["rate"]) for number, point in points.items()}
        title = f"{work}, {protocol}, {'asyncio' if face == 'aio' else 'blocking'}"
        made.append(Work(title, cores, rates, client, broker))
    return made


def per_byte(growth: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the cost of the client as ``a + k * kilobytes``, by kind of work, from bodies of 1 KB and of 1 MB."""
    found: dict[str, dict[int, float]] = {}
    for point in growth["points"]:
        if point["axis"] == "bodies":
            title = f"{point['scenario'].partition('-')[0]}, {point['protocol']}, {point['face']}"
            found.setdefault(title, {})[point["value"]] = float(point["processor"])
    lines = {}
    for title, costs in found.items():
        slope = (costs[MILLION] - costs[_KILO]) / (MILLION - _KILO) * _KILO
        lines[title] = costs[_KILO] - slope, slope
    return lines


@dataclass(frozen=True)
class Plan:
    """A million messages a second, each sent and received once, over :data:`MACHINES` machines."""

    client: float
    broker: float
    """Microseconds of one message, sent and received."""

    @property
    def cores_each(self) -> float:
        """The cores that the clients of one machine need."""
        return MILLION / MACHINES * self.client / MILLION

    @property
    def brokers(self) -> int:
        """How many brokers carry it at :data:`BROKER_LOAD`."""
        return ceil(self.broker / (BROKER_CORES * BROKER_LOAD))

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the rows of the table: the part, its formula, and the number."""
        processes = 2 * ceil(self.cores_each / 2)
        return [
            ("cores for clients on each machine", f"1,000,000 / {MACHINES} * c / 1,000,000", f"{self.cores_each:.2f}"),
            ("processes on each machine, one half to send", "2 * ⌈cores / 2⌉", f"{processes}"),
            ("cores for brokers", "1,000,000 * b / 1,000,000", f"{self.broker:.0f}"),
            (f"brokers with {BROKER_CORES} cores, half used", "⌈cores / 8⌉", f"{self.brokers}"),
            ("connections of each broker", "machines * processes", f"{MACHINES * processes:,}"),
            ("cores of a Spark that reads it all", f"{SPARK_PULL:g} µs a row", f"{SPARK_PULL:.0f}"),
            ("cores that audit its ledgers as fast as they grow", f"2,000,000 rows / {AUDIT_ROWS:,.0f}", _audit()),
        ]


def _audit() -> str:
    return f"{2 * MILLION / AUDIT_ROWS:.1f}"


def plan(found: Sequence[Work]) -> Plan:
    """Return the plan for the blocking face over AMQP."""
    wanted = [work for work in found if "amqp" in work.title and "blocking" in work.title]
    return Plan(sum(work.client for work in wanted), sum(work.broker for work in wanted))


def check_table(found: Sequence[Work]) -> str:
    """Return the costs, and the model beside what was measured."""
    numbers = sorted({number for work in found for number in work.rates})
    head = "| work | c, µs | b, µs | " + " | ".join(f"{number} proc." for number in numbers) + " |\n"
    lines = [head + "|---|" + "--:|" * (len(numbers) + 2)]
    for work in found:
        cells = (f"{work.predict(number):,.0f} / {work.rates[number]:,.0f}" for number in numbers)
        lines.append(f"| {work.title} | {work.client:.1f} | {work.broker:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def bytes_table(lines: Mapping[str, tuple[float, float]]) -> str:
    """Return the cost of a message by the size of its body."""
    made = ["| work | a, µs | k, µs a KB | 100 KB, MB/s of one core |\n|---|--:|--:|--:|"]
    for title, (start, slope) in lines.items():
        cost = start + 100 * slope
        made.append(f"| {title} | {start:.1f} | {slope:.3f} | {100_000 / cost:,.0f} |")
    return "\n".join(made)


def plan_table(chosen: Plan) -> str:
    """Return the example."""
    lines = (f"| {part} | {formula} | {number} |" for part, formula, number in chosen.rows())
    return "\n".join(["| part | formula | number |\n|---|---|--:|", *lines])


def charts(found: Sequence[Work]) -> str:
    """Return the picture: what was measured beside the model, and how a machine of clients grows."""
    numbers = sorted({number for work in found for number in work.rates})
    chosen = [work for work in found if "blocking" in work.title]
    measured = {f"{work.title}, measured": [work.rates.get(n) for n in numbers] for work in chosen}
    model = {f"{work.title}, model": [work.predict(n) for n in numbers] for work in chosen}
    cores = (1, 2, 4, 8, 16, 32, 64)
    machine = {work.title: [n * MILLION / work.client / MILLION for n in cores] for work in chosen}
    brokers = (1, 2, 4, 8, 16)
    capacity = BROKER_CORES * BROKER_LOAD / plan(found).broker
    return draw(
        [
            Panel(
                "messages a second by processes, beside the broker", [str(n) for n in numbers], {**measured, **model}
            ),
            Panel("million messages a second by cores for clients", [str(n) for n in cores], machine),
            Panel(
                f"million messages a second by brokers with {BROKER_CORES} cores, half used",
                [str(n) for n in brokers],
                {"sent and received, amqp": [n * capacity for n in brokers]},
            ),
        ],
        f"From python -m benchmarks growth, {found[0].cores} cores, bodies of 1 KB",
    )


def write(growth: Mapping[str, Any], page: Path, picture: Path) -> None:
    """Replace the tables in the page, and the picture."""
    found = works(growth)
    tables = {
        "machine": _machine(growth["machine"]),
        "check": check_table(found),
        "bytes": bytes_table(per_byte(growth)),
        "plan": plan_table(plan(found)),
    }
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        area = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text = area.sub(lambda match, table=table: f"{match[1]}\n{table}\n{match[2]}", text)  # type: ignore[misc]
    page.write_text(text, encoding="utf-8")
    picture.write_text(charts(found), encoding="utf-8")


def _machine(about: Mapping[str, Any]) -> str:
    busy = ". The machine was busy, so take the ratios and not the rates" if about["load"] > about["cores"] / 2 else ""
    return f"{about['cores']} cores that clients and broker share, load {about['load']:.1f} at the start{busy}."


def main(path: str) -> None:
    """Write the page and the picture from a file."""
    write(json.loads(Path(path).read_text(encoding="utf-8")), DOCS / "sizing.md", DOCS / "sizing.svg")
    click.echo(f"wrote {DOCS / 'sizing.md'} and {DOCS / 'sizing.svg'}")


if __name__ == "__main__":
    main(sys.argv[1])
