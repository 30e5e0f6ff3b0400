"""The command ``pyjmsack soak``: the broker, the way to kill it, and the time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.logs import narrate_broker
from pyjmsack.cli.options import Login, login_options
from pyjmsack.cli.resources import Resources
from pyjmsack.cli.soak.faults import Commands, EmbeddedKill, Fault, cut_wires
from pyjmsack.cli.soak.report import as_document, as_tables
from pyjmsack.cli.soak.run import Plan, run
from pyjmsack.cli.stopping import stop_on_signals
from pyjmsack.cli.terminal import counting, stdout_console

__all__ = ["soak"]

_FACES = ("blocking", "asyncio")
_GUARD = "failover.duplicateGuardSize"
_GUARD_SIZE = 10_000
"""The number of processed messages that the guard of a session remembers.

A flow never has so many messages on their way. The library's default number would take 10 MB for each session.
"""


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), default=10, show_default=True, metavar="N")
@click.option(
    "--kill-every",
    type=click.FloatRange(min=0.5),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="Time from one recovery to the next kill.",
)
@click.option("--url", help="Your own brokers, failover:(amqp://a:5672,amqp://b:5672), instead of an embedded one.")
@click.option(
    "--kill-command", metavar="COMMAND", help="Command that kills your broker, such as 'docker kill a'. No shell."
)
@click.option("--restart-command", metavar="COMMAND", help="Command that starts your broker again.")
@click.option(
    "--protocol", type=click.Choice(["amqp", "stomp"]), help="Protocol to the embedded broker.  [default: amqp]"
)
@click.option("--face", type=click.Choice([*_FACES, "both"]), default="both", show_default=True)
@login_options
@click.option(
    "--patience",
    type=click.FloatRange(min=0.5),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="A flow is stuck if no message arrives for this time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def soak(
    minutes: float,
    kill_every: float,
    url: str | None,
    kill_command: str | None,
    restart_command: str | None,
    protocol: str | None,
    face: str,
    user: str | None,
    password_file: Path | None,
    patience: float,
    as_json: bool,
) -> None:
    """Kill a broker again and again under load, and prove that nothing is lost, doubled or torn.

    Numbered messages flow through queues of their own: confirmed sends, consumers in AUTO and INDIVIDUAL mode, and a
    transacted relay from queue to queue, with blocking and with asyncio code. Without --url an embedded Artemis is
    killed (SIGKILL) and restarted on its journal. With --url the soak runs --kill-command, or cuts all connections if
    there is no such command. There are at least two kills.

    The exit code is 1 if something was lost, doubled or torn, or if threads, file descriptors or memory grew.
    """
    if url is None and (kill_command or user):
        raise click.UsageError("--kill-command and --user are for your own broker; give its URL with --url")
    if url is not None and protocol is not None:
        raise click.UsageError("--protocol is for the embedded broker; for your own broker write the scheme in --url")
    if restart_command and not kill_command:
        raise click.UsageError("--restart-command needs --kill-command")
    before = Resources.now()
    faces = _FACES if face == "both" else (face,)
    with (
        stop_on_signals() as stop,
        _target(url, protocol or "amqp", kill_command, restart_command) as (address, fault),
        counting("Soaking", int(minutes * 60)) as show,
    ):
        login = replace(Login(user=user, password_file=password_file), url=_with_small_guard(address))
        finished = run(Plan(login, faces, minutes * 60, kill_every, patience), fault, stop, show)
    report = finished.report(before, Resources.now())
    if as_json:
        click.echo(json.dumps(as_document(report)))
    else:
        stdout_console().print(as_tables(report))
    if report.problems:
        raise Failure(f"{len(report.problems)} problems")


@contextmanager
def _target(url: str | None, protocol: str, kill: str | None, restart: str | None) -> Iterator[tuple[str, Fault]]:
    """Yield the URL to connect to, and the object that interrupts its connections."""
    if url is None:
        narrate_broker()
        click.echo("Starting Artemis …", err=True)
        # after ten losses Artemis would give up the prefetched messages of a consumer as dead letters
        with EmbeddedArtemis(address_settings={"#": {"max-delivery-attempts": -1}}) as artemis:
            member = artemis.amqp_url if protocol == "amqp" else artemis.stomp_url
            options = "failover.maxReconnectDelay=200&failover.warnAfterReconnectAttempts=0"
            yield f"failover:({member})?{options}", EmbeddedKill(artemis)
    elif kill is not None:
        yield url, Commands(kill, restart)
    else:
        with cut_wires(url) as wires:
            yield wires


def _with_small_guard(url: str) -> str:
    if _GUARD in url:
        return url
    return f"{url}{'&' if '?' in url.rpartition(')')[2] else '?'}{_GUARD}={_GUARD_SIZE}"
