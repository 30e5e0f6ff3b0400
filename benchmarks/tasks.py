"""``python -m benchmarks celery``: Celery's tasks per second with this library's transport, beside Redis's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from benchmarks.processes import ROOT, last_words

BROKERS = ("amqp", "stomp", "amqp-memory", "redis", "redis-disk")
"""``redis`` keeps tasks in memory, as Debian's configuration does. ``redis-disk`` writes each task to the disk before
it answers, as Artemis does. The tasks of ``amqp-memory`` are transient, so Artemis keeps them in memory, too."""
_AGAINST = {"amqp": "redis-disk", "stomp": "redis-disk", "amqp-memory": "redis"}
"""With whom each of ours is compared: the one that does the same with a disk."""
POOLS = ("prefork", "threads", "solo", "gevent")
STEPS = ("sent", "run", "both")
"""Sent while no worker runs; run out of a full queue; sent and run at the same time."""
WANTED = 0.5
"""The least share of Redis's rate that we want."""
_CONCURRENCY = 2
_WARM_UP = 50
_PATIENCE = 120.0
_PROBE_SECONDS = 0.002
_IN_MEMORY = "--save", "", "--appendonly", "no"
_ON_DISK = "--save", "", "--appendonly", "yes", "--appendfsync", "always"


@dataclass(frozen=True)
class Case:
    """What is measured with each broker."""

    pool: str
    late: bool
    size: int

    @property
    def title(self) -> str:
        """The case for people."""
        return f"{self.pool}, {'late' if self.late else 'early'}, {self.size:,}"


@dataclass
class Result:
    """Tasks per second of every round: by case, broker and step."""

    count: int
    loads: list[float] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    brokers: list[str] = field(default_factory=list)
    rates: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)

    def add(self, case: Case, broker: str, rates: dict[str, float]) -> None:
        """Keep one measurement."""
        kept = self.rates.setdefault(case.title, {}).setdefault(broker, {})
        for step, rate in rates.items():
            kept.setdefault(step, []).append(rate)

    def as_json(self) -> dict[str, Any]:
        """Return everything."""
        return asdict(self)

    def table(self) -> Table:
        """Return the table for people: the medians, and their ratios to Redis."""
        load = f"load {min(self.loads):.1f} to {max(self.loads):.1f}"
        title = f"Celery, tasks per second, median of {len(self.loads)}; {self.count:,} tasks, {_CONCURRENCY} at a time"
        made = Table(
            title=title,
            caption=f"{load}; wanted: {WANTED} of the Redis that does the same with its disk",
            caption_justify="left",
        )
        made.add_column("pool, acknowledgement, characters")
        made.add_column("step")
        for broker in self.brokers:
            made.add_column(broker, justify="right")
        pairs = [(ours, other) for ours, other in _AGAINST.items() if {ours, other}.issubset(self.brokers)]
        for ours, other in pairs:
            made.add_column(f"{ours} / {other}", justify="right")
        for case in self.cases:
            for step in STEPS:
                found = {broker: median(self.rates[case.title][broker][step]) for broker in self.brokers}
                ratios = (f"{found[ours] / found[other]:.2f}" for ours, other in pairs)
                made.add_row(case.title, step, *(f"{rate:,.0f}" for rate in found.values()), *ratios)
        return made


def measure(
    brokers: list[str], cases: list[Case], count: int, rounds: int, progress: Callable[[int], None] = lambda done: None
) -> Result:
    """Measure each case with each broker, in turns.

    Raises:
        BenchmarkError: a task was lost or ran twice, or a program failed.
    """
    result, done = Result(count, cases=cases, brokers=brokers), 0
    with ExitStack() as stack:
        urls = dict(_started(stack, brokers))
        for number in range(rounds):
            result.loads.append(os.getloadavg()[0])
            for case in cases:
                for broker in brokers if number % 2 == 0 else brokers[::-1]:
                    settings = {"task_default_delivery_mode": "transient"} if broker == "amqp-memory" else {}
                    result.add(case, broker, _measured(urls[broker], case, count, settings))
                    done += 1
                    progress(done)
    return result


