"""``pyjmsack export``: writes a queue as JSON lines, by browsing or by taking the messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import click

from pyjmsack import AckMode, Connection, Message, MessageFormatException, Queue
from pyjmsack.cli.errors import Failure, fail_because
from pyjmsack.cli.existing import Checked, OutOfSight, check_queue, left_behind
from pyjmsack.cli.managing import jolokia_option, json_option, print_json, remark
from pyjmsack.cli.options import Login, connection_options, selector_option
from pyjmsack.cli.receive_job import ReceiveJob
from pyjmsack.cli.receive_output import Output, Stream, exact_line, open_output, sync_directory
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import Counter, amount, counting
from pyjmsack.cli.whole import Whole

__all__ = ["LeftOut", "export", "file_argument", "opened_output", "write_all"]


_READER_GONE = "the reader of standard output ended"


def _none_if_dash(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Return ``None``, which means standard output, for ``-``, as other commands read standard input for it."""
    return None if file == Path("-") else file


file_argument = click.argument(
    "file",
    required=False,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    callback=_none_if_dash,
)
"""The file that an export writes. ``None`` means standard output."""


@click.command()
@click.argument("queue")
@file_argument
@connection_options
@jolokia_option
@selector_option
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N messages.")
@click.option(
    "--take", is_flag=True, help="Take the messages off the queue; a message is acknowledged after it is written."
)
@json_option
def export(
    queue: str,
    file: Path | None,
    login: Login,
    jolokia: str | None,
    selector: str | None,
    limit: int | None,
    take: bool,
    as_json: bool,
) -> None:
    """Write the messages of QUEUE to FILE, or to standard output (`-`), as JSON lines that `pyjmsack import` reads.

    \b
    pyjmsack export orders orders.jsonl
    pyjmsack export orders --selector "region = 'EU'" | gzip > orders.jsonl.gz
    pyjmsack export orders.failed failed.jsonl --take

    A line has the body, the headers and the properties with their types. If a line cannot keep all of a message, the
    message is left out and stays in the queue, and the exit code is 1. The queue keeps all messages, unless --take is
    given. FILE must not exist. With FILE, --json prints how many messages were written.
    """
    with (
        stop_on_signals() as stop,
        counting("Exporting", limit) as show,
        login.factory(jms__receiveLocalOnly=True).create_connection() as connection,
    ):
        # this listener ignores the error of the connection, because receive() and the browser raise it
        connection.exception_listener = lambda error: None
        checked = check_queue(connection, login, jolokia, queue)
        connection.start()
        left = LeftOut(queue)
        export_all = _take if take else partial(_look, checked=checked)
        with opened_output(file, stop) as output:
            written = export_all(connection, queue, selector, limit, output, stop, show, left)
    checked.warn_if_empty(written)
    if take and written != limit and not stop.requested:
        left.out_of_sight = left_behind(login, jolokia, queue, selector, left.all, by="consumer")
    if as_json and file is not None:
        print_json({"queue": queue, "written": written, "file": str(file)})
    elif left.nothing:
        remark(f"Exported {amount(written)} from {queue}.")
    left.check(f"Exported {amount(written)}", stop)


@contextmanager
def opened_output(file: Path | None, stop: Stop) -> Iterator[Output]:
    """Yield a writer of JSON lines to a new file, or to standard output.

    If the work fails, or a stop is requested, before the first line is written, the file is removed. The empty file
    would stop the next try, and an import would read it as an empty queue.

    Raises:
        Failure: the file exists already, or cannot be made, or the reader of standard output ended.
    """
    if file is None:
        try:
            yield open_output("export", stop)
        except BrokenPipeError as error:
            raise Failure(f"{_READER_GONE}, so not all messages were written; they are still in the queue") from error
        return
    output = _File(file)
    try:
        yield output
        if stop.requested:
            output.remove_if_empty()
    except BaseException:
        output.remove_if_empty()
        raise
    finally:
        output.close()


