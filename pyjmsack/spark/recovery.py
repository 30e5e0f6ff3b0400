"""Reads the rows that a query with a lost checkpoint left in the spool."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyjmsack.spark.columns import arrow_schema, spark_schema
from pyjmsack.spark.spool import PULLS

__all__ = ["recover"]


def recover(spark: SparkSession, spool_location: str | Path) -> DataFrame:
    """Return the rows in a spool. The messages of these rows are acknowledged, and perhaps not processed.

    A query whose checkpoint is lost leaves such rows, and the broker does not have the messages any more. This function
    reads the rows into the driver at once, and deletes nothing.

    Args:
        spark: the session that makes the data frame.
        spool_location: the directory that the query had as its option ``spoolLocation``.

    Returns:
        One row for each message. The column ``body`` is left out if a part of the spool does not have this column.
    """
    tables = []
    for path in sorted(Path(spool_location).glob(f"*/{PULLS}/*.arrow")):
        with pa.memory_map(str(path)) as source:
            tables.append(pa.ipc.open_file(source).read_all().replace_schema_metadata(None))
    if not tables:
        return spark.createDataFrame([], spark_schema(True))
    with_body = all("body" in table.schema.names for table in tables)
    found = pa.concat_tables([table.select(arrow_schema(with_body).names) for table in tables])
    return spark.createDataFrame(found, spark_schema(with_body))
