"""``pyjmsack import``: sends JSON lines to a queue. After a kill, the next run goes on where the first one ended."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import click

from pyjmsack import AckMode, Destination, JMSException, Session
from pyjmsack.cli.errors import Failure, explain
from pyjmsack.cli.existing import target_on_demand
from pyjmsack.cli.managing import json_option, print_json
from pyjmsack.cli.options import Login, connection_options
from pyjmsack.cli.resending import DUPLICATE_ID, unsendable
from pyjmsack.cli.send_input import InputError, Item, read_items
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import Counter, amount, counting, visible
from pyjmsack.cli.transfer import DEFAULT_BATCH, Pace

__all__ = ["import_"]

_TOKEN = re.compile(r"[0-9a-f]{16}")
_LONGEST_REASON = 300
_FORMAT = 2
"""The number of the format of the records and of the duplicate ids.

The next run of an import must use the same format of ids. Otherwise the broker would not recognise the lines that it
has already.
"""


@dataclass
class _Progress:
    """The progress of an import, in a file that each save replaces as a whole.

    Without a path the progress is only in memory.
    """

    path: Path | None
    queue: str
    token: str
    """The random part of the duplicate ids of this import."""
    lines: int = 0
    done: bool = False
    unsendable: int = 0
    """The number of lines that were left out because their messages cannot be sent."""
    reason: str = ""
    """The place of the first line that was left out, and why its message cannot be sent."""
    held: int | None = None
    """The file descriptor that holds the lock of the file. The lock prevents a second import with the same file."""

    @classmethod
    def of(cls, path: Path | None, queue: str) -> _Progress:
        """Read the progress from the file. Begin with no progress if there is no file.

        Raises:
            Failure: the file is not a record of this import, is of another version of pyjmsack, or cannot be read.
        """
        if path is None or not path.exists():
            return cls(path, queue, secrets.token_hex(8))
        made = cls(path, queue, "", held=_held(path))
        try:
            made._read(path, queue)
        except BaseException:
            made.close()
            raise
        return made

    def _read(self, path: Path, queue: str) -> None:
        """Read the record of an import that an earlier run began."""
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            self.queue, self.token, self.lines = known["queue"], known["token"], known["lines"]
            self.done, self.unsendable = bool(known["done"]), known.get("unsendable", 0)
            self.reason = str(known.get("reason", ""))
            if not _TOKEN.fullmatch(self.token) or not (_is_count(self.lines) and _is_count(self.unsendable)):
                counts = f"lines {self.lines!r} or unsendable {self.unsendable!r}"
                raise ValueError(f"token {self.token!r}, {counts} are out of range")
        except (ArithmeticError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
            raise Failure(f"{path} is not the record of an import: {error}") from error
        if self.queue != queue:
            raise Failure(f"{path} belongs to an import into {self.queue!r}, not into {queue!r}")
        if not self.done and known.get("format") != _FORMAT:
            raise Failure(
                f"{path} was written by another version of pyjmsack, so the broker would not recognise the lines that"
                " it has already. Finish this import with that version, or import only the lines after line"
                f" {self.lines:,} with another --resume FILE; then up to one batch of lines may be sent twice"
            )

    def save(self) -> None:
        """Replace the file as a whole. A kill at any moment leaves either the old file or the new one.

        Raises:
            Failure: the file cannot be written.
        """
        if self.path is None:
            return
        known = {
            "format": _FORMAT,
            "queue": self.queue,
            "token": self.token,
            "lines": self.lines,
            "done": self.done,
            "unsendable": self.unsendable,
            "reason": self.reason,
        }
        fresh = self.path.with_name(f".{self.path.name}.{self.token}")
        try:
            # a run that was killed may have left this file; its name has the token, so that nobody can put a link there
            fresh.unlink(missing_ok=True)
            with fresh.open("x", encoding="utf-8") as file:
                json.dump(known, file)
                file.flush()
                os.fsync(file.fileno())
                held = os.dup(file.fileno())
            self._put(fresh, held)
        except OSError as error:
            raise Failure(f"cannot save how far the import came: {error}") from error

    def _put(self, fresh: Path, held: int) -> None:
        """Give the new file its name. The file is locked already, because the file of this name must be locked at every
        moment.
        """
        assert self.path is not None
        _lock(held)
        earlier, self.held = self.held, held
        if earlier is not None:
            fresh.replace(self.path)
            os.close(earlier)
            return
        try:
            os.link(fresh, self.path)
        except FileExistsError:
            raise _used(self.path) from None
        except OSError:  # a file system without hard links cannot tell which of two imports came first
            fresh.replace(self.path)
        finally:
            fresh.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock of the file, so that another import can use the file."""
        if self.held is not None:
            os.close(self.held)
            self.held = None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _held(path: Path) -> int:
    """Open and lock the file of an import that an earlier run began, and return the descriptor.

    Raises:
        Failure: another import uses the file, or the file cannot be opened.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure(f"{path} is not the record of an import: {error}") from error
        try:
            _lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise _used(path) from None
        except OSError as error:
            os.close(descriptor)
            raise Failure(f"{path} is not the record of an import: {error}") from error
        os.close(descriptor)  # another import has just replaced the file, and has ended


def _lock(descriptor: int) -> None:
    """Lock a file. The operating system ends the lock when the process ends.

    Raises:
        BlockingIOError: another process has the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):
            raise  # any other error means that the file system has no locks


