"""Rows of readers, without a JVM: they are Python that Spark calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyjmsack.spark.options import Options
from pyjmsack.spark.pull import Place, read_pull

Row = dict[str, Any]


def read(reader: Any) -> list[Row]:
    """Return all rows of a batch reader."""
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def of_pull(options: Options, place: Place) -> list[Row]:
    """Return the rows of a pull."""
    return [row for batch in read_pull(options, place) for row in batch.to_pylist()]


def ids(rows: list[Row]) -> list[str]:
    """Return their message ids, sorted."""
    return sorted(row["message_id"] for row in rows)


def rows_of(**columns: list[Any]) -> Iterator[pa.RecordBatch]:
    """Return one batch with these columns, as a writer gets them."""
    return iter([pa.record_batch(columns)])
