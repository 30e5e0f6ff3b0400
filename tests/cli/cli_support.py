"""Runs the command line in this process and as a process of its own, and looks at what is left on the broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

from click.testing import CliRunner, Result
from emptying import take_everything
from polling import wait_until

from pyjmsack import AckMode, ConnectionFactory
from pyjmsack.cli.main import cli
from pyjmsack.management import Manager

WAIT = 60.0
"""Seconds after which a process that should end has hung."""


class Cli:
    """The command line with a broker's URL in its environment."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *arguments: object, stdin: str | bytes | None = None, **environment: str) -> Result:
        """Run a command in this process."""
        return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin, env=self._variables(environment))

    def ok(self, *arguments: object, stdin: str | bytes | None = None) -> str:
        """Run a command that must succeed, and return its standard output."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def start(self, *arguments: object, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a command as a process, with pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "pyjmsack", *map(str, arguments)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **self._variables({})},
        )

    def _variables(self, more: dict[str, str]) -> dict[str, str]:
        return {"PYJMSACK_URL": self.url, **more}


def put(url: str, queue: str, texts: Iterable[str]) -> None:
    """Put text messages on a queue."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(session.create_queue(queue))
        for answer in [producer.send_async(text) for text in texts]:
            answer.result()


def take_all(url: str, queue: str, *, wait_for: int = 0) -> list[tuple[str, bool]]:
    """Take everything off a queue: texts, and whether each was delivered before.

    A broker takes its time to put back what a closed consumer had: ``wait_for`` messages are waited for.
    """
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        with connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session:
            found: list[tuple[str, bool]] = []

            def enough() -> bool:
                taken = take_everything(session, session.create_queue(queue))
                found.extend((str(message.body), message.redelivered) for message in taken)
                return len(found) >= wait_for

            wait_until(enough)
            return found


def depth(url: str, queue: str) -> int:
    """Return how many messages the broker has in a queue."""
    with Manager(ConnectionFactory(url)) as manager:
        found = manager.queues(queue)
    return found[0].messages if found else 0


def first_lines(process: subprocess.Popen[bytes], count: int) -> list[str]:
    """Wait for the first lines of a process, and return them."""
    assert process.stdout is not None
    return [process.stdout.readline().decode().rstrip("\n") for _ in range(count)]


def rest(process: subprocess.Popen[bytes]) -> tuple[list[str], str, int]:
    """Wait for the end of a process: its further lines, what it said on standard error, its exit code."""
    out, err = process.communicate(timeout=WAIT)
    return (out or b"").decode().splitlines(), err.decode(), process.returncode
