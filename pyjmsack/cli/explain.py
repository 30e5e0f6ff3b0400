"""``pyjmsack explain``: prints a rule; or, for a URL and a mode, prints who acknowledges a message and when."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from pyjmsack import AckMode
from pyjmsack.cli.options import DEFAULT_URL, destination_of
from pyjmsack.cli.terminal import stdout_console
from pyjmsack.explain import Explanation
from pyjmsack.explain import explain as explained
from pyjmsack.rules import Rule, nearest, rules

__all__ = ["explain"]

MODES = {
    "auto": AckMode.AUTO_ACKNOWLEDGE,
    "client": AckMode.CLIENT_ACKNOWLEDGE,
    "dups-ok": AckMode.DUPS_OK_ACKNOWLEDGE,
    "transacted": AckMode.SESSION_TRANSACTED,
    "individual": AckMode.INDIVIDUAL_ACKNOWLEDGE,
    "no-ack": AckMode.NO_ACKNOWLEDGE,
}
_EXPLICIT = (AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED, AckMode.INDIVIDUAL_ACKNOWLEDGE)
"""Modes in which the program acknowledges."""
_EXAMPLE = (10, 4)
"""The numbers of the example of a crash: the messages in the queue, and how many of them were received."""
_RULE = re.compile(r"[Ss](\d{1,6})")


@click.command()
@click.argument("destination", metavar="[RULE | DESTINATION]", default="orders")
@click.option("--url", envvar="PYJMSACK_URL", default=DEFAULT_URL, show_default=True, help="Broker and options.")
@click.option("--mode", type=click.Choice([*MODES]), default="auto", show_default=True, help="Mode of the session.")
@click.option("--topic", is_flag=True, help="DESTINATION is a topic.")
@click.option(
    "--broker",
    type=click.Choice(["artemis", "classic-5", "classic-6", "unknown"]),
    default="unknown",
    help="The broker at the URL; `pyjmsack doctor` names it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(destination: str, url: str, mode: str, topic: bool, broker: str, as_json: bool) -> None:
    """Explain a rule, or who acknowledges the messages of DESTINATION and what happens after a crash.

    `pyjmsack explain S15` prints rule S15 of docs/semantics.md, its reason and an example. With a rule, only --json has
    an effect.

    `pyjmsack explain orders` says who acknowledges, when, and what happens after a crash. DESTINATION may carry
    options, as in `orders?consumer.prefetchSize=10`.

    The command connects to nothing.
    """
    if cited := _RULE.fullmatch(destination):
        _show_rule(_rule(int(cited[1])), as_json)
        return
    explanation = explained(url, MODES[mode], destination_of(destination, topic), broker)
    if as_json:
        document = asdict(explanation) | {"mode": explanation.mode.name}
        click.echo(json.dumps(document, ensure_ascii=False, default=list))
    else:
        _show(explanation)


def _rule(number: int) -> Rule:
    if number in rules():
        return rules()[number]
    near = ", ".join(f"S{rule.number}" for rule in nearest(number))
    raise click.UsageError(f"there is no rule S{number}; the nearest: {near}")


def _show_rule(rule: Rule, as_json: bool) -> None:
    if as_json:
        document = {"rule": f"S{rule.number}"} | asdict(rule) | {"link": rule.link}
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    paragraphs = [f"S{rule.number}, {rule.state}: {rule.section}", *rule.text.split("\n\n")]
    paragraphs += [f"Why: {rule.why}", f"Example: {rule.example}", f"More: {rule.link}"]
    for paragraph in paragraphs:
        click.echo(paragraph if paragraph.startswith("|") else click.wrap_text(paragraph, 100))
        click.echo()


def _show(explanation: Explanation) -> None:
    table = Table(title=f"{explanation.mode.name} on {explanation.destination}, {explanation.protocol}", min_width=60)
    table.add_column("what", no_wrap=True)
    table.add_column("answer", overflow="fold", ratio=1)
    table.add_column("rules", no_wrap=True)
    for fact in explanation.facts:
        table.add_row(Text(fact.about), Text(fact.text), Text(fact.rules))
    stdout_console().print(table)
    click.echo(_example(explanation))


def _example(explanation: Explanation) -> str:
    """Describe by an example which messages are delivered again after a crash. Tests check the numbers of the
    example.
    """
    total, received = _EXAMPLE
    again = explanation.comes_again(total, received)
    held = " and acknowledged none" if explanation.mode in _EXPLICIT else ""
    what = "nothing comes again" if not again else f"{len(again)} of them come again, from number {again[0] + 1} on"
    return f"Example: a program that received {received} of {total} messages{held} is killed: {what}."
