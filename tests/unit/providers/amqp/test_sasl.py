"""The login without sockets: any split of the bytes, any nonsense (AMQP 1.0 5.3)."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.errors import ConnectionLostException, JMSException, JMSSecurityException
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
    sasl.__init__(sasl._username, sasl._password, external=sasl._external, allowed=tuple(sasl._allowed))  # type: ignore[misc]
    assert answer(sasl, *offered) == expected


@pytest.mark.parametrize(
    ("sasl", "offered"),
    [
        (client(), ("PLAIN",)),
        (client("u", "p"), ("ANONYMOUS",)),
        (client("u", "p"), ("SCRAM-SHA-256", "GSSAPI")),
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
