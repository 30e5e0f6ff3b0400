"""The run of one row: the state that the sending and the receiving end share, and the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyjmsack import AckMode, JMSException
from pyjmsack.cli.demo.killing import Kills
from pyjmsack.cli.demo.ledger import Ledger, ProcessingError
from pyjmsack.cli.demo.source import Line, Source
from pyjmsack.cli.options import Login

__all__ = ["LOOK_SECONDS", "Job", "Result"]

LOOK_SECONDS = 0.05
"""Seconds between two checks whether the job is done, while the sending or the receiving end waits."""


@dataclass
class Job:
    """The state that the sending and the receiving end of a row share. Each end has a connection of its own."""

    login: Login
    mode: AckMode
    queue: str
    source: Source
    ledger: Ledger
    patience: float
    """Seconds without an arrival after which missing lines count as lost."""
    kills: Kills = field(default_factory=Kills)
    """The kills of the broker during the run. Rows that run at the same time share the kills."""
    sent: int = 0
    confirmed: int = 0
    abandoned: bool = False
    """Whether the sending and the receiving end shall give up."""
    holding: bool = False
    """Whether the sending end waits for the last kill."""
    started: float = field(default_factory=time.monotonic)
    _error: JMSException | None = None

    def begin(self) -> None:
        """Remember that both ends are ready: the patience and the measured time start now."""
        self.started = self.ledger.last_arrival = time.monotonic()

    def on_exception(self, error: JMSException) -> None:
        """Keep an error of a connection, unless the demo raised the error on purpose. Both connections have this
        exception listener.
        """
        if not isinstance(error.__cause__, ProcessingError):
            self._error = self._error or error

    def waiting(self, sending: bool) -> bool:
        """Return whether the receiving end shall wait for more lines: not all lines have arrived, and the patience is
        not over.

        Args:
            sending: whether the sending end is still at work. If it is, the patience counts only while that end waits
                for a kill.

        Raises:
            JMSException: a connection reported an error.
        """
        if self._error is not None:
            raise self._error
        alive = max(self.ledger.last_arrival, self.kills.restarted)
        patient = (sending and not self.holding) or self.kills.outage or time.monotonic() - alive < self.patience
        self.abandoned = self.abandoned or not patient
        return not self.ledger.complete and not self.abandoned

    @property
    def portions(self) -> tuple[Sequence[Line], Sequence[Line]]:
        """The lines to send first, and the lines to send after the last kill of the broker.

        A killed broker may have lost acknowledgements for lines of the first part. The broker delivers these lines
        again before it delivers the second part.
        """
        lines = self.source.lines
        first = len(lines) * 9 // 10 if self.kills.left else len(lines)
        return lines[:first], lines[first:]

    def held(self) -> bool:
        """Whether the sender must wait with the second part of :attr:`portions`, because kills are left."""
        self.holding = self.kills.left > 0 and not self.abandoned
        return self.holding


@dataclass(frozen=True)
class Result:
    """The result of one row of the demo."""

    title: str
    mode: AckMode
    face: str
    protocol: str
    sent: int
    confirmed: int
    received: int
    redelivered: int
    lost: int
    kills: int
    seconds: float
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every line arrived unchanged, as the mode of the row promises."""
        return not self.problems

    @property
    def rate(self) -> float:
        """The number of lines per second, from the first send to the last acknowledgement."""
        return self.received / self.seconds if self.received and self.seconds > 0 else 0.0

    @classmethod
    def of(cls, job: Job, title: str, face: str, protocol: str, kills: int, left: int) -> Result:
        """Return the result of a finished job.

        Args:
            kills: how often the broker was killed.
            left: how many messages are still on the queue of the job.
        """
        ledger, total = job.ledger, len(job.source.lines)
        lost = total - ledger.received
        differing = ledger.differing()
        findings = (
            (lost, f"{lost} lines lost"),
            (total - job.confirmed, f"{total - job.confirmed} sends not confirmed"),
            (differing, f"{len(differing)} files differ, such as {differing[0] if differing else ''}"),
            (ledger.rolled_back_sends, f"{ledger.rolled_back_sends} rolled-back sends appeared"),
            (ledger.duplicates, f"{ledger.duplicates} lines came again without a reason"),
            (ledger.owed, f"{ledger.owed} rolled-back or failed messages did not come again"),
            (left, f"{left} messages left on the queue"),
        )
        problems = tuple(text for found, text in findings if found)
        counts = (job.sent, job.confirmed, ledger.received, ledger.redelivered, lost)
        return cls(title, job.mode, face, protocol, *counts, kills, ledger.last_arrival - job.started, problems)
