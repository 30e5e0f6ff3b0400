"""The ways to interrupt connections: kill an embedded broker, kill another broker by commands, or cut connections."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

import click

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.errors import Failure
from pyjmsack.testing import Wire

__all__ = ["Commands", "EmbeddedKill", "Fault", "cut_wires"]

_FAILOVER = re.compile(r"failover:(?://)?\((?P<brokers>[^()]*)\)(?P<options>.*)", re.DOTALL)
_CUT_SECONDS = 0.5
_COMMAND_SECONDS = 120.0


class Fault(Protocol):
    """The fault that the broker suffers again and again."""

    what: str

    def strike(self) -> None:
        """Cause the fault, and return when the broker is up or starting. This method blocks."""
        ...


class EmbeddedKill:
    """Kills an embedded broker with SIGKILL, and starts a new process on the same journal."""

    what = "broker killed and restarted"

    def __init__(self, broker: EmbeddedArtemis) -> None:
        self._broker = broker

    def strike(self) -> None:
        """Kill the broker and start it again."""
        self._broker.kill()
        self._broker.restart()


class Commands:
    """Runs the user's commands, which kill and restart the broker, without a shell."""

    def __init__(self, kill: str, restart: str | None) -> None:
        self._kill, self._restart = kill, restart
        self.what = f"{kill!r} run"

    def strike(self) -> None:
        """Run the user's command that kills the broker, and the command that restarts it, if there is one.

        Raises:
            Failure: a command failed.
        """
        for command in filter(None, (self._kill, self._restart)):
            try:
                subprocess.run(  # noqa: S603 - it is the user's own command
                    shlex.split(command),
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # standard output is for the result
                    timeout=_COMMAND_SECONDS,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise Failure(f"{command!r}: {error}") from error


class _Wires:
    what = "connections cut"

    def __init__(self, wires: list[Wire]) -> None:
        self._wires = wires

    def strike(self) -> None:
        """Cut every wire, and restore the wires a moment later."""
        for wire in self._wires:
            wire.cut()
        time.sleep(_CUT_SECONDS)
        for wire in self._wires:
            wire.heal()


@contextmanager
def cut_wires(url: str) -> Iterator[tuple[str, Fault]]:
    """Put a wire before each broker of a failover URL. Yield the URL through the wires, and the fault that cuts them.

    Raises:
        UsageError: the URL is not a failover URL of AMQP, or a broker in it has no port.
    """
    match = _FAILOVER.fullmatch(url)
    if match is None:
        raise click.UsageError("--url: expected failover:(amqp://HOST:PORT,…), because connections must outlive kills")
    with ExitStack() as stack:
        try:
            wires = [stack.enter_context(Wire(broker.strip())) for broker in match["brokers"].split(",")]
        except ValueError as error:
            raise click.UsageError(
                "--url: to cut connections, the soak needs the port of each broker, amqp://HOST:PORT; "
                "or give --kill-command"
            ) from error
        yield f"failover:({','.join(wire.url for wire in wires)}){match['options']}", _Wires(wires)
