"""``pyjmsack run`` runs the app of a module as a service. ``pyjmsack listeners`` shows its listeners as a table."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import click
from rich.table import Table
from rich.text import Text

from pyjmsack import App, aio
from pyjmsack.backoff import Backoff
from pyjmsack.cli.health import serving_health
from pyjmsack.cli.terminal import stdout_console

__all__ = ["listeners", "run"]

_MARGIN: Final = 60.0
"""The number of seconds that is added to the ``stop_timeout`` of the app. A worker process that still runs after this
time is killed."""
_PARENT: Final = "PYJMSACK_RUN_PARENT"
"""The environment variable that marks a worker process. The standard input of such a process ends when its parent has
ended."""
_LOOK: Final = 0.2
"""The number of seconds between two checks whether the processes still run."""


def _app_of(reference: str) -> App | aio.App:
    """Import a module and return its app. ``reference`` is ``module:name``.

    Raises:
        UsageError: there is no such module or name, or the object is no app.
    """
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise click.UsageError(f"{reference!r}: expected module:app, such as service:app for `app` in service.py")
    sys.path.insert(0, "")  # search the current directory first, as `python -m` does
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and another module that it imports is missing
        raise click.UsageError(f"there is no module {module_name!r} here or on PYTHONPATH") from None
    found = getattr(module, name, None)
    if not isinstance(found, App | aio.App):
        raise click.UsageError(f"{reference}: expected a pyjmsack.App or pyjmsack.aio.App, not {type(found).__name__}")
    return found


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    metavar="P",
    help="Serve /health/live and /health/ready over HTTP on port P; the second process uses P+1, and so on.",
)
@click.option("--health-host", default="127.0.0.1", show_default=True, help="Address for --health-port.")
def run(app: str, workers: int, health_port: int | None, health_host: str) -> None:
    """Run the listeners of an app until SIGTERM or Ctrl-C.

    `pyjmsack run service:app` imports service.py from the current directory and runs its `app`, which is a
    `pyjmsack.App` or a `pyjmsack.aio.App`.

    At SIGTERM or Ctrl-C each listener finishes its message, and each scheduled function finishes its run. A second
    Ctrl-C ends the process at once. A process of --workers that dies is started again.

    Exit code 0: all listeners and scheduled functions finished in time. 1: some did not finish, and the messages of
    such listeners went back to the broker.
    """
    if health_port is not None and health_port + workers - 1 > 65535:
        raise click.UsageError(
            f"--health-port {health_port}: {workers} processes need ports beyond 65535; give a smaller port"
        )
    if workers > 1:
        found = _app_of(app)  # a mistake is reported once, before any process starts
        raise SystemExit(_supervise(app, workers, health_port, health_host, found.stop_timeout + _MARGIN))
    if os.environ.pop(_PARENT, None):
        threading.Thread(target=_end_with_parent, name="pyjmsack-parent", daemon=True).start()
    found = _app_of(app)
    with serving_health(found.health, health_host, health_port) if health_port else contextlib.nullcontext():
        ended = asyncio.run(found.run()) if isinstance(found, aio.App) else found.run()
    raise SystemExit(0 if ended else 1)


# -- several processes ----------------------------------------------------------------------------------------------


def _end_with_parent() -> None:
    """Stop this worker process if the process that started it was killed, because nobody else would stop it."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


class _Worker:
    """One worker process of ``pyjmsack run --workers``, which is started again when it dies."""

    def __init__(self, command: list[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._command = command
        self._clock = clock
        self._backoff = Backoff(clock)
        self._due = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start_if_due(self) -> None:
        """Start the process if it does not run and its wait is over."""
        if self.process is not None and (code := self.process.poll()) is not None:
            wait = self._backoff.after_failure()
            click.echo(f"a worker process ended with {code}; the next one starts in {wait:.1f} s", err=True)
            self.process = None
            self._due = self._clock() + wait
        if self.process is None and self._clock() >= self._due:
            try:
                self.process = self._start()
            except OSError as error:  # such as too many open files: the other workers go on
                wait = self._backoff.after_failure()
                click.echo(f"a worker process cannot be started ({error}); the next try is in {wait:.1f} s", err=True)
                self._due = self._clock() + wait

    def _start(self) -> subprocess.Popen[bytes]:
        # the worker gets a session of its own, so that Ctrl-C reaches the worker only once, through this process
        return subprocess.Popen(  # noqa: S603 - this program itself
            self._command,
            stdin=subprocess.PIPE,  # the pipe ends when this process ends, for any reason
            env={**os.environ, _PARENT: "1"},
            start_new_session=True,
        )


def _supervise(app: str, count: int, port: int | None, host: str, patience: float) -> int:
    base = [sys.executable, "-m", "pyjmsack", "run", app]
    health = [[] if port is None else ["--health-port", str(port + at), "--health-host", host] for at in range(count)]
    workers = [_Worker([*base, *each]) for each in health]
    with _noting_signals() as signals:
        while not signals:
            for worker in workers:
                worker.start_if_due()
            time.sleep(_LOOK)
        return _end([worker.process for worker in workers if worker.process is not None], signals, patience)


def _end(processes: list[subprocess.Popen[bytes]], signals: list[int], patience: float) -> int:
    """Ask all processes to end, and kill those that do not end within ``patience`` seconds. Return the worst
    exit code.
    """
    for process in processes:
        process.terminate()
    end = time.monotonic() + patience
    for process in processes:
        while process.poll() is None and time.monotonic() < end and signals[1:].count(signal.SIGINT) == 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK)
        if process.poll() is None:
            process.kill()
            process.wait()
    # a process that SIGTERM ended had no app at work yet, because App.run() handles the signal
    return 0 if all(process.returncode in (0, -signal.SIGTERM) for process in processes) else 1


@contextlib.contextmanager
def _noting_signals() -> Iterator[list[int]]:
    """Yield a list, and add each SIGINT and SIGTERM that comes to the list."""
    signals: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        signals.append(number)

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


# -- the table ------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("app", metavar="MODULE:APP")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each listener.")
def listeners(app: str, as_json: bool) -> None:
    """Show the listeners of an app: workers, mode, what happens after an error, and the facts of `pyjmsack explain`.

    The command connects to nothing.
    """
    for row in _app_of(app).describe():
        if as_json:
            click.echo(json.dumps(row, ensure_ascii=False))
        else:
            _show(row)


def _show(row: dict[str, Any]) -> None:
    table = Table(title=f"{row['name']}: {row['function']}", min_width=60)
    table.add_column("what", no_wrap=True)
    table.add_column("answer", overflow="fold", ratio=1)
    table.add_column("rules", no_wrap=True)
    for name in ("destination", "selector", "subscription", "concurrency", "mode", "retry", "reply_to"):
        if row[name] is not None:
            table.add_row(Text(name), Text(str(row[name])), Text(""))
    for fact in row["facts"]:
        table.add_row(Text(fact["about"]), Text(fact["text"]), Text(fact["rules"]))
    stdout_console().print(table)
