"""``pyjmsack doctor``: checks whether this machine reaches a broker, and lists the broker's features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import islice
from time import perf_counter

import click
from rich.table import Table
from rich.text import Text

from pyjmsack import Connection, JMSException, Queue
from pyjmsack.cli.errors import Failure, explain
from pyjmsack.cli.options import Login, connection_options
from pyjmsack.cli.probing import members, wrong_port
from pyjmsack.cli.terminal import amount, stdout_console, visible, visible_json

__all__ = ["doctor"]

_PREFETCH_UNITS: Mapping[tuple[str, str], str] = {
    ("stomp", "artemis"): "bytes: prefetch x consumer.expectedMessageSize",
}
"""The unit of the prefetch by protocol and broker. For all other pairs the unit is the message (S52)."""
_MARKS = {"native": "[green]yes[/]", "emulated": "[yellow]emulated[/]", "refused": "[red]no[/]"}
_MIX_UPS = (
    "possible when a client loses its connection: Artemis 2.7 to 2.56 then mixes up messages over AMQP; see "
    "amqp.singleCredit in docs/failover.md"
)
_LOOKED_AT = 1000
"""The largest number of messages that the doctor counts in a queue."""


@click.command()
@connection_options
@click.option("--queue", metavar="NAME", help="Also look into this queue; nothing is taken.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(login: Login, queue: str | None, as_json: bool) -> None:
    """Connect, name the broker, and list the features that it has and does not have over this protocol.

    For a failover URL, each broker is checked, one after the other. The exit code is 1 if a connection fails or the
    queue cannot be read; the error text says what to do.
    """
    urls = members(login.url)
    failures: list[JMSException | Failure] = []
    for url in urls:
        try:
            _examine(replace(login, url=url), queue, as_json)
        except (JMSException, Failure) as error:
            if len(urls) == 1:
                raise
            failures.append(error)
            click.echo(f"{explain(error)}", err=True)
    if failures:
        raise Failure(f"{len(failures)} of {len(urls)} brokers cannot be used")


def _examine(login: Login, queue: str | None, as_json: bool) -> None:
    """Connect to one broker and print its name and features.

    Raises:
        Failure: the port of the broker speaks another protocol.
        JMSException: the connection fails, or the queue cannot be browsed.
    """
    factory = login.factory()  # first, because the URL may be wrong
    wrong_protocol = wrong_port(str(factory._url))  # this URL has no login, which may have any characters
    if wrong_protocol is not None:
        raise Failure(wrong_protocol)
    began = perf_counter()
    with factory.create_connection() as connection:
        seconds = perf_counter() - began
        # the call that fails raises the error that this listener would get
        connection.exception_listener = lambda error: None
        facts = _facts(connection, login, seconds)
        wrong = None
        if queue is not None:
            facts["queue"], wrong = _look(connection, queue)
        if as_json:
            click.echo(visible_json(json.dumps(facts | {"features": _features(connection)}, ensure_ascii=False)))
        else:
            _show(connection, facts)
    if wrong is not None:
        raise wrong


def _facts(connection: Connection, login: Login, seconds: float) -> dict[str, object]:
    metadata = connection.metadata
    protocol = metadata.protocol.partition(" ")[0].lower()
    facts: dict[str, object] = {
        "broker": visible(f"{metadata.broker_name} {metadata.broker_version}"),
        "treated as": metadata.broker,
        "protocol": metadata.protocol,
        "encrypted": "yes (TLS)" if metadata.encrypted else "no",
        "login": login.user or "anonymous, or as the URL says",
        "connected in": f"{seconds * 1000:.0f} ms",
        "prefetch unit": _PREFETCH_UNITS.get((protocol, metadata.broker), "messages"),
        "transactions": metadata.transaction_guarantee,
    }
    if protocol == "amqp" and metadata.broker == "artemis":
        facts["mix-ups"] = _MIX_UPS
    return facts


def _look(connection: Connection, queue: str) -> tuple[str, JMSException | None]:
    """Return the text about a queue, and the error if browsing failed."""
    try:
        connection.start()
        with connection.create_session() as session, session.create_browser(Queue(queue)) as browser:
            number = sum(1 for _ in islice(browser, _LOOKED_AT))
    except JMSException as error:
        return f"{queue}: {explain(error)}", error
    return f"{queue}: {'at least ' if number == _LOOKED_AT else ''}{amount(number)}", None


def _features(connection: Connection) -> dict[str, dict[str, str]]:
    return {name: asdict(support) for name, support in connection.capabilities.features.items()}


def _show(connection: Connection, facts: Mapping[str, object]) -> None:
    console = stdout_console()
    summary = Table(show_header=False, box=None)
    for name, value in facts.items():
        summary.add_row(Text(name, style="bold"), Text(str(value)))
    console.print(summary)
    table = Table(title="Features")
    table.add_column("feature", no_wrap=True)
    table.add_column("honoured", no_wrap=True)
    table.add_column("how, or why not", overflow="fold")
    for name, support in connection.capabilities.features.items():
        table.add_row(name, _MARKS[support.level.value], Text(support.note))
    console.print(table)
