"""From the tables of a ledger to one narrow row per message.

Ten million messages are grouped by the hash of their id, and every column is a fixed number of bytes: with strings as
keys or in the buffers Spark sorts, which takes three times as long. The 64-bit hashes of ten million ids collide with a
probability of 3e-6; whatever is suspicious is listed by its full id.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pyjmsack.spark.audit.outages import Outage

__all__ = ["BUCKETS_PER_E", "MODES", "Verdict", "judged", "key_of", "per_message", "receive_rows", "send_rows"]

BUCKETS_PER_E = 50
"""Latencies are counted in buckets whose limits are 2 % apart."""
MODES = 1000
"""Above any acknowledge mode: a mode and a protocol are one number."""
PROTOCOLS = ("amqp", "stomp")
_TOPIC = "topic://"


class Verdict(IntFlag):
    """What is to be said of a message."""

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


class _Seen(IntFlag):
    """What happened to a message, in one number that is or-ed together."""

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


PROCESSED = ("accepted", "presettled", "stale")
REFUSED = ("rejected", "modified_failed_undeliverable", "refused")


def key_of(column: str = "message_id") -> Column:
    """Return the key of a message."""
    return sf.xxhash64(column)


def _flag(condition: Column, flag: _Seen) -> Column:
    return sf.when(condition, int(flag)).otherwise(0)


def send_rows(sends: DataFrame) -> DataFrame:
    """Return the sends that have an id."""
    outcome, topic = sf.col("send_outcome"), sf.col("destination").startswith(_TOPIC)
    seen = (
        _flag(outcome == "confirmed", _Seen.CONFIRMED)
        + _flag(outcome == "unknown", _Seen.UNKNOWN)
        + _flag(outcome == "rolled_back", _Seen.ROLLED_BACK)
        + _flag(outcome == "failed", _Seen.FAILED)
        + _flag(topic, _Seen.TOPIC)
        + int(_Seen.SENT)
    )
    return sends.where("message_id is not null").select(
        key_of().alias("key"),
        seen.cast("long").alias("seen"),
        sf.lit(0).cast("long").alias("counts"),
        sf.xxhash64("producer_id").alias("producer"),
        sf.col("seq"),
        sf.lit(None).cast("long").alias("consumer"),
        sf.lit(None).cast("long").alias("delivery"),
        sf.unix_micros("t_send").alias("sent"),
        sf.lit(None).cast("long").alias("received"),
    )


def receive_rows(receives: DataFrame) -> DataFrame:
    """Return the deliveries that have an id; each subscription of a topic has a copy, so a key, of its own."""
    outcome, given = sf.col("ack_outcome"), sf.col("ordinal") > 0
    topic = sf.col("destination").startswith(_TOPIC)
    processed = given & outcome.isin(*PROCESSED)
    seen = (
        _flag(processed | (outcome == "skipped"), _Seen.ACKNOWLEDGED)
        + _flag(outcome.isin(*REFUSED), _Seen.REFUSED)
        + _flag(outcome == "unknown", _Seen.DOUBTED)
        + _flag(given & sf.col("redelivered"), _Seen.FLAGGED)
        + _flag(topic, _Seen.TOPIC)
        + int(_Seen.RECEIVED)
    )
    protocol = sf.when(sf.lower("protocol").startswith("stomp"), 1).otherwise(0)
    return receives.where("message_id is not null").select(
        sf.when(topic, sf.xxhash64("message_id", "destination")).otherwise(key_of()).alias("key"),
        seen.cast("long").alias("seen"),
        (processed.cast("long") * (1 << 32) + given.cast("long")).alias("counts"),
        sf.lit(None).cast("long").alias("producer"),
        sf.lit(None).cast("long").alias("seq"),
        sf.xxhash64("consumer_id").alias("consumer"),
        # the number among its consumer's deliveries, and mode and protocol in one
        (sf.col("ordinal") * (2 * MODES) + sf.col("ack_mode") * 2 + protocol).cast("long").alias("delivery"),
        sf.lit(None).cast("long").alias("sent"),
        sf.unix_micros("t_recv").alias("received"),
    )


def per_message(sends: DataFrame, receives: DataFrame) -> DataFrame:
    """Return one row for each message, and for each copy of a topic's."""
    return (
        send_rows(sends)
        .unionAll(receive_rows(receives))
        .groupBy("key")
        .agg(
            sf.bit_or("seen").alias("seen"),
            sf.sum("counts").alias("counts"),
            sf.max("producer").alias("producer"),
            sf.max("seq").alias("seq"),
            sf.max("consumer").alias("consumer"),
            sf.max("delivery").alias("delivery"),
            sf.min("sent").alias("sent"),
            sf.min("received").alias("received"),
        )
    )


