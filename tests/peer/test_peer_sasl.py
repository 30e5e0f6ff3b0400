"""The login: which mechanism, which bytes, and that no secret shows (S129)."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

import pytest
import trustme
from peer import Peer
from peer_faces import Face, Told

from pyjmsack import JMSSecurityException, Queue
from pyjmsack.providers.amqp.mechanisms import Scram

SECRET = "s3cr3t-of-mine"


def init(peer: Peer) -> tuple[str, bytes]:
    frame = peer.wait_frames("sasl-init")[0]
    return str(frame["mechanism"]), frame["initial-response"]


def test_without_a_user_name_the_login_is_anonymous(face: Face) -> None:
    peer = face.peer(mechanisms=("PLAIN", "ANONYMOUS"))
    face.connect(peer)
    assert init(peer) == ("ANONYMOUS", b"")


def test_with_a_user_name_the_login_is_plain_with_the_bytes_of_rfc_4616(face: Face) -> None:
    peer = face.peer(mechanisms=("ANONYMOUS", "PLAIN"))
    face.connect(peer, username="zoë", password=SECRET)
    assert init(peer) == ("PLAIN", b"\0zo\xc3\xab\0" + SECRET.encode())


def test_the_login_may_be_in_the_url(face: Face) -> None:
    peer = face.peer()
    face.connect(peer, "jms.username=me", "jms.password=p%26q")
    assert init(peer) == ("PLAIN", b"\0me\0p&q")


def test_the_login_of_create_connection_wins_over_the_factory_s(face: Face) -> None:
    peer = face.peer()
    factory = face.factory(peer, username="factory", password="x")
    connection = factory.create_connection("other", "y")
    assert init(peer) == ("PLAIN", b"\0other\0y")
    connection.close()


def test_a_single_mechanism_that_is_not_in_an_array_is_understood(face: Face) -> None:
    """AMQP 1.0 1.4: a field of several may hold one bare value."""
    peer = face.peer(mechanisms=("ANONYMOUS",))
    face.connect(peer)
    assert init(peer) == ("ANONYMOUS", b"")


@pytest.mark.option("amqp.saslMechanisms", "amqp")
def test_sasl_mechanisms_of_the_url_limit_the_choice(face: Face) -> None:
    peer = face.peer()
    with pytest.raises(JMSSecurityException, match="ANONYMOUS") as caught:
        face.connect(peer, "amqp.saslMechanisms=ANONYMOUS", username="me", password=SECRET)
    assert SECRET not in str(caught.value)


def test_no_mechanism_in_common_names_what_the_broker_offers(face: Face) -> None:
    with pytest.raises(JMSSecurityException, match=r"GSSAPI.*SCRAM-SHA-256"):
        face.connect(face.peer(mechanisms=("GSSAPI", "SCRAM-SHA-256")))


# -- SCRAM ------------------------------------------------------------------------------------------------------

SCRAM = ("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_logs_in_without_showing_the_password(face: Face, mechanism: str) -> None:
    """RFC 5802, RFC 7677."""
    peer = face.peer(mechanisms=("ANONYMOUS", "PLAIN", mechanism), passwords={"zoë,=": SECRET})
    face.connect(peer, username="zoë,=", password=SECRET)
    assert init(peer)[0] == mechanism
    assert not [frame for frame in peer.frames if SECRET.encode() in frame.raw]


def test_the_strongest_scram_is_chosen(face: Face) -> None:
    peer = face.peer(mechanisms=("PLAIN", *SCRAM), passwords={"me": SECRET})
    face.connect(peer, username="me", password=SECRET)
    assert init(peer)[0] == "SCRAM-SHA-512"


def test_a_password_that_is_wrong_for_scram_is_a_security_error(face: Face) -> None:
    """S129."""
    peer = face.peer(mechanisms=SCRAM, passwords={"me": "another"})
    with pytest.raises(JMSSecurityException, match=r"SCRAM-SHA-512.*invalid-proof") as caught:
        face.connect(peer, username="me", password=SECRET)
    assert SECRET not in str(caught.value)
    peer.wait_closed()


def test_a_broker_that_does_not_know_the_password_is_refused(face: Face) -> None:
    """It says that the login succeeded, and that is no proof."""

    def forge(text: str) -> str:
        return "v=" + "A" * 43 + "=" if text.startswith(("v=", "e=")) else text

    peer = face.peer(mechanisms=SCRAM, passwords={"me": "another"}, forged=forge)
    with pytest.raises(JMSSecurityException, match="the broker's proof"):
        face.connect(peer, username="me", password=SECRET)
    peer.wait_closed()


def test_a_broker_that_asks_for_hours_of_computing_is_refused(face: Face) -> None:
    peer = face.peer(
        mechanisms=SCRAM, passwords={"me": SECRET}, forged=lambda text: text.replace("i=4096", "i=9999999")
    )
    with pytest.raises(JMSSecurityException, match="9999999 iterations"):
        face.connect(peer, username="me", password=SECRET)
    assert not peer.all("sasl-response")


def test_the_rounds_of_scram_are_computed_beside_the_loop(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rounds take a second. A hostile broker asked for them at each reconnect, and the other connections of
    the loop stood still."""
    loops: list[asyncio.AbstractEventLoop | None] = []
    prove = Scram._prove

    def watched(self: Scram, challenge: bytes) -> bytes:
        loops.append(asyncio._get_running_loop())
        return prove(self, challenge)

    monkeypatch.setattr(Scram, "_prove", watched)
    face.connect(face.peer(mechanisms=SCRAM, passwords={"me": SECRET}), username="me", password=SECRET)
    assert loops == [None]


