"""Dead letters as a table, and back to where they came from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

__all__ = ["dead_letters", "send_back"]

_HOMELESS = {
    "have no origin": "origin is null",
    "come from a subscription, whose topic would hand them to every subscriber": "origin like '%::%'",
}
"""Letters that cannot go back by themselves: why not, and which they are."""


def dead_letters(spark: SparkSession, **options: str) -> DataFrame:
    """Take the messages of a dead-letter queue, as rows with ``origin``.

    Read again with the same ``drainId`` the rows are the same, so that :func:`send_back` can be repeated after a
    crash: the messages left the queue when they were durable in the spool.

    Args:
        spark: a session in which the format ``jms`` is registered.
        options: those of a drain: ``url``, ``queue``, ``spoolLocation``, ``drainId``, and more as you like.
    """
    return spark.read.format("jms").options(mode="drain", **options).load()


def send_back(letters: DataFrame, attempt: int = 1, to: str | None = None, **options: str) -> None:
    """Send dead letters to the queues they came from; nothing twice, however often it is repeated.

    Each gets the duplicate id ``replay:<attempt>:<message id>``. With its old one Artemis would accept it and drop it.

    Args:
        letters: rows of :func:`dead_letters`, repaired or filtered as you like.
        attempt: another number sends the same letters once more.
        to: send all of them there instead.
        options: those of a write: ``url``, and the login.

    Raises:
        ValueError: a row has no origin, or comes from a subscription, whose topic would hand it to everybody; then
            ``to`` is needed, or a filter; or has no message id to make a duplicate id of. Nothing was sent.
    """
    if count := letters.where("message_id is null").count():
        raise ValueError(f"{count} letters have no message id; filter them out, and write them with a key of yours")
    if to is None:
        for reason, condition in _HOMELESS.items():
            if count := letters.where(condition).count():
                raise ValueError(f"{count} letters {reason}; filter them out, or say where to with to=...")
    key = f.concat(f.lit(f"replay:{attempt}:"), f.col("message_id"))
    target = f.col("origin") if to is None else f.lit(to)
    rows = letters.withColumns({"destination": target, "replay_id": key}).drop("origin")
    rows.write.format("jms").mode("append").options(dedupColumn="replay_id", **options).save()
