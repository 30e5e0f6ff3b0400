"""Shows the library's log to a user: each warning as one line, and everything with ``--debug``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pyjmsack.cli.terminal import visible
from pyjmsack.loggers import get_logger

__all__ = ["debugging", "narrate_broker", "quiet_about", "show_logs"]


class _StderrHandler(logging.Handler):
    """Writes each line through click, because click finds the standard error that is in use at this moment."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(visible(self.format(record)), err=True)


class _OneLine(logging.Formatter):
    """Formats a log record as ``warning: text``, without the traceback that the record may carry."""

    def format(self, record: logging.LogRecord) -> str:
        text = " ".join(record.getMessage().split())
        return text if record.levelno < logging.WARNING else f"{record.levelname.lower()}: {text}"


def show_logs(debug: bool) -> None:
    """Send the library's log to standard error."""
    handler = _StderrHandler()
    detailed = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(detailed if debug else _OneLine())
    log = get_logger("pyjmsack").logger
    log.handlers[:] = [handler]  # a process runs one command, except in tests
    log.setLevel(logging.DEBUG if debug else logging.WARNING)
    get_logger("pyjmsack.broker").logger.setLevel(logging.NOTSET)


def narrate_broker() -> None:
    """Show the log lines about the slow steps of the embedded broker, such as its download."""
    log = get_logger("pyjmsack.broker").logger
    log.setLevel(min(logging.INFO, log.getEffectiveLevel()))


def debugging(ctx: click.Context) -> bool:
    """Whether ``--debug`` was given."""
    return bool(ctx.find_root().obj)


@contextmanager
def quiet_about(kind: type[BaseException]) -> Iterator[None]:
    """Drop log records about exceptions of the class ``kind``, because the caller raises such exceptions on purpose."""

    def unexpected(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], kind))

    log = get_logger("pyjmsack").logger
    log.addFilter(unexpected)
    try:
        yield
    finally:
        log.removeFilter(unexpected)
