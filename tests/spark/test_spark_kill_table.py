"""The kill table of docs/spark.md: each of its rows is run, and its numbers must come out (S85, spool-then-commit)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from contract.brokers import Embedded

from pyjmsack.broker import EmbeddedArtemis

from .kill_judge import Driver, Judge, Row, executor_of, published_rows
from .kill_points import POINTS, JudgedSource
from .standalone import Standalone
from .stream_job import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .conftest import Fill, Left

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
    pytest.mark.timeout(600),
]
LOCAL = "local[2,4]"
ROWS = published_rows()


@pytest.mark.parametrize(
    ("cluster", "broker", "victim", "points"),
    [
        (LOCAL, "AMQP, Artemis", "worker", POINTS),
        (LOCAL, "AMQP, Artemis", "driver", POINTS),
        (LOCAL, "STOMP, Artemis", "worker", POINTS),
        (LOCAL, "failover: AMQP, Artemis", "broker", POINTS),
        (LOCAL, "failover: STOMP, Artemis", "broker", POINTS),
        ("local-cluster[2,1,1024]", "AMQP, Artemis", "executor", POINTS),
        ("standalone, 2 workers", "AMQP, Artemis", "executor", ["half acked"]),
        ("standalone, 2 workers", "AMQP, Artemis", "driver", ["spooled, not acked"]),
    ],
)
def test_the_table_has_this_victim_at_these_points(cluster: str, broker: str, victim: str, points: list[str]) -> None:
    kills = [kill for row in ROWS if (row.cluster, row.broker) == (cluster, broker) for kill in row.plan]
    assert [point for killed, point in kills if killed == victim] == [*points]
    assert all((row.sent, row.sent, row.sent, 0) == row[4:] for row in ROWS), "nothing lost, nothing repeated"


@pytest.fixture(scope="module")
def mortal() -> Iterator[EmbeddedArtemis]:
    """A broker of this module's own; what kills it starts it again."""
    with EmbeddedArtemis() as broker:
        yield broker


def stands_for_others(row: Row) -> bool:
    """Whether the full tier has a row: a driver at one point, and a broker. Rows on clusters take minutes, and
    ``test_spark_brokers`` kills a task at every point."""
    kind = (row.cluster, row.broker, row.killed)
    return kind == (LOCAL, "failover: AMQP, Artemis", "broker") or (
        kind == (LOCAL, "AMQP, Artemis", "driver") and row.at == "half acked"
    )


WHOLE = pytest.mark.whole_tier("other victims and points stand for it (stands_for_others)")


@pytest.fixture(params=[pytest.param(row, marks=[] if stands_for_others(row) else WHOLE) for row in ROWS], ids=str)
def row(request: pytest.FixtureRequest) -> Row:
    """A row of the table. In local mode the driver's JVM is the executor, too."""
    assert isinstance(request.param, Row)
    return request.param


@pytest.fixture
def broker(row: Row, brokers: Callable[[str], Embedded], request: pytest.FixtureRequest) -> Embedded:
    found: Embedded = request.getfixturevalue("mortal") if "broker" in row.killed else brokers(row.target.broker)
    return found


@pytest.fixture
def broker_url(row: Row, broker: Embedded) -> str:
    url = broker.stomp_url if row.target.protocol == "stomp" else broker.amqp_url
    return f"failover:({url})?failover.maxReconnectDelay=200" if row.broker.startswith("failover:") else url


@pytest.fixture
def amqp_url(broker: Embedded) -> str:
    return broker.amqp_url


@pytest.fixture
def stream(broker_url: str, queue_name: str) -> dict[str, str]:
    """The options of the stream."""
    return {"url": broker_url, "queue": queue_name, "idleMs": "150", "maxMessagesPerPartition": "100"}


def test_what_is_killed_loses_nothing_and_repeats_nothing(
    spark: SparkSession, row: Row, broker: Embedded, stream: dict[str, str], tmp_path: Path, fill: Fill, left: Left
) -> None:
    """A stream with kills, and another driver that restarts it from the checkpoint until the queue is empty."""
    queue = stream["queue"]
    sent = fill(queue, row.sent)
    with ExitStack() as stack:
        drivers: list[Driver] = []

        def execute(victim: str, worker: int) -> bool:
            """Kill, with SIGKILL, and say whether the worker may go on."""
            if victim == "broker":
                broker.kill()
                broker.restart()
            elif victim == "driver":
                drivers[0].kill()
            else:
                os.kill(worker if victim == "worker" else executor_of(worker), signal.SIGKILL)
            return victim == "broker"

        judge = stack.enter_context(Judge(row.plan, execute))
        if row.cluster == LOCAL and "driver" not in row.killed:
            run(spark, JudgedSource.name(), tmp_path, stream | judge.option)
        else:
            master = stack.enter_context(Standalone(tmp_path)).url if "standalone" in row.cluster else row.cluster
            drivers.append(Driver(master, tmp_path, stream | judge.option))
            stack.callback(drivers[0].kill)
            drivers[0].wait(-signal.SIGKILL if "driver" in row.killed else 0)
        assert judge.open == [], "every kill was done"
        assert left(queue) > 0 or "driver" not in row.killed, "it was in the middle"
    run(spark, "jms", tmp_path, stream)
    while left(queue):
        run(spark, "jms", tmp_path, stream)
    stored = stored_ids(spark, tmp_path)
    assert (len(sent), len(stored), len({*stored}), len({*sent} - {*stored})) == row[4:]


def stored_ids(spark: SparkSession, home: Path) -> list[str]:
    """What the sink has committed."""
    return [row.message_id for row in spark.read.schema("message_id string").parquet(str(home / "out")).collect()]
