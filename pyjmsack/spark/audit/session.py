"""Makes the Spark session of an audit, with settings for large data, and checks that the cluster answers."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pyjmsack.spark.session import local_session

__all__ = ["ClusterError", "audit_session"]

_PREFIX = "spark://"
_ANSWER = 10.0  # seconds for the port of a master to answer
_SETTINGS = {
    "spark__driver__memory": "4g",  # memory of a local Spark: enough for ten million messages without the disk
    "spark__log__level": "ERROR",
    "spark__sql__shuffle__partitions": "32",  # Spark joins the small partitions
}
_COLLECTOR = "-XX:+UseParallelGC"
"""This garbage collector needs an eighth less processor time than the default collector. An audit can accept its longer
pauses."""
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


class ClusterError(RuntimeError):
    """There is no cluster at ``spark://...``, or the cluster has no room."""


def audit_session(master: str = "local[*]", *, patience: float = 60.0, **settings: str) -> SparkSession:
    """Return a session for :func:`run_audit`. The caller has to stop the session.

    Args:
        master: the URL of the Spark master.
        patience: seconds to wait for the first worker of a cluster. Spark itself would wait for ever.
        settings: more Spark settings, with ``__`` for the dot.

    Raises:
        ClusterError: the master does not answer, or no worker starts an executor.
        JavaError: Spark cannot start.
    """
    settings = {**_SETTINGS, **_collector(os.environ), **settings}
    if not master.startswith(_PREFIX):
        return local_session(master, "pyjmsack audit", **settings)
    _ask(master)
    try:
        session = local_session(master, "pyjmsack audit", **settings)
    except Py4JError as error:
        raise ClusterError(
            f"the program at {master} did not accept this application; expected a Spark master of the same version"
        ) from error
    try:
        _wait_for_worker(session, master, patience)
    except ClusterError:
        session.stop()
        raise
    return session


def _collector(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that choose the garbage collector. There are none if the user's environment chooses one,
    because Java does not start with two."""
    if any(re.search(r"-XX:\+Use\w*GC\b", environment.get(name, "")) for name in _OPTIONS_OF_JAVA):
        return {}
    return {"spark__driver__defaultJavaOptions": _COLLECTOR, "spark__executor__defaultJavaOptions": _COLLECTOR}


def _ask(master: str) -> None:
    """Check that one of the ports in ``spark://host:7077,other:7077`` answers. Without this check, Spark would try for
    a minute.
    """
    problems = []
    for place in master.removeprefix(_PREFIX).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal():
            raise ClusterError(f"expected a cluster such as spark://host:7077, not {master}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
        else:
            return
    raise ClusterError(f"no Spark master answers at {master} ({'; '.join(problems)})")


def _wait_for_worker(session: SparkSession, master: str, patience: float) -> None:
    context: Any = session.sparkContext._jsc
    tracker = context.sc().statusTracker()  # Java's tracker, because the tracker of Python does not count executors
    end = time.monotonic() + patience
    while len(tracker.getExecutorInfos()) < 2:  # the first executor in the list is this program
        if time.monotonic() > end:
            wanted = session.conf.get("spark.executor.memory", "1g")
            raise ClusterError(
                f"no worker of {master} started an executor within {patience:g} s; a worker needs a free core and"
                f" {wanted} of memory, and must reach this host: SPARK_LOCAL_IP sets the address of this host"
            )
        time.sleep(0.1)
