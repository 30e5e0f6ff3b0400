"""``pyjmsack send``: sends a stream of messages without waiting for each confirmation."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import click

from pyjmsack import AckMode, DeliveryMode, MessageProducer
from pyjmsack.cli.options import Login, connection_options, destination_of, ledger_option
from pyjmsack.cli.send_input import FORMATS, read_items
from pyjmsack.cli.send_job import SendJob
from pyjmsack.cli.stopping import stop_on_signals
from pyjmsack.cli.terminal import counting
from pyjmsack.cli.values import Value, parse_properties

__all__ = ["send"]


@click.command()
@click.argument("destination")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True, path_type=Path))
@connection_options
@ledger_option
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), default="lines", show_default=True)
@click.option("--bytes", "as_bytes", is_flag=True, help="Send bytes messages instead of text.")
@click.option("--topic", is_flag=True, help="DESTINATION is a topic.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    callback=parse_properties,
    metavar="NAME[:TYPE]=VALUE",
    help="A property of every message, such as amount:int=5; repeatable.",
)
@click.option("--priority", type=click.IntRange(0, 9), help="0 (lowest) to 9; 4 unless given.")
@click.option("--ttl", type=click.FloatRange(min=0), metavar="SECONDS", help="Messages expire after this time.")
@click.option("--delay", type=click.FloatRange(min=0), metavar="SECONDS", help="The broker delivers after this time.")
@click.option("--non-persistent", is_flag=True, help="Faster; a restart of the broker loses the messages.")
@click.option("--transaction", type=click.IntRange(min=1), metavar="N", help="Commit after every N messages.")
@click.option("--count", type=click.IntRange(min=0), metavar="N", help="Stop after N messages.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def send(
    destination: str,
    files: tuple[Path, ...],
    login: Login,
    format_name: str,
    as_bytes: bool,
    topic: bool,
    properties: dict[str, Value],
    transaction: int | None,
    count: int | None,
    as_json: bool,
    **defaults: Any,
) -> None:
    """Send lines, JSON objects or files to DESTINATION, one message each.

    The command reads the FILEs, or standard input line by line as the lines arrive. The bytes of a file are not
    changed. A line is sent without its line end.

    \b
    pyjmsack send orders orders.txt
    tail -F app.log | pyjmsack send logs --property host=web1
    pyjmsack send --format jsonl orders <<< '{"body": "hi", "priority": 7, "properties": {"amount": 5}}'
    pyjmsack send --format jsonl orders <<< '{"body_map": {"name": "bolt", "count": {"short": 10}}}'
    """
    mode = AckMode.SESSION_TRANSACTED if transaction else AckMode.AUTO_ACKNOWLEDGE
    with stop_on_signals() as stop, counting("Sending", count) as show:
        factory = login.factory()
        job = SendJob(stop, show, properties, transaction, factory._url.connection.send_timeout)
        items = islice(read_items(format_name, files, as_bytes, stop), count)
        with factory.create_connection() as connection, connection.create_session(mode) as session:
            connection.exception_listener = job.on_connection_error
            with session.create_producer(destination_of(destination, topic)) as producer:
                _set_defaults(producer, **defaults)
                job.run(session, producer, items)
    job.report(as_json)
    stop.check()


def _set_defaults(
    producer: MessageProducer, priority: int | None, ttl: float | None, delay: float | None, non_persistent: bool
) -> None:
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT if non_persistent else DeliveryMode.PERSISTENT
    if priority is not None:
        producer.priority = priority
    producer.time_to_live = ttl or 0
    producer.delivery_delay = delay or 0
