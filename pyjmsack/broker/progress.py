"""Shows the download to a user: a bar on a terminal, one log line elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

__all__ = ["ProgressFactory", "default_progress"]

ProgressFactory = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""A function that gets the name of a file and its size in bytes, and returns a context manager. The context manager
yields a function, which gets the number of bytes of each piece that arrives."""

_log = logging.getLogger("pyjmsack.broker")


def default_progress(name: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Show the download of a file: with a bar if standard error is a terminal, otherwise with one line in the log."""
    return _bar(name, total) if sys.stderr.isatty() else _line(name, total)


@contextlib.contextmanager
def _line(name: str, total: int) -> Iterator[Callable[[int], None]]:
    _log.info("downloading %s (%.0f MB)", name, total / 1e6)
    yield lambda count: None


@contextlib.contextmanager
def _bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"Downloading {name}", total=total)
        yield lambda count: progress.update(task, advance=count)
