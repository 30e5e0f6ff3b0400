"""One start of one broker, and the start that is only made to record its classes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.instance import Instance, hash_passwords, write_configuration
from pyjmsack.broker.java import Java
from pyjmsack.broker.process import BrokerProcess
from pyjmsack.broker.readiness import await_ready, pick_port
from pyjmsack.broker.workspace import Workspace

__all__ = ["boot", "train"]

_TRAINING_SECONDS = 60.0  # for the start, and again for the end, at which the JVM writes the archive


def boot(process: BrokerProcess, instance: Instance, archive_flags: Sequence[str], timeout: float) -> str:
    """Start the broker, and return what it logged when it is ready, within ``timeout`` seconds.

    Raises:
        BrokerError: see :func:`pyjmsack.broker.readiness.await_ready`.
    """
    log = instance.log_path
    log_start = log.stat().st_size if log.exists() else 0
    process.launch(instance.command(archive_flags), instance.directory, log)
    return await_ready(process, instance, log_start, timeout)


def train(java: Java, distribution: Distribution, flags: Sequence[str]) -> None:
    """Run a broker once with the JVM ``flags``: a secured one, as its classes include those of an open one.

    Raises:
        BrokerError: it did not start.
    """
    workspace = Workspace(None, _TRAINING_SECONDS)
    try:
        write_configuration(workspace.directory, hash_passwords({"trainer": secrets.token_hex()}))
        instance = Instance(workspace.directory, java, distribution, pick_port(), pick_port(), secured=True)
        boot(workspace.process, instance, flags, _TRAINING_SECONDS)
    finally:
        workspace.close()
