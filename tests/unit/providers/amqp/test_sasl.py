"""The login without sockets: any split of the bytes, any nonsense (AMQP 1.0 5.3)."""

from __future__ import annotations

import struct
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.errors import ConnectionLostException, JMSException, JMSSecurityException
from pyjmsack.providers.amqp.mechanisms import MOST_ITERATIONS, Scram
from pyjmsack.providers.amqp.sasl import SaslClient

HEADER = b"AMQP\x03\x01\x00\x00"


def symbol(name: str) -> bytes:
    return b"\xa3" + bytes([len(name)]) + name.encode()


def array(*names: str) -> bytes:
    items = b"".join(bytes([len(name)]) + name.encode() for name in names)
    return b"\xe0" + bytes([len(items) + 2, len(names)]) + b"\xa3" + items


def frame(code: int, *fields: bytes, kind: int = 1, extended: bytes = b"") -> bytes:
    values = b"".join(fields)
    body = b"\x00\x53" + bytes([code]) + b"\xc0" + bytes([len(values) + 1, len(fields)]) + values
    offset = 2 + len(extended) // 4
    return struct.pack(">IBBH", 8 + len(extended) + len(body), offset, kind, 0) + extended + body


def mechanisms(*names: str) -> bytes:
    return frame(0x40, array(*names))


def outcome(code: int) -> bytes:
    return frame(0x44, b"\x50" + bytes([code]))


def client(username: str | None = None, password: str | None = None, **options: Any) -> SaslClient:
    return SaslClient(username, password, external=options.get("external", False), allowed=options.get("allowed", ()))


def answer(sasl: SaslClient, *offered: str) -> tuple[str, bytes]:
    """Offer mechanisms; return the mechanism and response of the init frame."""
    assert bytes(sasl.output) == HEADER
    sasl.output.clear()
    assert sasl.receive(HEADER + mechanisms(*offered)) == b""
    size, offset, kind, _ = struct.unpack_from(">IBBH", sasl.output)
    assert (size, offset, kind) == (len(sasl.output), 2, 1)
    body = bytes(sasl.output[8:])
    assert body.startswith(b"\x00\x53\x41\xd0")
    length = body[13]
    name, rest = body[14 : 14 + length], body[14 + length :]
    assert rest[0] == 0xB0
    (size,) = struct.unpack_from(">I", rest, 1)
    assert len(rest) == 5 + size
    return name.decode(), rest[5:]


@pytest.mark.parametrize(
    ("sasl", "offered", "expected"),
    [
        (client(), ("PLAIN", "ANONYMOUS"), ("ANONYMOUS", b"")),
        (client("u", "p"), ("ANONYMOUS", "PLAIN"), ("PLAIN", b"\0u\0p")),
        (client("u"), ("PLAIN",), ("PLAIN", b"\0u\0")),
        (client("u", "p"), ("XOAUTH2", "ANONYMOUS"), ("XOAUTH2", b"user=u\x01auth=Bearer p\x01\x01")),
        (client("u", "p"), ("XOAUTH2", "PLAIN"), ("PLAIN", b"\0u\0p")),
        (client("u"), ("SCRAM-SHA-256", "CRAM-MD5", "PLAIN"), ("PLAIN", b"\0u\0")),
        (client("ü", "p" * 300), ("PLAIN",), ("PLAIN", b"\0\xc3\xbc\0" + b"p" * 300)),
        (client("u", "p", external=True), ("PLAIN", "EXTERNAL"), ("EXTERNAL", b"")),
        (client("u", "p", external=True), ("PLAIN",), ("PLAIN", b"\0u\0p")),
        (client("u", "p", external=True, allowed=("PLAIN",)), ("PLAIN", "EXTERNAL"), ("PLAIN", b"\0u\0p")),
        (client(allowed=("anonymous",)), ("ANONYMOUS",), ("ANONYMOUS", b"")),
    ],
)
def test_the_strongest_mechanism_that_fits_is_chosen(
    sasl: SaslClient, offered: tuple[str, ...], expected: tuple[str, bytes]
) -> None:
    """Catalogue 89."""
    sasl.__init__(sasl._username, sasl._password, external=sasl._external, allowed=tuple(sasl._allowed))
    assert answer(sasl, *offered) == expected


