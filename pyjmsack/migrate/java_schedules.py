"""Reads the methods with ``@Scheduled``, and the times at which Spring runs each method."""

from __future__ import annotations

from typing import Final

from pyjmsack.migrate.java_tokens import Tokens, head_of, simple_name, split
from pyjmsack.migrate.java_values import Known, value_of
from pyjmsack.migrate.model import Findings, Place, Schedule, Verdict
from pyjmsack.migrate.values import Missing, milliseconds, resolve, shown

__all__ = ["read_schedules"]

_UNITS: Final = {
    "NANOSECONDS": 1e-9,
    "MICROSECONDS": 1e-6,
    "MILLISECONDS": 1e-3,
    "SECONDS": 1.0,
    "MINUTES": 60.0,
    "HOURS": 3600.0,
    "DAYS": 86_400.0,
}
_RATES: Final = ("fixedRate", "fixedRateString", "fixedDelay", "fixedDelayString")
_DELAYS: Final = ("initialDelay", "initialDelayString")
_LEAST: Final = 0.01
_LONGEST: Final = 31 * 86_400.0
_CALENDAR: Final = "app.every has no calendar: let cron, or a scheduler of your choice, call the function"
_NO_VALUE: Final = "the time is neither a literal nor a constant of these sources: write the seconds"
_RATE: Final = "seconds in Python; the function runs while the app runs, and never twice at the same time"
_FIXED_DELAY: Final = "seconds in Python; from the start of one run to the start of the next one, without overlaps"


class _Reader:
    def __init__(self, findings: Findings, file: str, tokens: Tokens, known: Known) -> None:
        self._findings = findings
        self._file = file
        self._tokens = tokens
        self._known = known

    def read(self) -> None:
        tokens = self._tokens
        index = 0
        while index < len(tokens.all):
            start, index = index, index + 1
            if not tokens.is_at(start, "@"):
                continue
            name, opening = simple_name(tokens, index)
            if name == "Scheduled" and tokens.is_at(opening, "("):
                self._schedule(Place(self._file, tokens.all[start].line), opening)
                index = tokens.after(opening)

    def _schedule(self, place: Place, opening: int) -> None:
        tokens, given = self._tokens, {}
        for part in split(tokens, tokens.inside(opening)):
            sides = split(tokens, part, "=")
            if len(sides) == 2 and len(sides[0]) == 1:
                given[tokens.all[sides[0].start].text] = sides[1]
        code = shown("code", tokens.source(tokens.inside(opening)))
        rate = next((name for name in _RATES if name in given), None)
        if rate is None:
            self._findings.add(place, "@Scheduled", code, Verdict.BY_HAND, "", _CALENDAR)
            return
        unit = tokens.all[given["timeUnit"].stop - 1].text if given.get("timeUnit") else "MILLISECONDS"
        delays = [name for name in _DELAYS if name in given]
        try:
            seconds = self._seconds(given[rate], unit)
            delay = self._seconds(given[delays[0]], unit) if delays else 0.0
            if not _LEAST <= seconds <= _LONGEST or not 0 <= delay <= _LONGEST:
                raise ValueError("app.every takes 0.01 seconds to 31 days")
        except (Missing, ValueError) as error:
            python = "app.every(seconds)"
            self._findings.add(place, f"@Scheduled.{rate}", code, Verdict.BY_HAND, python, str(error))
            return
        head = head_of(tokens, tokens.after(opening))
        schedule = Schedule(head.name if head is not None else "scheduled", place, seconds, delay)
        why = _FIXED_DELAY if rate.startswith("fixedDelay") else _RATE
        self._findings.add(place, f"@Scheduled.{rate}", code, Verdict.CHANGED, schedule.python("app"), why)
        self._findings.schedules.append(schedule)

    def _seconds(self, part: range, unit: str) -> float:
        """Return the time that a value of the annotation stands for, in seconds.

        Raises:
            Missing: a placeholder has no value.
            ValueError: the value is not a literal, or not a duration.
        """
        raw = value_of(self._tokens, part, Known(None, self._known.names))
        if raw is None or unit not in _UNITS:
            raise ValueError(_NO_VALUE)
        text = resolve(raw, self._known.properties or {}).strip()
        number = float(text) * _UNITS[unit] if text.isdecimal() else milliseconds(text) / 1000
        return round(number, 3)


def read_schedules(findings: Findings, file: str, tokens: Tokens, known: Known) -> None:
    """Read each ``@Scheduled`` of one file. Add a row to the findings, and a schedule if Python can run it.

    Args:
        known: the values of constants and properties.
    """
    _Reader(findings, file, tokens, known).read()
