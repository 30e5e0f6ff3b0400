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
    from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis
    from pyjmsack.testing import Broker, ContainerBroker, Wire

_MODES = ("auto", "container", "embedded")
_DEFAULT_SOCKET = "/var/run/docker.sock"
_ENGINE_SECONDS = 2.0
_REASON_LENGTH = 300
_REAPER = "testcontainers/ryuk"
_NO_REAPER = f"{_REAPER}; docker pull it, or set TESTCONTAINERS_RYUK_DISABLED=true"


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
    """The brokers of this run: embedded or in containers, and the started ones."""

    def __init__(self, mode: str) -> None:
        obstacle = _obstacle() if mode == "auto" else None
        self._auto = mode == "auto"
        self.fallback: str | None = None
        """The reason for embedded brokers although the header says containers."""
        self.container = mode == "container" or (mode == "auto" and obstacle is None)
        where = "containers" if self.container else "embedded"
        self.header = f"pyjmsack brokers: {where} ({obstacle or f'--pyjmsack-broker={mode}'})"
        self._started: list[Broker] = []

    def run(self, name: str) -> Iterator[Broker]:
        """Start a broker, and end it when the fixture ends."""
        broker = self._start(_KINDS[name])
        self._started.append(broker)
        try:
            yield broker
        finally:
            self._started.remove(broker)
            broker.stop()

    def _start(self, kind: _Kind) -> ContainerBroker | EmbeddedArtemis | EmbeddedActiveMQ:
        """Return a running broker: in a container, or embedded where the mode ``auto`` finds that none starts."""
        import pyjmsack.broker
        from pyjmsack.testing import ContainerBroker

        if self.container:
            broker = ContainerBroker(kind.image)
            try:
                return broker.start()
            except pyjmsack.broker.BrokerError as error:
                if not self._auto:
                    raise
                self.container = False
                self.fallback = f"embedded, because no container could be started: {_in_short(error)}"
                broker.stop()
        made: EmbeddedArtemis | EmbeddedActiveMQ = getattr(pyjmsack.broker, kind.embedded)(version=kind.version).start()
        return made

    def recover(self) -> None:
        """Start brokers again that a test killed, and resume those that it paused."""
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
    if missing:
        return f"no containers: no image {', '.join(missing)}"
    return None if _reaper_disabled() or any(map(_is_reaper, present)) else f"no containers: no image {_NO_REAPER}"


def _is_reaper(image: str) -> bool:
    """Whether testcontainers can use this image to remove the containers of a killed run."""
    wanted = os.environ.get("RYUK_CONTAINER_IMAGE")
    return image == wanted if wanted else image.startswith(f"{_REAPER}:")


def _reaper_disabled() -> bool:
    """Whether testcontainers shall run without its reaper, by its variable or its file. Read here, because importing
    testcontainers takes long."""
    said = os.environ.get("TESTCONTAINERS_RYUK_DISABLED")
    if said is None:
        try:
            with open(os.path.expanduser("~/.testcontainers.properties"), encoding="utf-8") as lines:
                settings = dict(line.strip().split("=", 1) for line in lines if "=" in line)
        except (OSError, ValueError):
            return False
        said = settings.get("ryuk.disabled", "")
    return said.lower() in ("yes", "true", "t", "y", "1")


def _in_short(error: BaseException) -> str:
    """Return the first line of an error, because the text of an engine may be long."""
    text = str(error).partition("\n")[0]
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"


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
    """Return the brokers of this run. The kind is decided at the first call."""
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
    """Add the kind of the brokers of this run to the header."""
    return brokers_of(config).header


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why the brokers were others than the first lines promised."""
    fallback = config.stash[_BROKERS].fallback if _BROKERS in config.stash else None
    if fallback is not None:
        terminalreporter.write_line(f"pyjmsack brokers: {fallback}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give every test running brokers, also if the test before killed or paused them."""
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
