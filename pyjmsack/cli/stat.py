"""``pyjmsack stat``, ``consumers`` and ``connections``: show the present state of the broker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import datetime, timezone
from functools import partial
from typing import Any

import click

from pyjmsack import Queue
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.managing import (
    by_broker,
    jolokia_option,
    json_option,
    opened_manager,
    pause_between_looks,
    print_json,
    print_table,
    remark,
)
from pyjmsack.cli.options import Login, connection_options
from pyjmsack.cli.stopping import stop_on_signals
from pyjmsack.cli.terminal import visible
from pyjmsack.management import Manager, QueueStatus

__all__ = ["connections", "consumers", "stat"]

_HEADINGS = ("queue", "state", "messages", "delivering", "scheduled", "consumers", "added", "acknowledged")
_METRICS = {
    "messages": ("gauge", "Messages in the queue, with those that consumers hold."),
    "delivering": ("gauge", "Messages sent to consumers and not acknowledged."),
    "scheduled": ("gauge", "Delayed messages that are not due."),
    "consumers": ("gauge", "Consumers of the queue."),
    "added": ("counter", "Messages that came since the broker started."),
    "acknowledged": ("counter", "Messages acknowledged since the broker started."),
    "expired": ("counter", "Messages expired since the broker started."),
    "killed": ("counter", "Messages given up since the broker started."),
}
_SORTS = ("name", *_METRICS)
_BROWSED = (
    "Counted by browsing: Artemis leaves out messages that consumers hold, ActiveMQ Classic may show the first 400 "
    "only, and a queue that does not exist counts as empty."
)
_Row = dict[str, Any]
"""The fields of a :class:`pyjmsack.management.QueueStatus`. ``None`` means that the number is not known."""


@click.command()
@click.argument("pattern", default="*", metavar="[GLOB]")
@connection_options
@jolokia_option
@click.option(
    "--watch", type=pause_between_looks, metavar="SECONDS", help="Ask again and again, with this pause, until Ctrl-C."
)
@click.option("--sort", type=click.Choice(_SORTS), default="name", show_default=True, help="Largest first.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "json", "prometheus"]),
    default="table",
    show_default=True,
    help="prometheus is the text format that Prometheus reads.",
)
@click.option("--json", "as_json", is_flag=True, help="Like --format json: one document, with --watch one per line.")
def stat(
    pattern: str,
    login: Login,
    jolokia: str | None,
    watch: float | None,
    sort: str,
    format_name: str,
    as_json: bool,
) -> None:
    """Show the queues whose names fit GLOB: messages, consumers, counters.

    \b
    pyjmsack stat
    pyjmsack stat 'orders.*' --watch 2 --sort messages
    pyjmsack stat --format prometheus > /var/lib/node_exporter/textfile/queues.prom

    Artemis answers over --url; the user needs the permission `manage`. ActiveMQ Classic answers through --jolokia.
    Without the permission, or without --jolokia, give the whole name of one queue. Its messages are then counted by
    browsing.
    """
    show = _FORMATS["json" if as_json else format_name]
    with stop_on_signals() as stop:

        def shown(queues: Callable[[str], list[_Row]]) -> bool:
            while True:
                show(sorted(queues(pattern), key=_order(sort)))
                if watch is None:
                    return True
                stop.wait(watch)
                if stop.requested:
                    return True

        def managed(manager: Manager) -> bool:
            return shown(partial(_listed, manager, may_be_missing=watch is not None))

        if by_broker(login, jolokia, "Without management", managed) is None:
            remark(_BROWSED)
            shown(partial(_counted, login))


def _order(sort: str) -> Callable[[_Row], tuple[int, str]]:
    return lambda row: (0 if sort == "name" else -(row[sort] or 0), row["name"])


def _is_pattern(name: str) -> bool:
    return bool(set(name) & set("*?["))


def _listed(manager: Manager, pattern: str, *, may_be_missing: bool) -> list[_Row]:
    """Ask the manager of the broker for the queues whose names fit ``pattern``.

    Raises:
        UnknownQueueError: the pattern is a whole name, the broker has no such queue, and ``may_be_missing`` is false.
    """
    found = manager.queues(pattern)
    if not found and not may_be_missing and not _is_pattern(pattern):
        found = [manager.queue(pattern)]  # raises an error with the nearest names, unless the queue was just created
    return [asdict(each) for each in found]


def _counted(login: Login, name: str) -> list[_Row]:
    """Count the messages of a queue by browsing, because this broker offers no other way. The other numbers of the
    queue stay unknown.

    Raises:
        Failure: the name is a pattern, and only a manager of the broker could list the queues whose names fit.
    """
    if _is_pattern(name):
        raise Failure(
            "only a user who may manage the broker can list queues; "
            "give the whole name of one queue to count it by browsing"
        )
    with login.factory().create_connection() as connection, connection.create_session() as session:
        connection.exception_listener = lambda error: None  # the browser raises the same error
        connection.start()
        with session.create_browser(Queue(name)) as browser:
            number = sum(1 for _ in browser)
    return [{**dict.fromkeys(each.name for each in fields(QueueStatus)), "name": name, "messages": number}]


def _show_table(found: list[_Row]) -> None:
    print_table(_HEADINGS, map(_row, found), numbers=6)


def _row(each: _Row) -> tuple[object, ...]:
    state = "paused" if each["paused"] else "temporary" if each["temporary"] else ""
    return each["name"], state, *(each[counter] for counter in _HEADINGS[2:])


def _show_json(found: list[_Row]) -> None:
    print_json({"time": datetime.now(timezone.utc).isoformat(), "queues": found})


def _show_prometheus(found: list[_Row]) -> None:
    """Print the numbers of all queues that are not temporary.

    Temporary queues are left out, because each has a new name, and Prometheus would keep a series for each name. This
    command itself gets the answers of the broker on a temporary queue.
    """
    for name, (kind, text) in _METRICS.items():
        metric = f"pyjmsack_queue_{name}" + ("_total" if kind == "counter" else "")
        values = [(each["name"], each[name]) for each in found if not each["temporary"]]
        if known := [(queue, value) for queue, value in values if value is not None]:
            click.echo(f"# HELP {metric} {text}\n# TYPE {metric} {kind}")
            for queue, value in known:
                click.echo(f'{metric}{{queue="{_label(queue)}"}} {value}')


def _label(text: str) -> str:
    """Return a queue's name as the value of a label. Two queues must not have the same value, because Prometheus would
    then refuse all numbers.
    """
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return visible(escaped) if sys.stdout.isatty() else escaped


_FORMATS = {"table": _show_table, "json": _show_json, "prometheus": _show_prometheus}


@click.command()
@click.argument("queue", required=False)
@connection_options
@jolokia_option
@json_option
def consumers(queue: str | None, login: Login, jolokia: str | None, as_json: bool) -> None:
    """Show the consumers of QUEUE, or of all queues.

    \b
    pyjmsack consumers orders
    pyjmsack consumers --json
    """
    with opened_manager(login, jolokia) as manager:
        if queue is not None:
            manager.queue(queue)
        found = manager.consumers(queue)
    if as_json:
        print_json({"consumers": found})
        return
    rows = [(each.queue, each.client_id, each.address, each.selector, each.delivering) for each in found]
    print_table(("queue", "client id", "address", "selector", "holds"), rows, numbers=1)


@click.command()
@connection_options
@jolokia_option
@json_option
def connections(login: Login, jolokia: str | None, as_json: bool) -> None:
    """Show the connections of all clients.

    \b
    pyjmsack connections
    pyjmsack connections --json
    """
    with opened_manager(login, jolokia) as manager:
        found = manager.connections()
    if as_json:
        print_json({"connections": found})
        return
    rows = [(each.id, each.client_id, each.address, each.user, each.protocol, each.sessions) for each in found]
    print_table(("connection", "client id", "address", "user", "protocol", "sessions"), rows, numbers=1)
