"""The common parts of the commands for operators: the manager, the question before messages are destroyed, tables."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import click
from rich.table import Table
from rich.text import Text

from pyjmsack import UnsupportedFeatureException
from pyjmsack.cli.options import Command, Login
from pyjmsack.cli.terminal import stdout_console, visible, visible_json
from pyjmsack.management import ManagementDeniedError, Manager

__all__ = [
    "ask_before",
    "by_broker",
    "duration",
    "jolokia_of_environment",
    "jolokia_option",
    "json_option",
    "opened_manager",
    "pause_between_looks",
    "print_json",
    "print_table",
    "remark",
    "yes_option",
]

T = TypeVar("T")
_WHOLE = 10_000
"""A width in which every table has room."""
_JOLOKIA_VARIABLE = "PYJMSACK_JOLOKIA"
_SHORTEST_PAUSE = 0.01
_UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")


def duration(text: str) -> float:
    """Return the seconds of a duration that was given as an option: ``90``, ``90s``, ``10m``, ``2h``, ``1d``."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r}: expected a number with s, m, h or d, such as 10m")
    return float(found[1]) * _UNITS[found[2]]


def pause_between_looks(text: str) -> float:
    """Return the seconds of a pause that was given as an option. Without a pause a command would ask the broker all the
    time, and harm other users of the broker.
    """
    seconds = duration(text)
    if seconds < _SHORTEST_PAUSE:
        raise click.BadParameter(f"{text!r}: the shortest pause is {_SHORTEST_PAUSE * 1000:.0f}ms")
    return seconds


def jolokia_option(command: Command) -> Command:
    """Add ``--jolokia`` as the argument ``jolokia``. Without the option, the command takes the URL of Jolokia from the
    context, or from the environment variable if the context has no such URL. The context is not used if ``--url`` names
    another broker. The variable is used only if the URL of the broker comes from the environment too.

    This decorator stands below ``connection_options``.
    """

    @functools.wraps(command)
    def with_jolokia(*args: Any, login: Login, jolokia: str | None, **options: Any) -> Any:
        return command(*args, login=login, jolokia=jolokia or login.jolokia or jolokia_of_environment(login), **options)

    return click.option(
        "--jolokia",
        metavar="URL",
        help="URL of Jolokia, which manages ActiveMQ Classic, such as http://NAME:PASSWORD@HOST:8161/api/jolokia; or"
        f" {_JOLOKIA_VARIABLE}, if PYJMSACK_URL names the broker. Artemis is managed over --url.",
    )(with_jolokia)


def jolokia_of_environment(login: Login) -> str | None:
    """Return the URL of Jolokia from the environment. Return ``None`` if the URL of the broker comes from elsewhere,
    because the two URLs might belong to different brokers.
    """
    given = os.environ.get(_JOLOKIA_VARIABLE) or None
    if given is not None and not login.of_environment:
        remark(
            f"{_JOLOKIA_VARIABLE} is not used, because --url or a context names the broker: give --jolokia, or a"
            " jolokia-env in the context."
        )
        return None
    return given


def json_option(command: Command) -> Command:
    """Add ``--json`` as the argument ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document for scripts.")(command)


def yes_option(command: Command) -> Command:
    """Add ``--yes`` as the argument ``yes``."""
    return click.option("--yes", is_flag=True, help="Do not ask first; a script needs this option.")(command)


@contextmanager
def opened_manager(login: Login, jolokia: str | None) -> Iterator[Manager]:
    """Yield an open manager, which asks the broker about its queues and changes them.

    The connection of the manager has a client id of its own, because the connection of the command may have the client
    id from the URL, and a broker refuses a second connection with the same client id.
    """
    with Manager(login.factory(jms__clientID=f"ID:{uuid.uuid4()}"), jolokia=jolokia) as manager:
        yield manager


def by_broker(login: Login, jolokia: str | None, otherwise: str, work: Callable[[Manager], T]) -> T | None:
    """Let the broker do the work, if the broker can do it and the user may manage the broker.

    Args:
        login: how to connect.
        jolokia: URL of Jolokia, for ActiveMQ Classic.
        otherwise: the beginning of the remark for the user if this process has to do the work, such as ``Moved by this
            process``.
        work: does the work. Its result is never ``None``.

    Returns:
        The result of ``work``. ``None`` means that the broker did nothing, and the caller does the work in this
        process.

    Raises:
        JMSException: the login itself is refused, or the work failed.
    """
    try:
        with opened_manager(login, jolokia) as manager:
            return work(manager)
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        remark(f"{otherwise}, because {error}.")
        return None


def remark(text: str) -> None:
    """Print a line on standard error."""
    click.echo(visible(" ".join(text.split())), err=True)


def ask_before(question: str, yes: bool) -> None:
    """Ask the user whether messages may be destroyed. With ``yes`` do not ask.

    Raises:
        UsageError: there is no terminal at which to ask, and ``--yes`` is missing.
        Abort: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{visible(question)} There is no terminal to ask at, so give --yes.")
    click.confirm(visible(question), abort=True, err=True)


def print_json(document: Any) -> None:
    """Print one JSON document in one line."""
    click.echo(visible_json(json.dumps(document, ensure_ascii=False, default=asdict)))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int = 0) -> None:
    """Print a table. The last ``numbers`` columns contain numbers.

    If the terminal is too narrow, columns without content are left out, and a line below the table names them.
    Otherwise the first column would be one letter wide, because numbers are not wrapped.
    """
    console, rows = stdout_console(), list(rows)
    places = [*range(len(headings))]
    first_number = len(headings) - numbers
    table = _table(headings, rows, places, first_number)
    empty: list[int] = []
    if console.measure(table, options=console.options.update(max_width=_WHOLE)).maximum > console.width:
        empty = [place for place in places[1:] if not any(row[place] for row in rows)]
        table = _table(headings, rows, [place for place in places if place not in empty], first_number)
    console.print(table)
    if empty:
        names = ", ".join(headings[place] for place in empty)
        remark(f"No room for the columns in which all is 0, empty or unknown: {names}.")


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], places: Sequence[int], first_number: int
) -> Table:
    table = Table()
    for place in places:
        right = place >= first_number
        table.add_column(headings[place], justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row[place])) for place in places))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else visible(str(value))
