"""The commands of ``pyjmsack dlq``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from pyjmsack import AckMode, Destination, Message, Queue
from pyjmsack.cli.dlq.choosing import Letters, Wanted, choosing, opened_letters
from pyjmsack.cli.dlq.groups import Groups
from pyjmsack.cli.dlq.letters import Places, cause_of, origin_of, place_of
from pyjmsack.cli.dlq.moving import Retried, ask_to_retry, rounds_of, run_rounds
from pyjmsack.cli.errors import Failure, fail_because
from pyjmsack.cli.existing import check_target, create_option, left_behind
from pyjmsack.cli.export import LeftOut, file_argument, opened_output, write_all
from pyjmsack.cli.managing import (
    ask_before,
    by_broker,
    json_option,
    print_json,
    print_table,
    remark,
    yes_option,
)
from pyjmsack.cli.move import moving_options
from pyjmsack.cli.options import Login, connection_options
from pyjmsack.cli.receive_output import as_document
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import amount, visible
from pyjmsack.cli.transfer import DEFAULT_BATCH, Target, Transfer, check_left

__all__ = ["dlq"]

_SHOWN = 20
_DEAD = "dead letter"
_NONE_FITS = "No dead letter fits these options."
_no_question = click.option(
    "--yes", is_flag=True, help="Without effect: this command destroys nothing, and asks nobody."
)


@click.group()
def dlq() -> None:
    """Dead letters: list them by origin, show, retry, move, export, purge.

    \b
    pyjmsack dlq ls
    pyjmsack dlq show --origin orders --limit 5
    pyjmsack dlq retry --origin orders --dry-run
    """


class _Looking:
    """The dead letters that a browser shows. If the queue may have more, the command fails after it has printed these.

    Args:
        letters: the dead letters. The iterator may raise :class:`Failure` at its end.
    """

    def __init__(self, letters: Iterator[Message]) -> None:
        self._letters = letters
        self._failure: Failure | None = None

    def __iter__(self) -> Iterator[Message]:
        try:
            yield from self._letters
        except Failure as error:
            self._failure = error

    def check(self) -> None:
        """Raise the failure if there was one."""
        if self._failure is not None:
            raise self._failure


@dlq.command()
@connection_options
@choosing
@json_option
def ls(login: Login, wanted: Wanted, as_json: bool) -> None:
    """Count the dead letters by the queue that they came from, with their age and their cause.

    \b
    pyjmsack dlq ls
    pyjmsack dlq ls --older-than 1d --json
    """
    groups = Groups()
    with opened_letters(login, wanted) as letters:
        queue = letters.queue
        looking = _Looking(letters.browse())
        for message in looking:
            groups.add(origin_of(message, queue) or "", cause_of(message)[:200], message.timestamp)
        letters.warn_of_missed()
    rows = groups.rows()
    if as_json:
        names = ("origin", "messages", "oldest", "newest", "cause")
        print_json({"queue": queue, "groups": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        click.echo(f"{visible(queue)}: {amount(groups.total, _DEAD)}")
    if rows and not as_json:
        table = [(origin or "unknown", oldest, newest, cause, number) for origin, number, oldest, newest, cause in rows]
        print_table(("origin", "oldest sent (UTC)", "newest sent (UTC)", "cause", "messages"), table, numbers=1)
        if any(not origin for origin, *_ in rows) and "stomp" not in login.url.partition("?")[0]:
            remark(
                "The origin of some letters is unknown. If the broker is ActiveMQ Classic, a stomp:// URL shows the"
                " origin of letters that were sent over STOMP."
            )
    looking.check()


@dlq.command()
@connection_options
@choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", default=_SHOWN, show_default=True, help="At most N.")
@json_option
def show(login: Login, wanted: Wanted, limit: int, as_json: bool) -> None:
    """Show dead letters with origin, cause, properties and body; the queue keeps them.

    \b
    pyjmsack dlq show --origin orders --limit 3
    pyjmsack dlq show --json
    """
    documents = []
    with opened_letters(login, wanted) as letters:
        looking = _Looking(letters.browse(limit))
        for message in looking:
            noted = {"origin": origin_of(message, letters.queue), "cause": cause_of(message)}
            documents.append(noted | as_document(message))
        if len(documents) != limit:
            letters.warn_of_missed()
    if as_json:
        print_json({"messages": documents})
    elif not documents:
        click.echo(_NONE_FITS)
    for document in () if as_json else documents:
        click.echo("")
        for name, value in document.items():
            click.echo(visible(f"{name}: {value}"))
    looking.check()


@dlq.command()
@connection_options
@choosing
@moving_options
@click.option("--dry-run", is_flag=True, help="Say what would be sent back, and do nothing.")
@_no_question
@json_option
def retry(
    login: Login,
    wanted: Wanted,
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

    A message that fails again becomes a dead letter again, so fix the cause first. The broker sends the messages back
    itself if the user may manage the broker. Otherwise, and with --limit, --rate or --transaction, this process sends
    them back, without their old duplicate ids, because the broker remembers the ids and would drop the messages. If
    dead letters stay because they cannot be sent back, the exit code is 1.
    """
    with opened_letters(login, wanted) as letters:
        if dry_run:
            _say_what(letters, limit, login, as_json)
            return
        queue, choice = letters.queue, letters.choice
        done = Retried(0) if letters.absent else None
    if done is None and limit is None and rate is None and transaction is None and not choice.choosy:
        ask = partial(ask_to_retry, queue=queue, selector=choice.selector)
        done = by_broker(login, wanted.jolokia, "Sent back by this process", ask)
    by = "broker"
    if done is None:
        by = "client"
        with stop_on_signals() as stop:
            done = _retry_here(login, wanted, limit, rate, transaction, stop)
    if as_json:
        print_json({"queue": queue, "retried": done.count, "left": done.left, "by": by})
    else:
        click.echo(f"Sent {amount(done.count, _DEAD)} back from {visible(queue)}, by the {by}.")
    fail_because(done.reasons, done.stopped)


