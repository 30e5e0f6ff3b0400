"""Makes one small row for each message from the tables of a ledger.

Messages are grouped by the hash of their id, and every column has a fixed number of bytes. With strings as keys or as
values Spark would sort the rows, which takes three times as long. The probability that two of ten million ids have the
same 64-bit hash is 3e-6. The report lists suspicious messages by their full ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pyjmsack.spark.audit.looking import Look
from pyjmsack.spark.audit.outages import Outage

__all__ = [
    "BUCKETS_PER_E",
    "PROTOCOLS",
    "Judgement",
    "Verdict",
    "judged",
    "key_of",
    "looked",
    "per_message",
    "receive_key",
]

BUCKETS_PER_E = 50
"""The number of buckets between a latency and ``e`` times this latency. With 50 buckets, each bucket ends 2 % above its
start.
"""
MODES = 1000
"""A number above every acknowledge mode. It is used to store another value and a mode as one number: the value times
``MODES``, plus the mode.
"""
PROTOCOLS = ("amqp", "stomp")
_TOPIC = "topic://"
_SPREAD = 4096


class Verdict(IntFlag):
    """The verdict on a message."""

    LOST = 1
    DUPLICATED = 2
    REDELIVERED = 4
    OUT_OF_ORDER = 8
    IN_DOUBT = 16
    ACK_IN_DOUBT = 32
    TORN = 64
    DEAD_LETTERED = 128
    UNSENT = 256
    DELIVERED = 512
    STILL_QUEUED = 1024
    UNKNOWN = 2048


_MODE, _PHASE, _BUCKET = 1 << 12, 1 << 24, 1 << 32
"""The factors of the mode, the phase and the bucket in the number of a judgement. The verdict has the lowest bits of
the number.
"""


class Judgement(NamedTuple):
    """The facts that the audit knows about a message, except its id. The rows hold a judgement as one number, and
    messages with the same number are counted together.
    """

    verdict: int
    timed: bool
    """Whether both the send and the delivery are known. Otherwise the fields that follow have no meaning."""
    mode: int
    """The acknowledge mode times 2, plus the place of the protocol in ``PROTOCOLS``."""
    phase: int
    bucket: int

    @classmethod
    def of(cls, number: int) -> Judgement:
        """Split the number into its parts."""
        verdict, mode, phase = number % _MODE, number % _PHASE // _MODE, number % _BUCKET // _PHASE
        return cls(verdict, number >= _BUCKET, mode, phase, number // _BUCKET - 1)


class _Seen(IntFlag):
    """The events of a message, as flags in one number."""

    CONFIRMED = 1
    UNKNOWN = 2
    ROLLED_BACK = 4
    TOPIC = 8
    SENT = 16
    RECEIVED = 32
    ACKNOWLEDGED = 64
    REFUSED = 128
    DOUBTED = 256
    FLAGGED = 512
    FAILED = 1024
    GIVEN = 2048
    PROCESSED = 4096


PROCESSED = ("accepted", "presettled", "stale")
REFUSED = ("rejected", "modified_failed_undeliverable", "refused")


def key_of(column: str = "message_id") -> Column:
    """Return the key of a message, which is the hash of its id."""
    return sf.xxhash64(column)


def receive_key() -> Column:
    """Return the key of a delivery. Each copy for a subscription of a topic has a key of its own."""
    topic = sf.col("destination").startswith(_TOPIC)
    return sf.when(topic, sf.xxhash64("message_id", "destination")).otherwise(key_of())


def _flag(condition: Column, flag: _Seen) -> Column:
    return sf.when(condition, int(flag)).otherwise(0)


def send_rows(sends: DataFrame) -> DataFrame:
    """Return the sends that have a message id. They have the same columns as the rows of :func:`receive_rows`."""
    outcome = sf.col("send_outcome")
    seen = (
        sf.when(outcome == "confirmed", int(_Seen.CONFIRMED))
        .when(outcome == "unknown", int(_Seen.UNKNOWN))
        .when(outcome == "rolled_back", int(_Seen.ROLLED_BACK))
        .when(outcome == "failed", int(_Seen.FAILED))
        .otherwise(0)
    )
    topic = _flag(sf.col("destination").startswith(_TOPIC), _Seen.TOPIC)
    return sends.where("message_id is not null").select(
        key_of().alias("key"),
        (seen + topic + int(_Seen.SENT)).cast("long").alias("seen"),
        sf.xxhash64("producer_id").alias("who"),
        sf.col("seq").alias("number"),
        sf.unix_micros("t_send").alias("time"),
    )


def receive_rows(receives: DataFrame) -> DataFrame:
    """Return the deliveries that have a message id, in small columns of numbers."""
    outcome, given = sf.col("ack_outcome"), sf.col("ordinal") > 0
    topic = sf.col("destination").startswith(_TOPIC)
    processed = sf.when(given, int(_Seen.ACKNOWLEDGED | _Seen.PROCESSED)).otherwise(0)
    seen = (
        sf.when(outcome.isin(*PROCESSED), processed)
        .when(outcome == "skipped", int(_Seen.ACKNOWLEDGED))
        .when(outcome.isin(*REFUSED), int(_Seen.REFUSED))
        .when(outcome == "unknown", int(_Seen.DOUBTED))
        .otherwise(0)
        + _flag(given & sf.col("redelivered"), _Seen.FLAGGED)
        + _flag(given, _Seen.GIVEN)
        + _flag(topic, _Seen.TOPIC)
        + int(_Seen.RECEIVED)
    )
    protocol = sf.when(sf.col("protocol").startswith("STOMP"), 1).otherwise(0)
    return receives.where("message_id is not null").select(
        receive_key().alias("key"),
        seen.cast("long").alias("seen"),
        sf.xxhash64("consumer_id").alias("who"),
        # one number has three parts: the place among the deliveries of the consumer, the mode and the protocol
        (sf.col("ordinal") * (2 * MODES) + sf.col("ack_mode") * 2 + protocol).cast("long").alias("number"),
        sf.unix_micros("t_recv").alias("time"),
    )


def per_message(sends: DataFrame, receives: DataFrame) -> DataFrame:
    """Return one row for each message, and for each copy that a subscription of a topic got.

    The rows are grouped after the shuffle only. Spark could group them in each task before the shuffle too, but this
    would take half of the time of the audit and save nothing, because the two rows of a key are nearly always in
    different tasks.
    """
    sent, received = _has(_Seen.SENT), _has(_Seen.RECEIVED)
    delivery = sf.when(_has(_Seen.PROCESSED), 1 << 32).otherwise(0) + sf.when(_has(_Seen.GIVEN), 1).otherwise(0)
    return (
        send_rows(sends)
        .unionAll(receive_rows(receives))
        .repartition("key")
        .groupBy("key")
        .agg(
            sf.bit_or("seen").alias("seen"),
            sf.sum(delivery).alias("counts"),
            sf.max(sf.when(sent, sf.col("who"))).alias("producer"),
            sf.max(sf.when(sent, sf.col("number"))).alias("seq"),
            sf.max(sf.when(received, sf.col("who"))).alias("consumer"),
            sf.max(sf.when(received, sf.col("number"))).alias("delivery"),
            sf.min(sf.when(sent, sf.col("time"))).alias("sent"),
            sf.min(sf.when(received, sf.col("time"))).alias("received"),
        )
    )


def judged(messages: DataFrame, outages: Sequence[Outage]) -> DataFrame:
    """Return, for each message, its ``key`` and ``judgement`` (:class:`Judgement` has its parts).

    A message is out of order if its consumer had already got a later message of the same producer. Messages with
    several deliveries are not checked, because a redelivery changes the order.
    """
    delivered = sf.col("counts").bitwiseAND((1 << 32) - 1)
    once = (delivered == 1) & ~_has(_Seen.FLAGGED) & sf.col("producer").isNotNull()
    # messages with one delivery have a key for producer and consumer; all others get many different keys, because with
    # one key one task would get them all
    pair = sf.when(once, sf.xxhash64("producer", "consumer")).otherwise(sf.pmod("key", sf.lit(_SPREAD)))
    narrow = messages.select(
        "key",
        (_verdict(delivered) + _timing(outages)).alias("judgement"),
        pair.alias("pair"),
        sf.when(once, sf.col("seq")).alias("seq"),
        "delivery",
    )
    before = Window.partitionBy("pair").orderBy("delivery").rowsBetween(Window.unboundedPreceding, -1)
    late = sf.max("seq").over(before) > sf.col("seq")
    return narrow.select(
        "key", (sf.col("judgement") + sf.when(late, int(Verdict.OUT_OF_ORDER)).otherwise(0)).alias("judgement")
    )


def looked(result: DataFrame, sends: DataFrame, look: Look) -> DataFrame:
    """Correct the verdict "lost" after a look into the queues of a broker.

    A message that the look saw is still queued. A message that the look did not see is unknown in two cases. In the
    first case, the message was confirmed after the look began. In the second case, the message was sent over another
    protocol than the protocol of the look, and the queues have ids that are not in the ledger. The broker shows such a
    message with a new id, therefore one of these ids may belong to the message.
    """
    ids = sends.sparkSession.createDataFrame(pa.table({"message_id": pa.array(look.ids, pa.string())}))
    there = ids.select(key_of().alias("key")).distinct()
    sent = sends.where("message_id is not null")
    after = sf.col("t_confirm") >= sf.lit(look.begun)
    if not there.join(sent.select(key_of().alias("key")), "key", "left_anti").isEmpty():
        after = after | ~sf.col("protocol").startswith(look.protocol)
    doubted = sent.where(after).select(key_of().alias("key")).distinct()
    lost = sf.col("judgement").bitwiseAND(int(Verdict.LOST)) != 0
    change = (
        sf.when(lost & sf.col("seen"), int(Verdict.STILL_QUEUED) - int(Verdict.LOST))
        .when(lost & sf.col("doubted"), int(Verdict.UNKNOWN) - int(Verdict.LOST))
        .otherwise(0)
    )
    marked = result.join(there.withColumn("seen", sf.lit(True)), "key", "left")
    marked = marked.join(doubted.withColumn("doubted", sf.lit(True)), "key", "left")
    return marked.select("key", (sf.col("judgement") + change).alias("judgement"))


def _has(*flags: _Seen) -> Column:
    return sf.col("seen").bitwiseAND(int(sum(flags))) != 0


def _verdict(delivered: Column) -> Column:
    processed = sf.shiftright("counts", 32)
    settled = _has(_Seen.ACKNOWLEDGED, _Seen.REFUSED)
    unanswered = _has(_Seen.CONFIRMED) & ~_has(_Seen.TOPIC) & ~settled
    conditions = {
        Verdict.LOST: unanswered & ~_has(_Seen.DOUBTED),
        Verdict.ACK_IN_DOUBT: unanswered & _has(_Seen.DOUBTED),
        Verdict.DUPLICATED: processed > 1,
        Verdict.REDELIVERED: (delivered > 1) | _has(_Seen.FLAGGED),
        # a failed send whose message arrived is in doubt too, because the broker has the message
        Verdict.IN_DOUBT: (_has(_Seen.UNKNOWN) | (_has(_Seen.FAILED) & _has(_Seen.RECEIVED))) & ~_has(_Seen.CONFIRMED),
        Verdict.TORN: _has(_Seen.ROLLED_BACK) & ~_has(_Seen.CONFIRMED, _Seen.UNKNOWN) & _has(_Seen.RECEIVED),
        Verdict.DEAD_LETTERED: _has(_Seen.REFUSED) & ~_has(_Seen.ACKNOWLEDGED),
        Verdict.UNSENT: ~_has(_Seen.SENT, _Seen.TOPIC),
        Verdict.DELIVERED: delivered > 0,
    }
    total = sf.lit(0).cast("long")
    for verdict, condition in conditions.items():
        total = total + sf.when(condition, int(verdict)).otherwise(0)
    return total


def _timing(outages: Sequence[Outage]) -> Column:
    """Return the part of a judgement with the time from a send to its first delivery. A time below 1 microsecond counts
    as 1 microsecond, because the clocks of two hosts may differ.
    """
    taken = sf.greatest(sf.col("received") - sf.col("sent"), sf.lit(1))
    bucket = sf.floor(sf.log(taken.cast("double")) * BUCKETS_PER_E).cast("long")
    mode = sf.col("delivery") % (2 * MODES)
    timing = (bucket + 1) * _BUCKET + _phase(outages) * _PHASE + mode * _MODE
    return sf.coalesce(timing, sf.lit(0).cast("long"))


def _phase(outages: Sequence[Outage]) -> Column:
    """Return the phase of a message, which is before, during or after an outage. A message that was on its way at any
    moment of an outage belongs to the outage.
    """
    phase = sf.lit(2 * len(outages))
    for number, outage in reversed([*enumerate(outages)]):
        start, end = (int(time.timestamp() * 1_000_000) for time in (outage.start, outage.end))
        during = sf.when(sf.col("sent") <= end, 2 * number + 1).otherwise(phase)
        phase = sf.when(sf.col("received") < start, 2 * number).otherwise(during)
    return phase
