"""``pyjmsack move`` and ``copy``: messages from one queue to another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

import click

from pyjmsack import (
    AckMode,
    Destination,
    JMSException,
    Queue,
    UnsupportedFeatureException,
)
from pyjmsack.cli.errors import fail_because
from pyjmsack.cli.existing import (
    OutOfSight,
    check_queue,
    check_target,
    create_option,
    left_behind,
    queue_name,
    target_by,
    unchecked_target,
)
from pyjmsack.cli.managing import by_broker, jolokia_option, json_option, print_json, remark
from pyjmsack.cli.options import Command, Login, connection_options, selector_option
from pyjmsack.cli.resending import died_of_age, renewed, send_options, unsendable
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import Counter, amount, counting, visible
from pyjmsack.cli.transfer import DEFAULT_BATCH, Pace, Transfer, check_apart
from pyjmsack.cli.whole import Whole
from pyjmsack.management import ManagementDeniedError, Manager

__all__ = ["copy", "move", "moving_options"]


def moving_options(command: Command) -> Command:
    """Add the options of commands that send messages from this process: ``limit``, ``rate``, ``transaction``."""
    for option in (
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N messages."),
        click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N a second."),
        click.option(
            "--transaction", type=click.IntRange(min=1), metavar="N", help=f"Commit every N messages; {DEFAULT_BATCH}."
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("source")
@click.argument("target")
@connection_options
@jolokia_option
@selector_option
@moving_options
@create_option
@json_option
def move(
    source: str,
    target: str,
    login: Login,
    jolokia: str | None,
    selector: str | None,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    create: bool,
    as_json: bool,
) -> None:
    """Move messages from the queue SOURCE to the queue TARGET.

    \b
    pyjmsack move orders.failed orders
    pyjmsack move orders orders.eu --selector "region = 'EU'" --limit 100
    pyjmsack move orders.failed orders --rate 50 --transaction 10

    The broker moves the messages itself if the user may manage the broker. Otherwise, and with --rate or --transaction,
    this process moves the messages in transactions. A kill at any time then loses no message and doubles none
    (docs/operating.md). A message that this protocol or broker cannot carry stays in SOURCE. If messages were left, or
    came while this process moved the others, the exit code is 1.
    """
    if source == target:
        raise click.UsageError("SOURCE and TARGET are the same queue")
    by, left, reasons, stopped = "broker", 0, list[str](), None
    answer: Destination | int | None
    names = partial(_check_names, source=source, target=target, create=create)
    if rate is None and transaction is None:
        work = partial(_ask_to_move, check=names, source=source, target=target, selector=selector, limit=limit)
        answer = by_broker(login, jolokia, "Moved by this process, without a check of the names", work)
    else:
        answer = by_broker(login, jolokia, "The names of the queues are not checked", names)
    if isinstance(answer, int):
        moved = answer
    else:
        by = "client"
        batch = transaction or DEFAULT_BATCH
        if answer is None:
            with login.factory().create_connection() as connection:
                answer = unchecked_target(connection, target)
        place = answer
        job = Transfer(source, lambda _: place, selector, limit=limit, batch=batch, only_target=place)
        with stop_on_signals() as stop, counting("Moving", limit) as show:
            moved = job.run(login, Pace(rate, stop), stop, show)
        left, reasons, stopped = job.not_sent, job.reasons(), stop.stopped()
    if moved != limit and stopped is None:
        missed = left_behind(login, jolokia, source, selector, left, by="broker" if by == "broker" else "consumer")
        if missed is not None:
            left += missed.number
            reasons.append(missed.why)
    _report("moved", source, target, moved, by, as_json, left=left)
    fail_because(reasons, stopped)


def _check_names(manager: Manager, *, source: str, target: str, create: bool) -> Destination:
    """Check that both queues exist, because a broker may create a queue for a misspelt name and move messages there.
    Return the destination that puts messages into the target."""
    manager.queue(queue_name(manager, source))
    return target_by(manager, target, create=create)


def _ask_to_move(
    manager: Manager,
    *,
    check: Callable[[Manager], Destination],
    source: str,
    target: str,
    selector: str | None,
    limit: int | None,
) -> int | Destination:
    """Ask the broker to move the messages, and return their number.

    A user may be allowed to look, but not to move. Then return the destination that puts messages into the target,
    because this process moves the messages, and Artemis confirms and drops a message for the wrong destination.
    """
    place = check(manager)
    try:
        return manager.move(queue_name(manager, source), queue_name(manager, target), selector, limit=limit)
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        remark(f"Moved by this process, because {error}.")
        return place


@click.command()
@click.argument("source")
@click.argument("target")
@connection_options
@jolokia_option
@selector_option
@moving_options
@create_option
@json_option
def copy(
    source: str,
    target: str,
    login: Login,
    jolokia: str | None,
    selector: str | None,
    limit: int | None,
    rate: float | None,
    transaction: int | None,
    create: bool,
    as_json: bool,
) -> None:
    """Copy messages from the queue SOURCE to the queue TARGET; SOURCE keeps them.

    \b
    pyjmsack copy orders orders.test --limit 10 --create
    pyjmsack copy orders audit --selector "amount > 1000" --json

    The copies are new messages with ids of their own. ActiveMQ Classic may show the first 400 messages only. A message
    that this protocol or broker cannot carry, or that nobody can decode, is left out, and the exit code is 1.
    """
    if source == target:
        raise click.UsageError("SOURCE and TARGET are the same queue")
    with stop_on_signals() as stop, counting("Copying", limit) as show:
        batch = transaction or DEFAULT_BATCH
        copied, odd, unreadable, missed = _copy(
            login, jolokia, source, target, create, selector, limit, batch, Pace(rate, stop), stop, show
        )
    left = odd + unreadable + (0 if missed is None else missed.number)
    _report("copied", source, target, copied, "client", as_json, left=left)
    why = []
    if odd:
        why.append(f"{amount(odd)} of {source} could not be copied, because this protocol or broker cannot carry them")
    if unreadable:
        why.append(f"{amount(unreadable)} of {source} could not be copied, because nobody can decode them")
    if missed is not None:
        why.append(missed.why)
    fail_because(why, stop.stopped())


def _copy(
    login: Login,
    jolokia: str | None,
    source: str,
    target: str,
    create: bool,
    selector: str | None,
    limit: int | None,
    batch: int,
    pace: Pace,
    stop: Stop,
    show: Counter,
) -> tuple[int, int, int, OutOfSight | None]:
    """Return how many messages were copied, how many cannot be sent, how many nobody can decode, and those
    that a browser does not show."""
    copied = under_way = odd = 0
    missed = None
    with login.factory().create_connection() as connection:
        connection.exception_listener = lambda error: None  # the browser raises the same error
        check_apart(connection, source, target)
        connection.start()
        checked = check_queue(connection, login, jolokia, source)
        place = check_target(connection, login, jolokia, target, create=create)
        whole = Whole(connection, source, selected=selector is not None, messages=checked.messages)
        looking = connection.create_session()
        browser = looking.create_browser(Queue(source), selector)
        with connection.create_session(AckMode.SESSION_TRANSACTED) as session:
            producer = session.create_producer(place)
            try:
                for message in islice(browser, limit):
                    if stop.requested:
                        break
                    expires = not died_of_age(message, source)
                    pace.wait()
                    try:
                        producer.send(renewed(message), **send_options(message, expires=expires))
                    except JMSException as error:
                        if not unsendable(error, message):
                            raise
                        if not odd:
                            remark(f"A message of {source} is not copied: {error}")
                        odd += 1
                        continue
                    under_way += 1
                    if under_way == batch:
                        session.commit()
                        copied, under_way = copied + under_way, 0
                        show(copied, "")
                session.commit()
            except JMSException:
                if copied or under_way:
                    remark(
                        f"The error came after {amount(copied)} had been copied. The same command copies them again."
                    )
                raise
        copied += under_way
        unreadable = browser.unreadable
        if copied + odd != limit and not stop.requested:
            whole.check(copied + odd + unreadable)
            missed = checked.out_of_sight()
    checked.warn_if_empty(copied + odd + unreadable)
    return copied, odd, unreadable, missed


def _report(done: str, source: str, target: str, count: int, by: str, as_json: bool, *, left: int) -> None:
    if as_json:
        print_json({"source": source, "target": target, done: count, "left": left, "by": by})
    else:
        click.echo(f"{done.capitalize()} {amount(count)} from {visible(source)} to {visible(target)}, by the {by}.")
