"""The TLS context made from the transport options, proved by real handshakes in memory."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.io.tls import client_context
from pyjmsack.uri import Secret, TransportOptions

PASSWORD = "Xq7Marker"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``ca.pem``, ``client.pem`` (chain and key) and ``locked.pem`` (the key needs a password)."""
    folder = tmp_path_factory.mktemp("tls")
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    client = ca.issue_cert("client@example.org")
    client.private_key_and_cert_chain_pem.write_to_path(str(folder / "client.pem"))
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    lock = serialization.BestAvailableEncryption(PASSWORD.encode())
    locked = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    (folder / "locked.pem").write_bytes(locked + b"".join(pem.bytes() for pem in client.cert_chain_pems))
    return folder


def server_context(ca: trustme.CA, *, name: str = "broker.test", client_cert: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    if client_cert:
        ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str = "broker.test") -> ssl.SSLObject:
    """Return the server's side after a handshake of two contexts through memory; either side's error is raised."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=host)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [here, there]
    for _ in range(10):
        for side in list(pending):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            pending.remove(side)
    assert not pending
    return there


def test_trust_store_location_makes_its_authorities_trusted(ca: trustme.CA, files: Path) -> None:
    context = client_context(TransportOptions(trust_store_location=str(files / "ca.pem")), None)
    handshake(context, server_context(ca))


def test_without_trust_store_an_unknown_authority_is_refused(ca: trustme.CA) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client_context(TransportOptions(), None), server_context(ca))


def test_trust_store_location_replaces_the_authorities_of_the_system(files: Path) -> None:
    context = client_context(TransportOptions(trust_store_location=str(files / "ca.pem")), None)
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(("verify_host", "refused"), [(True, True), (False, False)])
def test_verify_host_decides_whether_the_name_must_match(
    verify_host: bool, refused: bool, ca: trustme.CA, files: Path
) -> None:
    transport = TransportOptions(trust_store_location=str(files / "ca.pem"), verify_host=verify_host)
    context = client_context(transport, None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    server = server_context(ca, name="other.test")
    if refused:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            handshake(context, server)
    else:
        handshake(context, server)


def test_verify_host_off_still_refuses_an_unknown_authority(ca: trustme.CA) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client_context(TransportOptions(verify_host=False), None), server_context(ca))


def test_trust_all_verifies_nothing_and_warns(ca: trustme.CA, caplog: pytest.LogCaptureFixture) -> None:
    context = client_context(TransportOptions(trust_all=True), None)
    handshake(context, server_context(ca, name="other.test"))
    assert [(record.name, record.levelno) for record in caplog.records] == [("pyjmsack", logging.WARNING)]
    assert "transport.trustAll" in caplog.text


@pytest.mark.parametrize(("store", "password"), [("client.pem", None), ("client.pem", "x"), ("locked.pem", PASSWORD)])
def test_key_store_location_presents_the_client_certificate(
    store: str, password: str | None, ca: trustme.CA, files: Path
) -> None:
    transport = TransportOptions(
        trust_store_location=str(files / "ca.pem"),
        key_store_location=str(files / store),
        key_store_password=None if password is None else Secret(password),
    )
    server = handshake(client_context(transport, None), server_context(ca, client_cert=True))
    assert server.getpeercert()


@pytest.mark.parametrize("password", [None, "", "wrong", PASSWORD + "2", "x" * 2000])
def test_wrong_or_missing_key_store_password_is_refused_and_not_shown(password: str | None, files: Path) -> None:
    secret = None if password is None else Secret(password)
    transport = TransportOptions(key_store_location=str(files / "locked.pem"), key_store_password=secret)
    with pytest.raises(InvalidURLException, match=r"keyStoreLocation=.*locked\.pem.*keyStorePassword") as caught:
        client_context(transport, None)
    assert not password or password not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_key_store_password_without_a_key_store_is_refused() -> None:
    with pytest.raises(InvalidURLException, match=r"keyStorePassword is given without transport\.keyStoreLocation"):
        client_context(TransportOptions(key_store_password=Secret(PASSWORD)), None)


def stores(option: str, path: Path) -> TransportOptions:
    return TransportOptions(**{option: str(path)})


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("trust_store_location", "transport.trustStoreLocation"),
        ("key_store_location", "transport.keyStoreLocation"),
    ],
)
class TestStoreThatCannotBeUsed:
    @pytest.mark.parametrize(
        "content", [b"", b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"-----BEGIN x"]
    )
    def test_file_that_is_not_pem_names_file_and_option(
        self, option: str, name: str, content: bytes, tmp_path: Path
    ) -> None:
        (tmp_path / "store").write_bytes(content)
        with pytest.raises(InvalidURLException, match=f"{name}={tmp_path}/store: expected a?.*PEM"):
            client_context(stores(option, tmp_path / "store"), None)

    @pytest.mark.parametrize("path", ["missing.pem", ".", "nul\0.pem"])
    def test_file_that_cannot_be_read_names_file_and_option(
        self, option: str, name: str, path: str, tmp_path: Path
    ) -> None:
        with pytest.raises(InvalidURLException, match=f"{name}=.*: cannot be read: "):
            client_context(stores(option, tmp_path / path), None)

    @pytest.mark.parametrize(
        ("start", "store_type", "keytool"),
        [
            (b"\xfe\xed\xfe\xed\x00\x00\x00\x02", "JKS", True),
            (b"\xce\xce\xce\xce\x00\x00\x00\x02", "JCEKS", True),
            (b"\x30\x82\x0a\x00\x02\x01\x03", "PKCS12", False),
        ],
    )
    def test_java_store_names_the_command_that_converts_it(
        self, option: str, name: str, start: bytes, store_type: str, keytool: bool, tmp_path: Path
    ) -> None:
        path = tmp_path / "my store"
        path.write_bytes(start)
        with pytest.raises(UnsupportedFeatureException, match=f"{name}={path}: {store_type} stores") as caught:
            client_context(stores(option, path), None)
        assert ("keytool -importkeystore" in str(caught.value)) is keytool
        assert f"openssl pkcs12 -in '{path}'" in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "highest"),
    [
        ("TLS", ssl.TLSVersion.MAXIMUM_SUPPORTED),
        ("TLSv1.2", ssl.TLSVersion.TLSv1_2),
        ("TLSv1.3", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_context_protocol_is_the_highest_version_and_1_2_the_lowest(protocol: str, highest: ssl.TLSVersion) -> None:
    context = client_context(TransportOptions(context_protocol=protocol), None)
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, highest)
    assert context.check_hostname


def test_given_context_wins_and_ignored_options_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    context = ssl.create_default_context()
    assert client_context(TransportOptions(tcp_no_delay=False), context) is context
    assert caplog.text == ""
    assert client_context(TransportOptions(trust_all=True), context) is context
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert "transport.trustAll: no effect" in caplog.text
