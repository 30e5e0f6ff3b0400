"""``pyjmsack dlq``: shows dead letters, sends them back to their origin, moves, exports or destroys them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import click

from pyjmsack import AckMode, Connection, Message, Queue, UnsupportedFeatureException
from pyjmsack.cli.dead_letters import Choice, cause_of, choice_of, dead_letter_queue, origin_of, place_of
from pyjmsack.cli.existing import Checked, check_queue
from pyjmsack.cli.export import LeftOut, check_whole, opened_output, write_all
from pyjmsack.cli.managing import (
    ask_before,
    by_broker,
    duration,
    jolokia_option,
    json_option,
    print_json,
    print_table,
    remark,
    yes_option,
)
from pyjmsack.cli.move import moving_options
from pyjmsack.cli.options import Command, Login, connection_options
from pyjmsack.cli.receive_output import as_document
from pyjmsack.cli.stopping import stop_on_signals
from pyjmsack.cli.terminal import amount, counting, visible
from pyjmsack.cli.transfer import DEFAULT_BATCH, Pace, Target, Transfer, check_left
from pyjmsack.management import UnknownQueueError

__all__ = ["dlq"]

_SHOWN = 20
_DEAD = "dead letter"
_AHEAD = 400
"""The most letters with a time stamp in the future that one run takes, because ActiveMQ Classic shows a browser no
more."""
_MOST_GROUPS = 1000
_OTHERS = "(more origins and causes)"


@dataclass(frozen=True)
class _Wanted:
    """The options that choose dead letters."""

    queue: str | None
    origin: str | None
    selector: str | None
    cause: str | None
    older_than: float | None
    jolokia: str | None


def _choosing(command: Command) -> Command:
    """Add the options that choose dead letters; the command gets a :class:`_Wanted` as ``wanted``."""

    def chosen(
        *arguments: object,
        queue: str | None,
        origin: str | None,
        selector: str | None,
        cause: str | None,
        older_than: float | None,
        jolokia: str | None,
        **options: object,
    ) -> object:
        return command(*arguments, wanted=_Wanted(queue, origin, selector, cause, older_than, jolokia), **options)

    chosen.__doc__, chosen.__name__ = command.__doc__, command.__name__
    chosen.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined] # click reads it
    made: Command = chosen
    for option in (
        click.option("--queue", metavar="NAME", help="The dead-letter queue; DLQ, on ActiveMQ Classic ActiveMQ.DLQ."),
        click.option("--origin", metavar="QUEUE", help="Only those that came from QUEUE."),
        click.option("--selector", metavar="TEXT", help="Only those that fulfil this condition."),
        click.option("--cause", metavar="TEXT", help="Artemis: expired or failed. Classic: a part of the cause."),
        click.option("--older-than", type=duration, metavar="TIME", help="Only those sent longer ago, such as 2h."),
    ):
        made = option(made)
    return jolokia_option(made)


@dataclass
class _Letters:
    """An open connection and the choice of dead letters on it."""

    connection: Connection
    queue: str
    choice: Choice
    absent: bool = False
    """The broker has no such queue yet, because it had no dead letter."""
    checked: Checked | None = None
    """The result of the check of a name that the user gave."""

    def browse(self, limit: int | None = None) -> Iterator[Message]:
        """Yield the chosen dead letters without taking them."""
        if self.absent:
            return
        seen = 0
        with (
            self.connection.create_session() as session,
            session.create_browser(Queue(self.queue), self.choice.selector) as browser,
        ):
            fitting = (each for each in browser if self.choice.fits(each, self.queue))
            for seen, message in enumerate(islice(fitting, limit), 1):  # noqa: B007 - the last number is used below
                yield message
        if seen != limit:
            check_whole(self.connection, seen)
        if self.checked is not None:
            self.checked.warn_if_empty(seen)

    def shown(self, limit: int | None, fits: Callable[[Message], bool]) -> int:
        """Return how many of the chosen dead letters a browser of ActiveMQ Classic shows, at most ``limit``. Artemis
        has a selector for each choice, so that no command holds letters of another one; there the result is 0.
        """
        if self.artemis:
            return 0
        most = _AHEAD - 1 if limit is None else min(limit, _AHEAD - 1)  # a browser that showed more may be cut off
        return sum(map(fits, self.browse(most)))

    @property
    def artemis(self) -> bool:
        """Whether the broker is Artemis."""
        return not self.connection.metadata.broker.startswith("classic")


@dataclass
class _Group:
    """Dead letters of one origin and cause."""

    messages: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None

    def add(self, sent: datetime | None) -> None:
        self.messages += 1
        if sent is not None:
            self.oldest = sent if self.oldest is None else min(self.oldest, sent)
            self.newest = sent if self.newest is None else max(self.newest, sent)


class _Groups:
    """Counts dead letters by origin and cause. The number of groups is limited, because the text of a cause may contain
    a message id, so that each letter would make a group.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self.total = 0

    def add(self, origin: str, cause: str, sent: datetime | None) -> None:
        """Count a dead letter."""
        key = origin, cause
        if key not in self._groups and len(self._groups) >= _MOST_GROUPS:
            key = "", _OTHERS
        self._groups.setdefault(key, _Group()).add(sent)
        self.total += 1

    def rows(self) -> list[tuple[str, int, str | None, str | None, str]]:
        """Return origin, number, time of the oldest and of the newest letter, and cause; sorted."""
        found = sorted(self._groups.items(), key=lambda item: item[0])
        return [(origin, one.messages, _iso(one.oldest), _iso(one.newest), cause) for (origin, cause), one in found]


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


