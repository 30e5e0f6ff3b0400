"""``python -m benchmarks simulate``: many clients lose one broker at the same moment, and look for it until it is back.

The decisions are those of the library (``providers/failover/search.py``). Only the clock, the port and the broker's
logins are simulated, so a minute takes a second and needs no broker.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from rich.table import Table

from benchmarks.job import percentile
from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.failover.search import Search, Tried
from pyjmsack.spi.engine import Connector
from pyjmsack.uri import BrokerUrl, parse_url

CLIENTS = 1000
OUTAGES = (1.0, 10.0, 60.0)
_REFUSAL = 0.0005
"""Seconds until a closed port refuses."""
_BIN = 0.1
"""Seconds over which attempts are counted."""


@dataclass(frozen=True)
class Return:
    """How the clients come back. Times are in seconds from the first moment at which the port answers."""

    options: str
    outage: float
    clients: int
    login: float
    waits: list[float]
    """When each client makes the attempt that finds the broker."""
    ready: list[float]
    """When the broker has answered that login. It answers one after the other."""
    attempts: int
    busiest_away: int
    """The most attempts within 100 ms while there is no broker."""
    busiest_back: int
    """The most attempts within 100 ms from the port's answer on."""

    def as_json(self) -> dict[str, Any]:
        """Return plain data, with percentiles instead of each client."""
        told = asdict(self)
        for name in ("waits", "ready"):
            values = sorted(told.pop(name))
            told[name] = {f"p{share}": percentile(values, share / 100) for share in (50, 90, 99, 100)}
        return told


@dataclass
class _World:
    """The clock, and the broker behind its port."""

    outage: float
    login: float
    now: float = 0.0
    attempts: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    _free: float = 0.0
    _calls: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def call_later(self, delay: float, call: Callable[[], None]) -> _World:
        """Schedule a call; no call is ever cancelled here."""
        heapq.heappush(self._calls, (self.now + delay, next(self._numbers), call))
        return self

    def attempt(self, url: BrokerUrl, tried: Tried) -> None:
        """A client tries the port."""
        self.attempts.append(self.now)
        if self.now < self.outage:
            self.call_later(_REFUSAL, lambda: tried(ConnectionLostException("connection refused"), False))
            return
        self._free = max(self._free, self.now) + self.login
        self.waits.append(self.now - self.outage)
        self.ready.append(self._free - self.outage)
        tried(None, False)

    def run(self) -> None:
        """Make all calls, in order."""
        while self._calls:
            self.now, _, call = heapq.heappop(self._calls)
            call()


def simulate(options: str, outage: float, clients: int, login: float) -> Return:
    """Let all clients lose the broker at the moment 0.

    Args:
        options: the options of the ``failover:`` URL.
        outage: seconds until the port answers.
        clients: how many lose the broker at the same moment.
        login: seconds of the broker for one login.
    """
    url = parse_url(f"failover:(amqp://broker:5672)?failover.warnAfterReconnectAttempts=0&{options}".rstrip("&"))
    world = _World(outage, login)
    for _ in range(clients):
        Search(
            url.failover,
            cast(Connector, world),
            lambda rounds: url.members,
            world.attempt,
            _give_up,
            ConnectionLostException("the broker is gone"),
            first=False,
        ).start()
    world.run()
    busy = Counter(int((moment - outage) // _BIN) for moment in world.attempts)
    away, back = (max((n for place, n in busy.items() if (place >= 0) == late), default=0) for late in (False, True))
    return Return(options, outage, clients, login, world.waits, world.ready, len(world.attempts), away, back)


def _give_up(error: BaseException) -> None:
    """The search ended without a broker. The report has fewer clients then."""


def measure(options: Sequence[str], outages: Sequence[float], clients: int, login: float, seed: int) -> list[Return]:
    """Simulate each outage with each set of options."""
    random.seed(seed)
    return [simulate(one, outage, clients, login) for one in options for outage in outages]


def table(found: Sequence[Return]) -> Table:
    """Return a row for each outage."""
    made = Table(
        title=f"{found[0].clients:,} clients lose a broker at the same moment, which takes {found[0].login * 1e3:g} ms "
        "for a login",
        caption="Seconds from the first moment at which the port answers. Attempts are counted in 100 ms.",
    )
    made.add_column("options")
    for heading in ("outage", "found, p50", "p99", "last", "all ready", "attempts", "most, away", "most, back"):
        made.add_column(heading, justify="right")
    for one in found:
        waits = sorted(one.waits)
        made.add_row(
            one.options or "(none)",
            f"{one.outage:g} s",
            *(f"{percentile(waits, share):.2f}" for share in (0.5, 0.99, 1.0)),
            f"{max(one.ready):.2f}",
            *(f"{number:,}" for number in (one.attempts, one.busiest_away, one.busiest_back)),
        )
    return made
