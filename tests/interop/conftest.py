"""Java clients and brokers for the interoperability tests: one broker of each kind, one JVM per client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from agent import Agent, JavaMissingError
from openwire import OpenWireActiveMQ, openwire_acceptor

from pyjmsack import Connection, ConnectionFactory, Session
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.broker.readiness import pick_port


@dataclass(frozen=True)
class Site:
    """A broker as both ends see it: the URL of each by the Java client's name."""

    name: str
    python_urls: dict[str, str]
    java_urls: dict[str, str]
    stomp_url: str = ""


@pytest.fixture(scope="session")
def artemis_site() -> Iterator[Site]:
    """Artemis 2.56."""
    port = pick_port()
    with EmbeddedArtemis(jvm_options=openwire_acceptor(port)) as broker:
        python = {"qpid": broker.amqp_url, "openwire": broker.amqp_url}
        yield Site(
            "artemis", python, {"qpid": broker.amqp_url, "openwire": f"tcp://127.0.0.1:{port}"}, broker.stomp_url
        )


@pytest.fixture(scope="session")
def classic_5_site() -> Iterator[Site]:
    """ActiveMQ Classic 5.18.3."""
    with OpenWireActiveMQ(version="5.18.3") as broker:
        yield _classic("classic-5", broker)


@pytest.fixture(scope="session")
def classic_6_site() -> Iterator[Site]:
    """ActiveMQ Classic 6.3.1."""
    with OpenWireActiveMQ(version="6.3.1") as broker:
        yield _classic("classic-6", broker)


def _classic(name: str, broker: OpenWireActiveMQ) -> Site:
    python = {"qpid": broker.amqp_url, "openwire": f"amqp://127.0.0.1:{broker.translated_port}"}
    java = {"qpid": broker.amqp_url, "openwire": f"tcp://127.0.0.1:{broker.openwire_port}"}
    return Site(name, python, java, broker.stomp_url)


def _agent(client: str) -> Iterator[Agent]:
    try:
        agent = Agent(client)
    except JavaMissingError as missing:
        pytest.skip(f"no Java end: {missing}")
    yield agent
    agent.close()


@pytest.fixture(scope="session")
def qpid() -> Iterator[Agent]:
    """Qpid JMS, over AMQP 1.0."""
    yield from _agent("qpid")


@pytest.fixture(scope="session")
def openwire() -> Iterator[Agent]:
    """The client of ActiveMQ, over OpenWire."""
    yield from _agent("openwire")


@pytest.fixture(params=["artemis", "classic-5", "classic-6"])
def site(request: pytest.FixtureRequest) -> Site:
    """The broker between the two ends."""
    made = request.getfixturevalue(f"{request.param.replace('-', '_')}_site")
    assert isinstance(made, Site)
    return made


@dataclass(frozen=True)
class Java:
    """A Java client at a site."""

    client: str
    broker: str
    agent: Agent
    url: str
    python_url: str
    """Where our end connects."""

    def do(self, what: str, **command: object) -> object:
        """Give a command and return the answer."""
        return self.agent.do(what, self.url, **command)


@pytest.fixture(params=["qpid", "openwire"])
def java(request: pytest.FixtureRequest, site: Site) -> Java:
    """The Java end."""
    agent = request.getfixturevalue(request.param)
    return Java(request.param, site.name, agent, site.java_urls[request.param], site.python_urls[request.param])


@pytest.fixture
def connection(java: Java, no_leaks: None) -> Iterator[Connection]:
    """A started connection of ours."""
    with ConnectionFactory(java.python_url).create_connection() as opened:
        opened.start()
        yield opened


@pytest.fixture
def session(connection: Connection) -> Iterator[Session]:
    """A session of ours."""
    with connection.create_session() as opened:
        yield opened
