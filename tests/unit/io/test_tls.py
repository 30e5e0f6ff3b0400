"""The TLS context made from the transport options, proved by real handshakes in memory."""

from __future__ import annotations

import contextlib
import logging
import ssl
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.io.tls import client_context, refusal
from pyjmsack.uri import Secret, TransportOptions, parse_url

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
    chain = [load_pem_x509_certificate(pem.bytes()) for pem in (*client.cert_chain_pems, ca.cert_pem)]
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    store = pkcs12.serialize_key_and_certificates(b"client", key, chain[0], chain[1:], encryption)
    (folder / "client.p12").write_bytes(store)
    authorities = [pkcs12.PKCS12Certificate(chain[-1], b"ca")]
    (folder / "ca.p12").write_bytes(pkcs12.serialize_java_truststore(authorities, encryption))
    empty = pkcs12.serialize_key_and_certificates(None, key, None, None, encryption)
    (folder / "empty.p12").write_bytes(empty)
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


def test_verify_host_off_warns(caplog: pytest.LogCaptureFixture) -> None:
    client_context(TransportOptions(verify_host=False), None)
    assert "transport.verifyHost=false" in caplog.text


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
        ("start", "store_type"),
        [
            (b"\xfe\xed\xfe\xed\x00\x00\x00\x02", "JKS"),
            (b"\xce\xce\xce\xce\x00\x00\x00\x02", "JCEKS"),
        ],
    )
    def test_java_store_names_the_command_that_converts_it(
        self, option: str, name: str, start: bytes, store_type: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "my store"
        path.write_bytes(start)
        with pytest.raises(UnsupportedFeatureException, match=f"{name}={path}: {store_type} stores") as caught:
            client_context(stores(option, path), None)
        assert f"keytool -importkeystore -srckeystore '{path}'" in str(caught.value)
        assert "openssl pkcs12 -in" in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "highest"),
    [
        ("TLS", ssl.TLSVersion.TLSv1_3),
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


# -- PKCS12 -----------------------------------------------------------------------------------------------------


def pkcs12_stores(files: Path, **changed: object) -> TransportOptions:
    """Return the options of a client with both stores in PKCS12 files."""
    options = {
        "trust_store_location": str(files / "ca.p12"),
        "trust_store_password": Secret(PASSWORD),
        "key_store_location": str(files / "client.p12"),
        "key_store_password": Secret(PASSWORD),
    }
    return TransportOptions(**{**options, **changed})


@pytest.mark.parametrize("types", [{}, {"store_type": "PKCS12"}, {"store_type": "PEM", "trust_store_type": "PKCS12"}])
def test_pkcs12_stores_are_read(types: dict[str, str], ca: trustme.CA, files: Path) -> None:
    """As Java writes them; the type of one store wins over the type of both."""
    changed = {**types, "key_store_type": "PKCS12"} if "trust_store_type" in types else types
    context = client_context(pkcs12_stores(files, **changed), None)
    assert len(context.get_ca_certs()) == 1
    assert handshake(context, server_context(ca, client_cert=True)).getpeercert()


def test_the_key_of_a_pkcs12_store_is_left_in_no_file(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    write = Path.write_bytes
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: (written.append(data), write(path, data))[1])
    client_context(pkcs12_stores(files), None)
    assert len(written) == 1
    assert b"ENCRYPTED PRIVATE KEY" in written[0], "it is encrypted for the moment that it is in one"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("option", "name"), [("key_store_password", "keyStore"), ("trust_store_password", "trustStore")]
)
@pytest.mark.parametrize("password", [None, "", "Wr0ngMarker"])
def test_a_wrong_pkcs12_password_is_refused_and_not_shown(
    option: str, name: str, password: str | None, files: Path
) -> None:
    transport = pkcs12_stores(files, **{option: None if password is None else Secret(password)})
    with pytest.raises(InvalidURLException, match=f"{name}Location=.*p12: .*{name}Password") as caught:
        client_context(transport, None)
    assert not password or password not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("option", "text"), [("key_store_location", "no private key with"), ("trust_store_location", "no certificates")]
)
def test_a_pkcs12_store_without_what_is_needed_is_refused(option: str, text: str, files: Path) -> None:
    with pytest.raises(InvalidURLException, match=text):
        client_context(pkcs12_stores(files, **{option: str(files / "empty.p12")}), None)


