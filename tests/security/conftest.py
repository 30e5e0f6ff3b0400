"""Real brokers with TLS and logins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ports import free_ports
from security_exchange import FACES, Exchange
from security_support import (
    CERTIFICATE_LOGIN,
    SCRAM_LOGIN,
    USERS,
    Certificates,
    Tls,
    TlsActiveMQ,
    acceptor,
    ports_with_tls,
    tls_acceptor,
)

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made once."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def tls_artemis(certificates: Certificates) -> Iterator[Tls]:
    """Artemis with TLS."""
    ports = ports_with_tls()
    options = [option for name, port in ports.items() for option in tls_acceptor(name, port, certificates)]
    with EmbeddedArtemis(jvm_options=options):
        yield Tls("artemis", certificates, ports)


@pytest.fixture(scope="session")
def tls_classic(certificates: Certificates) -> Iterator[Tls]:
    """ActiveMQ Classic with TLS."""
    ports = ports_with_tls()
    with TlsActiveMQ(certificates, ports, "6.3.1"):
        yield Tls("classic", certificates, ports)


@pytest.fixture(params=["artemis", "classic"])
def tls(request: pytest.FixtureRequest) -> Tls:
    """Each broker in turn."""
    broker = request.getfixturevalue(f"tls_{request.param}")
    assert isinstance(broker, Tls)
    return broker


@pytest.fixture(params=FACES)
def exchange(request: pytest.FixtureRequest) -> Exchange:
    """Send and receive on each face in turn."""
    return FACES[request.param]


@pytest.fixture(scope="session")
def scram_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URLs of an Artemis with SCRAM, by mechanism, of which each offers one; it knows ``USERS``."""
    folder = tmp_path_factory.mktemp("scram")
    (folder / "login.config").write_text(SCRAM_LOGIN % {"folder": folder})
    (folder / "users.properties").write_text("".join(f"{name} = {word}\n" for name, word in USERS.items()))
    (folder / "roles.properties").write_text(f"amq = {','.join(USERS)}\n")
    ports = dict(zip(("SCRAM-SHA-256", "SCRAM-SHA-512"), free_ports(2), strict=True))
    options = [f"-Djava.security.auth.login.config={folder / 'login.config'}"]
    for name, port in ports.items():
        options += acceptor(
            name, host="127.0.0.1", port=port, protocols="AMQP", saslMechanisms=name, saslLoginConfigScope="scram"
        )
    with EmbeddedArtemis(users=USERS, jvm_options=options):
        yield {name: f"amqp://127.0.0.1:{port}" for name, port in ports.items()}


@pytest.fixture(scope="session")
def secured_artemis() -> Iterator[EmbeddedArtemis]:
    """Artemis that knows ``USERS`` and nobody else."""
    with EmbeddedArtemis(users=USERS) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured_classic() -> Iterator[EmbeddedActiveMQ]:
    """ActiveMQ Classic that knows ``USERS`` and nobody else."""
    with EmbeddedActiveMQ(users=USERS) as broker:
        yield broker


@pytest.fixture(params=["artemis", "classic"])
def secured(request: pytest.FixtureRequest) -> EmbeddedArtemis | EmbeddedActiveMQ:
    """Each secured broker in turn."""
    broker = request.getfixturevalue(f"secured_{request.param}")
    assert isinstance(broker, EmbeddedArtemis | EmbeddedActiveMQ)
    return broker


@pytest.fixture(params=["amqp", "stomp"])
def secured_url(request: pytest.FixtureRequest, secured: EmbeddedArtemis | EmbeddedActiveMQ) -> str:
    """Where it listens, for each protocol in turn."""
    return str(getattr(secured, f"{request.param}_url"))


@pytest.fixture(scope="session")
def external_url(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Artemis that lets in who has a certificate in the name of one of ``USERS``, and nobody else."""
    folder = tmp_path_factory.mktemp("external")
    (folder / "login.config").write_text(CERTIFICATE_LOGIN % {"folder": folder})
    (folder / "certificates.properties").write_text("".join(f"{name} = /CN={name},.*/\n" for name in USERS))
    (folder / "users.properties").write_text("")
    (folder / "roles.properties").write_text(f"amq = {','.join(USERS)}\n")
    (port,) = free_ports()
    more = {"saslMechanisms": "EXTERNAL", "securityDomain": "certificates"}
    options = [f"-Djava.security.auth.login.config={folder / 'login.config'}"]
    options += tls_acceptor("amqps-mutual", port, certificates, **more)
    with EmbeddedArtemis(users=USERS, jvm_options=options):
        yield f"amqps://localhost:{port}"
