"""The Celery app that the tests' workers run. What a task did is a line in a file, so that it can be counted."""

# Celery has no types
# pyright: reportMissingTypeStubs=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from celery import Celery, signals

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


def die_at(moment: str) -> None:
    """Kill the whole worker, if this is the moment to die, and if it did not die before."""
    wanted, _, name = os.environ.get("DIE_AT", "").partition(" ")
    if moment == wanted and not Path(name).exists():
        Path(name).touch()
        os.killpg(os.getpgid(0), signal.SIGKILL)


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
    die_at("effect")
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


def begin(**_: Any) -> None:
    """Wait for the acknowledgement of the task, if the test wants that."""
    while "ACKNOWLEDGED" in os.environ and not Path(os.environ["ACKNOWLEDGED"]).exists():
        time.sleep(0.01)
    die_at("prerun")


def acknowledge(channel: Any, tag: str, multiple: bool = False) -> None:
    """Acknowledge a task; a worker may have to die before or after that."""
    die_at("before-ack")
    _acknowledge(channel, tag, multiple)
    die_at("after-ack")
    Path(os.environ.get("ACKNOWLEDGED", os.devnull)).touch()


signals.task_received.connect(lambda **_: die_at("received"), weak=False)
signals.task_prerun.connect(begin)
signals.task_postrun.connect(lambda **_: die_at("postrun"), weak=False)
_acknowledge = pyjmsack.kombu.Channel.basic_ack
if "DIE_AT" in os.environ:
    pyjmsack.kombu.Channel.basic_ack = acknowledge
