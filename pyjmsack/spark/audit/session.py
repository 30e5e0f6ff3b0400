"""The Spark that an audit runs on: settings for work in bulk, and a cluster that is there or is named."""

from __future__ import annotations

import socket
import time
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pyjmsack.spark.session import local_session

__all__ = ["ClusterError", "audit_session"]

_PREFIX = "spark://"
_ANSWER = 10.0  # seconds for the port of a master
_SETTINGS = {
    "spark__driver__memory": "4g",  # of a local Spark: ten million messages are grouped without spilling
    "spark__log__level": "ERROR",
    "spark__sql__shuffle__partitions": "32",  # Spark joins those that are small
    # no pauses matter here, and its code is shorter: an eighth less processor time than with the default collector
    "spark__driver__defaultJavaOptions": "-XX:+UseParallelGC",
    "spark__executor__defaultJavaOptions": "-XX:+UseParallelGC",
}


class ClusterError(RuntimeError):
    """There is no cluster at ``spark://...``, or it has no room."""


def audit_session(master: str = "local[*]", *, patience: float = 60.0, **settings: str) -> SparkSession:
    """Return a session for :func:`run_audit`; the caller stops it.

    Args:
        master: where to run.
        patience: seconds for the first worker of a cluster, which Spark itself waits for without end.
        settings: more Spark settings, with ``__`` for the dot.

    Raises:
        ClusterError: the master does not answer, or no worker takes part.
        JavaError: Spark would not start.
    """
    if not master.startswith(_PREFIX):
        return local_session(master, "pyjmsack audit", **{**_SETTINGS, **settings})
    _ask(master)
    try:
        session = local_session(master, "pyjmsack audit", **{**_SETTINGS, **settings})
    except Py4JError as error:
        raise ClusterError(
            f"what listens at {master} takes no part: is it a master of the same Spark version?"
        ) from error
    try:
        _wait_for_worker(session, master, patience)
    except ClusterError:
        session.stop()
        raise
    return session


def _ask(master: str) -> None:
    """Raise unless a port of ``spark://host:7077,other:7077`` answers: Spark would try for a minute."""
    problems = []
    for place in master.removeprefix(_PREFIX).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal():
            raise ClusterError(f"{master} is no address of a cluster; expected spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
        else:
            return
    raise ClusterError(f"no Spark master answers at {master} ({'; '.join(problems)})")


def _wait_for_worker(session: SparkSession, master: str, patience: float) -> None:
    context: Any = session.sparkContext._jsc
    tracker = context.sc().statusTracker()  # Python's own tracker does not know of executors
    end = time.monotonic() + patience
    while len(tracker.getExecutorInfos()) < 2:  # the first one is this program
        if time.monotonic() > end:
            wanted = session.conf.get("spark.executor.memory", "1g")
            raise ClusterError(
                f"no worker of {master} started an executor within {patience:g} s; it needs a free core and {wanted} of"
                " memory, and must reach this host: SPARK_LOCAL_IP says by which address"
            )
        time.sleep(0.1)