@pytest.mark.parametrize(
    ("sasl", "offered"),
    [
        (client(), ("PLAIN",)),
        (client("u", "p"), ("ANONYMOUS",)),
        (client("u"), ("SCRAM-SHA-256", "GSSAPI")),
        (client("u", "secret", allowed=("ANONYMOUS",)), ("PLAIN", "ANONYMOUS")),
        (client(external=False), ("EXTERNAL",)),
    ],
)
def test_without_a_mechanism_in_common_the_error_names_both_sides_and_no_secret(
    sasl: SaslClient, offered: tuple[str, ...]
) -> None:
    with pytest.raises(JMSSecurityException, match=offered[0]) as caught:
        sasl.receive(HEADER + mechanisms(*offered))
    assert "secret" not in str(caught.value)


def test_a_sasl_frame_that_comes_twice_is_no_refused_login() -> None:
    """``failover:`` took it for one, and gave up all brokers."""
    sasl = client("u", "p")
    sasl.receive(HEADER + mechanisms("PLAIN"))
    with pytest.raises(ConnectionLostException, match="unexpected SASL frame 64"):
        sasl.receive(mechanisms("PLAIN"))


def test_a_login_with_a_user_never_falls_back_to_anonymous() -> None:
    """It would act with other rights than the caller meant."""
    with pytest.raises(JMSSecurityException):
        client("u", "p").receive(HEADER + mechanisms("ANONYMOUS"))


def test_a_single_mechanism_needs_no_array() -> None:
    """AMQP 1.0 1.4."""
    sasl = client()
    sasl.receive(HEADER + frame(0x40, symbol("ANONYMOUS")))
    assert b"ANONYMOUS" in sasl.output


def test_byte_by_byte_gives_the_same_as_all_at_once_and_the_rest_is_returned() -> None:
    stream = HEADER + mechanisms("PLAIN", "ANONYMOUS") + outcome(0) + b"AMQP\x00\x01\x00\x00rest"
    whole, pieces = client(), client()
    assert whole.receive(stream) == b"AMQP\x00\x01\x00\x00rest"
    rest = b""
    for byte in stream:
        if pieces.done:
            rest += bytes([byte])
        else:
            rest += pieces.receive(bytes([byte]))
    assert rest == b"AMQP\x00\x01\x00\x00rest"
    assert bytes(pieces.output) == bytes(whole.output)
    assert whole.done
    assert pieces.done


@given(st.lists(st.integers(0, 60), max_size=6))
def test_any_split_of_the_bytes_gives_the_same(cuts: list[int]) -> None:
    stream = HEADER + mechanisms("PLAIN", "ANONYMOUS") + outcome(0)
    sasl = client("u", "p")
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    for start, end in pairwise(edges):
        assert sasl.receive(stream[start:end]) == b""
    assert sasl.done


def test_extended_headers_and_unknown_fields_are_skipped() -> None:
    """AMQP 1.0 2.3.1."""
    sasl = client()
    sasl.receive(HEADER + frame(0x40, array("ANONYMOUS"), extended=b"\x01\x02\x03\x04"))
    assert sasl.receive(frame(0x44, b"\x50\x00", b"\xa0\x01x", extended=bytes(8))) == b""
    assert sasl.done


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "authentication failed"), (2, "system error"), (3, "permanent"), (4, "temporary"), (99, "99")],
)
def test_a_refusal_says_why_and_for_whom_but_not_the_password(code: int, words: str) -> None:
    """S129."""
    sasl = client("zoe", "secret")
    sasl.receive(HEADER + mechanisms("PLAIN"))
    with pytest.raises(JMSSecurityException, match=words) as caught:
        sasl.receive(outcome(code))
    assert "zoe" in str(caught.value)
    assert "secret" not in repr(caught.value)
    assert caught.value.error_code == f"sasl:{code}"
    assert not sasl.done