def _used(path: Path) -> Failure:
    return Failure(
        f"another import uses {path} now, and two imports would send the lines twice: wait for the end of the other"
        " import, or give another --resume FILE"
    )


@click.command("import")
@click.argument("queue")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True, path_type=Path))
@connection_options
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Remember in FILE how far the import came; the same command goes on from there after a kill.",
)
@click.option("--ignore-expiry", is_flag=True, help="Send expired messages too, and give no message an expiry time.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N messages a second.")
@click.option(
    "--transaction",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help=f"Wait for the confirmation after every N messages; {DEFAULT_BATCH}.",
)
@json_option
def import_(
    queue: str,
    files: tuple[Path, ...],
    login: Login,
    resume: Path | None,
    ignore_expiry: bool,
    rate: float | None,
    transaction: int | None,
    as_json: bool,
) -> None:
    """Send to QUEUE the JSON lines that `pyjmsack export` wrote. The lines come from FILES, or from standard input.

    \b
    pyjmsack import orders orders.jsonl
    pyjmsack import orders orders.jsonl --resume orders.progress
    zcat orders.jsonl.gz | pyjmsack import orders

    With --resume a killed import can be started again and loses no line. Artemis recognises the lines that it has, and
    no line comes twice. ActiveMQ Classic does not recognise them: with --transaction N, up to N lines may come twice.
    Messages that expired since the export are left out and counted. Messages that this protocol or broker cannot carry
    are left out and counted too, and the exit code is then 1.
    """
    progress = _Progress.of(resume, queue)
    with closing(progress), stop_on_signals() as stop, counting("Importing") as show:
        if progress.done:
            raise Failure(f"this import is done ({resume} says so); remove the file to import again")
        pace = Pace(rate, stop)
        job = _Import(progress, ignore_expiry, transaction or DEFAULT_BATCH, pace, stop, show)
        error = job.run(login, read_items("export", files, False, stop))
    if error is None and progress.unsendable:
        why = f"this protocol or broker cannot carry them: {progress.reason}"
        error = f"{amount(progress.unsendable)} left out, because {why}"
    failure = stop.stopped() if error is None else Failure(error)
    document = {
        "queue": queue,
        "sent": job.sent,
        "skipped": job.skipped,
        "expired": job.expired,
        "error": None if failure is None else failure.message,
    }
    if as_json:
        print_json(document)
    else:
        extra = f", {job.expired:,} left out because they expired (--ignore-expiry sends them)" if job.expired else ""
        before = f", {job.skipped:,} lines were sent before" if job.skipped else ""
        click.echo(f"Imported {amount(job.sent)} into {visible(queue)}{before}{extra}.", err=True)
    if failure is not None:
        raise failure


