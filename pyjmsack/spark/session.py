"""Starts a Spark session, and checks the Java that Spark needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pyjmsack.spark.source import JmsDataSource

__all__ = ["JavaError", "check_java", "local_session"]

OLDEST = 17
MODULE = "jdk.incubator.vector"
"""The module of Java that Spark's launcher needs.

A trimmed runtime image does not have this module, and Java's error says only that the module is not found.
"""


class JavaError(RuntimeError):
    """Java is missing, or cannot run Spark."""


def check_java() -> None:
    """Check that Spark finds a full JDK of version 17 or newer, in ``JAVA_HOME`` or on the path.

    Raises:
        JavaError: there is no such JDK. The text names the Java that was found.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    wanted = f"Spark needs a full JDK {OLDEST} or newer, in JAVA_HOME or on the PATH"
    if java is None:
        raise JavaError(f"{wanted}; there is no java in JAVA_HOME or on the path")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)  # noqa: S603 - own Java
        modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=60)  # noqa: S603 - own Java
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{wanted}; {java} does not run: {error}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if version is None or int(version[1]) < OLDEST:
        raise JavaError(f"{wanted}; {java} says {said.stderr.splitlines()[0] if said.stderr else 'no version'}")
    if MODULE not in modules.stdout:
        raise JavaError(f"{wanted}; {java} is a trimmed runtime without the module {MODULE}")


def local_session(master: str = "local[2,4]", name: str = "pyjmsack", **settings: str) -> SparkSession:
    """Return a session with the format ``jms``. The session listens on the loopback address only, unless ``settings``
    say otherwise.

    Args:
        master: the URL of the Spark master. The second number of ``local[2,4]`` is the number of tries of a task.
        name: the name of the application.
        settings: more Spark settings, with ``__`` for the dot.

    Raises:
        JavaError: Spark cannot start.
    """
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would otherwise run the first python3 on the path
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(name)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "4"}
    for key, value in {**quiet, **{name.replace("__", "."): value for name, value in settings.items()}}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise JavaError(
            "Spark's Java ended while it started, and its own error stands above this one; Java takes options from "
            "JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, SPARK_SUBMIT_OPTS and spark-defaults.conf"
        ) from error
    session.dataSource.register(JmsDataSource)
    return session
