"""JMS queues as a Spark data source: ``spark.dataSource.register(JmsDataSource)``, then the format ``jms``.

This package needs the extra ``pyjmsack[spark]``. ``import pyjmsack`` does not load this package.
"""

from __future__ import annotations

from pyjmsack.extras import missing_extra

try:
    import pyarrow  # noqa: F401 - raises the error that names the missing extra
    import pyspark  # noqa: F401 - raises the error that names the missing extra
except ImportError as missing:
    raise ImportError(missing_extra("spark", "pyjmsack.spark", missing)) from missing

from pyjmsack.spark.recovery import recover
from pyjmsack.spark.session import JavaError, check_java, local_session
from pyjmsack.spark.source import JmsDataSource

__all__ = ["JavaError", "JmsDataSource", "check_java", "local_session", "recover"]
