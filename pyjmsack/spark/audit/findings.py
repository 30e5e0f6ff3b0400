"""Runs the audit on Spark: scans the tables, and groups the rows once by message and once by producer and consumer."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyjmsack import AckMode
from pyjmsack.ledger import SCHEMAS, LedgerFiles, read_ledgers
from pyjmsack.spark.audit.looking import Look
from pyjmsack.spark.audit.outages import Outage, find_outages, phase_name, unclosed
from pyjmsack.spark.audit.rows import (
    BUCKETS_PER_E,
    PROTOCOLS,
    Judgement,
    Verdict,
    judged,
    key_of,
    looked,
    per_message,
    receive_key,
)

__all__ = ["Audit", "Finding", "Latency", "run_audit"]

_TITLES = {
    Verdict.LOST: "confirmed, not acknowledged in these ledgers, and not in the queues",
    Verdict.STILL_QUEUED: "confirmed, not acknowledged, and in a queue",
    Verdict.UNKNOWN: "confirmed and not acknowledged; lost or still queued",
    Verdict.TORN: "in a transaction that was rolled back, or of which only a part arrived",
    Verdict.DUPLICATED: "processed more than once",
    Verdict.REDELIVERED: "delivered more than once",
    Verdict.OUT_OF_ORDER: "delivered after a later message of the same producer",
    Verdict.IN_DOUBT: "sent, and nobody knows whether the broker has it",
    Verdict.ACK_IN_DOUBT: "received in a transaction whose commit had no answer",
    Verdict.DEAD_LETTERED: "rejected, expired or over the redelivery limit",
    Verdict.UNSENT: "received without a send in these ledgers",
}
_UNANSWERED = Verdict.LOST | Verdict.STILL_QUEUED | Verdict.UNKNOWN
_TIMELINE_POINTS = 200
_MOST_KILLS = 50


@dataclass
class Finding:
    """A kind of suspicious messages, such as lost messages."""

    name: str
    title: str
    count: int = 0
    ids: list[str] = field(default_factory=list)
    """The ids of some of these messages."""


@dataclass(frozen=True)
class Latency:
    """Seconds from the send to the first delivery, exact to about 1 %. The clocks of two hosts may differ."""

    mode: str
    protocol: str
    phase: str
    count: int
    p50: float
    p90: float
    p99: float
    max: float
    buckets: dict[float, int]
    """The number of messages per bucket of latency."""


@dataclass
class Audit:
    """The findings of an audit."""

    paths: list[str]
    sends: dict[str, int]
    """Sends by outcome."""
    receives: dict[str, int]
    """Deliveries by outcome."""
    findings: dict[str, Finding]
    """The findings by name: ``lost``, ``still_queued``, ``unknown``, ``torn``, ``duplicated``, ``redelivered``,
    ``out_of_order``, ``in_doubt``, ``ack_in_doubt``, ``dead_lettered``, ``unsent``."""
    never_delivered: int
    """How many of the lost, queued and unknown messages were never delivered. All other messages of these kinds were
    delivered and not acknowledged.
    """
    latencies: list[Latency]
    outages: list[Outage]
    unclosed: list[str]
    """Connections that were not closed. The ledgers have no rows for messages that such a connection had not
    finished.
    """
    timeline: list[tuple[datetime, str, int]]
    """The points of the time line: ``(time, "sends" or "receives", messages per second)``."""
    kills: list[tuple[datetime, str]] = field(default_factory=list)
    """A pair for each connection that was not closed: the time of its last row, and its id."""
    look: Look | None = None
    """The content of the broker's queues when the audit looked into them. ``None`` if there was no look."""

    @property
    def lost(self) -> int:
        """The number of messages that were confirmed, that nobody acknowledged, and that are not in the queues."""
        return self.findings["lost"].count

    @property
    def queued(self) -> int:
        """The number of messages that were not acknowledged and are in the queues."""
        return self.findings["still_queued"].count

    @property
    def unknown(self) -> int:
        """The number of messages that were not acknowledged, and that may be lost or in a queue."""
        return self.findings["unknown"].count

    @property
    def verdict(self) -> str:
        """One sentence that counts the lost, the queued and the unknown messages."""
        torn = self.findings["torn"].count
        parts = []
        if self.unknown and not self.lost and not self.queued:
            parts.append(f"{self.unknown:,} either lost or still queued")
        elif self.lost or self.queued or self.unknown:
            unknown = f", {self.unknown:,} unknown" if self.unknown else ""
            parts.append(f"{self.lost:,} lost, {self.queued:,} still queued{unknown}")
        if torn:
            parts.append(f"{torn:,} torn")
        return f"{'; '.join(parts) or 'Nothing is lost'}."

    @property
    def next_step(self) -> str | None:
        """The next step for the user. ``None`` if there is nothing to do."""
        if self.unknown and self.look is None:
            return (
                "Next: run the audit again with --url URL, which asks the broker which of the messages are still in its"
                " queues; or count the messages in the queues yourself (pyjmsack stat, pyjmsack dlq ls) and give"
                " --still-queued N."
            )
        if self.unknown and self.look is not None and self.look.hidden is None:
            return f"Next: run the audit again as a user who may manage the broker, because {self.look.reason}."
        if self.unknown:
            return (
                "Next: stop the consumers, because they hold messages that a browser does not show, and run the audit"
                " again, over the protocol of the senders. Scheduled messages, and messages beyond the limit of a look,"
                " stay unknown."
            )
        if not self.ok:
            return (
                "Next: look for the listed ids in the logs of the broker and its clients, at the times of the outages."
                " Use --queue NAME to look into further queues."
            )
        if self.queued:
            return "Next: let a consumer take the messages that are still queued (pyjmsack browse QUEUE shows them)."
        return None

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, unknown or torn."""
        return not self.lost and not self.unknown and not self.findings["torn"].count


def run_audit(
    spark: SparkSession,
    paths: Sequence[str | os.PathLike[str]],
    *,
    suspects: int = 100,
    still_queued: int | None = None,
    look: Look | None = None,
) -> Audit:
    """Run an audit of ledgers. Give the ledgers of all producers and all consumers in one call.

    Args:
        spark: the session that runs the audit. Its executors read the directories of the ledgers.
        paths: the ledgers.
        suspects: the largest number of message ids to list for each finding.
        still_queued: how many messages are known to be in the queues and dead-letter queues.
        look: the content of the queues of the broker, from :func:`look_into`. Give either ``look`` or ``still_queued``.

    Raises:
        LedgerError: a path is not a ledger, or a ledger is damaged.
    """
    files = read_ledgers(paths)
    events = files.table("events").to_pylist()
    outages = find_outages(events)
    sends, receives = (_frame(spark, files, name) for name in ("sends", "receives"))
    judgements = judged(per_message(sends, receives), outages)
    if look is not None:
        judgements = looked(judgements, sends, look)
    result = _suspects_and_counts(judgements).persist()
    try:
        rows = result.groupBy("judgement").sum("count").collect()
        groups = [(Judgement.of(row.judgement), row["sum(count)"]) for row in rows]
        findings, never = _findings(groups)
        _list_suspects(spark, findings, result, sends, receives, suspects)
        _add_torn_transactions(findings["torn"], result, sends, suspects)
    finally:
        result.unpersist()
    if look is not None:
        _cannot_tell(findings, look.hidden)
    else:
        _believe(findings, still_queued)
    left_open = unclosed(events)
    width = _width(events)
    counts, timeline = _over_time({"sends": (sends, "t_confirm"), "receives": (receives, "t_recv")}, width)
    return Audit(
        [os.fspath(path) for path in paths],
        counts["sends"],
        counts["receives"],
        findings,
        never,
        _latencies(groups, len(outages)),
        outages,
        left_open,
        timeline,
        _kills(left_open, events, sends, receives),
        look,
    )


def _cannot_tell(findings: dict[str, Finding], hidden: int | None) -> None:
    """Change the verdict of at most ``hidden`` messages from lost to unknown, because a queue may have these messages
    although no browser shows them. ``None`` changes all lost messages.
    """
    lost, unknown = findings["lost"], findings["unknown"]
    count = lost.count if hidden is None else min(hidden, lost.count)
    if count == lost.count:  # if only a part of the lost messages is unknown, nobody knows the ids of that part
        unknown.ids, lost.ids = sorted(unknown.ids + lost.ids), []
    unknown.count += count
    lost.count -= count


def _believe(findings: dict[str, Finding], still_queued: int | None) -> None:
    """Change the verdict of at most ``still_queued`` messages from lost to still queued. If ``still_queued`` is
    ``None``, change all lost messages to unknown.
    """
    if still_queued is None:
        _cannot_tell(findings, None)
        return
    lost, queued = findings["lost"], findings["still_queued"]
    queued.count = min(still_queued, lost.count)
    lost.count -= queued.count
    if not lost.count:
        queued.ids, lost.ids = lost.ids, []


def _kills(
    left_open: list[str], events: list[dict[str, Any]], sends: DataFrame, receives: DataFrame
) -> list[tuple[datetime, str]]:
    """Return a pair for each connection that was not closed: the time of its last row, and its id."""
    if not left_open:
        return []
    last: dict[str, datetime] = {}
    for event in events:
        _later(last, event["connection_id"], event["time"])
    for frame, column in ((sends, "t_confirm"), (receives, "t_ack")):
        mine = frame.where(sf.col("connection_id").isin(left_open[:_MOST_KILLS]))
        moment = sf.unix_micros(sf.max(column)).alias("moment")
        for row in mine.groupBy("connection_id").agg(moment).collect():
            if row.moment is not None:
                _later(last, row.connection_id, _time(row.moment))
    return sorted((last[name], name) for name in left_open[:_MOST_KILLS])


def _later(last: dict[str, datetime], name: str, moment: datetime) -> None:
    last[name] = max(moment, last.get(name, moment))


def _frame(spark: SparkSession, files: LedgerFiles, name: str) -> DataFrame:
    """Return a table of the ledgers: the rows in Parquet files, and the few rows that are not in such a file yet."""
    table, parts = files.raw[name].cast(SCHEMAS[name]), files.parquet[name]
    raw = spark.createDataFrame(table)
    if not parts:
        return raw
    frame = spark.read.schema(raw.schema).parquet(*parts)  # with a given schema Spark need not open the files
    return frame.unionAll(raw) if table.num_rows else frame


def _suspects_and_counts(messages: DataFrame) -> DataFrame:
    """Return one row for each suspicious message, with its key. All other messages with the same judgement share one
    row with a count.
    """
    suspect = sf.when(_is(*_TITLES), sf.col("key")).alias("suspect")
    return messages.groupBy(suspect, "judgement").count()


def _is(*verdicts: Verdict) -> Column:
    return sf.col("judgement").bitwiseAND(sum(verdicts)) != 0


def _findings(groups: Iterable[tuple[Judgement, int]]) -> tuple[dict[str, Finding], int]:
    findings = {verdict: Finding(_name(verdict), title) for verdict, title in _TITLES.items()}
    never = 0
    for judgement, count in groups:
        for verdict, finding in findings.items():
            if judgement.verdict & verdict:
                finding.count += count
        if judgement.verdict & _UNANSWERED and not judgement.verdict & Verdict.DELIVERED:
            never += count
    return {finding.name: finding for finding in findings.values()}, never


def _name(verdict: Verdict) -> str:
    return str(verdict.name).lower()


def _list_suspects(
    spark: SparkSession,
    findings: dict[str, Finding],
    result: DataFrame,
    sends: DataFrame,
    receives: DataFrame,
    limit: int,
) -> None:
    """Find the ids of some suspicious messages by a second scan of the tables, because the first scan kept only the
    hashes of the ids.
    """
    keys: dict[str, list[int]] = {}
    for verdict in _TITLES:
        if findings[_name(verdict)].count and limit:
            chosen = result.where(_is(verdict)).select("suspect").limit(limit)
            keys[_name(verdict)] = [row.suspect for row in chosen.collect()]
    wanted = {key for some in keys.values() for key in some}
    ids = _ids(spark, sends.select(key_of().alias("key"), "message_id"), wanted)
    with_key = receives.withColumn("key", receive_key())
    ids.update(_ids(spark, with_key.select("key", "message_id"), wanted - ids.keys()))
    for name, some in keys.items():
        findings[name].ids = sorted(ids[key] for key in some)


def _ids(spark: SparkSession, rows: DataFrame, keys: set[int]) -> dict[int, str]:
    if not keys:
        return {}
    wanted = sf.broadcast(spark.createDataFrame([(key,) for key in keys], "key long"))
    return {row.key: row.message_id for row in rows.join(wanted, "key").distinct().collect()}


def _add_torn_transactions(torn: Finding, result: DataFrame, sends: DataFrame, limit: int) -> None:
    """Add the messages of torn transactions. A transaction in doubt is torn if only some of its messages arrived."""
    doubtful = sends.where("send_outcome = 'unknown' and transaction is not null").select(
        key_of().alias("suspect"), "message_id", "transaction"
    )
    if doubtful.isEmpty():
        return
    known = result.where(_is(Verdict.IN_DOUBT)).select("suspect", _is(Verdict.DELIVERED).alias("here"))
    rows = doubtful.join(known, "suspect").select("transaction", "message_id", "here").collect()
    transactions: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        transactions[row.transaction].append(row)
    for members in transactions.values():
        if len({row.here for row in members}) > 1:
            torn.count += len(members)
            torn.ids = sorted([*torn.ids, *(row.message_id for row in members)])[:limit]


def _latencies(groups: Iterable[tuple[Judgement, int]], outages: int) -> list[Latency]:
    histograms: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for judgement, count in groups:
        if judgement.timed:
            histograms[judgement.phase, judgement.mode][judgement.bucket] += count
    return [_latency(mode, phase_name(phase, outages), found) for (phase, mode), found in sorted(histograms.items())]


def _latency(code: int, phase: str, buckets: Counter[int]) -> Latency:
    total = buckets.total()
    mode, protocol = divmod(code, 2)
    p50, p90, p99, most = (_percentile(buckets, total, share) for share in (0.5, 0.9, 0.99, 1.0))
    histogram = {_seconds(bucket): buckets[bucket] for bucket in sorted(buckets)}
    return Latency(AckMode(mode).name, PROTOCOLS[protocol], phase, total, p50, p90, p99, most, histogram)


def _percentile(buckets: Counter[int], total: int, share: float) -> float:
    passed = 0
    for bucket in sorted(buckets):
        passed += buckets[bucket]
        if passed >= share * total:
            return _seconds(bucket)
    raise AssertionError(f"the buckets together hold fewer values than the share {share} of the total {total}")


def _seconds(bucket: int) -> float:
    return math.exp((bucket + 0.5) / BUCKETS_PER_E) / 1_000_000


def _width(events: list[dict[str, Any]]) -> float:
    """Return how many seconds each point of the time line covers."""
    times = [event["time"] for event in events]
    span = (max(times) - min(times)).total_seconds() if times else 0
    return max(0.1, span / _TIMELINE_POINTS)


def _over_time(
    tables: dict[str, tuple[DataFrame, str]], width: float
) -> tuple[dict[str, dict[str, int]], list[tuple[datetime, str, int]]]:
    """Return the number of rows by outcome, and the messages per second over time."""
    counts: dict[str, dict[str, int]] = {}
    timeline: list[tuple[datetime, str, int]] = []
    for name, (frame, time) in tables.items():
        outcome = next(column for column in frame.columns if column.endswith("_outcome"))
        slot = sf.floor(sf.unix_micros(time) / int(width * 1_000_000)).alias("slot")
        rows = frame.groupBy(slot, sf.col(outcome).alias("outcome")).count().collect()
        outcomes: Counter[str] = Counter()
        slots: Counter[int] = Counter()
        for row in rows:
            outcomes[row.outcome] += row["count"]
            slots[row.slot] += row["count"]
        points = with_zeros(slots)
        timeline += [(_time(slot * int(width * 1_000_000)), name, round(count / width)) for slot, count in points]
        counts[name] = dict(sorted(outcomes.items()))
    return counts, timeline


def with_zeros(slots: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the slots in order, with a zero at both ends of each gap, so that the line of the chart drops to zero."""
    points: list[tuple[int, int]] = []
    for slot in sorted(slots):
        if points and slot > points[-1][0] + 1:
            points += [(empty, 0) for empty in sorted({points[-1][0] + 1, slot - 1})]
        points.append((slot, slots[slot]))
    return points


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)
