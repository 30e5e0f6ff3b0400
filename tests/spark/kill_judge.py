"""The test's side of the kill points: who is killed where, the drivers, and the table in ``docs/spark.md``."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from contract.brokers import Target
from typing_extensions import Self

from .kill_points import OPTION, PATIENCE
from .stream_job import TESTS

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
END_OF_DRIVER = 300
"""Seconds that a driver may take on a busy machine."""


class Row(NamedTuple):
    """A row of the table."""

    cluster: str
    broker: str
    killed: str
    at: str
    sent: int
    stored: int
    unique: int
    lost: int

    def __str__(self) -> str:
        return f"{self.cluster} {self.broker} {self.killed} {self.at}".replace(" ", "-")

    @property
    def target(self) -> Target:
        """The protocol and the broker that the URL names."""
        protocol, broker = self.broker.removeprefix("failover: ").split(", ")
        return Target(protocol.lower(), broker.lower().replace(" ", "-"))

    @property
    def plan(self) -> list[tuple[str, str]]:
        """Who is killed, and where, one after another."""
        return list(zip(cycle(self.killed.split("; ")), self.at.split("; "), strict=False))


def published_rows() -> list[Row]:
    """Return the rows of the table in the documentation."""
    lines = re.findall(r"^\| (`?(?:local|standalone).*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [[cell.replace("`", "").strip() for cell in line.split("|")] for line in lines]
    return [Row(*row[:4], *map(int, row[4:])) for row in cells]


class Judge:
    """Hears where the workers are; at the points of the plan, in its order and each in a later pull, it kills.

    Args:
        plan: victims and points.
        execute: kills; gets the victim and the number of the worker's process, and says whether that may go on.
    """

    def __init__(self, plan: Sequence[tuple[str, str]], execute: Callable[[str, int], bool]) -> None:
        self._open = list(plan)
        self._execute = execute
        self._pull = 0
        self._heard: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.option = {OPTION: str(self._listening.getsockname()[1])}

    @property
    def open(self) -> list[tuple[str, str]]:
        """What of the plan has not been done."""
        return self._open

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for connection in [self._listening, *self._heard]:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # shut down
                return
            with suppress(OSError):  # it was killed meanwhile, with its driver
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        self._heard.append(connection)
        connection.settimeout(PATIENCE)
        with connection.makefile() as said:
            question = json.loads(said.readline() or "{}")
        if self._is_due(question):
            self._pull = question["pull"]
            victim, _ = self._open.pop(0)
            if not self._execute(victim, question["pid"]):
                return  # no answer: who waits for it is to die
        connection.sendall(b"+")
        connection.close()

    def _is_due(self, question: dict[str, Any]) -> bool:
        return bool(self._open and question) and question["pull"] > self._pull and question["point"] == self._open[0][1]


def executor_of(worker: int) -> int:
    """Return the process of the JVM that a Python worker belongs to."""
    number = worker
    while (process := Path("/proc", str(number), "status").read_text()).splitlines()[0].split()[1] != "java":
        number = int(re.findall(r"^PPid:\s+(\d+)$", process, re.MULTILINE)[0])
    return number


class Driver:
    """A driver with its JVM and, in a local cluster, its executors, all known by a variable in their environment."""

    def __init__(self, master: str, home: Path, options: dict[str, str]) -> None:
        name = "PYJMSACK_TEST_DRIVER"
        value = str(uuid.uuid4())
        self._mark = f"{name}={value}".encode()
        # a local cluster then keeps its files where temporary files are, not in its installation
        environment = {**os.environ, name: value, "PYTHONPATH": str(TESTS), "SPARK_TESTING": "1"}
        self._log = home / "driver.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "spark.stream_job", master, str(home), json.dumps(options)],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def wait(self, code: int) -> None:
        """Wait for its end, which must have this exit code."""
        assert self._process.wait(END_OF_DRIVER) == code, self._log.read_text()

    def kill(self) -> None:
        """SIGKILL to all of its processes, until none is left."""
        while found := self._processes():
            for number in found:
                os.kill(number, signal.SIGKILL)
            self._process.poll()
        self._process.wait()

    def _processes(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:  # gone, or not ours
                continue
        return found
