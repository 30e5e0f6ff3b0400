"""Moves the dead letters that are in the queue now, and not those that become dead letters meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pyjmsack import UnsupportedFeatureException
from pyjmsack.cli.dlq.choosing import AHEAD, Letters
from pyjmsack.cli.errors import Stopped
from pyjmsack.cli.existing import out_of_sight
from pyjmsack.cli.managing import remark
from pyjmsack.cli.options import Login
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import counting
from pyjmsack.cli.transfer import Pace, Transfer
from pyjmsack.management import Manager

__all__ = ["Retried", "Round", "ask_to_retry", "rounds_of", "run_rounds"]


@dataclass(frozen=True)
class Retried:
    """The result of a retry or a move: how many letters went, how many of the chosen letters stay, and why."""

    count: int
    left: int = 0
    reasons: Sequence[str] = ()
    stopped: Stopped | None = None
    """The error to raise if a signal stopped the work."""


def ask_to_retry(manager: Manager, queue: str, selector: str | None) -> Retried:
    """Let the broker send letters back."""
    count = manager.retry(queue, selector)
    left = manager.count(queue, selector)
    missed = out_of_sight(manager.queue(queue), by="browser")
    if missed is not None and selector is not None:
        remark(f"{missed.why}.")  # nobody can tell whether the selector fits these messages
        missed = None
    reasons = [] if missed is None else [missed.why]
    stayed = left if missed is None else left - missed.number  # without a selector Artemis counts these messages too
    if stayed > 0:
        reasons.append(
            f"After the retry, {queue} has {stayed:,} of the chosen dead letters: nothing says where they came from,"
            " their queue does not exist any more, or they became dead letters again. With --transaction this process"
            " sends them back, and the broker may then create the queue that is missing"
        )
    return Retried(count, left if missed is None else max(left, missed.number), reasons)


@dataclass(frozen=True)
class Round:
    """One run over the queue: which letters it takes, and how many at most."""

    selector: str
    limit: int | None = None


def rounds_of(letters: Letters, *parts: str) -> list[Round]:
    """Return the rounds that take the chosen dead letters which are in the queue now.

    A copy that this process sends may become a dead letter again. The first round does not take such a copy, because
    its time stamp is later than now. But if the clock of a sender is ahead, its letters have a later time stamp too. A
    second round takes these letters, but at most as many as the queue has now.

    Args:
        letters: the chosen dead letters.
        parts: further conditions for the selectors of the rounds.
    """
    if letters.absent:
        return []
    now = int(time.time() * 1000)
    shared = [*filter(None, [letters.choice.selector]), *parts]
    rounds = [Round(" AND ".join([*shared, f"JMSTimestamp <= {now}"]))]
    later = replace(letters.choice, selector=" AND ".join([*shared, f"JMSTimestamp > {now}"]))
    ahead = replace(letters, choice=later, checked=None)
    times: list[int] = []
    with suppress(UnsupportedFeatureException):  # STOMP on Artemis has no browser: such letters stay
        times = [round(each.timestamp.timestamp() * 1000) for each in ahead.first(AHEAD) if each.timestamp]
    if times:
        rounds.append(Round(f"{ahead.choice.selector} AND JMSTimestamp <= {max(times)}", len(times)))
    if len(times) == AHEAD:
        remark(f"Only {AHEAD} of the letters with a time stamp in the future are taken: run the command again.")
    return rounds


def run_rounds(
    job: Transfer, rounds: list[Round], login: Login, rate: float | None, stop: Stop, what: str, shown: int
) -> int:
    """Run a job once for each round. Return how many letters were moved. Afterwards the job has the numbers of letters
    that could not be sent, or were refused, in all rounds.

    Args:
        job: moves the letters that fit one selector.
        rounds: the selectors and the limits of the rounds.
        login: how to connect.
        rate: letters a second. ``None`` means as many as possible.
        stop: ends the run between two letters.
        what: the word for the work in the display, such as ``Retrying``.
        shown: how many of the letters a browser showed before the run. If fewer are moved, a remark says so.
    """
    wanted, moved = job.limit, 0
    job.unsendable = job.refused = 0
    with counting(what, wanted) as show_count:
        for each in rounds:
            left = None if wanted is None else wanted - moved
            limit = min((number for number in (left, each.limit) if number is not None), default=None)
            if stop.requested or limit == 0:
                break
            part = replace(job, selector=each.selector, limit=limit, unsendable=0, refused=0)
            moved += part.run(login, Pace(rate, stop), stop, show_count)
            job.unsendable += part.unsendable
            job.refused += part.refused
    if moved + job.unsendable < shown and not stop.requested:
        remark(
            f"{shown - moved - job.unsendable:,} of {shown:,} were not moved, because another consumer of {job.source}"
            " holds them or took them: run the command again when no other command works on the dead letters."
        )
    return moved
