"""The command group, and the common parts of all commands: ``--version``, ``--debug``, errors as one line.

To add a command, write a module in this folder, and add it to ``_OPERATORS`` if it is for operators of brokers, and
otherwise to ``_COMMANDS``.
"""

from __future__ import annotations

import codecs
import errno
import io
import sys

import click

from pyjmsack import JMSException
from pyjmsack.cli.audit import audit
from pyjmsack.cli.bench import bench
from pyjmsack.cli.broker import broker
from pyjmsack.cli.browse import browse
from pyjmsack.cli.check import check
from pyjmsack.cli.completion import completion
from pyjmsack.cli.demo import demo
from pyjmsack.cli.dlq import dlq
from pyjmsack.cli.doctor import doctor
from pyjmsack.cli.errors import Failure, about_file, as_click_error
from pyjmsack.cli.explain import explain
from pyjmsack.cli.export import export
from pyjmsack.cli.import_ import import_
from pyjmsack.cli.logs import debugging, show_logs
from pyjmsack.cli.migrate import migrate
from pyjmsack.cli.move import copy, move
from pyjmsack.cli.queues import pause, purge, resume
from pyjmsack.cli.receive import receive
from pyjmsack.cli.run import listeners, run
from pyjmsack.cli.send import send
from pyjmsack.cli.soak import soak
from pyjmsack.cli.stat import connections, consumers, stat
from pyjmsack.cli.tail import tail
from pyjmsack.cli.terminal import escaped
from pyjmsack.version import VERSION

__all__ = ["cli", "main"]


class _Commands(click.Group):
    """Shows every error of the library or of a file as one line. With ``--debug`` it shows the traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # the unexpected argument may hold a password
            if "unexpected extra argument" in error.message and "://" in error.message:
                raise click.UsageError("Give the URL of a broker with --url, or in PYJMSACK_URL.", error.ctx) from None
            raise
        except JMSException as error:
            if debugging(ctx):
                raise
            raise as_click_error(error) from error
        except OSError as error:  # a full disk, a file that cannot be read
            if debugging(ctx) or error.errno == errno.EPIPE:  # click ends in silence if the reader of a pipe has left
                raise
            raise Failure(about_file(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="pyjmsack")
@click.option("--debug", is_flag=True, help="Show tracebacks and the library's debug log.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """JMS messaging on ActiveMQ Artemis and ActiveMQ Classic from the command line.

    Start with `pyjmsack demo`: it starts a real broker, sends real files through it in every acknowledge mode and
    proves that nothing was lost.

    \b
    Exit codes: 0 done, 1 failed, 2 usage.
    """
    ctx.obj = debug
    show_logs(debug)


_COMMANDS = (demo, soak, broker, send, receive, browse, doctor, explain, audit, bench, migrate, run, listeners)
_OPERATORS = (
    stat,
    tail,
    check,
    dlq,
    move,
    copy,
    export,
    import_,
    purge,
    pause,
    resume,
    consumers,
    connections,
    completion,
)
for _command in (*_COMMANDS, *_OPERATORS):
    cli.add_command(_command)


def main() -> None:
    """Run the command line; see :mod:`pyjmsack.__main__`."""
    _write_every_character()
    cli()


def _write_every_character() -> None:
    """Let standard output escape what its encoding does not have. Otherwise a character in the text of one producer, or
    in the name of one queue, would end a command that shows all of them.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        codecs.register_error("pyjmsack.escaped", escaped)
        sys.stdout.reconfigure(errors="pyjmsack.escaped")
