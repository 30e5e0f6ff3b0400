"""Starts a broker for use, or only to record which classes it loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pyjmsack.broker.instance import Instance
from pyjmsack.broker.process import BrokerProcess
from pyjmsack.broker.readiness import await_ready, pick_port
from pyjmsack.broker.workspace import Workspace

__all__ = ["boot", "train"]

_TRAINING_SECONDS = 60.0  # seconds for the start, and again for the end, when the JVM writes the archive


def boot(process: BrokerProcess, instance: Instance, archive_flags: Sequence[str], timeout: float) -> str:
    """Start the broker, wait at most ``timeout`` seconds until it is ready, and return its log.

    Raises:
        BrokerError: see :func:`pyjmsack.broker.readiness.await_ready`.
    """
    log = instance.log_path
    log_start = log.stat().st_size if log.exists() else 0
    process.launch(instance.command(archive_flags), instance.directory, log)
    return await_ready(process, instance, log_start, timeout)


def train(secured: Callable[[Path], Instance], flags: Sequence[str]) -> None:
    """Run a broker once with the JVM ``flags``, in a directory of its own.

    The run records which classes a broker loads. A broker with users loads all classes of a broker without users and
    some more, so this run has users and its record fits both.

    Raises:
        BrokerError: the broker did not start.
    """
    workspace = Workspace(None, _TRAINING_SECONDS)
    try:
        instance = replace(secured(workspace.directory), amqp_port=pick_port(), stomp_port=pick_port())
        instance.write_configuration()
        boot(workspace.process, instance, flags, _TRAINING_SECONDS)
    finally:
        workspace.close()
