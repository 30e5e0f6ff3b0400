"""Celery workers in processes of their own, and an app of this process that sends to them."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery", reason="celery is not installed")

import kombu.pools
from polling import wait_until

HERE = Path(__file__).parent
_CELERY = sys.executable, "-m", "celery", "--workdir", str(HERE), "-A", "celery_tasks", "worker"


class Side:
    """An app of this process, and the workers of its queue.

    Args:
        url: the broker URL of Celery.
        queue: the queue of the tasks.
        folder: for files.
        settings: further settings of Celery.
    """

    def __init__(self, url: str, queue: str, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.effects = folder / "effects"
        self._name = queue
        self._environment = {
            "JMS_BROKER": url,
            "TASK_QUEUE": queue,
            "EFFECTS": str(self.effects),
            "TASK_SETTINGS": json.dumps(settings),
        }
        os.environ.update(self._environment)
        sys.modules.pop("celery_tasks", None)
        sys.path.insert(0, str(HERE))
        self.tasks: Any = importlib.import_module("celery_tasks")
        sys.path.remove(str(HERE))
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, pool: str = "solo", *options: str, waits: bool = True) -> subprocess.Popen[bytes]:
        """Start a worker in a process group of its own; return when it consumes, or at once."""
        number = len(self._workers)
        log = self.folder / f"worker-{number}.log"
        with log.open("wb") as out:
            worker = subprocess.Popen(
                [*_CELERY, "-P", pool, "-c", "2", "-l", "INFO", "-n", self._node(number), *options],
                env={**os.environ, **self._environment},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._workers.append(worker)
        if not waits:
            return worker
        wait_until(lambda: "ready." in log.read_text() or worker.poll() is not None, 90)
        assert worker.poll() is None, log.read_text()
        return worker

    def _node(self, number: int) -> str:
        return f"w{number}@{self._name}"

    def control(self) -> dict[str, Any]:
        """Return the arguments that ask the newest worker alone. Workers of other tests share the broker, and hear what
        is asked of all.
        """
        return {"destination": [self._node(len(self._workers) - 1)], "timeout": 20, "limit": 1}

    def log(self) -> str:
        """Return what the workers wrote."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("worker-*.log")))

    def done(self) -> Counter[str]:
        """Return how often each effect was noted."""
        return Counter(self.effects.read_text().splitlines() if self.effects.exists() else [])

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker with its children, without a warning."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        """End all."""
        for worker in self._workers:
            self.kill(worker)
        with contextlib.suppress(AttributeError):  # Celery's own, if it lost its connection and no result came since
            self.tasks.app.backend.result_consumer.stop()
        self.tasks.app.close()
        kombu.pools.reset()
        for name in self._environment:
            os.environ.pop(name, None)


@pytest.fixture
def side(queue_name: str, tmp_path: Path) -> Iterator[Callable[..., Side]]:
    """Makes sides, whose workers end with the test."""
    made: list[Side] = []

    def make(url: str, **settings: Any) -> Side:
        made.append(Side(f"jms+{url}", queue_name, tmp_path, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()
