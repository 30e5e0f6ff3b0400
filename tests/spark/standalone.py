"""A standalone cluster on loopback: a master and a worker, started as the manual says."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path
from typing import IO

import pyspark
from typing_extensions import Self

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
ENVIRONMENT = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",  # these JVMs and their children live for seconds
}
"""The environment of all processes of a cluster, and of a driver that runs alone."""


class Standalone:
    """The cluster, ready when it is entered; ``url`` is its master's."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self.url = self._start("master.Master", r"Starting Spark master at (spark://\S+)", "--port", "0")
        limits = ["--cores", "2", "--memory", "2g", "--work-dir", str(self._home / "worker")]
        self._start("worker.Worker", r"Successfully registered with master (\S+)", *limits, self.url)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)
        for thread in self._readers:
            thread.join()

    def _start(self, name: str, ready: str, *arguments: str) -> str:
        """Start a daemon, and return what the line says that tells that it is ready."""
        process = subprocess.Popen(
            [str(CLASS), f"{DEPLOY}.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            env={**ENVIRONMENT, "SPARK_NO_DAEMONIZE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        log = process.stderr
        assert log is not None
        for line in log:
            if found := re.search(ready, line):
                self._readers.append(threading.Thread(target=read_to_end, args=(log,)))
                self._readers[-1].start()
                return found[1]
        raise AssertionError(f"{name} has ended")


def read_to_end(log: IO[str]) -> None:
    """Let a process go on writing."""
    with log:
        for _ in log:
            pass
