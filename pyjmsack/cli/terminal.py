"""The output for a person: consoles, progress, and texts of senders with their control characters made harmless."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = [
    "Counter",
    "amount",
    "counting",
    "escaped",
    "own_program",
    "printable",
    "stderr_console",
    "stdout_console",
    "table_width",
    "visible",
    "visible_json",
]

TABLE_WIDTH = 132
_SHOW_SECONDS = 0.1
Counter = Callable[[int, str], None]
"""A function that shows a count. It is called with the total so far and a remark."""


def own_program() -> str:
    """Return the command that started this program, so that a person can copy an example: ``pyjmsack``, or its path."""
    return shlex.quote(sys.argv[0]) if Path(sys.argv[0]).name == "pyjmsack" else "pyjmsack"


def stdout_console() -> Console:
    """Return a console for results. If the output is a file, the console has a fixed width, which is more than 80."""
    return Console(width=table_width(sys.stdout.isatty()))


def stderr_console() -> Console:
    """Return a console for remarks and progress."""
    return Console(stderr=True, highlight=False)


def table_width(terminal: bool) -> int | None:
    """Return the width of a table; ``None`` is the width of the terminal."""
    return None if terminal else TABLE_WIDTH


def amount(number: int, noun: str = "message") -> str:
    """Return a number of things in words: 1 message, 1,200 messages."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str, limit: int) -> str:
    """Return the start of a text without control characters, because they could take over the terminal."""
    clean = "".join(c if c.isprintable() else "·" for c in text[: limit + 1].replace("\t", " ").rstrip("\r\n"))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def visible(text: str) -> str:
    """Return a text of any length with its control characters escaped, except line ends and tabs."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else _shown(c) for c in text)


def visible_json(document: str) -> str:
    """Return the document with all control characters escaped, including those that JSON allows without an escape."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in document)


def escaped(error: UnicodeError) -> tuple[str, int]:
    """Return the characters that an encoding does not have as escapes of JSON. This is an error handler of
    :mod:`codecs`. The handler ``backslashreplace`` of Python writes ``\\xe9`` and ``\\U0001f600``, which are errors in
    JSON.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode()


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Counter]:
    """Show a running count on standard error, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield _show_nothing
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *((BarColumn(), MofNCompleteColumn()) if total else (TextColumn("{task.completed:,.0f}"),)),
        TextColumn("{task.fields[remark]}", style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr_console(), transient=True, refresh_per_second=8) as progress:
        task = progress.add_task(what, total=total, remark="")

        def show(count: int, remark: str) -> None:
            progress.update(task, completed=count, remark=remark)

        yield _Throttled(show)


def _show_nothing(count: int, remark: str) -> None:
    """Do nothing, because standard error is not a terminal."""


class _Throttled:
    """Shows the progress only now and then, because showing it takes longer than handling a message."""

    def __init__(self, show: Counter) -> None:
        self._show = show
        self._next = 0.0

    def __call__(self, count: int, remark: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SHOW_SECONDS
            self._show(count, remark)
