"""An embedded broker with TLS: clients of both protocols use its URLs as they are."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pyjmsack import ConnectionFactory, JMSSecurityException
from pyjmsack.broker import BrokerError, EmbeddedActiveMQ, EmbeddedArtemis, KeyStore


def send_and_receive(url: str) -> str | None:
    """Send over TLS, and receive what was sent."""
    with ConnectionFactory(url).create_context() as context:
        queue = context.create_queue("secured")
        context.create_producer(queue).send("over TLS")
        return context.create_consumer(queue).receive_body(str, timeout=60)


def trust_of(url: str) -> str:
    """Return the file of authorities that a URL names."""
    return parse_qs(urlsplit(url).query)["transport.trustStoreLocation"][0]


def own_store(folder: Path, *, mutual: bool = False) -> KeyStore:
    """Make a key store as a user has one: of an authority, with a path and a password that need care.

    With ``mutual`` a client must have a certificate of the same authority. One is made.
    """
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    trustme = pytest.importorskip("trustme")
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    chain = [x509.load_pem_x509_certificate(pem.bytes()) for pem in issued.cert_chain_pems]
    key: Any = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    password = 'pa;ss&w+o%r"d'
    store, trust = folder / "my keys & more.p12", folder / "my trust.pem"
    encryption = serialization.BestAvailableEncryption(password.encode())
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, chain[0], chain[1:], encryption))
    authority.cert_pem.write_to_path(str(trust))
    if not mutual:
        return KeyStore(store, password, trust)
    clients, client = folder / "my clients.p12", folder / "my client.pem"
    known = [pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(authority.cert_pem.bytes()), b"ours")]
    clients.write_bytes(pkcs12.serialize_java_truststore(known, encryption))
    authority.issue_cert("shop").private_key_and_cert_chain_pem.write_to_path(str(client))
    return KeyStore(store, password, trust, clients=clients, client=client)


def test_artemis_takes_a_key_store_of_ones_own(tmp_path: Path) -> None:
    with EmbeddedArtemis(tls=own_store(tmp_path)) as broker:
        assert broker.amqp_url.startswith("amqps://localhost:")
        assert broker.stomp_url.startswith("stomp+ssl://localhost:")
        for url in (broker.amqp_url, broker.stomp_url):
            assert send_and_receive(url) == "over TLS"


def test_classic_makes_a_certificate_that_stays_in_its_directory(tmp_path: Path) -> None:
    """A client that does not know the authority is refused."""
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    folder = tmp_path / "my broker"
    with EmbeddedActiveMQ(folder, tls=True) as broker:
        for url in (broker.amqp_url, broker.stomp_url):
            assert send_and_receive(url) == "over TLS"
        with pytest.raises(JMSSecurityException, match="verif"):
            ConnectionFactory(broker.amqp_url.partition("?")[0]).create_connection()
    trust = Path(trust_of(broker.amqp_url))
    assert trust.parent == folder / "tls"
    known = trust.read_bytes()
    later = EmbeddedActiveMQ(folder, amqp_port=5671, stomp_port=61614, tls=True)
    assert trust_of(later.amqp_url) == str(trust)
    assert trust.read_bytes() == known


@pytest.mark.parametrize("kind", [EmbeddedArtemis, EmbeddedActiveMQ])
def test_a_broker_that_asks_for_a_certificate_serves_those_who_have_one(
    tmp_path: Path, kind: type[EmbeddedArtemis | EmbeddedActiveMQ]
) -> None:
    """The URLs name a certificate that was made. A client without one is refused, as on a broker in production."""
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    with kind(tmp_path, tls="mutual") as broker:
        folder = tmp_path / "tls"
        assert (broker.trust_path, broker.client_certificate_path) == (folder / "trust.pem", folder / "client.pem")
        for url in (broker.amqp_url, broker.stomp_url):
            assert send_and_receive(url) == "over TLS"
            without, _, query = url.partition("&")
            assert query.startswith("transport.keyStoreLocation=")
            with pytest.raises(JMSSecurityException, match=r"transport\.keyStoreLocation") as refused:
                ConnectionFactory(without).create_connection()
            assert refused.value.error_code == "tls:certificate"


@pytest.mark.parametrize("kind", [EmbeddedArtemis, EmbeddedActiveMQ])
def test_a_broker_takes_a_trust_store_of_ones_own_for_its_clients(
    tmp_path: Path, kind: type[EmbeddedArtemis | EmbeddedActiveMQ]
) -> None:
    with kind(tls=own_store(tmp_path, mutual=True)) as broker:
        for url in (broker.amqp_url, broker.stomp_url):
            assert send_and_receive(url) == "over TLS"
            with pytest.raises(JMSSecurityException):
                ConnectionFactory(url.partition("&")[0]).create_connection()


def test_stores_that_an_older_version_made_are_made_anew(tmp_path: Path) -> None:
    """The directory then has all files of one authority, and not some of an authority that is forgotten."""
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    EmbeddedArtemis(tmp_path, tls=True)
    folder = tmp_path / "tls"
    files = {file.name for file in folder.iterdir()}
    old = (folder / "trust.pem").read_bytes()
    (folder / "client.pem").unlink()
    EmbeddedArtemis(tmp_path, tls="mutual")
    assert {file.name for file in folder.iterdir()} == files
    assert (folder / "trust.pem").read_bytes() != old


def test_only_the_owner_can_read_a_key_that_was_made(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    broker = EmbeddedArtemis(tmp_path, amqp_port=5671, stomp_port=61614, tls=True)
    assert broker.amqp_url.startswith("amqps://127.0.0.1:5671?")
    for file in (tmp_path / "tls").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_certificate_without_a_directory_ends_with_the_broker_object() -> None:
    pytest.importorskip("cryptography", reason="the extra pkcs12 is not installed")
    broker = EmbeddedArtemis(amqp_port=5671, stomp_port=61614, tls=True)
    trust = Path(trust_of(broker.stomp_url))
    assert trust.exists()
    broker._keys.remove()
    assert not trust.parent.exists()


def test_the_error_names_the_extra_that_makes_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(BrokerError, match=r"pip install 'pyjmsack\[pkcs12\]'"):
        EmbeddedArtemis(tmp_path, tls=True)


def test_a_key_store_that_no_broker_can_use_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="variable"):
        KeyStore(tmp_path / "a.p12", "${user.home}")
    with pytest.raises(FileNotFoundError, match=r"none\.p12"):
        EmbeddedArtemis(tls=KeyStore(tmp_path / "none.p12", "x"))
    with pytest.raises(ValueError, match="variable"):
        KeyStore(tmp_path / "a.p12", "x", clients="${user.home}/b.p12")
    with pytest.raises(ValueError, match="'mutual' or a KeyStore, not 'mutal'"):
        EmbeddedArtemis(tls="mutal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="write TLS into that file"):
        EmbeddedArtemis(tls=True, configuration=tmp_path / "broker.xml")
    assert "x7" not in repr(KeyStore(tmp_path / "a.p12", "x7"))
