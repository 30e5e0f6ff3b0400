"""``pyjmsack browse``: shows the messages of a queue and takes none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

import click
from rich.table import Table
from rich.text import Text

from pyjmsack import BytesMessage, Message, Queue
from pyjmsack.cli.existing import check_queue
from pyjmsack.cli.managing import jolokia_option, remark
from pyjmsack.cli.options import Login, connection_options, selector_option
from pyjmsack.cli.receive_output import as_document, body_text
from pyjmsack.cli.terminal import amount, printable, stdout_console, visible_json
from pyjmsack.cli.values import readable_properties, text_of
from pyjmsack.cli.whole import Whole

__all__ = ["browse"]

_TABLE_LIMIT = 100
_BODY = 200


@click.command()
@click.argument("queue")
@connection_options
@jolokia_option
@selector_option
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help=f"At most N messages; {_TABLE_LIMIT} in a table."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, like `receive --format jsonl`.")
def browse(
    queue: str, login: Login, jolokia: str | None, selector: str | None, limit: int | None, as_json: bool
) -> None:
    """Show the messages of QUEUE without taking them.

    \b
    pyjmsack browse orders --selector "region = 'EU'"
    pyjmsack browse orders --limit 5 --json
    """
    with login.factory().create_connection() as connection, connection.create_session() as session:
        connection.exception_listener = lambda error: None  # the browser raises the same error
        checked = check_queue(connection, login, jolokia, queue)
        connection.start()
        whole = Whole(connection, queue, selected=selector is not None, messages=checked.messages)
        most = limit if as_json else limit or _TABLE_LIMIT
        with session.create_browser(Queue(queue), selector) as browser:
            seen = _print(islice(browser, most)) if most is None or as_json else _show(queue, browser, most)
        checked.warn_if_empty(seen)
        if seen != most and (doubt := whole.doubt(seen)) is not None:
            remark(f"{doubt}.")
        if seen != most and (missed := checked.out_of_sight()) is not None:
            remark(f"{missed.why}.")


def _print(messages: Iterable[Message]) -> int:
    seen = 0
    for seen, message in enumerate(messages, 1):  # noqa: B007 - the last number is returned
        click.echo(visible_json(json.dumps(as_document(message), ensure_ascii=False)))
    return seen


def _show(queue: str, messages: Iterable[Message], limit: int) -> int:
    looking = iter(messages)
    rows = list(islice(looking, limit))
    more = next(looking, None) is not None
    table = Table()
    table.add_column("#", justify="right")
    table.add_column("sent (UTC)", no_wrap=True)
    table.add_column("type", no_wrap=True)
    table.add_column("prio", justify="right")
    table.add_column("redelivered", justify="right")
    table.add_column("properties", ratio=2, overflow="fold")
    table.add_column("body", ratio=3, overflow="fold")
    for number, message in enumerate(rows, 1):
        table.add_row(str(number), *_cells(message))
    click.echo(f"{printable(queue, _BODY)}: {_count(len(rows), more)}")
    if rows:
        stdout_console().print(table)
    return len(rows)


def _count(shown: int, more: bool) -> str:
    return f"the first {shown} messages; --limit N or --json shows more" if more else amount(shown)


def _cells(message: Message) -> tuple[Text, ...]:
    sent = message.timestamp
    readable, unreadable = readable_properties(message)
    properties = ", ".join(f"{name}={text_of(message, name)}" for name in readable) or unreadable or ""
    cells = (
        f"{sent:%Y-%m-%d %H:%M:%S}" if sent else "",
        printable(message.type or "", 20),
        str(message.priority),
        str(message.delivery_count - 1),
        printable(properties, _BODY),
        _body(message),
    )
    return tuple(Text(cell) for cell in cells)


def _body(message: Message) -> str:
    if isinstance(message, BytesMessage):
        start = message.data[:_BODY].decode("latin-1")
        return f"{message.body_length:,} bytes: {printable(start, 60)}"
    text = body_text(message)
    return printable(text if isinstance(text, str) else text[:_BODY].decode("latin-1"), _BODY)