def test_a_refusal_without_a_code_is_a_refusal() -> None:
    sasl = client()
    sasl.receive(HEADER + mechanisms("ANONYMOUS"))
    with pytest.raises(JMSSecurityException):
        sasl.receive(frame(0x44))


def test_a_success_before_a_mechanism_was_chosen_is_refused() -> None:
    """Otherwise a peer could skip the login, and with it the certificate or password it should ask for."""
    with pytest.raises(JMSException):
        client("u", "p").receive(HEADER + outcome(0))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400",
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x00\x00\x09\x01",
        b"\x00",
        b"AMQX",
        HEADER + struct.pack(">IBBH", 7, 2, 1, 0),
        HEADER + struct.pack(">IBBH", 2**31, 2, 1, 0),
        HEADER + struct.pack(">IBBH", 20, 1, 1, 0) + bytes(12),
        HEADER + struct.pack(">IBBH", 12, 200, 1, 0) + bytes(4),
        HEADER + frame(0x40, array("PLAIN"), kind=0),
        HEADER + struct.pack(">IBBH", 8, 2, 1, 0),
        HEADER + struct.pack(">IBBH", 9, 2, 1, 0) + b"\x40",
        HEADER + frame(0x40, b"\xa3\xff"),
    ],
    ids=[
        "http",
        "no-sasl",
        "0.9.1",
        "zero",
        "almost",
        "small",
        "huge",
        "offset-small",
        "offset-large",
        "amqp-frame",
        "empty",
        "null",
        "cut-value",
    ],
)
def test_what_is_not_sasl_is_a_lost_connection_at_once(data: bytes) -> None:
    """S129: not a wait for more."""
    with pytest.raises(ConnectionLostException):
        client().receive(data)


@pytest.mark.parametrize("code", [0x41, 0x43, 0x45, 0x10])
def test_a_frame_that_the_broker_may_not_send_is_an_error(code: int) -> None:
    with pytest.raises(JMSException):
        client().receive(HEADER + frame(code))


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_jms_error_or_wait_for_more(data: bytes) -> None:
    for prefix in (b"", HEADER):
        sasl = client("u", "p")
        with suppress(JMSException):
            assert sasl.receive(prefix + data) == b""
        assert not sasl.done


@given(st.binary(max_size=60), st.sampled_from([0x40, 0x41, 0x42, 0x44]))
def test_any_fields_end_in_a_jms_error_or_an_answer(fields: bytes, code: int) -> None:
    body = b"\x00\x53" + bytes([code]) + fields
    sasl = client("u", "p")
    with suppress(JMSException):
        sasl.receive(HEADER + struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body)


def test_the_password_is_in_no_repr() -> None:
    assert "secret" not in repr(client("u", "secret"))


def test_the_init_frame_names_the_virtual_host() -> None:
    """AMQP 1.0 5.3.3.2: of any length; without one the field is absent."""
    sasl = SaslClient(None, None, external=False, allowed=(), hostname="h" * 300)
    sasl.receive(HEADER + mechanisms("ANONYMOUS"))
    assert sasl.output.endswith(b"\xb1" + struct.pack(">I", 300) + b"h" * 300)


# -- challenges -------------------------------------------------------------------------------------------------


def binary(data: bytes) -> bytes:
    return b"\xa0" + bytes([len(data)]) + data


def challenge(data: bytes) -> bytes:
    return frame(0x42, binary(data))


def said(sasl: SaslClient) -> bytes:
    """Return the content of the response frame that is waiting to be sent."""
    size, _, _, _ = struct.unpack_from(">IBBH", sasl.output)
    assert size == len(sasl.output)
    body = bytes(sasl.output[8:])
    assert body[:4] == b"\x00\x53\x43\xd0"
    assert body[12] == 0xB0
    sasl.output.clear()
    return body[17:]


