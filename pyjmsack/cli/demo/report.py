"""The output of the demo: a table for people, which fills while the rows run, and one JSON document for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pyjmsack.cli.demo.job import Result
from pyjmsack.cli.demo.running import Run
from pyjmsack.cli.demo.source import Source
from pyjmsack.cli.terminal import stderr_console, stdout_console

__all__ = ["as_document", "as_table", "verdict", "watching"]

_HEADINGS = ("confirmed", "received", "again", "lost")
_LEFT_OUT = "Left out: the rows in which the broker is killed, because the demo kills only a broker that it started."
_LOOKS_PER_SECOND = 4


@contextmanager
def watching(runs: Sequence[Run], source: Source, broker: str) -> Iterator[None]:
    """Show the table while it fills if standard error is a terminal; standard output gets the finished table."""
    console = stdout_console() if sys.stdout.isatty() else stderr_console()
    if not console.is_terminal:
        yield
        return
    with Live(
        console=console,
        get_renderable=lambda: as_table(runs, source, broker),
        refresh_per_second=_LOOKS_PER_SECOND,
        transient=not sys.stdout.isatty(),
    ):
        yield


def as_table(runs: Sequence[Run], source: Source, broker: str) -> Table:
    """Return the table as it is now. The table fits on a terminal of 80 columns."""
    title = f"{len(source.lines):,} lines of {len(source.names):,} files through {broker}"
    table = Table(
        title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_justify="left", show_edge=False
    )
    table.add_column("acknowledge mode", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("SHA-256", no_wrap=True)
    for run in runs:
        table.add_row(*_cells(run), style=_style(run))
    return table


def _cells(run: Run) -> tuple[str, ...]:
    name = (f"{run.row.mode.value:>3}  {run.row.label}", run.protocol)
    if run.result is None:
        return (*name, *((f"{run.job.confirmed:,}", f"{run.job.ledger.received:,}") if run.running else ()))
    result = run.result
    numbers = (result.confirmed, result.received, result.redelivered, result.lost)
    return (*name, *(f"{number:,}" for number in numbers), "[green]equal[/]" if result.ok else "FAILED")


def _style(run: Run) -> str | None:
    if run.result is None:
        return "yellow" if run.running else "dim"
    return None if run.result.ok else "red"


def verdict(results: Sequence[Result], source: Source) -> list[Text]:
    """Return the text about the result: that nothing was lost, or which rows failed."""
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
    text += f" The broker was killed under {len(deadly)} rows, and nothing that was processed came again."
    return [Text(text, style="green")]


def as_document(results: Sequence[Result], source: Source, broker: str) -> dict[str, Any]:
    """Return the results as one JSON document, for scripts."""
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
