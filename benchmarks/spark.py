"""Spark: a stream from a queue and a write to one, beside a bare python-qpid-proton loop into a DataFrame."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from proton.handlers import MessagingHandler
from proton.reactor import Container
from pyspark.sql import SparkSession
from rich.table import Table

from benchmarks import environment
from benchmarks.job import BenchmarkError, Job
from benchmarks.peers import queues
from benchmarks.peers.terminus import CLIENT, Event, QueueSource, connect
from benchmarks.processes import empty
from benchmarks.report import verdict
from pyjmsack.spark import local_session

WANTED = {"stream": 15_000.0, "write": 11_000.0, "write, dedupColumn": 11_000.0}
"""Rows per second on two quiet cores."""
_PULL = 5000
_PREFETCH = 1000


@dataclass
class Result:
    """Rows per second of every round, by scenario, and the machine and versions behind them."""

    count: int
    size: int
    rounds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)
    """Microseconds of processor time a row, of broker, JVM and Python together: it depends less on the load."""
    machine: dict[str, Any] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def best(self, name: str) -> float:
        """Return the best round, because noise only ever slows down."""
        return max(self.rounds[name])

    def as_json(self) -> dict[str, Any]:
        """Return everything."""
        return asdict(self)

    def table(self) -> Table:
        """Return the table for people."""
        made = Table(title=f"rows per second, best of {len(self.loads)}; {self.count:,} messages of {self.size} bytes")
        for heading in ("scenario", "rows/s", "rows/s / wanted", "stream / this", "processor µs / row"):
            made.add_column(heading, justify="left" if heading == "scenario" else "right")
        for name in self.rounds:
            rate = self.best(name)
            wanted = verdict(rate / WANTED[name], 1) if name in WANTED else ""
            beside = verdict(self.best("stream") / rate, 1) if name == CLIENT else ""
            made.add_row(name, f"{rate:,.0f}", wanted, beside, f"{min(self.processor[name]):.0f}")
        made.caption = f"load of the machine at each round: {', '.join(f'{load:.1f}' for load in self.loads)}"
        return made


def measure(url: str | None, count: int, size: int, rounds: int, say: Callable[[str], None]) -> Result:
    """Run every scenario in turn, ``rounds`` times, after one that is not counted."""
    result = Result(count, size, machine=environment.machine(None))
    with environment.broker(url) as addresses, _session() as spark:
        for number in range(rounds + 1):
            for name, scenario in _SCENARIOS.items():
                say(f"round {number} of {rounds}: {name}")
                rate, used = scenario(spark, Job(name, addresses.tools, f"spark-{uuid.uuid4()}", count, size))
                if number:
                    result.rounds.setdefault(name, []).append(rate)
                    result.processor.setdefault(name, []).append(used * 1e6 / count)
            if number:
                result.loads.append(os.getloadavg()[0])
    return result


@contextmanager
def _session() -> Iterator[SparkSession]:
    with tempfile.TemporaryDirectory() as home:
        spark = local_session("local[2,4]", spark__sql__warehouse__dir=home)
        spark.sparkContext.setLogLevel("OFF")
        yield spark
        spark.stop()


Measured = tuple[float, float]
"""Rows per second, and seconds of processor time."""


def _processor() -> float:
    """Return the seconds of processor time that this process and all below it have used; 0 where there is no /proc."""
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            values = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(values[1])
            ticks[int(path.parent.name)] = sum(map(int, values[11:15]))
    ours = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks.get(number, 0) for number in ours) / os.sysconf("SC_CLK_TCK")


def _stream(spark: SparkSession, job: Job) -> Measured:
    """Return the rate of the micro-batches, from planning to sink, without the query's own start."""
    queues.SCENARIOS["fill-jms"](job)
    used = _processor()
    with tempfile.TemporaryDirectory() as home:
        options = {"url": job.url, "queue": job.queue, "spoolLocation": str(Path(home, "spool"))}
        frame = spark.readStream.format("jms").options(**options, maxMessagesPerPartition=str(_PULL)).load()
        sink = frame.writeStream.format("noop").option("checkpointLocation", str(Path(home, "checkpoint")))
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
    used = _processor() - used
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    rows = sum(progress["numInputRows"] for progress in batches)
    _check(job, "streamed", rows, left=0)
    return rows * 1000 / sum(progress["durationMs"]["triggerExecution"] for progress in batches), used


class _Reader(MessagingHandler):
    """Receives all messages and keeps the parts that a DataFrame needs."""

    def __init__(self, job: Job) -> None:
        super().__init__(prefetch=_PREFETCH)
        self.job = job
        self.rows: list[tuple[Any, Any, Any]] = []

    def on_start(self, event: Event) -> None:
        """Open connection and link."""
        connection = connect(event.container, self.job.url)
        event.container.create_receiver(connection, self.job.queue, options=QueueSource())

    def on_message(self, event: Event) -> None:
        """Keep one message; returning accepts it."""
        message = event.message
        self.rows.append((message.id, message.body, message.creation_time))
        if len(self.rows) == self.job.count:
            event.receiver.close()

    def on_link_closed(self, event: Event) -> None:
        """All acceptances have arrived."""
        event.connection.close()


def _bare(spark: SparkSession, job: Job) -> Measured:
    """Return the rate of a loop with python-qpid-proton, in the driver, whose rows become a DataFrame."""
    queues.SCENARIOS["fill-jms"](job)
    start, used = time.perf_counter(), _processor()
    reader = _Reader(job)
    Container(reader).run()
    ids, bodies, created = zip(*reader.rows, strict=True)
    table = pa.table({"message_id": ids, "body": bodies, "created": created})
    spark.createDataFrame(table).write.format("noop").mode("overwrite").save()
    seconds, used = time.perf_counter() - start, _processor() - used
    _check(job, "read", len(reader.rows), left=0)
    return job.count / seconds, used


def _write(spark: SparkSession, job: Job, **options: str) -> Measured:
    """Return the rate of a write, from the action to its end; every row is confirmed by the broker."""
    columns = [f"repeat('x', {job.size}) as body", f"concat('{job.queue}-', id) as key"]
    frame = spark.range(job.count, numPartitions=2).selectExpr(*columns)
    start, used = time.perf_counter(), _processor()
    given = frame if options else frame.drop("key")
    given.write.format("jms").mode("append").options(url=job.url, queue=job.queue, **options).save()
    seconds, used = time.perf_counter() - start, _processor() - used
    _check(job, "written", job.count, left=job.count)
    return job.count / seconds, used


def _check(job: Job, done: str, rows: int, left: int) -> None:
    """Raise unless nothing was lost or doubled; empties the queue."""
    found = empty(job.url, job.queue, left)
    if (rows, found) != (job.count, left):
        raise BenchmarkError(f"{rows} of {job.count} {done}, {found} left; expected {left}")


_SCENARIOS: dict[str, Callable[[SparkSession, Job], Measured]] = {
    "stream": _stream,
    CLIENT: _bare,
    "write": _write,
    "write, dedupColumn": lambda spark, job: _write(spark, job, dedupColumn="key"),
}