SHA_1 = (
    "SCRAM-SHA-1",
    "fyko+d2lbbFgONRv9qkxdawL",
    "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
"""The example of RFC 5802: mechanism, client nonce, server first, client final, server final."""
SHA_256 = (
    "SCRAM-SHA-256",
    "rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
"""The example of RFC 7677."""


@pytest.mark.parametrize("example", [SHA_1, SHA_256], ids=["RFC 5802", "RFC 7677"])
def test_scram_says_what_the_rfcs_say(example: tuple[str, ...]) -> None:
    name, nonce, server_first, client_final, server_final = example
    scram = Scram(name, "user", "pencil", nonce)
    assert scram.start() == f"n,,n=user,r={nonce}".encode()
    assert scram.respond(server_first.encode()) == client_final.encode()
    assert scram.respond(server_final.encode()) == b""
    scram.succeed(b"")


def scram_at_its_proof() -> Scram:
    name, nonce, server_first, *_ = SHA_256
    scram = Scram(name, "user", "pencil", nonce)
    scram.start()
    scram.respond(server_first.encode())
    return scram


def test_the_server_s_proof_may_come_with_the_outcome() -> None:
    """AMQP 1.0 5.3.3.6: additional-data."""
    scram_at_its_proof().succeed(SHA_256[4].encode())


@pytest.mark.parametrize("final", [b"v=AAAA", b"e=invalid-proof", b"\xff", b"", b"v=", b"x", b"v=\xc3\xa9"])
def test_a_broker_that_cannot_prove_itself_is_refused(final: bytes) -> None:
    """RFC 5802 3: an impostor can ask for our proof, and cannot answer it."""
    with pytest.raises(JMSSecurityException, match="SCRAM-SHA-256"):
        scram_at_its_proof().respond(final)
    with pytest.raises(JMSSecurityException, match="SCRAM-SHA-256"):
        scram_at_its_proof().succeed(final)


def test_a_success_before_the_challenge_is_refused() -> None:
    scram = Scram("SCRAM-SHA-256", "user", "pencil")
    scram.start()
    with pytest.raises(JMSSecurityException, match="impostor"):
        scram.succeed(SHA_256[4].encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i=4096", "i=4095"),
        ("i=4096", f"i={MOST_ITERATIONS + 1}"),
        ("i=4096", "i=99999999999999999999"),
        ("i=4096", "i=-1"),
        ("i=4096", "i=x"),
        ("i=4096", ""),
        ("r=rOpr", "r=rOps"),
        ("s=W22ZaJ0SNY7soEsUEjb6gQ==", "s=!"),
        ("r=", "m=x,r="),
    ],
)
def test_a_challenge_that_is_not_as_it_should_be_is_refused_before_any_proof(old: str, new: str) -> None:
    name, nonce, server_first, *_ = SHA_256
    assert old in server_first
    scram = Scram(name, "user", "pencil", nonce)
    scram.start()
    with pytest.raises(JMSSecurityException, match=name):
        scram.respond(server_first.replace(old, new).encode())


@pytest.mark.parametrize(("username", "password"), [("u\0", "secret"), ("u", "secret\x07"), ("", "secret")])
def test_what_saslprep_forbids_is_refused_without_showing_it(username: str, password: str) -> None:
    """RFC 4013; nor do the frames of the traceback hold it, where tools print their variables."""
    with pytest.raises(JMSSecurityException, match="SCRAM-SHA-256: user name or password") as caught:
        Scram("SCRAM-SHA-256", username, password)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_cram_md5_answers_as_in_rfc_2195() -> None:
    sasl = client("tim", "tanstaaftanstaaf")
    sasl.receive(HEADER + mechanisms("PLAIN", "CRAM-MD5"))
    assert sasl.output.endswith(b"CRAM-MD5\x40")
    sasl.output.clear()
    sasl.receive(challenge(b"<1896.697170952@postoffice.reston.mci.net>"))
    assert said(sasl) == b"tim b913a602c7eda7a495b4e6e7334d3890"
    sasl.receive(outcome(0))
    assert sasl.done


@pytest.mark.parametrize("name", ["CRAM-MD5", "XOAUTH2"])
def test_a_broker_cannot_ask_for_answers_without_end(name: str) -> None:
    """S129: each answer waits in memory while the broker does not read."""
    sasl = client("u", "p")
    sasl.receive(HEADER + mechanisms(name) + challenge(b"first"))
    with pytest.raises(JMSSecurityException, match=f"unexpected SASL challenge: a login with {name} has one"):
        sasl.receive(challenge(b"second"))


def test_a_challenge_that_plain_does_not_have_is_refused() -> None:
    sasl = client("u", "p")
    sasl.receive(HEADER + mechanisms("PLAIN"))
    with pytest.raises(JMSSecurityException, match="PLAIN"):
        sasl.receive(challenge(b"more"))


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4))
def test_any_challenges_end_in_a_jms_error_and_never_in_a_login(challenges: list[bytes]) -> None:
    sasl = client("u", "p")
    sasl.receive(HEADER + mechanisms("SCRAM-SHA-256"))
    with pytest.raises(JMSException):
        sasl.receive(b"".join(challenge(data) for data in challenges) + outcome(0))
    assert not sasl.done


