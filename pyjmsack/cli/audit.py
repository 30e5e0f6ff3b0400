"""``pyjmsack audit``: reads ledgers with Spark and finds lost messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyjmsack.cli.errors import Failure
from pyjmsack.cli.managing import jolokia_of_environment
from pyjmsack.cli.options import Login, broker_options
from pyjmsack.cli.terminal import stdout_console, visible

if TYPE_CHECKING:
    from pyjmsack.spark.audit import Audit, Look

__all__ = ["as_document", "as_report", "audit", "audit_ledgers", "missing_for_audit"]


@click.command()
@click.argument("ledgers", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--master", default="local[*]", show_default=True, help="Where Spark runs, such as spark://host:7077.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a report with charts to this file."
)
@click.option("--suspects", type=click.IntRange(min=0), default=100, show_default=True, help="List at most N ids.")
@click.option(
    "--still-queued",
    type=click.IntRange(min=0),
    metavar="N",
    help="N messages are still in the queues, so they are not lost.",
)
@broker_options
@click.option("--jolokia", metavar="URL", help="The URL of Jolokia, if --url is an ActiveMQ Classic.")
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="With --url: also look into this queue.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def audit(
    ledgers: tuple[Path, ...],
    master: str,
    html: Path | None,
    suspects: int,
    still_queued: int | None,
    login: Login | None,
    jolokia: str | None,
    queues: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find in LEDGERs the messages that were lost, doubled, delivered again, out of order or in doubt.

    \b
    pyjmsack audit /var/ledgers/orders --html audit.html
    pyjmsack audit ledgers/* --url amqp://broker:5672 --user alice

    Give the ledgers of all producers and consumers at once. With --url the command asks the broker which messages
    are still in its queues and dead-letter queues. With neither --url nor --still-queued, each message that the broker
    confirmed and nobody acknowledged counts as "lost or still queued". The exit code is 1 if a message is lost or
    unknown, or if a transaction is torn. The command needs pyjmsack[spark] and a full JDK.
    """
    if login is None and queues:
        raise click.UsageError("--queue needs --url, the URL of the broker that has the queue")
    if login is not None and still_queued is not None:
        raise click.UsageError(
            "give --url, which counts the messages that are still queued, or --still-queued, but not both"
        )
    question = None if login is None else Question(login, jolokia or jolokia_of_environment(login), queues)
    found = audit_ledgers(ledgers, master, suspects, still_queued, question)
    if html is not None:
        from pyjmsack.spark.audit import write_page

        write_page(found, html)
    if as_json:
        click.echo(json.dumps(as_document(found), indent=2))
    else:
        stdout_console().print(as_report(found))
    if not found.ok:
        raise Failure(found.verdict)


def missing_for_audit() -> str | None:
    """Return ``None`` if this machine can run an audit. Otherwise return a text that names the missing part."""
    try:
        from pyjmsack.spark import JavaError, check_java
    except ImportError as error:
        return str(error)
    try:
        check_java()
    except JavaError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Question:
    """Asks a broker which messages its queues still have."""

    login: Login
    jolokia: str | None
    queues: tuple[str, ...]

    def ask(self, known: list[str]) -> Look:
        """Look into the queues of the ledgers, and into the queues that the user named.

        Raises:
            Failure: the ledgers have too many queues.
            UnsupportedFeatureException: this broker has no browser over this protocol.
        """
        from pyjmsack.spark.audit import look_into

        factory = self.login.factory(jms__receiveLocalOnly=True)
        try:
            return look_into(factory, [*known, *self.queues], jolokia=self.jolokia)
        except ValueError as error:
            raise Failure(str(error)) from error


def audit_ledgers(
    ledgers: tuple[Path, ...],
    master: str = "local[*]",
    suspects: int = 100,
    still_queued: int | None = None,
    question: Question | None = None,
) -> Audit:
    """Run the audit on a Spark session of its own.

    Raises:
        Failure: PySpark or a JDK is missing, Java does not start, or the cluster cannot be reached.
        LedgerError: a path is not a ledger.
    """
    missing = missing_for_audit()
    if missing is not None:
        raise Failure(missing)
    from pyjmsack.spark import JavaError
    from pyjmsack.spark.audit import ClusterError, audit_session, queues_of, run_audit

    # the look comes first: if a consumer takes a message after the look, the ledgers that are read later show it
    look = None if question is None else question.ask(queues_of(ledgers))
    try:
        spark = audit_session(master)
    except (ClusterError, JavaError) as error:
        raise Failure(str(error)) from error
    try:
        return run_audit(spark, ledgers, suspects=suspects, still_queued=still_queued, look=look)
    finally:
        spark.stop()


