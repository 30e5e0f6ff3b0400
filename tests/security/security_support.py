"""Certificates, and brokers with TLS on ports of their own beside the plain ones."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate
from ports import free_ports

from pyjmsack.broker import EmbeddedActiveMQ
from pyjmsack.broker.activemq_instance import ActiveMQInstance
from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.instance import Instance
from pyjmsack.broker.java import Java

STORE_PASSWORD = "st0re-of-mine"
USERS = {"alice": "w0nderland-secret"}
PORTS = ("amqps", "amqps-mutual", "amqps-elsewhere", "stomp+ssl", "stomp+ssl-mutual")
"""What the brokers listen on: with TLS, with TLS that wants a client certificate, under another host's name."""


class Certificates:
    """An authority with what it vouches for, and a stranger; PEM for Python, PKCS12 for Java and Python."""

    def __init__(self, folder: Path) -> None:
        authority, stranger = trustme.CA(), trustme.CA()
        self.folder = folder
        self.trust, self.strangers = folder / "ca.pem", folder / "stranger-ca.pem"
        authority.cert_pem.write_to_path(self.trust)
        stranger.cert_pem.write_to_path(self.strangers)
        self._write("server", authority.issue_cert("localhost", "127.0.0.1"))
        self._write("elsewhere", authority.issue_cert("elsewhere.test"))
        self._write("client", authority.issue_cert("me@example.org", common_name="alice"))
        self._write("rogue", stranger.issue_cert("me@example.org", common_name="alice"))
        ca = load_pem_x509_certificate(authority.cert_pem.bytes())
        store = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], self._encryption)
        (folder / "ca.p12").write_bytes(store)

    _encryption = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())

    def _write(self, name: str, leaf: trustme.LeafCert) -> None:
        leaf.private_key_and_cert_chain_pem.write_to_path(self.folder / f"{name}.pem")
        key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
        chain = [load_pem_x509_certificate(pem.bytes()) for pem in leaf.cert_chain_pems]
        store = pkcs12.serialize_key_and_certificates(name.encode(), key, chain[0], chain[1:], self._encryption)
        (self.folder / f"{name}.p12").write_bytes(store)

    def options(self, client: str | None = None, trust: Path | None = None) -> dict[str, object]:
        """Return the options of a client that trusts the authority and presents a certificate, or none."""
        options: dict[str, object] = {"transport.trustStoreLocation": trust or self.trust}
        if client is not None:
            options["transport.keyStoreLocation"] = self.folder / f"{client}.pem"
        return options

    def context(self, client: str | None = None) -> ssl.SSLContext:
        """Return the same as a context."""
        context = ssl.create_default_context(cafile=str(self.trust))
        if client is not None:
            context.load_cert_chain(self.folder / f"{client}.pem")
        return context


@dataclass(frozen=True)
class Tls:
    """A running broker, its certificates and its ports by the names in ``PORTS``."""

    name: str
    certificates: Certificates
    ports: Mapping[str, int]

    def url(self, port: str, host: str = "localhost") -> str:
        """Return the URL of one of the ports."""
        return f"{port.partition('-')[0]}://{host}:{self.ports[port]}"


def ports_with_tls() -> dict[str, int]:
    """Return a free port for each name."""
    return dict(zip(PORTS, free_ports(len(PORTS)), strict=True))


def acceptor(name: str, **parameters: object) -> list[str]:
    """Return the system properties that add an acceptor to Artemis (broker properties)."""
    prefix = f"-Dbrokerconfig.acceptorConfigurations.{name.replace('+', '')}"
    factory = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"
    return [f"{prefix}.factoryClassName={factory}", *(f"{prefix}.params.{k}={v}" for k, v in parameters.items())]


def tls_acceptor(name: str, port: int, certificates: Certificates, **more: object) -> list[str]:
    """Return the same for an acceptor with TLS."""
    folder = certificates.folder
    return acceptor(
        name,
        host="127.0.0.1",
        port=port,
        protocols="STOMP" if name.startswith("stomp") else "AMQP",
        sslEnabled="true",
        keyStorePath=folder / ("elsewhere.p12" if "elsewhere" in name else "server.p12"),
        keyStorePassword=STORE_PASSWORD,
        keyStoreType="PKCS12",
        trustStorePath=folder / "ca.p12",
        trustStorePassword=STORE_PASSWORD,
        trustStoreType="PKCS12",
        needClientAuth=str("mutual" in name).lower(),
        **{"saslMechanisms": "EXTERNAL,PLAIN,ANONYMOUS", **more},
    )


class TlsActiveMQ(EmbeddedActiveMQ):
    """ActiveMQ Classic with more connectors; it has one key store for all, so none is under another host's name."""

    def __init__(self, certificates: Certificates, ports: Mapping[str, int], version: str) -> None:
        super().__init__(version=version)
        self._certificates, self._tls_ports = certificates, ports

    def _instance(self, directory: Path, java: Java, distribution: Distribution) -> Instance:
        instance = super()._instance(directory, java, distribution)
        assert isinstance(instance, ActiveMQInstance)
        certificates, ports = self._certificates, self._tls_ports

        class WithTls(ActiveMQInstance):
            def write_configuration(self) -> None:
                super().write_configuration()
                file = self.etc / "activemq.xml"
                file.write_text(with_tls(file.read_text(), certificates, ports))

        return WithTls(**{field.name: getattr(instance, field.name) for field in fields(instance)})


def with_tls(configuration: str, certificates: Certificates, ports: Mapping[str, int]) -> str:
    """Return ``activemq.xml`` with key store, trust store and connectors."""
    folder = certificates.folder
    stores = (
        f'<sslContext><sslContext keyStore="file:{folder}/server.p12" keyStorePassword="{STORE_PASSWORD}"'
        f' keyStoreType="PKCS12" trustStore="file:{folder}/ca.p12" trustStorePassword="{STORE_PASSWORD}"'
        ' trustStoreType="PKCS12"/></sslContext>'
    )
    connectors = "".join(
        f'<transportConnector name="{name}" uri="{"stomp" if name.startswith("stomp") else "amqp"}+ssl://127.0.0.1:{port}'
        f'?transport.needClientAuth={str("mutual" in name).lower()}"/>'
        for name, port in ports.items()
        if "elsewhere" not in name
    )
    return configuration.replace("<transportConnectors>", f"{stores}<transportConnectors>{connectors}")


SCRAM_LOGIN = """
scram {
  org.apache.activemq.artemis.spi.core.security.jaas.SCRAMPropertiesLoginModule required
    baseDir="%(folder)s"
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
};
activemq {
  org.apache.activemq.artemis.spi.core.security.jaas.SCRAMLoginModule required;
};
"""


CERTIFICATE_LOGIN = """
certificates {
  org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule required
    baseDir="%(folder)s"
    org.apache.activemq.jaas.textfiledn.user="certificates.properties"
    org.apache.activemq.jaas.textfiledn.role="roles.properties";
};
activemq {
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
    baseDir="%(folder)s"
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
};
"""
"""Artemis: who has a certificate in the name of a user is that user."""