@pytest.mark.parametrize("iterations", [4096, MOST_ITERATIONS + 1])
def test_a_response_that_a_thread_computes_is_sent_when_it_is_there(iterations: int) -> None:
    begun: list[tuple[Callable[[], None], Callable[[], None]]] = []
    sasl = SaslClient("me", "secret", external=False, allowed=(), elsewhere=lambda *both: begun.append(both))
    went_on: list[bool] = []
    sasl.go_on = lambda: went_on.append(True)
    sasl.receive(HEADER + mechanisms("SCRAM-SHA-256"))
    nonce = bytes(sasl.output).partition(b"r=")[2]
    sasl.output.clear()
    challenge = frame(0x42, binary(b"r=%sx,s=c2FsdHNhbHRzYWx0c2FsdA==,i=%d" % (nonce, iterations)))
    assert sasl.receive(challenge + frame(0x42, b"\x40")[:5]) == b""
    assert not sasl.output
    ((work, then),) = begun
    work()
    assert (bytes(sasl.output), went_on) == (b"", [])
    then()
    assert went_on == [True]
    if iterations > MOST_ITERATIONS:
        with pytest.raises(JMSSecurityException, match="1000001 iterations"):
            sasl.receive(b"")
    else:
        sasl.receive(b"")
        assert b"p=" in sasl.output


def test_bytes_before_the_response_to_a_challenge_end_the_connection() -> None:
    """Meanwhile a thread computes the response, and the bytes of a hostile broker would take memory."""
    sasl = SaslClient("me", "secret", external=False, allowed=(), elsewhere=lambda work, then: None)
    sasl.receive(HEADER + mechanisms("SCRAM-SHA-256"))
    sasl.receive(frame(0x42, binary(b"r=nonce,s=c2FsdA==,i=4096")))
    sasl.receive(b"\x00" * 65536)
    with pytest.raises(ConnectionLostException, match="before the response"):
        sasl.receive(b"\x00")


def test_an_offer_of_mechanisms_is_shown_in_part_and_without_control_characters() -> None:
    names = ["\x1b[31m" + "X" * 100, *(f"M{number}" for number in range(100))]
    with pytest.raises(JMSSecurityException) as raised:
        client("me", "secret").receive(HEADER + wide_offer(names))
    text = str(raised.value)
    assert len(text) < 1000
    assert "\x1b" not in text
    assert "M18" in text


def wide_offer(names: list[str]) -> bytes:
    """Return the frame of an offer with more names than 255 bytes hold."""
    items = b"".join(struct.pack(">I", len(name)) + name.encode() for name in names)
    many = b"\xf0" + struct.pack(">II", len(items) + 5, len(names)) + b"\xb3" + items
    body = b"\x00\x53\x40\xd0" + struct.pack(">II", len(many) + 4, 1) + many
    return struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body
