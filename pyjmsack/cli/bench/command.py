"""The commands ``bench send``, ``bench receive`` and ``bench roundtrip``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from pyjmsack import JMSException
from pyjmsack.cli.bench.clients import Receiver, Roundtrip, Sender
from pyjmsack.cli.bench.own_queue import own_name, remove_queues
from pyjmsack.cli.bench.plan import Plan, Turns
from pyjmsack.cli.bench.report import as_document, as_report
from pyjmsack.cli.bench.run import Result, run_clients
from pyjmsack.cli.errors import Failure, as_click_error
from pyjmsack.cli.managing import ask_before, duration, jolokia_option, json_option, print_json, remark, yes_option
from pyjmsack.cli.options import Command, Login, connection_options
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import counting, stdout_console, visible

__all__ = ["bench"]

_COUNT = 10_000
_ROUNDTRIPS = 1_000
_STORED = 1 << 30
"""The largest number of bytes that a run stores in its own queue, because a broker with a full disk fails for all its
users."""
_OVERHEAD = 1024
"""The largest number of bytes that a broker needs for a message in addition to the body."""
_MOST_CLIENTS = 256
_LARGEST = 64 << 20

_SENT = "from the send to the broker's confirmation"
_RECEIVED = "how long each receive() took"
_CAME_BACK = "from the send to the arrival"


@click.group()
def bench() -> None:
    """Measure how fast this broker is, and how long a message takes.

    \b
    pyjmsack bench send --count 50000 --size 1024
    pyjmsack bench receive --clients 4
    pyjmsack bench roundtrip --rate 200 --seconds 30 --json

    Each run has a queue of its own, pyjmsack.bench.*, and removes it. A load test slows down everybody who works with
    the same broker.

    \b
    Exit codes: 0 done, 1 failed, 2 usage. Ctrl-C ends a run with the figures so far.
    """


def _plan_options(command: Command) -> Command:
    """Add the options that all runs have. The command gets a :class:`Plan` as ``plan``."""

    @functools.wraps(command)
    def with_plan(
        *args: Any,
        clients: int,
        size: int,
        count: int | None,
        seconds: float | None,
        rate: float | None,
        non_persistent: bool,
        **options: Any,
    ) -> Any:
        return command(*args, plan=Plan(clients, size, count, seconds, rate, not non_persistent), **options)

    made: Command = with_plan
    for option in (
        click.option("--non-persistent", is_flag=True, help="Faster; a restart of the broker loses such messages."),
        click.option(
            "--rate",
            type=click.FloatRange(0, 1e7, min_open=True),
            metavar="N",
            help="N messages a second, all clients together.",
        ),
        click.option("--seconds", type=duration, metavar="TIME", help="Stop after this time, such as 30 or 5m."),
        click.option("--count", type=click.IntRange(1, 10**9), metavar="N", help="Stop after N messages."),
        click.option(
            "--size", type=click.IntRange(0, _LARGEST), default=256, show_default=True, help="Bytes of each body."
        ),
        click.option(
            "--clients",
            type=click.IntRange(1, _MOST_CLIENTS),
            default=1,
            show_default=True,
            help="Connections that work at once, each in a thread.",
        ),
    ):
        made = option(made)
    return made


@bench.command()
@connection_options
@jolokia_option
@_plan_options
@click.option("--queue", metavar="NAME", help="Send to this queue, after a question, and leave the messages there.")
@yes_option
@json_option
def send(login: Login, jolokia: str | None, plan: Plan, queue: str | None, yes: bool, as_json: bool) -> None:
    """Measure how long sends take: the time from each send to the broker's confirmation.

    \b
    pyjmsack bench send
    pyjmsack bench send --size 10000 --seconds 30 --rate 500
    pyjmsack bench send --clients 4 --non-persistent --json
    """
    if queue is not None:
        ask_before(f"The messages of this run stay in {queue}.", yes)
        count = plan.count or (None if plan.seconds else _COUNT)
    else:
        count = _stored(plan)
    name = queue or own_name()
    with stop_on_signals() as stop:
        result, left = _with_own([] if queue else [name], login, jolokia, lambda: _sent(login, plan, name, count, stop))
    _finish("send", _SENT, plan, name, result, left, as_json)
    if queue is not None:
        remark(f"{result.done + result.unanswered:,} messages were left in {visible(queue)}.")
    elif result.done == count and plan.count is None and plan.seconds is not None:
        remark(f"Stopped at {count:,} messages: a queue of a run takes 1 GiB at most.")


def _stored(plan: Plan) -> int:
    """Return how many messages go into the queue of a run.

    Raises:
        UsageError: the messages would need too much space in the broker.
    """
    most = _STORED // (plan.size + _OVERHEAD)
    if plan.count is not None and plan.count > most:
        raise click.UsageError(
            f"{plan.count:,} messages of {plan.size:,} bytes need more than 1 GiB in the broker; give --count {most}"
            " or less, or use `bench roundtrip`, which keeps the queue short"
        )
    return plan.count or (most if plan.seconds else min(_COUNT, most))


def _sent(login: Login, plan: Plan, name: str, count: int | None, stop: Stop) -> Result:
    body = os.urandom(plan.size)  # random bytes, because compression on the way cannot shrink them
    clients = [Sender(plan, body, name) for _ in range(plan.clients)]
    with counting("Sending", count) as show:
        return run_clients(login, clients, Turns(count, plan.seconds, plan.rate), stop, show)


@bench.command()
@connection_options
@jolokia_option
@_plan_options
@click.option("--queue", metavar="NAME", help="Take and destroy the messages of this queue, after a question.")
@yes_option
@json_option
def receive(login: Login, jolokia: str | None, plan: Plan, queue: str | None, yes: bool, as_json: bool) -> None:
    """Measure receiving with acknowledgement. The run fills its own queue first; the time for this is not measured.

    \b
    pyjmsack bench receive
    pyjmsack bench receive --count 100000 --size 1000 --clients 4 --json
    pyjmsack bench receive --queue load.test --seconds 60
    """
    if queue is not None:
        ask_before(f"The messages that this run takes from {queue} are destroyed.", yes)
    name = queue or own_name()
    count = plan.count if queue else (plan.count or _COUNT)
    with stop_on_signals() as stop:
        result, left = _with_own(
            [] if queue else [name],
            login,
            jolokia,
            lambda: _received(login, plan, name, count, stop, fill=queue is None),
        )
    _finish("receive", _RECEIVED, plan, name, result, left, as_json)
    if queue is not None:
        remark(f"{result.done:,} messages of {visible(queue)} were destroyed.")


def _received(login: Login, plan: Plan, name: str, count: int | None, stop: Stop, *, fill: bool) -> Result:
    if fill:
        filling = Plan(plan.clients, plan.size, count, None, None, plan.persistent)
        filled = _sent(login, filling, name, _stored(filling), stop)
        if filled.error is not None or stop.requested:
            return Result(error=filled.error, stopped=stop.requested, connected=filled.connected)
    clients = [Receiver(plan, b"", name) for _ in range(plan.clients)]
    with counting("Receiving", count) as show:
        return run_clients(login, clients, Turns(count, plan.seconds, plan.rate), stop, show)


@bench.command()
@connection_options
@jolokia_option
@_plan_options
@json_option
def roundtrip(login: Login, jolokia: str | None, plan: Plan, as_json: bool) -> None:
    """Measure the time from the send of a message to its arrival.

    Each client has its own queue, and sends its next message when the last one has arrived.

    \b
    pyjmsack bench roundtrip
    pyjmsack bench roundtrip --rate 100 --seconds 60 --clients 2
    pyjmsack bench roundtrip --size 1000000 --count 100 --json

    With --rate the time of a message begins when the message is due, even if the client sends the message later. So the
    times show how long a pause of the broker delayed each message.
    """
    count = plan.count or (None if plan.seconds else _ROUNDTRIPS)
    name = own_name()
    names = [f"{name}.{number}" for number in range(plan.clients)]
    body = os.urandom(plan.size)

    def work() -> Result:
        clients = [Roundtrip(plan, body, each) for each in names]
        with counting("Round trips", count) as show:
            return run_clients(login, clients, Turns(count, plan.seconds, plan.rate), stop, show)

    with stop_on_signals() as stop:
        result, left = _with_own(names, login, jolokia, work)
    _finish("roundtrip", _CAME_BACK, plan, name, result, left, as_json)


def _with_own(
    names: list[str], login: Login, jolokia: str | None, work: Callable[[], Result]
) -> tuple[Result, list[str]]:
    """Call ``work``, and remove the queues of the run. Return the result, and the queues that may still have
    messages.
    """
    if names:
        remark(f"Queue of this run: {names[0] if len(names) == 1 else f'{names[0]} to {names[-1]}'}.")
    result = work()
    return result, remove_queues(login, jolokia, names) if names and result.connected else []


def _finish(
    what: str, meaning: str, plan: Plan, queue: str, result: Result, left: Sequence[str], as_json: bool
) -> None:
    """Show the figures of a run, and fail if the run failed.

    Raises:
        Failure: an error ended the run, or messages are left in a queue of the run.
    """
    if as_json:
        print_json(as_document(what, plan, queue, result, [*left]))
    elif result.done or result.error is None:
        stdout_console().print(as_report(what, meaning, plan, result))
    if result.error is not None:
        raise as_click_error(result.error) if isinstance(result.error, JMSException) else Failure(repr(result.error))
    if left:
        raise Failure(f"messages were left in {', '.join(left)}")
