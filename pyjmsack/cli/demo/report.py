"""What the demo says: a table for people, one JSON document for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyjmsack.cli.demo.job import Result
from pyjmsack.cli.demo.source import Source

__all__ = ["as_document", "as_table"]

_NUMBERS = ("sent", "confirmed", "received", "redelivered", "lost", "messages/s")
_LEFT_OUT = "Left out: the rows in which the broker is killed and restarted, as this one is not the demo's own."


def as_table(results: Sequence[Result], source: Source, broker: str) -> RenderableType:
    """Return the table and the verdict below it."""
    table = Table(title=f"{len(source.lines):,} lines of {len(source.names):,} files through {broker}")
    table.add_column("acknowledge mode", no_wrap=True)
    table.add_column("face", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("SHA-256", justify="center", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result), style=None if result.ok else "red")
    return Group(table, *_verdict(results, source))


def _cells(result: Result) -> tuple[str, ...]:
    numbers = (result.sent, result.confirmed, result.received, result.redelivered, result.lost)
    return (
        f"{result.mode.value:>3}  {result.title}",
        result.face,
        result.protocol,
        *(f"{number:,}" for number in numbers),
        f"{result.rate:,.0f}",
        "equal" if result.ok else "FAILED",
    )


def _verdict(results: Sequence[Result], source: Source) -> list[Text]:
    failed = [result for result in results if not result.ok]
    if failed:
        return [
            Text(f"{r.mode.value} {r.title} ({r.face}, {r.protocol}): {'; '.join(r.problems)}", style="red")
            for r in failed
        ]

    text = (
        f"Nothing lost: in all {len(results)} rows the SHA-256 of each of the {len(source.names):,} files is that of "
        "the input. Every failed or rolled-back delivery came again, no rolled-back send appeared, each queue is empty."
    )
    deadly = [result for result in results if result.kills]
    if not deadly:
        return [Text(text, style="green"), Text(_LEFT_OUT)]
    kills = sum(result.kills for result in deadly)
    text += f" The broker was killed {kills} times in {len(deadly)} rows, and nothing that was processed came again."
    return [Text(text, style="green")]


def as_document(results: Sequence[Result], source: Source, broker: str) -> dict[str, Any]:
    """Return the same for scripts."""
    return {
        "broker": broker,
        "files": len(source.names),
        "lines": len(source.lines),
        "ok": all(result.ok for result in results),
        "rows": [_row(result) for result in results],
        "left_out": [] if any(result.kills for result in results) else [_LEFT_OUT],
    }


def _row(result: Result) -> dict[str, Any]:
    return {
        "mode": result.mode.value,
        "name": result.mode.name,
        "title": result.title,
        "face": result.face,
        "protocol": result.protocol,
        "sent": result.sent,
        "confirmed": result.confirmed,
        "received": result.received,
        "redelivered": result.redelivered,
        "lost": result.lost,
        "kills": result.kills,
        "messages_per_second": round(result.rate),
        "ok": result.ok,
        "problems": list(result.problems),
    }
