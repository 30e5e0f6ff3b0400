"""The pytest plugin of pyjmsack; docs/testing.md describes it.

pytest loads this module in every environment with pyjmsack, before the measurement of coverage starts. So the module is
outside of the package, and imports the package only inside the fixtures.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Container, Iterator
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
_NO_REAPER = f"{_REAPER}; fetch it with docker pull, or set TESTCONTAINERS_RYUK_DISABLED=true"


class _Kind(NamedTuple):
    """A kind of broker, which has a fixture of the same name."""

    image: str
    embedded: str
    version: str


_KINDS = {
    "artemis": _Kind("pyjmsack/artemis:2.56.0", "EmbeddedArtemis", "2.56.0"),
    "activemq": _Kind("pyjmsack/activemq:6.3.1", "EmbeddedActiveMQ", "6.3.1"),
    "activemq5": _Kind("pyjmsack/activemq:5.18.3", "EmbeddedActiveMQ", "5.18.3"),
}


class _Brokers:
    """Starts the brokers of this run, all of them embedded or all in containers."""

    def __init__(self, mode: str) -> None:
        obstacle = _obstacle() if mode == "auto" else None
        self._auto = mode == "auto"
        self.fallback: str | None = None
        """The reason why the brokers are embedded, although the header of the run says that they are in containers."""
        self.container = mode == "container" or (mode == "auto" and obstacle is None)
        where = "containers" if self.container else "embedded"
        self.header = f"pyjmsack brokers: {where} ({obstacle or f'--pyjmsack-broker={mode}'})"
        self._started: dict[str, Broker] = {}
        """The brokers of the fixtures, by the name of the fixture."""
        self.dead: dict[str, str] = {}
        """Brokers that could not be started again, each with the reason."""

    def run(self, name: str) -> Iterator[Broker]:
        """Yield a started broker, and stop the broker when the fixture ends."""
        broker = self._start(_KINDS[name])
        self._started[name] = broker
        try:
            yield broker
        finally:
            del self._started[name]
            broker.stop()

    def _start(self, kind: _Kind) -> ContainerBroker | EmbeddedArtemis | EmbeddedActiveMQ:
        """Return a running broker. In the mode ``auto`` the broker is embedded if no container can be started."""
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

    def recover(self, used: Container[str]) -> None:
        """Start the brokers again that a test killed, and resume those that a test paused.

        A broker that does not start fails the tests that use it. For the others it is tried only once, because each
        try may take a minute.

        Args:
            used: the names of the fixtures that the next test uses.
        """
        for name, broker in self._started.items():
            if name in self.dead and name not in used:
                continue
            try:
                if broker.running:
                    broker.resume()
                else:
                    broker.restart()
            except Exception as error:
                self.dead[name] = _in_short(error)
                if name in used:
                    raise
            else:
                self.dead.pop(name, None)


def _obstacle() -> str | None:
    """Return the reason why brokers cannot run in containers; ``None`` if they can."""
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
    """Whether a variable or a file tells testcontainers to run without its reaper. This function reads both itself,
    because it takes long to import testcontainers.
    """
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
    """Return the start of an error's first line, because the text of a container engine may be long."""
    text = str(error).partition("\n")[0]
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"


def _images(path: str) -> set[str]:
    """Return the names of the images that the container engine has. This function asks over the socket, because the
    library of the engine takes half a second to import.
    """
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
    """Return the brokers of this run. The first call decides whether they are embedded or in containers."""
    if _BROKERS not in config.stash:
        config.stash[_BROKERS] = _Brokers(str(config.getoption("pyjmsack_broker")))
    return config.stash[_BROKERS]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--pyjmsack-broker``."""
    parser.getgroup("pyjmsack", "brokers for tests").addoption(
        "--pyjmsack-broker",
        dest="pyjmsack_broker",
        choices=_MODES,
        default="auto",
        help="what the fixtures artemis, activemq, activemq5 and jms_broker start: auto (containers if the images are "
        "there, otherwise embedded), container, embedded",
    )


def pytest_report_header(config: pytest.Config) -> str:
    """Print in the header whether the brokers of this run are embedded or in containers."""
    return brokers_of(config).header


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the reason why the brokers were embedded, if the header said that they would be in containers. Print which
    brokers ended for good.
    """
    fallback = config.stash[_BROKERS].fallback if _BROKERS in config.stash else None
    if fallback is not None:
        terminalreporter.write_line(f"pyjmsack brokers: {fallback}")
    for name, why in (config.stash[_BROKERS].dead if _BROKERS in config.stash else {}).items():
        terminalreporter.write_line(f"pyjmsack brokers: {name} ended and could not be started again: {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let every test begin with running brokers, even if the last test killed or paused them."""
    if _BROKERS in item.config.stash:
        item.config.stash[_BROKERS].recover(_used(item))


def _used(item: pytest.Item) -> set[str]:
    """Return the names of the fixtures that a test asks for. The fixture ``jms_broker`` asks for the one that its
    parameter names.
    """
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return {*getattr(item, "fixturenames", ()), str(parameters.get("jms_broker"))}


@pytest.fixture(scope="session")
def artemis(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Artemis 2.56.0: one broker for all tests, which runs at the start of each test."""
    yield from brokers_of(pytestconfig).run("artemis")


@pytest.fixture(scope="session")
def activemq(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Classic 6.3.1: one broker for all tests, which runs at the start of each test."""
    yield from brokers_of(pytestconfig).run("activemq")


@pytest.fixture(scope="session")
def activemq5(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """ActiveMQ Classic 5.18.3: one broker for all tests, which runs at the start of each test."""
    yield from brokers_of(pytestconfig).run("activemq5")


@pytest.fixture(scope="session", params=["artemis", "activemq"])
def jms_broker(request: pytest.FixtureRequest) -> Broker:
    """Run the test once with each kind of broker. To choose the kinds, parametrize this fixture indirectly."""
    broker: Broker = request.getfixturevalue(request.param)
    return broker


@pytest.fixture
def wire() -> Iterator[Callable[[str], Wire]]:
    """A function: ``wire(broker.amqp_url)`` returns a wire to this broker, which is closed when the test ends."""
    from pyjmsack.testing import Wire

    with ExitStack() as opened:
        yield lambda broker_url: opened.enter_context(Wire(broker_url))