def judged(messages: DataFrame, outages: Sequence[Outage]) -> DataFrame:
    """Return, for each message, ``verdict`` (:class:`Verdict`), ``mode`` (and protocol), ``phase``, ``bucket``.

    A message is out of order if its consumer was given a later one of the same producer before it. What was delivered
    more than once is not asked for its order: there the second time is another one by nature.
    """
    delivered = sf.col("counts").bitwiseAND((1 << 32) - 1)
    once = (delivered == 1) & ~_has(_Seen.FLAGGED) & sf.col("producer").isNotNull()
    before = (
        Window.partitionBy("producer", "consumer")
        .orderBy("delivery")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    verdict = _verdict(delivered).alias("verdict")
    narrow = messages.select(
        "key",
        verdict,
        sf.when(once, sf.col("producer")).alias("producer"),
        sf.when(once, sf.col("consumer")).alias("consumer"),
        "delivery",
        "seq",
        _phase(outages).alias("phase"),
        _bucket().alias("bucket"),
    )
    late = sf.col("producer").isNotNull() & (sf.max("seq").over(before) > sf.col("seq"))
    return narrow.select(
        "key",
        (sf.col("verdict") + sf.when(late, int(Verdict.OUT_OF_ORDER)).otherwise(0)).alias("verdict"),
        sf.when(sf.col("bucket").isNotNull(), sf.col("delivery") % (2 * MODES)).alias("mode"),
        sf.when(sf.col("bucket").isNotNull(), sf.col("phase")).alias("phase"),
        "bucket",
    )


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
        # an error may hide that the broker has the message: its arrival tells
        Verdict.IN_DOUBT: (_has(_Seen.UNKNOWN) | (_has(_Seen.FAILED) & _has(_Seen.RECEIVED))) & ~_has(_Seen.CONFIRMED),
        Verdict.TORN: _has(_Seen.ROLLED_BACK) & ~_has(_Seen.CONFIRMED, _Seen.UNKNOWN) & _has(_Seen.RECEIVED),
        Verdict.DEAD_LETTERED: _has(_Seen.REFUSED) & ~_has(_Seen.ACKNOWLEDGED),
        Verdict.UNSENT: ~_has(_Seen.SENT, _Seen.TOPIC),
        Verdict.DELIVERED: delivered > 0,
    }
    total = sf.lit(0)
    for verdict, condition in conditions.items():
        total = total + sf.when(condition, int(verdict)).otherwise(0)
    return total


def _bucket() -> Column:
    """Return the bucket of the time from a send to its first delivery, in microseconds; clocks may differ."""
    taken = sf.greatest(sf.col("received") - sf.col("sent"), sf.lit(1))
    return sf.floor(sf.log(taken.cast("double")) * BUCKETS_PER_E).cast("int")


def _phase(outages: Sequence[Outage]) -> Column:
    """Return where a message was: before, during (under way at any moment of it) or after an outage."""
    phase = sf.lit(2 * len(outages))
    for number, outage in reversed([*enumerate(outages)]):
        start, end = (int(time.timestamp() * 1_000_000) for time in (outage.start, outage.end))
        during = sf.when(sf.col("sent") <= end, 2 * number + 1).otherwise(phase)
        phase = sf.when(sf.col("received") < start, 2 * number).otherwise(during)
    return phase
