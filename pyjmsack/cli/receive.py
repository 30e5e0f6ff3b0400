"""``pyjmsack receive``: writes messages to standard output or files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from pyjmsack import AckMode, MessageConsumer
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.options import Login, connection_options, destination_of, ledger_option, selector_option
from pyjmsack.cli.receive_job import ReceiveJob
from pyjmsack.cli.receive_output import RENDERERS, Directory, Output, open_output
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import counting

__all__ = ["receive"]


_MODE_NAMES = {
    "auto": AckMode.AUTO_ACKNOWLEDGE,
    "client": AckMode.CLIENT_ACKNOWLEDGE,
    "dups-ok": AckMode.DUPS_OK_ACKNOWLEDGE,
    "individual": AckMode.INDIVIDUAL_ACKNOWLEDGE,
    "no-ack": AckMode.NO_ACKNOWLEDGE,
}


def parse_ack_mode(_: click.Context, __: click.Parameter, text: str) -> AckMode:
    """Return the acknowledge mode for a short name, a full JMS name or a number. This is the callback of an option."""
    name = text.lower().replace("_", "-")
    for mode in AckMode:
        if name in (str(mode.value), mode.name.lower().replace("_", "-")) or _MODE_NAMES.get(name) is mode:
            if mode is AckMode.SESSION_TRANSACTED:
                raise click.BadParameter(f"{text!r}: for transactions use --transaction N")
            return mode
    names = ", ".join(_MODE_NAMES)
    raise click.BadParameter(f"{text!r}: expected {names}, or one of the numbers 1, 2, 3, 4, 100, 101, 257")


@click.command()
@click.argument("destination")
@connection_options
@ledger_option
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop when no message came for this time."
)
@click.option("--follow", is_flag=True, help="Wait for more messages, for ever.")
@click.option(
    "--ack-mode",
    metavar="MODE",
    callback=parse_ack_mode,
    default="individual",
    show_default=True,
    help="auto, client, dups-ok, individual, no-ack, a JMS name or number.",
)
@selector_option
@click.option("--topic", is_flag=True, help="DESTINATION is a topic; implies --follow.")
@click.option("--format", "format_name", type=click.Choice([*RENDERERS, "file"]), default="text", show_default=True)
@click.option("--output-dir", type=click.Path(file_okay=False, path_type=Path), help="For --format file.")
@click.option("--transaction", type=click.IntRange(min=1), metavar="N", help="Commit after every N messages.")
def receive(
    destination: str,
    login: Login,
    count: int | None,
    timeout: float | None,
    follow: bool,
    ack_mode: AckMode,
    selector: str | None,
    topic: bool,
    format_name: str,
    output_dir: Path | None,
    transaction: int | None,
) -> None:
    """Write the messages of DESTINATION to standard output, or to files.

    The command takes the messages that a queue has now. With --timeout, --count or --follow it waits for more. A
    message is acknowledged after it was written, so the rest stays on the broker if Ctrl-C or the end of the reader
    (`| head`) ends the command. This does not hold in the modes auto, dups-ok and no-ack, because in these modes a
    message is acknowledged before it is written.
    """
    if (format_name == "file") != (output_dir is not None):
        raise click.UsageError("--format file needs --output-dir, and --output-dir needs --format file")
    if follow and timeout is not None:
        raise click.UsageError("--follow waits for ever, --timeout does not; give one of them")
    idle = None if follow or topic or (count is not None and timeout is None) else timeout or 0
    mode = AckMode.SESSION_TRANSACTED if transaction else ack_mode
    factory = login.factory(jms__receiveLocalOnly=True)
    with stop_on_signals() as stop, counting("Receiving", count) as show:
        output: Output = Directory(output_dir) if output_dir is not None else open_output(format_name, stop)
        with factory.create_connection() as connection, connection.create_session(mode) as session:
            # this listener ignores the error of the connection, because receive() raises it
            connection.exception_listener = lambda error: None
            connection.start()
            job = ReceiveJob(session, output, stop, show, transaction)
            consumer = session.create_consumer(destination_of(destination, topic), selector)
            job.run(consumer, count, idle)
        _report(job, consumer, stop, count, timeout)
    if (count is not None or idle is not None) and job.received != count:
        stop.check()  # without these limits only a signal ends the command


def _report(job: ReceiveJob, consumer: MessageConsumer, stop: Stop, count: int | None, timeout: float | None) -> None:
    """Print how many messages were received, if standard error is a terminal.

    Raises:
        Failure: fewer than ``count`` messages arrived, and nobody stopped the command.
    """
    if job.reader_gone:
        _forget_stdout()
    elif count is not None and job.received < count and not stop.requested:
        raise Failure(f"{job.received} of {count} messages arrived, and then none for {timeout or 0:g} s")
    if sys.stderr.isatty():
        stats = consumer.stats
        ends = {"expired": stats.expired, "given up": stats.poisoned}  # S190
        others = "".join(f", {count:,} {end}" for end, count in ends.items() if count)
        click.echo(f"Received {job.acknowledged:,}{others}.", err=True)


def _forget_stdout() -> None:
    """Let the interpreter flush nothing at its end, because a flush of a broken standard output prints a warning."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