def _started(stack: ExitStack, brokers: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the URL of Celery for each broker. All of them run until the stack ends."""
    if _AGAINST.keys() & brokers:
        artemis = stack.enter_context(embedded())
        amqp, stomp = f"jms+{artemis.amqp_url}", f"jms+{artemis.stomp_url}"
        yield from (("amqp", amqp), ("stomp", stomp), ("amqp-memory", amqp))
    for name, options in (("redis", _IN_MEMORY), ("redis-disk", _ON_DISK)):
        if name in brokers:
            yield name, stack.enter_context(_redis(options))


@contextmanager
def _redis(options: tuple[str, ...]) -> Iterator[str]:
    """Yield the URL of a Redis that ends with the block.

    Raises:
        BenchmarkError: there is no redis-server, or it does not start.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise BenchmarkError("there is no redis-server; on Debian: apt-get install redis-server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                _until(lambda: _answers(port) or server.poll() is not None, "Redis does not answer")
                if server.poll() is not None:
                    raise BenchmarkError("redis-server ended at its start")
                yield f"redis://127.0.0.1:{port}/0"
            finally:
                server.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _until(condition: Callable[[], bool], otherwise: str) -> int:
    """Wait for a condition and return the moment, in nanoseconds.

    Raises:
        BenchmarkError: the condition is not true within two minutes.
    """
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkError(otherwise)
        time.sleep(_PROBE_SECONDS)
    return time.monotonic_ns()


def _measured(url: str, case: Case, count: int, settings: dict[str, Any]) -> dict[str, float]:
    """Return the tasks per second of each step, on a queue of its own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        programs = _Programs(stack, Path(folder), url, case, settings)
        programs.send(_WARM_UP)
        begun, ended = programs.send(count)
        rates = {"sent": count * 1e9 / (ended - begun)}
        programs.start_worker()
        before = programs.wait_for(_WARM_UP)
        first = programs.done
        last = programs.wait_for(_WARM_UP + count)
        rates["run"] = (_WARM_UP + count - first) * 1e9 / (last - before)
        begun, _ = programs.send(count)
        last = programs.wait_for(_WARM_UP + 2 * count)
        rates["both"] = count * 1e9 / (last - begun)
        programs.end_worker()
        if programs.done != _WARM_UP + 2 * count:
            raise BenchmarkError(f"{programs.done} tasks ran of {_WARM_UP + 2 * count}")
        return rates


class _Programs:
    """A program that sends tasks, and a worker that runs them, on a queue of their own."""

    def __init__(self, stack: ExitStack, folder: Path, url: str, case: Case, settings: dict[str, Any]) -> None:
        self._stack, self._folder, self._case = stack, folder, case
        self._effects = folder / "effects"
        self._effects.touch()
        self._environment = {
            **os.environ,
            "BENCH_BROKER": url,
            "BENCH_QUEUE": f"bench-{uuid.uuid4().hex}",
            "BENCH_EFFECTS": str(self._effects),
            "BENCH_SIZE": str(case.size),
            "BENCH_SETTINGS": json.dumps({"task_acks_late": case.late, **settings}),
        }
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "benchmarks.tasks_app"]
        self._sender = subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        stack.callback(self._end_sender)

    @property
    def done(self) -> int:
        """The number of tasks that ran."""
        return self._effects.stat().st_size

    def send(self, count: int) -> tuple[int, int]:
        """Send tasks, and return the moments of the first and of the last."""
        assert self._sender.stdin is not None
        assert self._sender.stdout is not None
        self._sender.stdin.write(f"{count}\n")
        self._sender.stdin.flush()
        answer = self._sender.stdout.readline()
        if not answer:
            raise BenchmarkError(last_words(self._sender.communicate()[1], self._sender.returncode))
        begun, ended = answer.split()
        return int(begun), int(ended)

    def _end_sender(self) -> None:
        try:
            self._sender.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._sender.kill()
            self._sender.communicate()

    def start_worker(self) -> None:
        """Start a worker in a process group of its own."""
        options = f"--pool {self._case.pool} --concurrency {_CONCURRENCY} --loglevel WARNING"
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.tasks_app", "worker", *options.split()]
        with (self._folder / "worker.log").open("wb") as log:
            self._worker = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self._stack.callback(self._kill_worker)

    def wait_for(self, count: int) -> int:
        """Wait until so many tasks ran, and return the moment."""
        moment = _until(lambda: self.done >= count or self._worker.poll() is not None, f"fewer than {count} tasks ran")
        if self.done < count:
            said = (self._folder / "worker.log").read_text(encoding="utf-8", errors="replace")
            raise BenchmarkError(f"the worker ended: {last_words(said, self._worker.returncode)}")
        return moment

    def end_worker(self) -> None:
        """Let the worker finish its work and end."""
        self._worker.terminate()
        self._worker.wait(_PATIENCE)

    def _kill_worker(self) -> None:
        """End what a measurement that failed has left."""
        if self._worker.poll() is None:
            os.killpg(self._worker.pid, signal.SIGKILL)
            self._worker.wait()
