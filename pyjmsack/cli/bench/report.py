"""The figures of a run: a table and a chart for a person, one document for a script."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyjmsack.cli.bench.histogram import Histogram
from pyjmsack.cli.bench.plan import Plan
from pyjmsack.cli.bench.run import Result

__all__ = ["as_document", "as_report", "in_unit"]

_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_BARS = 14
_WIDTH = 40
"""The length of the longest bar, in characters."""
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def as_document(what: str, plan: Plan, queue: str, result: Result, left: list[str]) -> dict[str, Any]:
    """Return the figures for a script; times are in seconds."""
    return {
        "bench": what,
        "queue": queue,
        "clients": plan.clients,
        "size": plan.size,
        "rate": plan.rate,
        "persistent": plan.persistent,
        "messages": result.done,
        "unanswered": result.unanswered,
        "seconds": result.seconds,
        "messages_per_second": result.per_second,
        "bytes_per_second": result.bytes / result.seconds if result.seconds else 0.0,
        "latency_seconds": {name: result.times.percentile(share) for name, share in _SHARES.items()}
        | {"max": result.times.longest if result.done else None},
        "stopped": result.stopped,
        "error": None if result.error is None else " ".join(str(result.error).split()),
        "queues_left": left,
    }


def as_report(what: str, meaning: str, plan: Plan, result: Result) -> RenderableType:
    """Return the table and the chart. ``meaning`` says where each measured time begins and ends."""
    table = Table(title=f"{what}: {plan.clients} clients, {'' if plan.persistent else 'non-'}persistent")
    for heading in ("messages", "seconds", "messages/s", "MB/s", *_SHARES, "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    megabytes = result.bytes / result.seconds / 1e6 if result.seconds else 0.0
    times = [in_unit(result.times.percentile(share)) for share in _SHARES.values()]
    times.append(in_unit(result.times.longest if result.done else None))
    table.add_row(f"{result.done:,}", f"{result.seconds:.2f}", f"{result.per_second:,.0f}", f"{megabytes:.2f}", *times)
    parts: list[RenderableType] = [table]
    if result.done:
        parts += [Text(f"\n{meaning}; each bar is wider than the one before by the same factor"), _chart(result.times)]
    if result.unanswered:
        parts.append(Text(f"{result.unanswered:,} messages have no answer: the broker may or may not have them."))
    if result.stopped:
        parts.append(Text("Stopped: these are the figures so far."))
    return Group(*parts)


def _chart(times: Histogram) -> Table:
    bars = [*times.bars(_BARS)]
    most = max(count for _, count in bars)
    chart = Table.grid(padding=(0, 1))
    chart.add_column(justify="right", no_wrap=True)
    chart.add_column(no_wrap=True)
    chart.add_column(justify="right", no_wrap=True)
    for end, count in bars:
        length = max(1, round(count / most * _WIDTH)) if count else 0
        chart.add_row(f"up to {in_unit(end)}", Text("█" * length, style="cyan"), f"{count:,}")
    return chart


def in_unit(seconds: float | None) -> str:
    """Return a duration as text, in the unit that fits. Return ``-`` for ``None``."""
    if seconds is None:
        return "-"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}" if seconds / size < 1000 else f"{seconds / size:.0f} {unit}"
