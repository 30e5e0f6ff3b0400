"""The pytest plugin of pyjmsack; docs/testing.md describes it.

Outside of the package, and importing it inside the fixtures only: pytest loads this in every suite of an environment
that pyjmsack is installed in, before coverage measurement starts.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pyjmsack.testing import Broker, Wire

_MODES = ("auto", "container", "embedded")
_DEFAULT_SOCKET = "/var/run/docker.sock"
_ENGINE_SECONDS = 2.0


class _Kind(NamedTuple):
    """A broker that a fixture is named after."""

    image: str
    embedded: str
    version: str


_KINDS = {
    "artemis": _Kind("pyjmsack/artemis:2.56.0", "EmbeddedArtemis", "2.56.0"),
    "activemq": _Kind("pyjmsack/activemq:6.3.1", "EmbeddedActiveMQ", "6.3.1"),
    "activemq5": _Kind("pyjmsack/activemq:5.18.3", "EmbeddedActiveMQ", "5.18.3"),
}


class _Brokers:
    """The brokers of this run: what they run in, and those that were started."""

    def __init__(self, mode: str) -> None:
        obstacle = _obstacle() if mode == "auto" else None
        self.container = mode == "container" or (mode == "auto" and obstacle is None)
        where = "containers" if self.container else "embedded"
        self.header = f"pyjmsack brokers: {where} ({obstacle or f'--pyjmsack-broker={mode}'})"
        self._started: list[Broker] = []

    def run(self, name: str) -> Iterator[Broker]:
        """Start a broker, and end it when the fixture ends."""
        import pyjmsack.broker
        from pyjmsack.testing import ContainerBroker

        kind = _KINDS[name]
        if self.container:
            made = ContainerBroker(kind.image)
        else:
            made = getattr(pyjmsack.broker, kind.embedded)(version=kind.version)
        with made as broker:
            self._started.append(broker)
            yield broker
            self._started.remove(broker)

    def recover(self) -> None:
        """Start again what a test killed, and resume what it paused."""
        for broker in self._started:
            if broker.running:
                broker.resume()
            else:
                broker.restart()


def _obstacle() -> str | None:
    """Return why there can be no containers; ``None`` if nothing is in their way."""
    if importlib.util.find_spec("testcontainers") is None:
        return "no containers: testcontainers is not installed"
    scheme, _, path = os.environ.get("DOCKER_HOST", f"unix://{_DEFAULT_SOCKET}").partition("://")
    if scheme != "unix":
        return "no containers: the engine in DOCKER_HOST is not on this machine; --pyjmsack-broker=container tries it"
    if not os.path.exists(path):
        return f"no containers: no engine at {path}"
    try:
        present = _images(path)
    except (OSError, ValueError) as error:
        return f"no containers: the engine at {path} does not answer: {error}"
    missing = [kind.image for kind in _KINDS.values() if kind.image not in present]
    return f"no containers: no image {', '.join(missing)}" if missing else None


def _images(path: str) -> set[str]:
    """Ask the engine for the names of its images. Not through its library, which takes half a second to import."""
    import http.client
    import json
    import socket

    with socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(_ENGINE_SECONDS)
        engine.connect(path)
        connection = http.client.HTTPConnection("localhost")
        connection.sock = engine
        connection.request("GET", "/images/json", headers={"Connection": "close"})
        rows = json.load(connection.getresponse())
    return {tag for row in rows for tag in row["RepoTags"] or ()}


_BROKERS = pytest.StashKey[_Brokers]()


def brokers_of(config: pytest.Config) -> _Brokers:
    """Return those of this run, decided when somebody asks first."""
    if _BROKERS not in config.stash:
        config.stash[_BROKERS] = _Brokers(str(config.getoption("pyjmsack_broker")))
    return config.stash[_BROKERS]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--pyjmsack-broker``."""
    parser.getgroup("pyjmsack", "brokers for tests").addoption(
        "--pyjmsack-broker",
        dest="pyjmsack_broker",
        choices=_MODES,
        default="auto",
        help="what the fixtures artemis, activemq, activemq5 and jms_broker start: auto (containers if the images are "
        "there, else embedded), container, embedded",
    )


def pytest_report_header(config: pytest.Config) -> str:
    """Say what the brokers of this run are."""
    return brokers_of(config).header


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give every test running brokers, whatever the one before did to them."""
    if _BROKERS in item.config.stash:
        item.config.stash[_BROKERS].recover()


@pytest.fixture(scope="session")
def artemis(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Artemis 2.56.0, one for all tests; it runs at the start of each."""
    yield from brokers_of(pytestconfig).run("artemis")


@pytest.fixture(scope="session")
def activemq(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Classic 6.3.1, one for all tests; it runs at the start of each."""
    yield from brokers_of(pytestconfig).run("activemq")


@pytest.fixture(scope="session")
def activemq5(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Classic 5.18.3, one for all tests; it runs at the start of each."""
    yield from brokers_of(pytestconfig).run("activemq5")


@pytest.fixture(scope="session", params=["artemis", "activemq"])
def jms_broker(request: pytest.FixtureRequest) -> Broker:
    """Each kind of broker in turn; parametrize it indirectly to have others."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture
def wire() -> Iterator[Callable[[str], Wire]]:
    """``wire(broker.amqp_url)`` is a wire to that broker; it is closed when the test ends."""
    from pyjmsack.testing import Wire

    with ExitStack() as opened:
        yield lambda broker_url: opened.enter_context(Wire(broker_url))
