"""``pyjmsack purge``, ``pause`` and ``resume``: commands for a whole queue."""

from __future__ import annotations

import click

from pyjmsack.cli.managing import ask_before, jolokia_option, json_option, opened_manager, print_json, yes_option
from pyjmsack.cli.options import Login, connection_options, selector_option
from pyjmsack.cli.terminal import amount, visible

__all__ = ["pause", "purge", "resume"]


@click.command()
@click.argument("queue")
@connection_options
@jolokia_option
@selector_option
@click.option("--dry-run", is_flag=True, help="Say what is there, and destroy nothing.")
@yes_option
@json_option
def purge(
    queue: str, login: Login, jolokia: str | None, selector: str | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Destroy the messages of QUEUE, for ever. Messages that consumers hold stay.

    \b
    pyjmsack purge orders.test
    pyjmsack purge orders --selector "JMSPriority = 0" --yes

    `pyjmsack export QUEUE` keeps a copy in a file.
    """
    with opened_manager(login, jolokia) as manager:
        there = manager.queue(queue).messages
        which = "of which those that fit the selector are destroyed" if selector else "which are destroyed"
        removed = 0
        if not dry_run:
            ask_before(f"{queue} has {amount(there)}, {which}.", yes)
            removed = manager.purge(queue, selector)
    if as_json:
        print_json({"queue": queue, "messages": there, "removed": removed, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"{visible(queue)} has {amount(there)}, {which} without --dry-run.")
    else:
        click.echo(f"Removed {amount(removed)} from {visible(queue)}.")


@click.command()
@click.argument("queue")
@connection_options
@jolokia_option
@json_option
def pause(queue: str, login: Login, jolokia: str | None, as_json: bool) -> None:
    """Stop the deliveries of QUEUE. The queue still takes new messages. `pyjmsack resume` ends the pause.

    \b
    pyjmsack pause orders

    Artemis keeps the pause over a restart, ActiveMQ Classic does not.
    """
    with opened_manager(login, jolokia) as manager:
        manager.pause(queue)
    _say(queue, "paused", as_json)


@click.command()
@click.argument("queue")
@connection_options
@jolokia_option
@json_option
def resume(queue: str, login: Login, jolokia: str | None, as_json: bool) -> None:
    """Let a paused QUEUE deliver again.

    \b
    pyjmsack resume orders
    """
    with opened_manager(login, jolokia) as manager:
        manager.resume(queue)
    _say(queue, "resumed", as_json)


def _say(queue: str, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"queue": queue, "done": done})
    else:
        click.echo(f"{visible(queue)} is {done}.")
