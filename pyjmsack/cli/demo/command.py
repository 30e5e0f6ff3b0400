"""The command ``pyjmsack demo``: reads the input, finds the broker, runs the rows and prints the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.audit import as_document as audit_document
from pyjmsack.cli.audit import as_report
from pyjmsack.cli.demo.auditing import LedgerOfDemo
from pyjmsack.cli.demo.ledger import ProcessingError
from pyjmsack.cli.demo.report import as_document, as_table, verdict, watching
from pyjmsack.cli.demo.running import Run, plan, run_wave
from pyjmsack.cli.demo.source import Source, default_paths
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.logs import narrate_broker, quiet_about
from pyjmsack.cli.options import DEFAULT_URL, Login, login_options
from pyjmsack.cli.stopping import termination_as_interrupt
from pyjmsack.cli.terminal import own_program, stdout_console

if TYPE_CHECKING:
    from pyjmsack.spark.audit import Audit

__all__ = ["demo"]

_QUICK_LINES = 3000
_NEXT = (
    ("explain", "who acknowledges, and what comes again after a crash"),
    ("broker", "a broker for programs of your own, until Ctrl-C"),
    ("soak --minutes 1", "kills the broker again and again under load"),
)


@click.command()
@click.option(
    "--input",
    "paths",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="A file, or a directory with files; repeatable. Otherwise some of pyjmsack's own sources.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Send all of pyjmsack's sources, one row after the other, with two kills in each of the last rows;"
    " takes minutes.",
)
@click.option("--url", envvar="PYJMSACK_URL", show_envvar=True, help="Use this broker instead of starting one.")
@click.option(
    "--protocol",
    type=click.Choice(["amqp", "stomp", "both"]),
    default="both",
    show_default=True,
    help="The protocol to the demo's own broker; with --url the scheme decides.",
)
@login_options
@click.option(
    "--patience",
    type=click.FloatRange(min=0.5),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="Lines count as lost if nothing arrives for this number of seconds.",
)
@click.option("--ledger", type=click.Path(file_okay=False, path_type=Path), help="Keep the demo's ledger here.")
@click.option(
    "--audit/--no-audit", "audits", default=None, help="End with `pyjmsack audit`; by default only if Spark is there."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(
    paths: tuple[Path, ...],
    full: bool,
    url: str | None,
    protocol: str,
    user: str | None,
    password_file: Path | None,
    patience: float,
    ledger: Path | None,
    audits: bool | None,
    as_json: bool,
) -> None:
    """Prove on a real broker that no mode loses a line of real files, in less than a minute.

    Every line is a message. The receiving end fails at every 97th message and rolls back in the middle. Then the demo
    joins the lines to files again and compares their SHA-256. In the last rows the demo's own broker is killed twice
    while the lines flow. The exit code is 1 if a line is lost or a file differs.
    """
    source = Source.read(paths or default_paths(), None if full or paths else _QUICK_LINES)
    with LedgerOfDemo(ledger, audits) as own_ledger:
        login = Login(url or DEFAULT_URL, user, password_file, own_ledger.path)
        runs, broker = _exchange(login, protocol, url is None, full, source, patience)
        results = [run.result for run in runs if run.result is not None]
        if not as_json and not sys.stdout.isatty():  # on a terminal the user has seen the table while it filled
            stdout_console().print(as_table(runs, source, broker))
        if not as_json:
            stdout_console().print(*verdict(results, source), sep="\n")
        found = own_ledger.audit()
    if as_json:
        document = as_document(results, source, broker)
        click.echo(json.dumps({**document, "audit": None if found is None else audit_document(found)}))
    else:
        _conclude(own_ledger, found)
    failed = sum(1 for result in results if not result.ok)
    if failed:
        raise Failure(f"{failed} of {len(results)} rows failed")
    if found is not None and not found.ok:
        raise Failure("the audit found messages that were lost, or torn transactions")


def _conclude(own_ledger: LedgerOfDemo, found: Audit | None) -> None:
    """Print the findings of the audit, and then the next steps. If there was no audit, print what an audit needs."""
    if found is not None:
        stdout_console().print(as_report(found))
        click.echo(f"The audit's page, for a browser: {own_ledger.page(found)}")
    elif own_ledger.left_out is not None:
        click.echo(own_ledger.left_out)
    program = own_program()
    click.echo("\nWhat to try next:")
    for arguments, purpose in _NEXT:
        click.echo(f"  {f'{program} {arguments}':{len(program) + 18}} {purpose}")


def _exchange(
    login: Login, protocol: str, embedded: bool, full: bool, source: Source, patience: float
) -> tuple[list[Run], str]:
    """Run all rows. Return the rows with their results, and the name of the broker."""
    with termination_as_interrupt(), quiet_about(ProcessingError), _brokers(login, protocol, embedded) as there:
        logins, own = there
        met = [_met(login) for login in logins]
        broker = f"{met[0][0]} over {' and '.join(protocol for _, protocol in met)}"
        by_protocol = {protocol.partition(" ")[0]: login for (_, protocol), login in zip(met, logins, strict=True)}
        waves = plan(by_protocol, own is not None, full, source, patience)
        runs = [run for wave in waves for run in wave.runs]
        with watching(runs, source, broker):
            for wave in waves:
                run_wave(wave, own)
        return runs, broker


@contextmanager
def _brokers(login: Login, protocol: str, embedded: bool) -> Iterator[tuple[Sequence[Login], EmbeddedArtemis | None]]:
    """Yield a login for each protocol, and the broker if this function started an embedded one."""
    if not embedded:
        yield [login], None
        return
    narrate_broker()
    click.echo("Starting Artemis …", err=True)
    with EmbeddedArtemis() as artemis:
        urls = {"amqp": artemis.amqp_url, "stomp": artemis.stomp_url}
        yield [replace(login, url=url) for name, url in urls.items() if protocol in (name, "both")], artemis


def _met(login: Login) -> tuple[str, str]:
    """Connect, and return the name and version of the broker, and the protocol."""
    with login.factory().create_connection() as connection:
        metadata = connection.metadata
        return f"{metadata.broker_name} {metadata.broker_version}", metadata.protocol
