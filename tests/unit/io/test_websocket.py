"""WebSocket without sockets: wsproto's server at the other end, a recording protocol inside (RFC 6455)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_fakes import RecordingEngine
from wsproto import ConnectionType, WSConnection, events

from pyjmsack.errors import ConnectionLostException, JMSSecurityException
from pyjmsack.io.websocket import WebSocketEngine
from pyjmsack.uri import Endpoint

ENDPOINT = Endpoint("amqpws", "broker.test", 80, tls=False)


class Wire:
    """The stream outside, whose bytes go to a server when the test says so."""

    encrypted = True

    def __init__(self, engine: WebSocketEngine) -> None:
        self.engine = engine
        self.closed = False
        self.sent = bytearray()

    def flush(self) -> None:
        while not self.closed and (data := self.engine.data_to_send()):
            self.sent += data

    def retick(self) -> None: ...

    def close(self) -> None:
        self.flush()
        self.closed = True

    def abort(self) -> None:
        self.closed = True


class Pair:
    """A client and a server."""

    def __init__(self, accept: Callable[[events.Request], events.Event] | None = None) -> None:
        self.inner = RecordingEngine()
        self.engine = WebSocketEngine(self.inner, ENDPOINT)
        self.wire = Wire(self.engine)
        self.server = WSConnection(ConnectionType.SERVER)
        self.seen: list[Any] = []
        self.engine.connection_made(self.wire)
        self.pump()
        self.request = self.seen.pop()
        answer = accept or (lambda request: events.AcceptConnection(subprotocol="amqp"))
        self.say(answer(self.request))

    def pump(self) -> None:
        """Let the server read what the client wrote."""
        data, self.wire.sent = bytes(self.wire.sent), bytearray()
        self.server.receive_data(data)
        self.seen.extend(self.server.events())

    def say(self, *said: events.Event) -> None:
        """Let the server write."""
        self.engine.receive_data(b"".join(self.server.send(event) for event in said))

    def heard(self) -> bytes:
        """Return the content of the binary messages that the server got."""
        self.wire.flush()
        self.pump()
        seen, self.seen = self.seen, []
        assert all(isinstance(event, events.BytesMessage) for event in seen)
        return b"".join(bytes(event.data) for event in seen)


def test_the_request_names_host_path_and_sub_protocol() -> None:
    pair = Pair()
    assert isinstance(pair.request, events.Request)
    assert (pair.request.host, pair.request.target, pair.request.subprotocols) == ("broker.test:80", "/", ["amqp"])


def test_headers_of_the_url_are_in_the_request() -> None:
    """A.1 ``transport.ws.httpHeader``."""
    engine = WebSocketEngine(RecordingEngine(), ENDPOINT, [("X-Key", "secret")])
    wire = Wire(engine)
    engine.connection_made(wire)
    assert b"\r\nX-Key: secret\r\n" in wire.sent


def test_the_protocol_starts_when_the_handshake_is_over() -> None:
    inner = RecordingEngine()
    engine = WebSocketEngine(inner, ENDPOINT)
    inner.output.append(b"too early")
    engine.connection_made(Wire(engine))
    assert inner.stream is None
    assert engine.tick(1.0) is None
    pair = Pair()
    assert pair.inner.stream is pair.engine
    assert pair.engine.encrypted, "as the stream outside is: EXTERNAL and PLAIN depend on it"
    assert pair.engine.tick(1.0) == 2.0


@given(st.lists(st.binary(max_size=100_000), max_size=4))
def test_bytes_go_through_masked_and_in_pieces_that_artemis_takes(pieces: list[bytes]) -> None:
    pair = Pair()
    pair.inner.output += [piece for piece in pieces if piece]
    pair.wire.flush()
    assert b"".join(pieces)[:100] not in bytes(pair.wire.sent) or sum(map(len, pieces)) < 16
    sizes: list[int] = []
    pair.pump()
    sizes = [len(event.data) for event in pair.seen]
    assert b"".join(bytes(event.data) for event in pair.seen) == b"".join(pieces)
    assert max(sizes, default=0) <= 32768


def test_messages_fragments_and_text_reach_the_protocol_in_order_and_at_once() -> None:
    pair = Pair()
    pair.say(
        events.BytesMessage(data=b"one ", message_finished=False),
        events.BytesMessage(data=b"two ", message_finished=False),
        events.BytesMessage(data=b"three "),
        events.TextMessage(data="vier "),
        events.BytesMessage(data=b"five"),
    )
    assert pair.inner.received == [b"one two three vier five"]


def test_a_handshake_and_the_first_message_may_arrive_together_in_any_pieces() -> None:
    inner = RecordingEngine()
    engine = WebSocketEngine(inner, ENDPOINT)
    wire, server = Wire(engine), WSConnection(ConnectionType.SERVER)
    engine.connection_made(wire)
    server.receive_data(bytes(wire.sent))
    assert [*server.events()]
    data = server.send(events.AcceptConnection(subprotocol="amqp")) + server.send(events.BytesMessage(data=b"hello"))
    for byte in data:
        engine.receive_data(bytes([byte]))
    assert b"".join(inner.received) == b"hello"


def test_a_ping_is_answered() -> None:
    pair = Pair()
    pair.say(events.Ping(payload=b"are you there"))
    pair.pump()
    assert [(type(event), event.payload) for event in pair.seen] == [(events.Pong, b"are you there")]


@pytest.mark.parametrize("frame", [b"\x89\x00", b"\x82\x00", b"\x82\x01x"], ids=["ping", "empty", "one byte"])
def test_a_flood_of_frames_with_next_to_no_data_ends_the_connection(frame: bytes) -> None:
    """64 KiB of them held up the loop, and so every other connection, for seconds."""
    pair = Pair()
    pair.pump()
    pair.engine.receive_data(frame * 1000)
    assert not pair.wire.closed
    pair.engine.receive_data(frame * 30_000)
    assert pair.wire.closed
    pair.engine.connection_lost(None)
    (lost,) = pair.inner.lost
    assert isinstance(lost, ConnectionLostException)
    assert "1,000 frames with less than 8 bytes of data" in str(lost)


def test_a_ping_that_comes_together_with_a_close_frame_is_not_answered() -> None:
    pair = Pair()
    pair.say(events.Ping(payload=b"are you there"), events.CloseConnection(code=1000))
    assert pair.wire.closed
    pair.pump()
    assert [type(event) for event in pair.seen] == [events.CloseConnection]


def test_an_answer_to_data_that_comes_together_with_a_close_frame_is_not_sent() -> None:
    """The error of the library showed the bytes of such an answer, for example a password."""
    pair = Pair()

    def answer(data: bytes) -> None:
        pair.inner.received.append(data)
        pair.inner.output.append(b"secret")
        pair.engine.flush()

    pair.inner.receive_data = answer  # type: ignore[method-assign]
    pair.say(events.BytesMessage(data=b"your password?"), events.CloseConnection(code=1001))
    assert pair.inner.received == [b"your password?"]
    assert pair.wire.closed
    pair.pump()
    assert [type(event) for event in pair.seen] == [events.CloseConnection]


def test_closing_writes_what_is_left_then_a_close_frame() -> None:
    pair = Pair()
    pair.inner.output.append(b"goodbye")
    pair.engine.close()
    assert pair.wire.closed
    pair.pump()
    message, close = pair.seen
    assert bytes(message.data) == b"goodbye"
    assert isinstance(close, events.CloseConnection)
    assert close.code == 1000


@pytest.mark.parametrize(("code", "text"), [(1000, None), (1001, None), (1009, "1009 too big"), (1011, "1011 too big")])
def test_a_close_frame_is_answered_and_ends_the_stream(code: int, text: str | None) -> None:
    pair = Pair()
    pair.say(events.BytesMessage(data=b"last"), events.CloseConnection(code=code, reason="too big"))
    assert pair.wire.closed
    pair.pump()
    assert isinstance(pair.seen[-1], events.CloseConnection)
    assert pair.inner.received == [b"last"]
    pair.inner.output.append(b"too late")
    assert pair.engine.data_to_send() == b""
    pair.engine.connection_lost(None)
    (lost,) = pair.inner.lost
    assert lost is None if text is None else text in str(lost)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, JMSSecurityException), (403, JMSSecurityException), (404, ConnectionLostException)],
)
def test_a_refused_handshake_is_an_error_with_the_status(status: int, kind: type[Exception]) -> None:
    """S129."""
    pair = Pair(lambda request: events.RejectConnection(status_code=status))
    assert pair.wire.closed
    pair.engine.connection_lost(None)
    (lost,) = pair.inner.lost
    assert isinstance(lost, kind)
    assert str(status) in str(lost)
    assert pair.inner.stream is None


def test_a_server_without_the_sub_protocol_is_refused() -> None:
    pair = Pair(lambda request: events.AcceptConnection())
    pair.engine.connection_lost(None)
    (lost,) = pair.inner.lost
    assert "not amqp over it" in str(lost)
    assert pair.inner.stream is None


@pytest.mark.parametrize("data", [b"AMQP\x03\x01\x00\x00", b"HTTP/1.1 200 OK\r\n\r\n", b"\xff" * 20, b"x" * 100_000])
def test_what_is_not_websocket_is_a_lost_connection(data: bytes) -> None:
    """S129: at once."""
    inner = RecordingEngine()
    engine = WebSocketEngine(inner, ENDPOINT)
    wire = Wire(engine)
    engine.connection_made(wire)
    engine.receive_data(data)
    assert wire.closed
    engine.connection_lost(None)
    (lost,) = inner.lost
    assert isinstance(lost, ConnectionLostException)
    assert "broker.test" in str(lost)


LINE = b"a:" + b" " * 60_000 + b"\x00\r\n"
REJECTED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"HTTP/1.1 200 OK\r\n" + LINE + b"\r\n", "more than 16,384 bytes"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 4_000 + b"\r\n", "more than 16,384 bytes"),
        (b"HTTP/1.1 200 OK\r\na:" + b" " * 5_000 + b"\x00\r\n\r\n", "a line .* has more than 4,096 bytes"),
        (b"HTTP/1.1 200 OK\r\na: b\r\n" + b" \r\n" * 2_000 + b"\r\n", "goes over several lines"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + LINE + b"\r\n", "HTTP status 100"),
        (REJECTED + b"0\r\n" + LINE + b"\r\n", "HTTP status 200"),
    ],
    ids=["line", "head", "line of a small head", "folded lines", "second answer", "trailer"],
)
@pytest.mark.parametrize("size", [1, 1_000, 100_000])
def test_a_long_answer_of_http_is_refused_before_it_is_parsed(data: bytes, text: str, size: int) -> None:
    """S129: one line of 60,000 blanks held up the loop, and so every other connection, for 20 s."""
    inner = RecordingEngine()
    engine = WebSocketEngine(inner, ENDPOINT)
    wire = Wire(engine)
    engine.connection_made(wire)
    for start in range(0, len(data), size):
        if not wire.closed:
            engine.receive_data(data[start : start + size])
    engine.connection_lost(None)
    (error,) = inner.lost
    assert isinstance(error, ConnectionLostException)
    assert re.search(text, str(error))


@pytest.mark.parametrize("data", [b"\x81\x01\xff", b"\xc2\x01x", b"\x82\x81abcdx", b"\x88\x01x"])
def test_a_server_whose_frames_are_wrong_is_told_apart_from_one_that_closes(data: bytes) -> None:
    """The error said that the broker closed the WebSocket."""
    pair = Pair()
    pair.engine.receive_data(data)
    assert pair.wire.closed
    pair.engine.connection_lost(None)
    assert "does not speak WebSocket as it should" in str(pair.inner.lost)


@given(st.binary(max_size=300))
def test_any_bytes_after_the_handshake_do_no_harm(data: bytes) -> None:
    pair = Pair()
    pair.engine.receive_data(data)
    pair.engine.connection_lost(None)
    assert len(pair.inner.lost) == 1
