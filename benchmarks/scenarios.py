"""What is measured, by whom, and which ratios are wanted."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.job import BenchmarkError


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    title: str
    sends: bool
    pipelined: bool
    raw_target: float  # our blocking face against python-qpid-proton


@dataclass(frozen=True)
class Peer:
    """One column of the table. The interpreter needs no warm-up; a JIT does."""

    name: str
    title: str
    ours: bool = False
    warmup: bool = False


SCENARIOS = (
    Scenario("send-async", "send_async, pipelined", sends=True, pipelined=True, raw_target=3.0),
    Scenario("receive", "receive, AUTO", sends=False, pipelined=True, raw_target=3.0),
    Scenario("listener", "listener, INDIVIDUAL", sends=False, pipelined=True, raw_target=3.0),
    Scenario("send", "send, one by one", sends=True, pipelined=False, raw_target=0.95),
)
PEERS = (
    Peer("sync", "pyjmsack", ours=True),
    Peer("aio", "pyjmsack.aio", ours=True),
    Peer("raw", "proton"),
    Peer("java", "Qpid JMS", warmup=True),
)
AIO_TARGET = 0.9  # the asyncio face against the blocking one
JAVA_TARGET = 1.0  # the aim of the blocking face against Qpid JMS


@dataclass(frozen=True)
class Settings:
    """How much is measured; ``counts`` and ``warmups`` by scenario, the latter for peers with a JIT."""

    size: int
    rounds: int
    counts: dict[str, int]
    warmups: dict[str, int]
    fill: str

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.size < 1 or min(self.counts.values()) < 1:
            raise BenchmarkError("rounds, size and counts start at 1")
