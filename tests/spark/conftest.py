"""One Spark session for all tests of this folder, which xdist therefore runs in one worker."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shared_brokers import Served

from pyjmsack import ConnectionFactory, Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjmsack.spark.options import Options

TIMEOUT = 240
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""Options of the JVM of each session: a session lives for seconds here, too short for its best compiler."""
HAS_SPARK = all(importlib.util.find_spec(name) for name in ("pyspark", "pyarrow"))
collect_ignore_glob = [] if HAS_SPARK else ["test_spark_*.py"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Time for a JVM to start."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def java() -> None:
    """Skips what needs a JVM where there is none for Spark."""
    from pyjmsack.spark import JavaError, check_java

    try:
        check_java()
    except JavaError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session in this process; a task is tried four times."""
    from pyjmsack.spark import local_session

    from .kill_points import JudgedSource
    from .stream_job import settings

    session = local_session(**settings(tmp_path_factory.mktemp("session")))
    session.dataSource.register(JudgedSource)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


Fill = Callable[..., list[str]]
Left = Callable[[str], int]
MakeOptions = Callable[..., "Options"]


@pytest.fixture
def amqp_url(any_broker: Served) -> str:
    """Where the broker of the test listens for AMQP, over which every queue can be browsed."""
    return any_broker.amqp_url


@pytest.fixture
def fill(broker_url: str) -> Fill:
    """A function that sends ``count`` messages with the property ``number`` to a queue and returns their ids."""

    def send(queue: str, count: int, first: int = 0, **properties: Any) -> list[str]:
        ids = []
        with ConnectionFactory(broker_url).create_context() as context:
            producer = context.create_producer(Queue(queue))
            for number in range(first, first + count):
                message = context.create_text_message(f"body {number}")
                message.properties["number"] = number
                message.properties.update(properties)
                producer.send_async(message)
                ids.append(str(message.message_id))
            producer.close()
        return ids

    return send


@pytest.fixture
def left(amqp_url: str) -> Left:
    """A function that counts what a queue holds."""

    def count(queue: str) -> int:
        with ConnectionFactory(amqp_url).create_context() as context, context.create_browser(Queue(queue)) as browser:
            return sum(1 for _ in browser)

    return count


@pytest.fixture
def options(broker_url: str, queue_name: str, tmp_path: Path) -> MakeOptions:
    """A function that returns options for the test's queue. A pull waits longer than a busy broker is silent."""
    from pyjmsack.spark.options import parse_options

    def make(**given: str) -> Options:
        return parse_options(
            {"url": broker_url, "queue": queue_name, "spoolLocation": str(tmp_path / "spool"), "idleMs": "600", **given}
        )

    return make