class LeftOut:
    """Counts the messages that a line cannot keep as they are. The other messages are exported, and the command fails
    at the end, because a script may destroy the messages after a successful export.
    """

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self.out_of_sight: OutOfSight | None = None
        """The messages that the command could not see. Their number is 0 if nobody knows it."""
        self.count = 0
        """The number of messages whose types a line cannot keep."""
        self.unreadable = 0
        """The number of messages that nobody can decode. The log has their reasons."""

    @property
    def all(self) -> int:
        """The number of all messages that were left out."""
        return self.count + self.unreadable + (0 if self.out_of_sight is None else self.out_of_sight.number)

    @property
    def nothing(self) -> bool:
        """Whether no message was left out. False if nobody can know."""
        return not self.all and self.out_of_sight is None

    def add(self, message: Message, error: MessageFormatException) -> None:
        """Count a message that is left out, because a line of JSON cannot represent it exactly. Print the reason only
        for the first such message.
        """
        if not self.count:
            remark(f"The message {message.message_id} is left out: {error}")
        self.count += 1

    def check(self, done: str, stop: Stop) -> None:
        """Raise an error if a message was left out, or a signal stopped the command.

        Args:
            done: a text about the work, such as ``Exported 7 messages``.
            stop: knows whether there was a signal.

        Raises:
            Failure: a message was left out, or a signal stopped the command.
        """
        why = []
        if self.count:
            why.append(
                f"{amount(self.count)} of {self._queue} had to be left out, because a line cannot keep"
                " their types. They are still in the queue; `pyjmsack move` keeps all types"
            )
        if self.unreadable:
            why.append(f"{amount(self.unreadable)} of {self._queue} had to be left out, because nobody can decode them")
        if self.out_of_sight is not None:
            why.append(self.out_of_sight.why)
        fail_because([done, *why] if why else [], stop.stopped())


class _File(Stream):
    """Writes lines to a new file. After ``flush`` the lines are on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            sync_directory(path.absolute().parent)  # otherwise the file could lose its name in a crash of the machine
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
        super().__init__(exact_line, self._store, str(path))

    def remove_if_empty(self) -> None:
        """Remove the file if it has no line."""
        if not os.fstat(self._descriptor).st_size:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _store(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        os.fsync(self._descriptor)


def _take(
    connection: Connection,
    queue: str,
    selector: str | None,
    limit: int | None,
    output: Output,
    stop: Stop,
    show: Counter,
    left: LeftOut,
) -> int:
    with connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE) as session:
        job = ReceiveJob(session, output, stop, show, None, left.add)
        consumer = session.create_consumer(Queue(queue), selector)
        job.run(consumer, limit, 0)
        left.unreadable = consumer.stats.poisoned
        if job.reader_gone:
            done = f"{amount(job.acknowledged)} taken from {queue}"
            raise Failure(f"{_READER_GONE}: {done}, and the others are still in the queue")
        return job.acknowledged


def _look(
    connection: Connection,
    queue: str,
    selector: str | None,
    limit: int | None,
    output: Output,
    stop: Stop,
    show: Counter,
    left: LeftOut,
    *,
    checked: Checked,
) -> int:

    def stops(count: int) -> bool:
        show(count, "")
        return stop.requested

    whole = Whole(connection, queue, selected=selector is not None, messages=checked.messages)
    with connection.create_session() as session, session.create_browser(Queue(queue), selector) as browser:
        written = write_all(islice(browser, limit), output, left, stops)
        left.unreadable = browser.unreadable
    seen = written + left.all
    if seen != limit and not stop.requested:
        whole.check(seen)
        left.out_of_sight = checked.out_of_sight()
    return written


def write_all(
    messages: Iterable[Message], output: Output, left: LeftOut, stops: Callable[[int], bool] = lambda count: False
) -> int:
    """Write messages that a browser shows, and return how many were written.

    Args:
        messages: the messages.
        output: takes the messages.
        left: counts the messages that the output cannot keep.
        stops: called with the number so far; returns whether to stop.
    """
    written = 0
    for message in messages:
        try:
            output.write(message)
        except MessageFormatException as error:
            left.add(message, error)
            continue
        written += 1
        if written % output.batch == 0:
            output.flush()
        if stops(written):
            break
    output.flush()
    return written
