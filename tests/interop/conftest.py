"""Java clients and brokers for the interoperability tests: one broker of each kind, one JVM per client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from agent import Agent, JavaMissingError

from pyjmsack import Connection, ConnectionFactory, Session
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.broker.readiness import pick_port

_ACCEPTOR = "-Dbrokerconfig.acceptorConfigurations.openwire."
_NETTY = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"


@dataclass(frozen=True)
class Site:
    """A broker as both ends see it."""

    name: str
    python_url: str
    java_urls: dict[str, str]


@pytest.fixture(scope="session")
def artemis_site() -> Iterator[Site]:
    """Artemis with an OpenWire acceptor."""
    port = pick_port()
    options = [
        f"{_ACCEPTOR}factoryClassName={_NETTY}",
        f"{_ACCEPTOR}params.host=127.0.0.1",
        f"{_ACCEPTOR}params.port={port}",
        f"{_ACCEPTOR}params.protocols=OPENWIRE",
    ]
    with EmbeddedArtemis(jvm_options=options) as broker:
        yield Site("artemis", broker.amqp_url, {"qpid": broker.amqp_url, "openwire": f"tcp://127.0.0.1:{port}"})


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


@pytest.fixture(params=["artemis"])
def site(request: pytest.FixtureRequest) -> Site:
    """The broker between the two ends."""
    made = request.getfixturevalue(f"{request.param}_site")
    assert isinstance(made, Site)
    return made


@dataclass(frozen=True)
class Java:
    """A Java client at a site."""

    client: str
    agent: Agent
    url: str

    def do(self, what: str, **command: object) -> object:
        """Give a command and return the answer."""
        return self.agent.do(what, self.url, **command)


@pytest.fixture(params=["qpid", "openwire"])
def java(request: pytest.FixtureRequest, site: Site) -> Java:
    """The Java end."""
    return Java(request.param, request.getfixturevalue(request.param), site.java_urls[request.param])


@pytest.fixture
def connection(site: Site, no_leaks: None) -> Iterator[Connection]:
    """A started connection of ours."""
    with ConnectionFactory(site.python_url).create_connection() as opened:
        opened.start()
        yield opened


@pytest.fixture
def session(connection: Connection) -> Iterator[Session]:
    """A session of ours."""
    with connection.create_session() as opened:
        yield opened
