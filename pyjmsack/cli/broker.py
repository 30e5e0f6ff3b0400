"""``pyjmsack broker``: a real Artemis in the foreground."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path

import click

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.logs import narrate_broker
from pyjmsack.cli.stopping import Stop, stop_on_signals, termination_as_interrupt

__all__ = ["broker"]

_LOOK_SECONDS = 0.5  # no portable descriptor tells of the end of the broker's process
_PORT = click.IntRange(0, 65535)


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep messages here over restarts; otherwise they end with the broker.",
)
@click.option("--amqp-port", type=_PORT, default=5672, show_default=True, help="0 chooses a free one.")
@click.option("--stomp-port", type=_PORT, default=61613, show_default=True, help="0 chooses a free one.")
@click.option("--json", "as_json", is_flag=True, help="Print the URLs as one line of JSON.")
def broker(data_dir: Path | None, amqp_port: int, stomp_port: int, as_json: bool) -> None:
    """Run a real ActiveMQ Artemis on this machine until Ctrl-C.

    The first run downloads it from Maven Central (about 60 MB, checked); it listens on 127.0.0.1 only and lets
    everybody in.
    """
    narrate_broker()
    artemis = EmbeddedArtemis(data_dir, amqp_port=amqp_port, stomp_port=stomp_port)
    try:
        click.echo("Starting Artemis …", err=True)
        with termination_as_interrupt():
            artemis.start()
        with stop_on_signals() as stop:
            _announce(artemis, data_dir, as_json)
            _watch(artemis, stop)
            click.echo("Stopping Artemis …", err=True)
    finally:
        artemis.stop()


def _announce(artemis: EmbeddedArtemis, data_dir: Path | None, as_json: bool) -> None:
    if as_json:
        click.echo(json_module.dumps({"amqp": artemis.amqp_url, "stomp": artemis.stomp_url, "pid": artemis.pid}))
    else:
        click.echo(f"AMQP   {artemis.amqp_url}\nSTOMP  {artemis.stomp_url}")
        click.echo(f"Data   {artemis.data_dir if data_dir else 'temporary, removed at the end'}")
        click.echo(f"Ready; Ctrl-C stops it. In another terminal: {_example(artemis)}")
    sys.stdout.flush()


def _example(artemis: EmbeddedArtemis) -> str:
    url = "" if artemis.amqp_url.endswith(":5672") else f" --url {artemis.amqp_url}"
    return f"echo hello | pyjmsack send{url} orders"


def _watch(artemis: EmbeddedArtemis, stop: Stop) -> None:
    """Wait for a signal.

    Raises:
        Failure: the broker ended by itself.
    """
    while not stop.requested:
        stop.wait(_LOOK_SECONDS)
        if not artemis.running and not stop.requested:
            last_words = artemis.log_path.read_text(errors="replace").strip().rpartition("\n")[2]
            raise Failure(f"the broker ended by itself; the end of its log: {last_words}")
