"""``pyjmsack check queue``: prints one line and sets an exit code, as Nagios and container probes expect."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import click

from pyjmsack import JMSException, Queue, UnsupportedFeatureException
from pyjmsack.cli.errors import Failure, about_file, explain
from pyjmsack.cli.managing import duration, jolokia_option, json_option, opened_manager, print_json
from pyjmsack.cli.options import Login, connection_options
from pyjmsack.cli.terminal import visible
from pyjmsack.management import Manager, QueueStatus

__all__ = ["check"]

_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_CRITICAL, _UNKNOWN = 2, 3


@dataclass
class _Verdict:
    """The state of a queue: the worst of all findings."""

    level: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, level: int, reason: str) -> None:
        """Add a finding: its level (an exit code) and its reason."""
        self.level = max(self.level, level)
        self.reasons.append(reason)

    def limit(self, what: str, value: float, critical: float | None, warning: float | None) -> None:
        """Add a finding if a value exceeds one of its limits.

        Args:
            what: a sentence about the value, with ``{}`` for the value.
            value: the value.
            critical: the value above which the verdict is critical.
            warning: the value above which the verdict is a warning.
        """
        if critical is not None and value > critical:
            self.add(_CRITICAL, f"{what.format(_number(value))}, the limit is {_number(critical)}")
        elif warning is not None and value > warning:
            self.add(1, f"{what.format(_number(value))}, the limit of the warning is {_number(warning)}")


def _number(value: float) -> str:
    """Return a number as text: with at most one decimal place, or below 1 with two significant digits."""
    return f"{value:.2g}" if 0 < value < 1 else f"{value:,.1f}".removesuffix(".0")


@click.group()
def check() -> None:
    """Compare a queue with limits: exit code 0 OK, 1 warning, 2 critical, 3 unknown.

    \b
    pyjmsack check queue orders --max-depth 1000 --max-age 10m --min-consumers 1
    """


class _Probe(click.Command):
    """A command that ends with exit code 3 (unknown) if it fails, because Nagios reads 1 and 2 as verdicts."""

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """Read the options. End with exit code 3 if an option is wrong."""
        with _unknown():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. End with exit code 3 if the command fails."""
        with _unknown():
            return super().invoke(ctx)


@contextmanager
def _unknown() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        error.show()
        raise click.exceptions.Exit(_UNKNOWN) from error
    except OSError as error:
        Failure(about_file(error)).show()
        raise click.exceptions.Exit(_UNKNOWN) from error


@check.command(cls=_Probe)
@click.argument("name")
@connection_options
@jolokia_option
@click.option("--max-depth", type=click.IntRange(min=0), metavar="N", help="Critical above N messages.")
@click.option("--warn-depth", type=click.IntRange(min=0), metavar="N", help="A warning above N messages.")
@click.option("--max-age", type=duration, metavar="TIME", help="Critical if the first message is older, such as 10m.")
@click.option("--warn-age", type=duration, metavar="TIME", help="A warning if the first message is older.")
@click.option("--min-consumers", type=click.IntRange(min=0), metavar="N", help="Critical below N consumers.")
@json_option
def queue(
    name: str,
    login: Login,
    jolokia: str | None,
    max_depth: int | None,
    warn_depth: int | None,
    max_age: float | None,
    warn_age: float | None,
    min_consumers: int | None,
    as_json: bool,
) -> None:
    """Check the queue NAME and print its state in one line.

    \b
    pyjmsack check queue orders --max-depth 1000 --warn-depth 500
    pyjmsack check queue orders --max-age 10m --min-consumers 1 || page-somebody

    A paused queue is a warning. The state is unknown (exit code 3) if there is no such queue, if the broker does not
    answer, or if --max-age or --warn-age is given and the first message has no time stamp.
    """
    verdict, status, age, hidden = _Verdict(), None, None, False
    try:
        with opened_manager(login, jolokia) as manager:
            status = manager.queue(name)
            if max_age is not None or warn_age is not None:
                age = _age(manager, login, name)
                hidden = age is None and _has_waiting(manager.queue(name))
    except JMSException as error:
        verdict.add(_UNKNOWN, explain(error))
    if status is not None:
        _judge(verdict, status, min_consumers)
        verdict.limit("{} messages", status.messages, max_depth, warn_depth)
        verdict.limit("the first message is {} s old", age or 0, max_age, warn_age)
        if hidden and verdict.level < _CRITICAL:
            verdict.add(_UNKNOWN, "the age of the first message is not known, because it has no time stamp")
    _say(verdict, name, status, age, as_json)
    sys.exit(verdict.level)


def _has_waiting(status: QueueStatus) -> bool:
    """Return whether messages wait in the queue for a consumer. If no message waits, there is no age to check.

    A message that a consumer holds, and a delayed message, do not wait for a consumer.
    """
    return status.messages - (status.delivering or 0) - (status.scheduled or 0) > 0


def _judge(verdict: _Verdict, status: QueueStatus, min_consumers: int | None) -> None:
    if status.paused:
        verdict.add(1, "paused")
    if min_consumers is not None and status.consumers < min_consumers:
        verdict.add(_CRITICAL, f"{status.consumers} consumers, expected {min_consumers} at least")


def _say(verdict: _Verdict, name: str, status: QueueStatus | None, age: float | None, as_json: bool) -> None:
    word = _WORDS[verdict.level]
    if as_json:
        print_json({"status": word, "queue": name, "reasons": verdict.reasons, "found": status, "age": age})
        return
    line = f"{word} - queue {name}: " + ("; ".join(verdict.reasons) or "within its limits")
    if status is not None:  # Nagios draws charts of the values after the character |
        line += f" | messages={status.messages} consumers={status.consumers}"
        line += "" if age is None else f" age={age:.0f}s"
    click.echo(visible(" ".join(line.split())))


def _age(manager: Manager, login: Login, name: str) -> float | None:
    """Return the age of the first message in seconds.

    If the broker does not say the age, this function takes the time stamp of the first message that a browser shows.
    Return ``None`` if the queue is empty, or if the message has no time stamp.
    """
    try:
        return manager.oldest(name)
    except UnsupportedFeatureException:
        pass  # ActiveMQ Classic does not say the age
    with login.factory().create_connection() as connection, connection.create_session() as session:
        connection.exception_listener = lambda error: None  # the browser raises the same error
        connection.start()
        with session.create_browser(Queue(name)) as browser:
            first = next(iter(browser), None)
    if first is None or first.timestamp is None:
        return None
    return max(0.0, (datetime.now(timezone.utc) - first.timestamp).total_seconds())
