"""The four points of a pull at which something may be killed, and the format ``jms`` with a judge at them.

At each point of a pull the worker of a ``JudgedSource`` tells the judge where it is, and waits: it gets leave to go on,
or SIGKILL.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pyjmsack import JMSException, Queue, Session
from pyjmsack.spark import JmsDataSource
from pyjmsack.spark.options import Options
from pyjmsack.spark.spool import Spool
from pyjmsack.spark.stream import JmsStreamReader

BEFORE, SPOOLED, HALF, ACKED = POINTS = ("before the spool", "spooled, not acked", "half acked", "acked")
OPTION = "judge"
"""The option with the judge's port."""
PATIENCE = 60


@contextmanager
def points(reach: Callable[[str], None]) -> Iterator[None]:
    """Tell ``reach`` each point that the pulls of this process come to."""

    def before(point: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def reach_first(self_: Any, *arguments: Any, **named: Any) -> Any:
            reach(point)
            if point == SPOOLED:
                send_outcomes(self_)
                reach(HALF)
            return original(self_, *arguments, **named)

        return reach_first

    with ExitStack() as stack:
        for owner, name, point in ((Spool, "publish", BEFORE), (Session, "commit", SPOOLED), (Spool, "confirm", ACKED)):
            stack.enter_context(patch.object(owner, name, before(point, getattr(owner, name))))
        yield


def send_outcomes(session: Session) -> None:
    """A transaction has no half: the broker has the outcome of every message, and no discharge.

    When this is answered, what was sent before has arrived. A broker that was killed at the point before answers not.
    """
    try:
        session.create_consumer(Queue("any")).close()
    except JMSException:
        return


class JudgedSource(JmsDataSource):
    """``JmsDataSource``, whose streams ask a judge."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = dict(options)
        self._judge = int(given.pop(OPTION))
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "judged-jms"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return JudgedReader(self._options, self._judge)


class JudgedReader(JmsStreamReader):
    """Its pulls ask a judge."""

    def __init__(self, options: Options, judge: int) -> None:
        super().__init__(options)
        self._judge = judge

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with points(lambda point: ask(self._judge, partition.value[1], point)):
            yield from list(super().read(partition))


def ask(judge: int, pull: int, point: str) -> None:
    """Tell the judge where we are, and wait for leave to go on."""
    with socket.create_connection(("127.0.0.1", judge), PATIENCE) as asking:
        asking.sendall(json.dumps({"pid": os.getpid(), "pull": pull, "point": point}).encode() + b"\n")
        if not asking.recv(1):
            raise ConnectionError("the judge has left")
