"""The results of the measurements, and their judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.job import Timing
from benchmarks.scenarios import AIO_TARGET, JAVA_TARGET, Peer, Scenario, Settings


@dataclass(frozen=True)
class Round:
    """One measurement: a timing, or the reason why there is none. In :meth:`as_json` ``processor`` is the processor
    time of the client for a message, and ``p50`` and ``p99`` are round trips, all in microseconds.
    """

    timing: Timing | None = None
    error: str | None = None

    @property
    def rate(self) -> float | None:
        """Messages per second."""
        return None if self.timing is None else self.timing.count * 1e9 / self.timing.nanoseconds

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        if self.timing is None:
            return {"error": self.error}
        timing = self.timing
        told = {name: value / 1e3 for name in ("p50", "p99") if (value := getattr(timing, name))}
        cost = {"processor": timing.processor / 1e3 / timing.count} if timing.processor else {}
        return {"count": timing.count, "seconds": timing.nanoseconds / 1e9, "rate": self.rate, **cost, **told}


@dataclass(frozen=True)
class Ratio:
    """The ratio of two rates, and our aim for it."""

    name: str
    value: float
    target: float

    @property
    def met(self) -> bool:
        """Whether it is as wanted."""
        return self.value >= self.target

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"name": self.name, "value": self.value, "target": self.target, "met": self.met}


@dataclass
class Row:
    """Every round of one scenario."""

    scenario: Scenario
    count: int
    rounds: dict[str, list[Round]] = field(default_factory=dict)

    def add(self, peer: Peer, measured: Round) -> None:
        """Keep one measurement."""
        self.rounds.setdefault(peer.name, []).append(measured)

    def best(self, peer: str) -> float | None:
        """Return the best rate of a peer, because a disturbance only makes a measurement slower."""
        return max((one.rate for one in self.rounds.get(peer, ()) if one.rate is not None), default=None)

    def least(self, peer: str, field: str) -> float | None:
        """Return the least value that a peer has in :meth:`Round.as_json`, in microseconds."""
        found = (one.as_json().get(field) for one in self.rounds.get(peer, ()))
        return min((value for value in found if value is not None), default=None)

    def errors(self) -> list[str]:
        """Return the failures, each once."""
        failed = ((peer, one.error) for peer, rounds in self.rounds.items() for one in rounds if one.error is not None)
        return list(dict.fromkeys(f"{self.scenario.name}, {peer}: {error}" for peer, error in failed))

    def ratios(self) -> list[Ratio]:
        """Return the ratios for which both sides were measured."""
        raw, limit = self.scenario.raw_target or 0.0, self.scenario.limit_target or 0.0
        wanted = (
            ("sync", "raw", raw),
            ("sync", "stompy", raw),
            ("aio", "sync", AIO_TARGET),
            ("sync", "java", JAVA_TARGET),
            ("sync", "limit", limit),
        )
        return [ratio for pair in wanted if (ratio := self._ratio(*pair)) is not None]

    def _ratio(self, upper: str, lower: str, target: float) -> Ratio | None:
        ours, theirs = self.best(upper), self.best(lower)
        return None if ours is None or theirs is None else Ratio(f"{upper}/{lower}", ours / theirs, target)

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.scenario.name,
            "title": self.scenario.title,
            "count": self.count,
            "peers": {
                peer: {"best": self.best(peer), "rounds": [one.as_json() for one in rounds]}
                for peer, rounds in self.rounds.items()
            },
            "ratios": [ratio.as_json() for ratio in self.ratios()],
        }


@dataclass(frozen=True)
class Report:
    """One run of the benchmark."""

    settings: Settings
    machine: dict[str, Any]
    broker: str
    rows: Sequence[Row]
    seconds: float

    @property
    def clients(self) -> list[str]:
        """Return name and version of every client that was measured."""
        timings = (one.timing for row in self.rows for rounds in row.rounds.values() for one in rounds)
        return sorted({timing.client for timing in timings if timing is not None})

    @property
    def variants(self) -> list[Ratio]:
        """Return how our blocking face does with an option, against itself without."""
        rates = {row.scenario.name: row.best("sync") for row in self.rows}
        found = []
        for row in self.rows:
            scenario = row.scenario
            rate, base = rates[scenario.name], rates.get(scenario.variant_of or "")
            if rate is not None and base is not None:
                found.append(Ratio(scenario.title, rate / base, scenario.variant_target))
        return found

    @property
    def errors(self) -> list[str]:
        """Return every failed measurement."""
        return [error for row in self.rows for error in row.errors()]

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "machine": self.machine,
            "broker": self.broker,
            "clients": self.clients,
            "settings": asdict(self.settings),
            "seconds": self.seconds,
            "scenarios": [row.as_json() for row in self.rows],
            "variants": [ratio.as_json() for ratio in self.variants],
            "errors": self.errors,
        }