def test_a_damaged_pkcs12_store_is_refused(files: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.p12").write_bytes((files / "ca.p12").read_bytes()[:-40])
    with pytest.raises(InvalidURLException, match="expected a PKCS12 file"):
        client_context(pkcs12_stores(files, trust_store_location=str(tmp_path / "cut.p12")), None)


@pytest.mark.parametrize(("file", "given", "found"), [("ca.p12", "PEM", "PKCS12"), ("ca.pem", "PKCS12", "PEM")])
def test_a_store_of_another_type_than_the_options_say_is_refused(
    file: str, given: str, found: str, files: Path
) -> None:
    transport = TransportOptions(trust_store_location=str(files / file), trust_store_type=given)
    with pytest.raises(InvalidURLException, match=f"say that the store is {given}, but the file is {found}"):
        client_context(transport, None)


@pytest.mark.option("transport.trustStoreType", "core")
@pytest.mark.option("transport.keyStoreType", "core")
@pytest.mark.parametrize("store", ["trustStore", "keyStore"])
def test_the_url_says_of_which_type_a_store_is(store: str, files: Path) -> None:
    file = quote(str(files / ("ca.pem" if store == "trustStore" else "client.pem")))
    url = f"amqps://h?transport.{store}Location={file}&transport.{store}Type="
    client_context(parse_url(f"{url}PEM").transport, None)
    with pytest.raises(InvalidURLException, match=r"say that the store is PKCS12, but the file is PEM"):
        client_context(parse_url(f"{url}PKCS12").transport, None)


def test_a_password_for_a_pem_trust_store_is_refused(files: Path) -> None:
    transport = TransportOptions(trust_store_location=str(files / "ca.pem"), trust_store_password=Secret(PASSWORD))
    with pytest.raises(InvalidURLException, match=r"transport\.trustStorePassword is given, but") as caught:
        client_context(transport, None)
    assert PASSWORD not in str(caught.value)


def test_without_the_library_a_pkcs12_store_names_both_ways_out(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    with pytest.raises(UnsupportedFeatureException, match=r"pyjmsack\[pkcs12\].*openssl pkcs12 -in"):
        client_context(pkcs12_stores(files), None)


# -- versions and suites ----------------------------------------------------------------------------------------


def spoken(transport: TransportOptions, ca: trustme.CA) -> tuple[str | None, str]:
    """Return the version and the suite that a server with Python's defaults agrees to."""
    server = handshake(client_context(transport, None), server_context(ca))
    suite = server.cipher()
    assert suite is not None
    return server.version(), suite[0]


JAVA_SUITE, SUITE = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"
EC_SUITES = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256")
ALL_OF_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


@pytest.mark.parametrize(
    ("options", "version"),
    [
        ({}, "TLSv1.3"),
        ({"enabled_protocols": ("TLSv1.2",)}, "TLSv1.2"),
        ({"enabled_protocols": ("TLSv1", "TLSv1.1", "TLSv1.2")}, "TLSv1.2"),
        ({"disabled_protocols": ("TLSv1.3",)}, "TLSv1.2"),
        ({"enabled_protocols": ("TLSv1.3",)}, "TLSv1.3"),
        ({"context_protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"disabled_cipher_suites": ALL_OF_1_3}, "TLSv1.2"),
        ({"enabled_cipher_suites": ALL_OF_1_3}, "TLSv1.3"),
    ],
)
def test_protocol_options_decide_the_version(
    options: dict[str, object], version: str, ca: trustme.CA, files: Path
) -> None:
    transport = TransportOptions(trust_store_location=str(files / "ca.pem"), **options)
    assert spoken(transport, ca)[0] == version


@pytest.mark.parametrize("names", [(JAVA_SUITE, EC_SUITES[0]), (SUITE, EC_SUITES[1])])
def test_enabled_suites_by_java_s_and_openssl_s_names(names: tuple[str, ...], ca: trustme.CA, files: Path) -> None:
    """None of TLS 1.3 is among them, so TLS 1.2 is spoken."""
    transport = TransportOptions(trust_store_location=str(files / "ca.pem"), enabled_cipher_suites=names)
    assert spoken(transport, ca) in {("TLSv1.2", SUITE), ("TLSv1.2", EC_SUITES[1])}


def test_java_s_names_of_the_suites_of_tls_1_2_are_understood() -> None:
    """All that OpenSSL takes for safe and Java knows too."""
    names = [
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
    ]
    context = client_context(TransportOptions(enabled_cipher_suites=tuple(names)), None)
    left = [suite["name"] for suite in context.get_ciphers() if suite["protocol"] != "TLSv1.3"]
    assert sorted(left) == [
        "DHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-SHA384",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ]


def suites(context: ssl.SSLContext) -> list[str]:
    return [suite["name"] for suite in context.get_ciphers()]


@pytest.mark.parametrize("disabled", [(), (SUITE,)])
def test_a_broker_chooses_no_size_of_diffie_hellman_unless_the_url_allows_it(disabled: tuple[str, ...]) -> None:
    """With 10,000 bits each handshake held up all connections of the loop for a second."""
    usual = suites(ssl.create_default_context())
    slow = [name for name in usual if name.startswith("DHE-")]
    assert slow
    expected = [name for name in usual if name not in (*slow, *disabled)]
    assert suites(client_context(TransportOptions(disabled_cipher_suites=disabled), None)) == expected
    named = client_context(TransportOptions(enabled_cipher_suites=(slow[0], *ALL_OF_1_3)), None)
    assert suites(named) == [*ALL_OF_1_3, slow[0]]


def test_the_suites_of_an_ssl_context_of_the_program_stay() -> None:
    own = ssl.create_default_context()
    assert suites(client_context(TransportOptions(), own)) == suites(ssl.create_default_context())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"enabled_protocols": ("TLSv1.1",)}, "leave no TLS version"),
        ({"context_protocol": "TLSv1.2", "disabled_protocols": ("TLSv1.2",)}, "leave no TLS version"),
        ({"enabled_cipher_suites": ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA265",)}, r"did you mean ECDHE-RSA-AES128-GCM"),
        ({"disabled_cipher_suites": ("RC4",)}, "this OpenSSL does not have the suite RC4"),
        ({"enabled_cipher_suites": (SUITE,), "disabled_cipher_suites": (SUITE,)}, "leave no suite"),
        ({"enabled_cipher_suites": (SUITE,), "enabled_protocols": ("TLSv1.3",)}, "leave no suite"),
        ({"enabled_cipher_suites": ALL_OF_1_3, "context_protocol": "TLSv1.2"}, "leave no suite"),
    ],
)
def test_options_that_leave_nothing_are_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidURLException, match=text):
        client_context(TransportOptions(**options), None)


def test_a_choice_among_the_suites_of_tls_1_3_is_refused_as_python_has_none() -> None:
    with pytest.raises(UnsupportedFeatureException, match=r"name all of .*TLS_AES_128_GCM_SHA256"):
        client_context(TransportOptions(enabled_cipher_suites=("TLS_AES_128_GCM_SHA256", SUITE)), None)


class Pair:
    """A client and a server that speak TLS 1.3 in memory."""

    def __init__(self, ca: trustme.CA, *, mutual: bool) -> None:
        server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ca.issue_cert("broker.example").configure_cert(server)
        ca.configure_trust(client)
        if mutual:
            ca.configure_trust(server)
            server.verify_mode = ssl.CERT_REQUIRED
        self.to_server, self.to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.to_client, self.to_server, server_hostname="broker.example")
        self.server = server.wrap_bio(self.to_server, self.to_client, server_side=True)

    def shake_hands(self) -> None:
        """Do what both ends can do of the handshake."""
        for end in (self.client, self.server, self.client):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()

    def answer(self) -> Exception:
        """Let the server read, and return the error with which the client reads the answer."""
        with contextlib.suppress(ssl.SSLError):
            self.server.read(100)
        with pytest.raises(ssl.SSLError) as caught:
            self.client.read(100)
        return caught.value


def test_an_alert_about_a_certificate_is_a_refusal(ca: trustme.CA) -> None:
    """RFC 8446 4.4.2.4: the server sends it after the client has ended its handshake."""
    pair = Pair(ca, mutual=True)
    pair.shake_hands()
    refused = refusal(pair.answer())
    assert refused is not None
    assert refused.error_code == "tls:certificate"


def test_another_alert_is_no_refusal_so_failover_tries_again_s129(ca: trustme.CA) -> None:
    """RFC 8446 5.2: a damaged record ends the connection with ``bad_record_mac``."""
    pair = Pair(ca, mutual=False)
    pair.shake_hands()
    with contextlib.suppress(ssl.SSLWantReadError):
        pair.server.do_handshake()
    pair.client.write(b"first bytes")
    damaged = bytearray(pair.to_server.read())
    damaged[-1] ^= 1
    pair.to_server.write(damaged)
    error = pair.answer()
    assert "ALERT" in str(error)
    assert refusal(error) is None
