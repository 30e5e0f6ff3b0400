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
    """The format ``jms``: queues as sources of streams and batches, and as sinks. ``docs/spark.md`` has the options and
    columns.

    Register the class once per session with ``spark.dataSource.register(JmsDataSource)``. The package must be installed
    on all executors.

    Args:
        options: the options of the query, as Spark gives them.

    Raises:
        OptionError: an option is unknown, missing or wrong. The text names the nearest known option.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "jms"

    def schema(self) -> str:
        """Return the columns of a read."""
        return spark_schema(self._options.includeBody)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for ``spark.read``.

        Args:
            schema: the columns, which must be those of :meth:`schema`.

        Raises:
            OptionError: the program gave other columns, or an option does not fit a batch.
        """
        self._check_schema(schema)
        return batch_reader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader for ``spark.readStream``.

        Args:
            schema: the columns, which must be those of :meth:`schema`.

        Raises:
            OptionError: the program gave other columns, or an option does not fit a stream.
        """
        self._check_schema(schema)
        return JmsStreamReader(self._options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer for ``df.write``.

        Args:
            schema: the columns of the data frame.
            overwrite: whether the program called ``mode("overwrite")``, which is refused.

        Raises:
            OptionError: the mode is ``overwrite``, or columns or options do not fit.
        """
        if overwrite:
            raise OptionError('mode("overwrite"): a queue cannot be overwritten; use mode("append")')
        return JmsWriter(self._options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer for ``df.writeStream``.

        Args:
            schema: the columns of the data frame.
            overwrite: ignored, because a stream always appends.

        Raises:
            OptionError: columns or options do not fit.
        """
        return JmsStreamWriter(self._options, schema)

    def _check_schema(self, schema: StructType) -> None:
        given = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
        if given != self.schema():
            raise OptionError(f"the columns of a read are fixed; do not give a schema. They are {self.schema()}")
