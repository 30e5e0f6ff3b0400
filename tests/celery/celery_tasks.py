"""The Celery app that the tests' workers run. What a task did is a line in a file, so that it can be counted."""

# Celery has no types
# pyright: reportMissingTypeStubs=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from celery import Celery

import pyjmsack.kombu

__all__ = ["app"]

assert pyjmsack.kombu.Transport  # the import makes the schemes known
app = Celery("tests", broker=os.environ["JMS_BROKER"], backend="rpc://")
app.conf.update(
    {
        "task_default_queue": os.environ["TASK_QUEUE"],
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "worker_send_task_events": True,
        **json.loads(os.environ.get("TASK_SETTINGS", "{}")),
    }
)


def note(line: str) -> None:
    """Append a line to the file of effects, in one write."""
    descriptor = os.open(os.environ["EFFECTS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


@app.task
def add(left: int, right: int) -> int:
    return left + right


@app.task
def effect(number: int) -> int:
    note(f"done {number}")
    return number


@app.task
def fail() -> None:
    raise ValueError("it fails on purpose")


@app.task
def wait_for(name: str) -> None:
    """End when a file is there."""
    note(f"began {name}")
    while not Path(name).exists():
        time.sleep(0.05)
    note(f"done {name}")


@app.task
def die_after_effect(name: str) -> None:
    """The first time, kill the whole worker after the effect and before the acknowledgement."""
    note(f"done {name}")
    if not Path(name).exists():
        Path(name).touch()
        os.killpg(os.getpgid(0), signal.SIGKILL)
