"""``JmsDataSource``, which a program registers with Spark."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyjmsack.spark.batch import batch_reader
from pyjmsack.spark.columns import spark_schema
from pyjmsack.spark.options import OptionError, parse_options
from pyjmsack.spark.stream import JmsStreamReader
from pyjmsack.spark.writer import JmsStreamWriter, JmsWriter

__all__ = ["JmsDataSource"]


class JmsDataSource(DataSource):
    """The format ``jms``: queues as streams, as batches, and as sinks. Options and columns: ``docs/spark.md``.

    Register it once per session with ``spark.dataSource.register(JmsDataSource)``; the package must be installed on
    all executors.

    Raises:
        OptionError: an option is unknown, missing or wrong; the text names the nearest right one.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "jms"

    def schema(self) -> str:
        """The columns of a read."""
        return spark_schema(self._options.includeBody)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        self._check_schema(schema)
        return batch_reader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        self._check_schema(schema)
        return JmsStreamReader(self._options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For ``df.write``."""
        if overwrite:
            raise OptionError('mode("overwrite"): a queue cannot be overwritten; use mode("append")')
        return JmsWriter(self._options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """For ``df.writeStream``."""
        return JmsStreamWriter(self._options, schema)

    def _check_schema(self, schema: StructType) -> None:
        given = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
        if given != self.schema():
            raise OptionError(f"the columns of a read are fixed; do not give a schema. They are {self.schema()}")
