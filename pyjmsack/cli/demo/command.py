"""The command: input, broker, rows, report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import click

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.audit import as_document as audit_document
from pyjmsack.cli.audit import as_report
from pyjmsack.cli.demo.auditing import LedgerOfDemo
from pyjmsack.cli.demo.job import Result
from pyjmsack.cli.demo.ledger import ProcessingError
from pyjmsack.cli.demo.report import as_document, as_table
from pyjmsack.cli.demo.rows import FAILOVER_ROWS, ROWS
from pyjmsack.cli.demo.source import Source, default_paths
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.logs import narrate_broker, quiet_about
from pyjmsack.cli.options import DEFAULT_URL, Login, login_options
from pyjmsack.cli.stopping import termination_as_interrupt
from pyjmsack.cli.terminal import Counter, counting, stdout_console

__all__ = ["demo"]


@click.command()
@click.option(
    "--input",
    "paths",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="A file, or a directory with files; repeatable. Otherwise pyjmsack's own sources.",
)
@click.option("--url", envvar="PYJMSACK_URL", show_envvar=True, help="Use this broker instead of starting one.")
@click.option(
    "--protocol",
    type=click.Choice(["amqp", "stomp", "both"]),
    default="both",
    show_default=True,
    help="What the demo's own broker is spoken to in; with --url its scheme says that.",
)
@login_options
@click.option(
    "--patience",
    type=click.FloatRange(min=0.5),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="Lines count as lost when nothing arrives for this long.",
)
@click.option("--ledger", type=click.Path(file_okay=False, path_type=Path), help="Keep the demo's ledger here.")
@click.option(
    "--audit/--no-audit", "audits", default=None, help="End with `pyjmsack audit`; without either, if Spark is there."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(
    paths: tuple[Path, ...],
    url: str | None,
    protocol: str,
    user: str | None,
    password_file: Path | None,
    patience: float,
    ledger: Path | None,
    audits: bool | None,
    as_json: bool,
) -> None:
    """Prove on a real broker that no mode loses a line of real files.

    Every line is a message. The receiving end fails at every 97th and rolls back in the middle, then the files are
    put together again and their SHA-256 compared. In the last rows the demo's own broker is killed twice while the
    lines flow. The exit code is 1 if a line is lost or a file differs.
    """
    source = Source.read(paths or default_paths())
    with LedgerOfDemo(ledger, audits) as own_ledger:
        login = Login(url or DEFAULT_URL, user, password_file, own_ledger.path)
        results, broker = _exchange(login, protocol, url is None, source, patience)
        found = own_ledger.audit()
    if as_json:
        document = as_document(results, source, broker)
        click.echo(json.dumps({**document, "audit": None if found is None else audit_document(found)}))
    else:
        stdout_console().print(as_table(results, source, broker))
        if found is not None:
            stdout_console().print(as_report(found))
    failed = sum(1 for result in results if not result.ok)
    if failed:
        raise Failure(f"{failed} of {len(results)} rows failed")
    if found is not None and not found.ok:
        raise Failure("the audit found messages that were lost, or torn transactions")


def _exchange(login: Login, protocol: str, embedded: bool, source: Source, patience: float) -> tuple[list[Result], str]:
    """Run all rows; return the results, and who the broker is."""
    with termination_as_interrupt(), quiet_about(ProcessingError), _brokers(login, protocol, embedded) as there:
        logins, own = there
        met = [_met(login) for login in logins]
        protocols = [protocol for _, protocol in met]
        broker = f"{met[0][0]} over {' and '.join(protocols)}"
        return _run(dict(zip(protocols, logins, strict=True)), own, source, patience), broker


@contextmanager
def _brokers(login: Login, protocol: str, embedded: bool) -> Iterator[tuple[Sequence[Login], EmbeddedArtemis | None]]:
    """Yield a login for each protocol, to a broker that is started if it is to be embedded; then the broker, too."""
    if not embedded:
        yield [login], None
        return
    narrate_broker()
    click.echo("Starting Artemis …", err=True)
    with EmbeddedArtemis() as artemis:
        urls = {"amqp": artemis.amqp_url, "stomp": artemis.stomp_url}
        yield [replace(login, url=url) for name, url in urls.items() if protocol in (name, "both")], artemis


def _met(login: Login) -> tuple[str, str]:
    """Return who answers there, and in which protocol."""
    with login.factory().create_connection() as connection:
        metadata = connection.metadata
        return f"{metadata.broker_name} {metadata.broker_version}", metadata.protocol


def _run(logins: Mapping[str, Login], own: EmbeddedArtemis | None, source: Source, patience: float) -> list[Result]:
    """Run the rows over each protocol, those that kill the broker last."""
    rows = [*ROWS, *(FAILOVER_ROWS if own else ())]
    total = len(source.lines)
    results: list[Result] = []
    with counting("Sending and receiving", total * len(rows) * len(logins)) as show:
        for row, (protocol, login) in product(rows, logins.items()):
            progress = partial(_show_row, show, len(results) * total, f"{row.title} ({row.face}, {protocol})")
            results.append(row.run(login, own, protocol.partition(" ")[0], source, patience, progress))
    return results


def _show_row(show: Counter, done: int, remark: str, received: int) -> None:
    show(done + received, remark)
