"""The Celery app of ``python -m benchmarks celery``: its workers run :func:`note`, and a program sends tasks.

As a program it reads numbers from standard input. For each it sends so many tasks, and prints the moments of the first
and of the last, in nanoseconds of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from functools import cache

from celery import Celery

if "jms" in os.environ["BENCH_BROKER"]:
    importlib.import_module("pyjmsack.kombu")  # makes its schemes known; Redis is measured without it

app = Celery("bench", broker=os.environ["BENCH_BROKER"])
app.conf.update(
    {
        "task_default_queue": os.environ["BENCH_QUEUE"],
        "task_ignore_result": True,
        "broker_connection_retry_on_startup": True,
        **json.loads(os.environ["BENCH_SETTINGS"]),
    }
)


@cache
def _effects() -> int:
    return os.open(os.environ["BENCH_EFFECTS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)


@app.task(name="bench.note")
def note(body: str) -> None:
    """Write one byte, so that the size of the file is the number of tasks that ran."""
    os.write(_effects(), body[:1].encode())


def main() -> None:
    """Send as many tasks as each line says."""
    body = "x" * int(os.environ["BENCH_SIZE"])
    for line in sys.stdin:
        begun = time.monotonic_ns()
        for _ in range(int(line)):
            note.delay(body)
        print(begun, time.monotonic_ns(), flush=True)  # noqa: T201 - the answer
    app.close()


if __name__ == "__main__":
    main()