def _retry_here(
    login: Login, wanted: Wanted, limit: int | None, rate: float | None, transaction: int | None, stop: Stop
) -> Retried:
    """Send the chosen letters back from this process."""
    with opened_letters(login, wanted) as letters:  # on Artemis the selector leaves out letters without an origin
        queue, choice, artemis = letters.queue, letters.choice, letters.artemis
        rounds = rounds_of(letters, *(["_AMQ_ORIG_QUEUE IS NOT NULL"] if artemis else []))
        shown = letters.shown(limit, lambda message: place_of(message, queue) is not None)
    with Places(login, queue, artemis=artemis) as places:
        target: Target = lambda message: places.of(message) if choice.fits(message, queue) else None  # noqa: E731
        job = Transfer(queue, target, choosy=not artemis, limit=limit, batch=transaction or DEFAULT_BATCH)
        job.each_its_own = True
        count = run_rounds(job, rounds, login, rate, stop, "Retrying", shown)
    done = Retried(count, job.not_sent + places.left, [*job.reasons(), *places.reasons()])
    return _ended(done, letters, login, wanted, limit, stop)


def _ended(done: Retried, letters: Letters, login: Login, wanted: Wanted, limit: int | None, stop: Stop) -> Retried:
    """Return the result together with the letters that this process could not see, and with the signal that stopped
    the work.
    """
    if done.count != limit and not stop.requested:
        if letters.absent or letters.chosen:
            missed = letters.missed(earlier=False)
        else:
            missed = left_behind(login, wanted.jolokia, letters.queue, None, done.left, by="consumer")
        if missed is not None:
            done = replace(done, left=done.left + missed.number, reasons=[*done.reasons, missed.why])
    return replace(done, stopped=stop.stopped())


def _say_what(letters: Letters, limit: int | None, login: Login, as_json: bool) -> None:
    counts: dict[str, int] = {}
    with Places(login, letters.queue, artemis=letters.artemis) as places:
        for message in letters.browse(limit):
            place = places.of(message)
            name = "" if place is None else place.name
            counts[name] = counts.get(name, 0) + 1
    if as_json:
        print_json({"queue": letters.queue, "dry_run": True, "targets": counts})
        return
    for name, count in sorted(counts.items()):
        told = f"would be sent back to {visible(name)}" if name else "stay"
        click.echo(f"{count:,} {told}")
    for reason in places.reasons():
        remark(f"{reason}.")
    if not counts:
        click.echo(_NONE_FITS)


