"""Reads dead letters as a table, and sends them back to their queues."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

__all__ = ["dead_letters", "send_back"]

_HOMELESS = {
    "have no origin": "origin is null",
    "come from a subscription, and their topic would deliver them to every subscriber": "origin like '%::%'",
}
"""The reasons why a dead letter cannot be sent back. Each reason has the SQL condition that finds the rows."""

_PLACE = ("received", "batch", "part", "idx")
"""The columns with the time of a row and its place in the drain. A repeated read with the same ``drainId`` gives the
same values.
"""


def _text(name: str) -> Column:
    """Return one of the columns ``_PLACE`` as text. A time becomes the text of a number, because its usual text depends
    on the time zone of the session.
    """
    return (f.expr("unix_micros(received)") if name == "received" else f.col(name)).cast("string")


def dead_letters(spark: SparkSession, **options: str) -> DataFrame:
    """Take the messages of a dead-letter queue. The column ``origin`` of a row names the queue that the letter came
    from.

    A second read with the same ``drainId`` gives the same rows, because the spool keeps the rows of all messages that
    left the queue. Therefore :func:`send_back` can be repeated after a crash.

    Args:
        spark: a session in which the format ``jms`` is registered.
        options: the options of a read in the mode ``drain``: ``url``, ``queue``, ``spoolLocation``, ``drainId``, and
            others.
    """
    return spark.read.format("jms").options(mode="drain", **options).load()


def send_back(letters: DataFrame, attempt: int = 1, to: str | None = None, **options: str) -> None:
    """Send dead letters to the queues that they came from. A repeated call sends no letter twice.

    Each letter gets a new duplicate id, because Artemis would accept and drop a letter with the old id. The new id is
    made from ``attempt``, the message id, and the place of the row in the read (``drainId``). The place is needed,
    because two letters may have the same message id.

    A letter that cannot be sent, because of what a stranger wrote into it, does not hold up the others. It stays in the
    spool of the drain.

    Args:
        letters: rows of :func:`dead_letters`, which may be changed or filtered.
        attempt: another number sends the same letters once more.
        to: the queue for all letters. ``None`` means that each letter goes to the queue in its column ``origin``.
        options: options of a write: ``url``, and the login. ``unsendable`` is ``failAtEnd`` unless given.

    Raises:
        pyspark.errors.PySparkException: letters cannot be sent, or the broker refused them. All others were sent. The
            text has their number, and the reason for the first one. The logs of the executors name each. Send refused
            letters again with another ``attempt``, because a repeated call may succeed without them.
        ValueError: a row has no origin or no message id, or comes from a subscription, whose topic would deliver the
            letter to all subscribers. Give ``to``, or filter these rows. Nothing was sent.
    """
    if count := letters.where("message_id is null").count():
        raise ValueError(
            f"{count} letters have no message id; filter them out, and write them with a dedupColumn of your own"
        )
    if to is None:
        for reason, condition in _HOMELESS.items():
            if count := letters.where(condition).count():
                raise ValueError(
                    f"{count} letters {reason}; filter them out, or give a queue for all letters with to=..."
                )
    place = [_text(name) for name in _PLACE if name in letters.columns]
    key = f.concat_ws(":", f.lit(f"replay:{attempt}"), f.col("message_id"), *place)
    target = f.col("origin") if to is None else f.lit(to)
    rows = letters.withColumns({"destination": target, "replay_id": key}).drop("origin")
    rows.write.format("jms").mode("append").options(
        **{"dedupColumn": "replay_id", "anyPropertyName": "true", "unsendable": "failAtEnd", **options}
    ).save()