def as_report(found: Audit) -> RenderableType:
    """Return the tables of the audit, with the verdict below the tables."""
    parts: list[RenderableType] = [_findings(found)]
    if found.latencies:
        parts.append(_latencies(found))
    parts += [Text(text) for text in _remarks(found)]
    parts.append(_verdict(found))
    return Group(*parts)


def _findings(found: Audit) -> Table:
    sends, receives = (
        ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"
        for counts in (found.sends, found.receives)
    )
    table = Table(title=f"sends: {sends}; receives: {receives}")
    for heading in ("finding", "meaning"):
        table.add_column(heading)
    table.add_column("messages", justify="right")
    table.add_column("such as", overflow="fold")
    for finding in found.findings.values():
        style = "red" if finding.count and finding.name in ("lost", "unknown", "torn") else None
        table.add_row(
            finding.name, finding.title, f"{finding.count:,}", *map(Text, map(visible, finding.ids[:1])), style=style
        )
    return table


def _latencies(found: Audit) -> Table:
    table = Table(title="from the send to the first delivery, milliseconds")
    for heading in ("acknowledge mode", "protocol", "when"):
        table.add_column(heading, no_wrap=True)
    for heading in ("messages", "p50", "p90", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.latencies:
        times = (f"{1000 * seconds:,.1f}" for seconds in (one.p50, one.p90, one.p99, one.max))
        table.add_row(one.mode, one.protocol, one.phase, f"{one.count:,}", *times)
    return table


def _remarks(found: Audit) -> list[str]:
    remarks = [
        f"Outage {number}: {outage.start:%Y-%m-%d %H:%M:%S.%f}Z, {outage.seconds:.1f} s."
        for number, outage in enumerate(found.outages, 1)
    ]
    if found.unclosed:
        count = len(found.unclosed)
        remarks.append(f"{count} connections are open or were killed: the ledger lacks their unfinished messages.")
    if found.look is not None:
        from pyjmsack.spark.audit import looked_into

        remarks += [visible(f"{line[0].upper()}{line[1:]}.") for line in looked_into(found)]
    return remarks


def _verdict(found: Audit) -> Text:
    total = found.lost + found.queued + found.unknown
    torn = found.findings["torn"].count
    if not total and not torn:
        text = "Nothing lost: every confirmed message has its outcome at a consumer in these ledgers."
        return Text(text, style="green")
    never = found.never_delivered
    text = f"{total:,} messages were confirmed and not acknowledged in these ledgers: {never:,} never delivered,"
    text += f" {total - never:,} delivered and given back."
    text += f" {found.verdict}" + (f" {found.next_step}" if found.next_step else "")
    return Text(visible(text), style="green" if found.ok else "red")


def as_document(found: Audit) -> dict[str, Any]:
    """Return the tables and the verdict of the audit as one JSON document, for scripts."""
    return {
        "ledgers": found.paths,
        "ok": found.ok,
        "lost": found.lost,
        "unknown": found.unknown,
        "never_delivered": found.never_delivered,
        "still_queued": found.queued,
        "queues": None if found.look is None else found.look.seen,
        "hidden": None if found.look is None else found.look.hidden,
        "sends": found.sends,
        "receives": found.receives,
        "findings": {one.name: {"count": one.count, "ids": one.ids} for one in found.findings.values()},
        "latencies": [
            {
                "mode": one.mode,
                "protocol": one.protocol,
                "when": one.phase,
                "count": one.count,
                "seconds": {"p50": one.p50, "p90": one.p90, "p99": one.p99, "max": one.max},
            }
            for one in found.latencies
        ],
        "outages": [{"start": one.start.isoformat(), "seconds": one.seconds} for one in found.outages],
        "unclosed_connections": found.unclosed,
    }
