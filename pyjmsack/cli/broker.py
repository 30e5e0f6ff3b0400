"""``pyjmsack broker``: a real broker in the foreground."""

from __future__ import annotations

import json as json_module
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.logs import narrate_broker
from pyjmsack.cli.stopping import Stop, stop_on_signals, termination_as_interrupt
from pyjmsack.cli.terminal import own_program

__all__ = ["broker"]

_LOOK_SECONDS = 0.5  # no portable file descriptor becomes readable when the broker's process ends
_PORT = click.IntRange(0, 65535)
_PORTS, _TLS_PORTS = (5672, 61613), (5671, 61614)


Embedded = EmbeddedArtemis | EmbeddedActiveMQ
_KINDS: dict[str, Callable[..., Embedded]] = {"artemis": EmbeddedArtemis, "activemq": EmbeddedActiveMQ}


@click.command()
@click.option(
    "--kind", type=click.Choice(list(_KINDS)), default="artemis", show_default=True, help="Artemis or Classic."
)
@click.option("--version", help="Version of the broker; by default the newest that pyjmsack knows.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep messages here over restarts; by default they are removed when the broker ends.",
)
@click.option("--amqp-port", type=_PORT, help="5672 by default, with TLS 5671; 0 chooses a free one.")
@click.option("--stomp-port", type=_PORT, help="61613 by default, with TLS 61614; 0 chooses a free one.")
@click.option("--tls", is_flag=True, help="Speak TLS on both ports, with a certificate that is made for the broker.")
@click.option("--mutual-tls", is_flag=True, help="Like --tls, and clients need a certificate; one is made.")
@click.option("--json", "as_json", is_flag=True, help="Print the URLs as one line of JSON.")
def broker(
    kind: str,
    version: str | None,
    data_dir: Path | None,
    amqp_port: int | None,
    stomp_port: int | None,
    tls: bool,
    mutual_tls: bool,
    as_json: bool,
) -> None:
    """Run a real ActiveMQ Artemis or ActiveMQ Classic on this machine until Ctrl-C.

    The first run downloads the broker from Maven Central (about 60 MB, Classic 17 MB) and checks the download. The
    broker listens on 127.0.0.1 only and needs no login.

    With TLS the printed URLs name the files that a client needs. The files are removed when the broker ends; with
    --data-dir they stay in the folder "tls" of this directory. TLS needs the extra pkcs12.
    """
    narrate_broker()
    chosen = {} if version is None else {"version": version}
    ports = _TLS_PORTS if tls or mutual_tls else _PORTS
    amqp_port, stomp_port = (
        usual if given is None else given for given, usual in zip((amqp_port, stomp_port), ports, strict=True)
    )
    wanted = "mutual" if mutual_tls else tls
    embedded = _KINDS[kind](data_dir, amqp_port=amqp_port, stomp_port=stomp_port, tls=wanted, **chosen)
    try:
        click.echo(f"Starting {kind.capitalize()} …", err=True)
        with termination_as_interrupt():
            embedded.start()
        with stop_on_signals() as stop:
            _announce(embedded, data_dir, as_json)
            _watch(embedded, stop)
            click.echo(f"Stopping {kind.capitalize()} …", err=True)
    finally:
        embedded.stop()


def _announce(embedded: Embedded, data_dir: Path | None, as_json: bool) -> None:
    files = {"trust": embedded.trust_path, "client_certificate": embedded.client_certificate_path}
    made = {name: str(file) for name, file in files.items() if file is not None}
    if as_json:
        urls = {"amqp": embedded.amqp_url, "stomp": embedded.stomp_url}
        click.echo(json_module.dumps({**urls, **made, "pid": embedded.pid}))
    else:
        click.echo(f"AMQP   {embedded.amqp_url}\nSTOMP  {embedded.stomp_url}")
        for name, label in (("trust", "Trust"), ("client_certificate", "Client")):
            if name in made:
                click.echo(f"{label:6} {made[name]}")
        click.echo(f"Data   {embedded.data_dir if data_dir else 'temporary, removed at the end'}")
        click.echo(f"Ready; Ctrl-C stops it. In another terminal: {_example(embedded)}")
    sys.stdout.flush()


def _example(embedded: Embedded) -> str:
    url = "" if embedded.amqp_url.endswith(":5672") else f" --url {shlex.quote(embedded.amqp_url)}"
    return f"echo hello | {own_program()} send{url} orders"


def _watch(embedded: Embedded, stop: Stop) -> None:
    """Wait until a signal ends the command.

    Raises:
        Failure: the broker ended before a signal came.
    """
    while not stop.requested:
        stop.wait(_LOOK_SECONDS)
        if not embedded.running and not stop.requested:
            last_words = embedded.log_path.read_text(errors="replace").strip().rpartition("\n")[2]
            raise Failure(f"the broker ended by itself; the end of its log: {last_words}")