@contextmanager
def _opened(login: Login, wanted: _Wanted) -> Iterator[_Letters]:
    with login.factory(jms__receiveLocalOnly=True).create_connection() as connection:
        # the call under way raises the error that this listener would get
        connection.exception_listener = lambda error: None
        connection.start()
        letters = _Letters(connection, dead_letter_queue(connection, wanted.queue), Choice())
        try:
            checked = check_queue(connection, login, wanted.jolokia, letters.queue)
            letters.checked = checked if wanted.queue is not None else None
        except UnknownQueueError:
            if wanted.queue is not None:
                raise
            letters.absent = True
        letters.choice = choice_of(letters.artemis, wanted.selector, wanted.origin, wanted.cause, wanted.older_than)
        yield letters


@click.group()
def dlq() -> None:
    """Dead letters: list them by origin, show, retry, move, export, purge.

    \b
    pyjmsack dlq ls
    pyjmsack dlq show --origin orders --limit 5
    pyjmsack dlq retry --origin orders --dry-run
    """


@dlq.command()
@connection_options
@_choosing
@json_option
def ls(login: Login, wanted: _Wanted, as_json: bool) -> None:
    """Count the dead letters by the queue that they came from, with their age and their cause.

    \b
    pyjmsack dlq ls
    pyjmsack dlq ls --older-than 1d --json
    """
    groups = _Groups()
    with _opened(login, wanted) as letters:
        for message in letters.browse():
            groups.add(origin_of(message, letters.queue) or "", cause_of(message)[:200], message.timestamp)
        queue = letters.queue
    rows = groups.rows()
    if as_json:
        names = ("origin", "messages", "oldest", "newest", "cause")
        print_json({"queue": queue, "groups": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    click.echo(f"{visible(queue)}: {amount(groups.total, _DEAD)}")
    if rows:
        table = [(origin or "unknown", oldest, newest, cause, number) for origin, number, oldest, newest, cause in rows]
        print_table(("origin", "oldest sent (UTC)", "newest sent (UTC)", "cause", "messages"), table, numbers=1)


@dlq.command()
@connection_options
@_choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", default=_SHOWN, show_default=True, help="At most N.")
@json_option
def show(login: Login, wanted: _Wanted, limit: int, as_json: bool) -> None:
    """Show dead letters with origin, cause, properties and body; the queue keeps them.

    \b
    pyjmsack dlq show --origin orders --limit 3
    pyjmsack dlq show --json
    """
    documents = []
    with _opened(login, wanted) as letters:
        for message in letters.browse(limit):
            noted = {"origin": origin_of(message, letters.queue), "cause": cause_of(message)}
            documents.append(noted | as_document(message))
    if as_json:
        print_json({"messages": documents})
        return
    for document in documents:
        click.echo("")
        for name, value in document.items():
            click.echo(visible(f"{name}: {value}"))


@dlq.command()
@connection_options
@_choosing
@moving_options
@click.option("--dry-run", is_flag=True, help="Say what would be sent back, and do nothing.")
@yes_option
@json_option
def retry(
    login: Login,
    wanted: _Wanted,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send dead letters back to the queue that each came from.

    \b
    pyjmsack dlq retry --origin orders
    pyjmsack dlq retry --older-than 1h --limit 100 --rate 10
    pyjmsack dlq retry --dry-run --json

    A message that fails again becomes a dead letter again, so fix the cause first. The broker sends them back itself
    where the user may manage it; otherwise, and with --limit, --rate or --transaction, this process does. A message
    loses its old duplicate id then, because the broker remembers the id and would drop the message.
    """
    with _opened(login, wanted) as letters:
        if dry_run:
            _say_what(letters, limit, "would be sent back to", as_json)
            return
        queue, choice, artemis = letters.queue, letters.choice, letters.artemis
        count = 0 if letters.absent else None
    if count is None and limit is None and rate is None and transaction is None and not choice.choosy:
        count = by_broker(
            login, wanted.jolokia, "Sent back by this process", lambda manager: manager.retry(queue, choice.selector)
        )
    by = "broker"
    if count is None:
        by = "client"
        strays = 0

        def target(message: Message) -> Queue | None:
            nonlocal strays
            if not choice.fits(message, queue):
                return None
            place = place_of(message, queue)
            strays += place is None
            return place

        job = Transfer(queue, target, choosy=not artemis, limit=limit, batch=transaction or DEFAULT_BATCH)
        with _opened(login, wanted) as letters:  # without an origin by the selector, so that all is atomic
            rounds = _rounds(letters, *(["_AMQ_ORIG_QUEUE IS NOT NULL"] if artemis else []))
            shown = letters.shown(limit, lambda message: place_of(message, queue) is not None)
        count = _run(job, rounds, login, rate, "Retrying", shown)
        if strays:
            remark(f"{strays:,} stay in {queue}, because nothing says where they came from.")
    if as_json:
        print_json({"queue": queue, "retried": count, "by": by})
    else:
        click.echo(f"Sent {amount(count, _DEAD)} back from {visible(queue)}, by the {by}.")


@dataclass(frozen=True)
class _Round:
    """Letters that are taken, by a selector, and how many at most."""

    selector: str
    limit: int | None = None


def _rounds(letters: _Letters, *parts: str) -> list[_Round]:
    """Return the rounds that take the dead letters which are in the queue now.

    A copy that this process sends may become a dead letter again. The first round does not take such a copy, because
    its time stamp is later than now. A letter of a sender whose clock is ahead also has a later time stamp. Such
    letters have a second round, which takes no more letters than there are now.
    """
    if letters.absent:
        return []
    now = int(time.time() * 1000)
    shared = [*filter(None, [letters.choice.selector]), *parts]
    rounds = [_Round(" AND ".join([*shared, f"JMSTimestamp <= {now}"]))]
    later = replace(letters.choice, selector=" AND ".join([*shared, f"JMSTimestamp > {now}"]))
    ahead = replace(letters, choice=later, checked=None)
    times: list[int] = []
    with suppress(UnsupportedFeatureException):  # STOMP on Artemis has no browser: such letters stay
        times = [round(each.timestamp.timestamp() * 1000) for each in ahead.browse(_AHEAD) if each.timestamp]
    if times:
        rounds.append(_Round(f"{ahead.choice.selector} AND JMSTimestamp <= {max(times)}", len(times)))
    if len(times) == _AHEAD:
        remark(f"Of the letters whose time stamp is ahead of this clock {_AHEAD} are taken: run the command again.")
    return rounds


def _run(job: Transfer, rounds: list[_Round], login: Login, rate: float | None, what: str, shown: int) -> int:
    """Run a job round by round; return how many letters were moved.

    Args:
        job: moves the letters.
        rounds: which letters are moved.
        login: how to connect.
        rate: letters a second; ``None`` = as many as possible.
        what: the word for the work in the display, such as ``Retrying``.
        shown: how many of the wanted letters a browser showed before. If fewer are moved, a remark says so.
    """
    wanted, moved, unsendable = job.limit, 0, 0
    with stop_on_signals() as stop, counting(what, wanted) as show_count:
        for each in rounds:
            left = None if wanted is None else wanted - moved
            limit = min((number for number in (left, each.limit) if number is not None), default=None)
            if stop.requested or limit == 0:
                break
            part = replace(job, selector=each.selector, limit=limit)
            moved += part.run(login, Pace(rate, stop), stop, show_count)
            unsendable += part.unsendable
    if moved + unsendable < shown and not stop.requested:
        remark(
            f"{shown - moved - unsendable:,} of {shown:,} were not moved, because another consumer of {job.source}"
            " holds them or took them: run the command again when no other one works on the dead letters."
        )
    return moved


def _say_what(letters: _Letters, limit: int | None, done: str, as_json: bool) -> None:
    counts: dict[str, int] = {}
    for message in letters.browse(limit):
        place = place_of(message, letters.queue)
        name = "" if place is None else place.name
        counts[name] = counts.get(name, 0) + 1
    if as_json:
        print_json({"queue": letters.queue, "dry_run": True, "targets": counts})
        return
    for name, count in sorted(counts.items()):
        told = f"{done} {visible(name)}" if name else "stay: nothing says where they came from"
        click.echo(f"{count:,} {told}")
    if not counts:
        click.echo("No dead letter fits these options.")


@dlq.command("move")
@click.argument("target")
@connection_options
@_choosing
@moving_options
@click.option("--dry-run", is_flag=True, help="Say how many would be moved, and do nothing.")
@yes_option
@json_option
def move_letters(
    target: str,
    login: Login,
    wanted: _Wanted,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move dead letters to the queue TARGET.

    \b
    pyjmsack dlq move orders.parked --origin orders
    """
    moved = _each_to(Queue(target), login, wanted, limit, rate, transaction, dry_run)
    if as_json:
        print_json({"target": target, "moved": moved, "dry_run": dry_run})
    else:
        click.echo(f"{'Would move' if dry_run else 'Moved'} {amount(moved, _DEAD)} to {visible(target)}.")


def _each_to(
    target: Queue,
    login: Login,
    wanted: _Wanted,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    dry_run: bool,
) -> int:
    with _opened(login, wanted) as letters:
        queue, choice = letters.queue, letters.choice
        if target.name == queue:
            raise click.UsageError(f"TARGET is the dead-letter queue {queue} itself")
        if dry_run:
            return sum(1 for _ in letters.browse(limit))
        rounds = _rounds(letters)
        shown = letters.shown(limit, lambda message: True)
    places: Target = lambda message: target if choice.fits(message, queue) else None  # noqa: E731 - one expression
    job = Transfer(queue, places, choosy=choice.choosy, limit=limit, batch=transaction or DEFAULT_BATCH)
    return _run(job, rounds, login, rate, "Moving", shown)


@dlq.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@connection_options
@_choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@json_option
def export_letters(file: Path | None, login: Login, wanted: _Wanted, limit: int | None, as_json: bool) -> None:
    """Write dead letters to FILE, or to standard output, as JSON lines; the queue keeps them.

    \b
    pyjmsack dlq export dead.jsonl --origin orders
    """
    with stop_on_signals() as stop, _opened(login, wanted) as letters:
        left = LeftOut(letters.queue)
        written = write_all(letters.browse(limit), opened_output(file, stop), left)
    if as_json and file is not None:
        print_json({"written": written, "file": str(file)})
    elif not left.count:
        remark(f"Exported {amount(written, _DEAD)}.")
    left.check(f"Exported {amount(written, _DEAD)}")


@dlq.command("purge")
@connection_options
@_choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@click.option("--dry-run", is_flag=True, help="Say how many would be destroyed, and do nothing.")
@yes_option
@json_option
def purge_letters(login: Login, wanted: _Wanted, limit: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Destroy dead letters, for ever.

    \b
    pyjmsack dlq export dead.jsonl --older-than 30d && pyjmsack dlq purge --older-than 30d --yes
    """
    with _opened(login, wanted) as letters:
        number = sum(1 for _ in letters.browse(limit))
        if not dry_run and number:
            ask_before(f"{amount(number, _DEAD)} of {letters.queue} will be destroyed.", yes)
            number = _destroy(letters, number)
    if as_json:
        print_json({"removed": 0 if dry_run else number, "found": number, "dry_run": dry_run})
    else:
        click.echo(f"{'Would remove' if dry_run else 'Removed'} {amount(number, _DEAD)}.")


def _destroy(letters: _Letters, number: int) -> int:
    """Take and acknowledge the chosen letters, no more than the number in the question to the user."""
    removed = left = 0
    with letters.connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE) as session:
        consumer = session.create_consumer(Queue(letters.queue), letters.choice.selector)
        receive: Callable[[], Message | None] = consumer.receive_nowait
        while removed < number and (message := receive()) is not None:
            if letters.choice.fits(message, letters.queue):
                message.acknowledge()
                removed += 1
            else:
                left += 1
                check_left(left, f"{amount(removed, _DEAD)} removed")
    return removed