@dlq.command("move")
@click.argument("target")
@connection_options
@choosing
@moving_options
@create_option
@click.option("--dry-run", is_flag=True, help="Say how many would be moved, and do nothing.")
@_no_question
@json_option
def move_letters(
    target: str,
    login: Login,
    wanted: Wanted,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    create: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move dead letters to the queue TARGET.

    \b
    pyjmsack dlq move orders.parked --origin orders --create
    """
    with stop_on_signals() as stop:
        done = _each_to(target, login, wanted, limit, rate, transaction, stop, create, dry_run)
    if as_json:
        print_json({"target": target, "moved": done.count, "left": done.left, "dry_run": dry_run})
    else:
        click.echo(f"{'Would move' if dry_run else 'Moved'} {amount(done.count, _DEAD)} to {visible(target)}.")
    fail_because(done.reasons, done.stopped)


def _each_to(
    target: str,
    login: Login,
    wanted: Wanted,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    stop: Stop,
    create: bool,
    dry_run: bool,
) -> Retried:
    """Move the chosen letters from this process."""
    with opened_letters(login, wanted) as letters:
        queue, choice = letters.queue, letters.choice
        if Queue(target).name == queue:
            raise click.UsageError(f"TARGET is the dead-letter queue {queue} itself; expected another queue")
        place: Destination = Queue(target)
        if not (create and dry_run):
            place = check_target(letters.connection, login, wanted.jolokia, target, create=create)
        if dry_run:
            return Retried(sum(1 for _ in letters.browse(limit)))
        rounds = rounds_of(letters)
        shown = letters.shown(limit, lambda message: True)
    places: Target = lambda message: place if choice.fits(message, queue) else None  # noqa: E731 - one expression
    job = Transfer(queue, places, choosy=choice.choosy, limit=limit, batch=transaction or DEFAULT_BATCH)
    job.only_target = place
    moved = run_rounds(job, rounds, login, rate, stop, "Moving", shown)
    return _ended(Retried(moved, job.not_sent, job.reasons()), letters, login, wanted, limit, stop)


@dlq.command("export")
@file_argument
@connection_options
@choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@json_option
def export_letters(file: Path | None, login: Login, wanted: Wanted, limit: int | None, as_json: bool) -> None:
    """Write dead letters to FILE, or to standard output (`-`), as JSON lines; the queue keeps them.

    \b
    pyjmsack dlq export dead.jsonl --origin orders
    """
    with stop_on_signals() as stop, opened_letters(login, wanted) as letters:
        left = LeftOut(letters.queue)
        with opened_output(file, stop) as output:
            written = write_all(letters.browse(limit), output, left, lambda _: stop.requested)
            left.unreadable = letters.unreadable
            if written + left.all != limit and not stop.requested:
                left.out_of_sight = letters.missed()
    if as_json and file is not None:
        print_json({"written": written, "file": str(file)})
    elif left.nothing:
        remark(f"Exported {amount(written, _DEAD)}.")
    left.check(f"Exported {amount(written, _DEAD)}", stop)


@dlq.command("purge")
@connection_options
@choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N.")
@click.option("--dry-run", is_flag=True, help="Say how many would be destroyed, and do nothing.")
@yes_option
@json_option
def purge_letters(login: Login, wanted: Wanted, limit: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Destroy dead letters for ever.

    \b
    pyjmsack dlq purge --origin orders --older-than 30d --dry-run
    pyjmsack export DLQ dead.jsonl --take

    The second line keeps a copy of each letter that it removes. `dlq export` and then `dlq purge` would destroy letters
    that come between the two commands, also with --older-than, because the age counts from the send: a message that was
    sent long ago may become a dead letter now.
    """
    with opened_letters(login, wanted) as letters:
        number = sum(1 for _ in letters.browse(limit))
        if number != limit:
            letters.warn_of_missed()
        if not dry_run and number:
            ask_before(f"{amount(number, _DEAD)} of {letters.queue} will be destroyed.", yes)
            number = _destroy(letters, number)
    if as_json:
        print_json({"removed": 0 if dry_run else number, "found": number, "dry_run": dry_run})
    else:
        click.echo(f"{'Would remove' if dry_run else 'Removed'} {amount(number, _DEAD)}.")


def _destroy(letters: Letters, number: int) -> int:
    """Take and acknowledge the chosen letters, but no more than ``number``, because the user agreed to this number.
    Return how many letters were destroyed.
    """
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
