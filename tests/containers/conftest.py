"""Brokers of the plugin's, in containers where there are some, and variants of the images, which need containers."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from polling import wait_until

from _pyjmsack_pytestplugin import brokers_of
from pyjmsack.broker.readiness import answers_amqp, pick_port

PAIR = Path(__file__).parents[2] / "containers" / "pair"


@pytest.fixture(scope="session")
def containers(pytestconfig: pytest.Config) -> None:
    """Skip what cannot be embedded."""
    brokers = brokers_of(pytestconfig)
    if not brokers.container:
        pytest.skip(brokers.header)


@pytest.fixture(scope="session")
def docker(containers: None) -> str:
    """The engine's command."""
    command = shutil.which("docker")
    if command is None:
        pytest.skip("no docker command")
    return command


class Pair(NamedTuple):
    """Two brokers on one store."""

    name: str
    urls: list[str]
    kind: str

    @property
    def returns(self) -> bool:
        """Whether the first one serves again when it is back."""
        return self.kind == "artemis"


@pytest.fixture(params=["artemis", "activemq", "activemq5"])
def pair(request: pytest.FixtureRequest, docker: str) -> Iterator[Pair]:
    """The first one serves."""
    name = f"pyjmsack-{uuid.uuid4().hex[:8]}"
    ports = [str(pick_port()), str(pick_port())]
    try:
        done = subprocess.run(
            [PAIR, "start", request.param, name, *ports], stdout=subprocess.PIPE, text=True, check=True
        )
        await_serving(done.stdout.split()[0])
        yield Pair(name, done.stdout.split(), request.param)
    finally:
        subprocess.run([PAIR, "stop", name], check=True)


def await_serving(url: str) -> None:
    """Return when the broker answers."""
    port = int(url.rpartition(":")[2])
    wait_until(lambda: answers_amqp(port), 60)
