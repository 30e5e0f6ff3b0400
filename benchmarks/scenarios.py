"""The measurements, their clients, and the ratios that we aim at."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.job import BenchmarkError


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    title: str
    sends: bool
    pipelined: bool
    raw_target: float | None  # our blocking face against the raw library; None = that cannot do the same
    url: str = "{url}"  # for our clients only: makes their URL from the broker's address
    variant_of: str | None = None  # the row that this one is compared with, both by our blocking face
    variant_target: float = 0.0
    ledger: bool = False  # ours only: whether it writes one
    fills: bool = True  # whether the queue is filled before. A topic needs its subscriber first
    same_job_as: str | None = None  # the row whose job the clients are told to do, if it is not one of its own
    destination: str = "{queue}"  # for our clients only: makes their destination from the queue's name
    limit_target: float | None = None  # our blocking face against a bare socket; None = not compared with one
    in_java: bool = False  # whether Qpid JMS does the same

    @property
    def job(self) -> str:
        """The tasks of the clients."""
        return self.same_job_as or self.name

    def includes(self, peer: Peer) -> bool:
        """Return True if a client does the same."""
        if peer.ours:
            return True
        if peer.name == "java":
            return self.in_java
        return (self.limit_target if peer.name == "limit" else self.raw_target) is not None


@dataclass(frozen=True)
class Peer:
    """One column of the table. The interpreter needs no warm-up; a JIT does."""

    name: str
    title: str
    ours: bool = False
    warmup: bool = False


_OURS = (Peer("sync", "pyjmsack", ours=True), Peer("aio", "pyjmsack.aio", ours=True))


def _scenarios(
    send_async: float, receive: float | None, listener: float, send: float, limit: float
) -> tuple[Scenario, ...]:
    return (
        _row("send-async", "send_async, pipelined", True, True, send_async, limit),
        _row("receive", "receive, AUTO", False, True, receive, limit),
        _row("listener", "listener, INDIVIDUAL", False, True, listener, limit),
        _row("send", "send, one by one", True, False, send, limit),
        _row("send-nonpersistent", "send, non-persistent", True, True, send, limit),
        _row("transacted", "send, 5 to a transaction", True, False),
        replace(_row("request", "request and reply", False, False), fills=False),
        replace(_row("request-many", "request and reply, 64 at a time", False, True), fills=False),
        _variant("receive-optimized", "receive, AUTO, optimizeAcknowledge", "{url}?jms.optimizeAcknowledge=true", 1.15),
        _variant("receive-failover", "receive, AUTO, failover:", "failover:({url})", 0.95),
        _variant("send-async-failover", "send_async, failover:", "failover:({url})", 0.95),
        *_marks(),
        Scenario("topic", "receive, topic, AUTO", False, True, None, fills=False),
        Scenario(
            "topic-dups-ok",
            "receive, topic, DUPS_OK",
            False,
            True,
            None,
            fills=False,
            variant_of="topic",
            variant_target=1.15,
        ),
        replace(_variant("send-async-ledger", "send_async, with a ledger", "{url}", 0.95), ledger=True),
        replace(_variant("receive-ledger", "receive, AUTO, with a ledger", "{url}", 0.95), ledger=True),
        *_traced(),
    )


def _row(
    name: str, title: str, sends: bool, pipelined: bool, raw: float | None = None, limit: float | None = None
) -> Scenario:
    return Scenario(name, title, sends, pipelined, raw, limit_target=limit, in_java=True)


def _traced() -> tuple[Scenario, ...]:
    """With OpenTelemetry, of which a tenth is sampled (``benchmarks/tracing.py``)."""
    url = "{url}?jms.tracing=opentelemetry"
    one_by_one = _variant("send-traced", "send, one by one, traced", url, 0.95)
    return (
        _variant("send-async-traced", "send_async, traced", url, 0.95),
        _variant("receive-traced", "receive, AUTO, traced", url, 0.95),
        replace(one_by_one, pipelined=False, variant_of="send", same_job_as="send"),
    )


def _marks() -> tuple[Scenario, ...]:
    """A failover URL costs a send two things: the duplicate mark, and the layer."""
    failover, marked, unmarked = "failover:({url})", "{queue}?" + _MARKS + "true", "{queue}?" + _MARKS + "false"
    rows = (
        ("send-async-marked", "send_async, with marks", "{url}", marked, "send-async"),
        ("send-async-failover-marked", "send_async, failover:, with marks", failover, marked, "send-async-marked"),
        ("send-async-failover-unmarked", "send_async, failover:, without marks", failover, unmarked, "send-async"),
    )
    return tuple(
        replace(_variant(name, title, url, 0.95), destination=destination, variant_of=base)
        for name, title, url, destination, base in rows
    )


def _engines(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """The rows that are compared with proton again, on proton's AMQP engine instead of our own."""
    return tuple(
        replace(
            row,
            name=f"{row.name}-proton",
            title=f"{row.title}, amqp.engine=proton",
            raw_target=None,
            limit_target=None,
            in_java=False,
            url="{url}?amqp.engine=proton",
            variant_of=row.name,
            same_job_as=row.name,
        )
        for row in scenarios
        if row.raw_target is not None
    )


_MARKS = "producer.duplicateDetection="


def _variant(name: str, title: str, url: str, target: float) -> Scenario:
    sends = name.startswith("send")
    base = "send-async" if sends else "receive"
    return Scenario(name, title, sends, True, None, url, variant_of=base, variant_target=target, same_job_as=base)


@dataclass(frozen=True)
class Protocol:
    """A table: its rows and columns."""

    scenarios: tuple[Scenario, ...]
    peers: tuple[Peer, ...]


_PROTON, _QPID_JMS, _STOMP_PY = Peer("raw", "proton"), Peer("java", "Qpid JMS", warmup=True), Peer("stompy", "stomp.py")
_ONE_CREDIT = _variant(
    "receive-one-credit", "receive, AUTO, amqp.singleCredit=always", "{url}?amqp.singleCredit=always", 0.0
)
"""The cost of safety from mixed-up messages at Artemis when another client is lost. It has no aim."""
_LIMIT = Peer("limit", "limit")
_AMQP = _scenarios(3.0, 3.0, 3.0, 0.95, 0.7)
PROTOCOLS = {
    "amqp": Protocol((*_AMQP, *_engines(_AMQP), _ONE_CREDIT), (*_OURS, _PROTON, _QPID_JMS, _LIMIT)),
    # stomp.py acknowledges by hand or not at all, so it has nothing like AUTO
    "stomp": Protocol(_scenarios(1.3, None, 2.0, 0.95, 0.8), (*_OURS, _STOMP_PY, _LIMIT)),
}
SCENARIOS = PROTOCOLS["amqp"].scenarios
PEERS = tuple(dict.fromkeys(peer for protocol in PROTOCOLS.values() for peer in protocol.peers))
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
    protocol: str = "amqp"

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.size < 1 or min(self.counts.values()) < 1:
            raise BenchmarkError("rounds, size and counts start at 1")