@pytest.mark.parametrize("outcome", [1, 2, 3])
def test_a_refused_login_is_a_security_error(face: Face, outcome: int) -> None:
    """S129."""
    peer = face.peer(sasl_outcome=outcome)
    with pytest.raises(JMSSecurityException, match="'me'") as caught:
        face.connect(peer, username="me", password=SECRET)
    assert isinstance(caught.value, PermissionError)
    assert SECRET not in str(caught.value)
    peer.wait_closed()


def test_a_temporary_failure_of_the_login_says_so_and_can_be_told_apart(face: Face) -> None:
    """Catalogue 64: a caller may retry this one, and no other."""
    with pytest.raises(JMSSecurityException, match="temporary") as caught:
        face.connect(face.peer(sasl_outcome=4), username="me", password=SECRET)
    assert caught.value.error_code == "sasl:4"


def test_the_password_is_in_no_repr_log_or_exception(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pyjmsack")
    peer = face.peer()
    factory = face.factory(peer, "amqp.traceFrames=true", f"jms.password={SECRET}", username="me")
    connection = factory.create_connection()
    connection.exception_listener = heard = Told()
    peer.drop()
    lost = heard.first()
    refused = face.peer(sasl_outcome=1)
    with pytest.raises(JMSSecurityException) as security:
        face.connect(refused, "amqp.traceFrames=true", f"jms.password={SECRET}", username="me")
    shown = [repr(factory), repr(connection), caplog.text, str(lost), repr(lost), repr(security.value)]
    assert init(peer)[1].endswith(SECRET.encode())
    assert "@open" in caplog.text, "frames are traced"
    assert not [text for text in shown if SECRET in text]
    connection.close()


# -- TLS --------------------------------------------------------------------------------------------------------


class Certificates:
    """An authority, and PEM files of a server and a client that it vouches for."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.trust = folder / "ca.pem"
        self.client = folder / "client.pem"
        authority.cert_pem.write_to_path(self.trust)
        client = authority.issue_cert("me@example.org")
        client.private_key_and_cert_chain_pem.write_to_path(self.client)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(self.server)
        authority.configure_trust(self.server)
        self.server.verify_mode = ssl.CERT_OPTIONAL

    @property
    def options(self) -> tuple[str, str]:
        return f"transport.trustStoreLocation={self.trust}", f"transport.keyStoreLocation={self.client}"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def test_a_client_certificate_of_the_url_logs_in_with_external(face: Face, certificates: Certificates) -> None:
    peer = face.peer(tls=certificates.server, mechanisms=("PLAIN", "EXTERNAL", "ANONYMOUS"))
    face.connect(peer, *certificates.options)
    assert init(peer) == ("EXTERNAL", b"")


def test_external_comes_before_plain_where_the_broker_offers_both(face: Face, certificates: Certificates) -> None:
    peer = face.peer(tls=certificates.server, mechanisms=("PLAIN", "EXTERNAL"))
    face.connect(peer, *certificates.options, username="me", password=SECRET)
    assert init(peer) == ("EXTERNAL", b"")


def test_plain_is_used_over_tls_where_external_is_not_offered(face: Face, certificates: Certificates) -> None:
    peer = face.peer(tls=certificates.server, mechanisms=("PLAIN",))
    face.connect(peer, *certificates.options, username="me", password=SECRET)
    assert init(peer) == ("PLAIN", b"\0me\0" + SECRET.encode())


def test_external_is_not_tried_without_tls(face: Face, certificates: Certificates) -> None:
    peer = face.peer(mechanisms=("EXTERNAL", "ANONYMOUS"))
    face.connect(peer)
    assert init(peer) == ("ANONYMOUS", b"")


def test_an_ssl_context_with_a_certificate_logs_in_with_external_when_asked(
    face: Face, certificates: Certificates
) -> None:
    """Python cannot tell whether a context holds a certificate, so the URL says it."""
    context = ssl.create_default_context(cafile=str(certificates.trust))
    context.load_cert_chain(certificates.client)
    peer = face.peer(tls=certificates.server, mechanisms=("PLAIN", "EXTERNAL", "ANONYMOUS"))
    face.connect(peer, "amqp.saslMechanisms=EXTERNAL", ssl_context=context)
    assert init(peer) == ("EXTERNAL", b"")


def test_an_untrusted_server_is_a_security_error_before_any_byte_of_the_login(
    face: Face, certificates: Certificates
) -> None:
    """S129."""
    peer = face.peer(tls=certificates.server)
    with pytest.raises(JMSSecurityException, match="TLS"):
        face.connect(peer, username="me", password=SECRET)
    assert peer.frames == []


# -- without SASL -----------------------------------------------------------------------------------------------


def test_without_the_sasl_layer_the_client_begins_with_amqp(face: Face) -> None:
    """A.1 ``amqp.saslLayer``."""
    peer = face.peer(sasl_layer=False)
    face.session(peer, "amqp.saslLayer=false").create_producer(Queue("q"))
    assert [frame.name for frame in peer.frames[:2]] == ["header", "open"]


def test_without_the_sasl_layer_a_user_name_is_refused_as_nobody_would_see_it(face: Face) -> None:
    """A.1 ``amqp.saslLayer``: Java sends no login then, and says nothing."""
    peer = face.peer(sasl_layer=False)
    with pytest.raises(JMSSecurityException, match=r"amqp\.saslLayer=false") as caught:
        face.connect(peer, "amqp.saslLayer=false", username="me", password=SECRET)
    assert SECRET not in str(caught.value)
    assert peer.frames == []


# -- traces -----------------------------------------------------------------------------------------------------


@pytest.mark.option("amqp.traceFrames", "amqp")
@pytest.mark.option("amqp.traceFramesPayloadLimit", "amqp")
@pytest.mark.option("transport.traceBytes", "amqp")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_traces_show_everything_but_the_login_and_as_much_of_a_payload_as_is_wanted(
    face: Face, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A.1 ``amqp.traceFrames``, ``amqp.traceFramesPayloadLimit``, ``transport.traceBytes``."""
    caplog.set_level(logging.DEBUG, "pyjmsack")
    peer = face.peer(mechanisms=(mechanism,), passwords={"me": SECRET})
    options = ("amqp.traceFrames=true", "amqp.traceFramesPayloadLimit=8", "transport.traceBytes=true")
    session = face.session(peer, *options, username="me", password=SECRET)
    session.create_producer(Queue("q")).send("x" * 500)
    frames = [record.message for record in caplog.records if "@transfer" in record.message]
    assert len(frames) == 1
    assert frames[0].endswith("...")
    assert "x" * 9 not in frames[0]
    assert ("x" * 500).encode().hex() in caplog.text
    assert SECRET not in caplog.text
    assert SECRET.encode().hex() not in caplog.text