def _read(items: Iterator[Item], number: int) -> tuple[list[Item], InputError | None]:
    """Read at most ``number`` items. Return the items before a broken line together with the error of this line,
    because these items are sent before the error is shown.
    """
    read: list[Item] = []
    try:
        for item in islice(items, number):
            read.append(item)
    except InputError as error:
        return read, error
    return read, None


class _Import:
    """Sends in batches, and saves the progress after each batch."""

    def __init__(
        self, progress: _Progress, ignore_expiry: bool, batch: int, pace: Pace, stop: Stop, show: Counter
    ) -> None:
        self._progress, self._ignore_expiry, self._batch = progress, ignore_expiry, batch
        self._pace, self._stop, self._show = pace, stop, show
        self.sent = self.expired = self.skipped = 0

    def run(self, login: Login, items: Iterator[Item]) -> str | None:
        """Send all items. Return the text of the first error, or ``None`` if there was no error."""
        try:
            self.skipped = sum(1 for _ in islice(items, self._progress.lines))
            before = self._progress.lines
            if self.skipped < before and not self._stop.requested:
                return (
                    f"{self._progress.path} says that {before:,} lines were sent before, but the input has"
                    f" {self.skipped:,}: give the same input as before, or import this input with another --resume FILE"
                )
            with login.factory().create_connection() as connection:
                # this listener ignores the error of the connection, because send() raises it
                connection.exception_listener = lambda error: None
                recognised = "duplicate-detection" in connection.metadata.capabilities
                # no transaction, because Artemis refuses a whole transaction for one message that it knows already
                mode = AckMode.AUTO_ACKNOWLEDGE if recognised else AckMode.SESSION_TRANSACTED
                place = target_on_demand(connection, login, self._progress.queue)
                with connection.create_session(mode) as session:
                    self._send_all(session, place, items, recognised)
        except InputError as error:
            return str(error)
        except Failure as error:
            return error.message
        except JMSException as error:
            return explain(error)
        if not self._stop.requested:
            self._progress.done = True
            self._progress.save()
        return None

    def _send_all(self, session: Session, place: Destination, items: Iterator[Item], recognised: bool) -> None:
        producer = session.create_producer(place)
        self._progress.save()
        broken: InputError | None = None
        while broken is None and not self._stop.requested:
            batch, broken = _read(items, self._batch)
            if not batch:
                break
            answers = []
            for number, item in enumerate(batch, self._progress.lines + 1):
                options = self._options(item)
                if options is not None:
                    self._pace.wait()
                    options = self._options(item)  # again, because its time goes on during the wait
                if options is None:
                    self.expired += 1
                    continue
                # the message loses its old duplicate id, because the broker knows the id and would drop the message
                item.message.properties.pop(DUPLICATE_ID, None)
                # the digest is part of the id, because somebody may have changed the line between two runs
                if recognised:
                    duplicate_id = f"pyjmsack-import:{self._progress.token}:{number}:{item.digest}"
                    item.message.properties[DUPLICATE_ID] = duplicate_id
                try:
                    answers.append(producer.send_async(item.message, **options))
                except JMSException as refused:
                    if not unsendable(refused, item.message):
                        raise
                    self._leave_out(item, refused)
            for answer in answers:
                answer.result()
            if not recognised:
                session.commit()
            self.sent += len(answers)
            self._progress.lines += len(batch)
            self._progress.save()
            self._show(self.sent, "")
        if broken is not None:
            raise broken

    def _leave_out(self, item: Item, refused: JMSException) -> None:
        progress = self._progress
        progress.reason = progress.reason or f"{item.place}: {refused}"[:_LONGEST_REASON]
        progress.unsendable += 1

    def _options(self, item: Item) -> dict[str, Any] | None:
        """Return the options for a send of this item now, or ``None`` if its message has expired."""
        options = dict(item.options)
        if self._ignore_expiry:
            options.pop("time_to_live", None)
        elif item.expiration is not None:
            left = (item.expiration - datetime.now(timezone.utc)).total_seconds()
            if left <= 0:
                return None
            options["time_to_live"] = left
        return options
