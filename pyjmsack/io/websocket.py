"""WebSocket (RFC 6455) as a layer between the driver and the engine of a protocol.

The driver uses this layer as its engine, and the engine of the protocol uses this layer as its stream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pyjmsack.errors import (
    ConnectionLostException,
    JMSException,
    JMSSecurityException,
    UnsupportedFeatureException,
)
from pyjmsack.extras import missing_extra
from pyjmsack.spi.engine import Engine, Stream
from pyjmsack.uri import SCHEMES, Endpoint

try:
    from wsproto import ConnectionType, WSConnection, events
    from wsproto.connection import ConnectionState
    from wsproto.frame_protocol import CloseReason
    from wsproto.utilities import RemoteProtocolError
except ImportError as missing:
    raise UnsupportedFeatureException(missing_extra("websocket", "WebSocket", missing)) from missing

__all__ = ["WebSocketEngine"]

_MOST: Final = 32768
"""The largest number of bytes in one WebSocket message that is sent. Artemis refuses frames with more than 65536
bytes."""
_MOST_SMALL: Final = 1000
"""The largest number of pings, and of frames with less than :data:`_SMALL` bytes of data, that the peer may send
together."""
_SMALL: Final = 8
"""The number of bytes in the smallest frame of AMQP (2.3.1). Only a heart-beat of STOMP is smaller."""
_LONGEST_HEAD: Final = 16_384
"""The largest number of bytes in the HTTP answers to the handshake, without a body."""
_LONGEST_LINE: Final = 4_096
"""The largest number of bytes in one line of such an answer, because the time in which the parser of HTTP reads a wrong
line grows with the square of its length."""
_HTTP: Final = b"HTTP/"
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_OVER: Final = (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED)
_ORDERLY: Final = (CloseReason.NORMAL_CLOSURE, CloseReason.GOING_AWAY, CloseReason.NO_STATUS_RCVD)


class WebSocketEngine:
    """Carries the bytes of another engine in binary WebSocket messages. A message may begin and end at any byte.

    Args:
        inner: the engine of the protocol inside the WebSocket. This ``WebSocketEngine`` acts as the stream of
            ``inner``, and opens this stream after the WebSocket handshake.
        endpoint: the endpoint of the broker, for the handshake and for error texts.
        headers: additional headers of the handshake, ``transport.ws.httpHeader.NAME=VALUE``.
    """

    def __init__(self, inner: Engine, endpoint: Endpoint, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.encrypted = False
        self._inner = inner
        self._endpoint = endpoint
        self._headers = [(name.encode(), value.encode()) for name, value in headers]
        self._subprotocol = SCHEMES[endpoint.scheme].websocket
        self._stream: Stream | None = None
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._output = bytearray()
        self._open = False
        self._closing = False
        self._head = bytearray()
        """The beginning of an HTTP answer that is not complete."""
        self._read_of_head = 0
        """The number of bytes in the HTTP answers that are complete."""
        self._reason: JMSException | None = None

    # -- the engine, for the driver -----------------------------------------------------------------------------

    def opening(self, stream: Stream) -> None:
        """Let the protocol know its stream, so that it can end the stream at any time."""
        self._stream = stream
        self.encrypted = stream.encrypted
        self._inner.opening(self)

    def connection_made(self, stream: Stream) -> None:
        """Send the request that opens the WebSocket."""
        self.opening(stream)
        host = str(self._endpoint).partition("://")[2]
        self._output += self._connection.send(
            events.Request(host=host, target="/", subprotocols=[self._subprotocol], extra_headers=self._headers)
        )
        stream.flush()

    def receive_data(self, data: bytes) -> None:
        """Take the content out of the WebSocket frames, and pass it to the protocol.

        Content that arrives together goes to the protocol in one call.
        """
        try:
            if self._connection.state is ConnectionState.CONNECTING:
                data = self._after_heads(data)
            if self._connection.connection is not None:  # else the broker refused, and the rest is the body of HTTP
                self._connection.receive_data(data)
            happened = self._events()
        except (RemoteProtocolError, ValueError) as error:  # header lines that are not ASCII are a UnicodeDecodeError
            lost = self._wrong(error)
            lost.__cause__ = error
            self._fail(lost)
        else:
            self._handle(happened)
        if self._stream is not None:
            self._stream.flush()
            if self._reason is not None or self._connection.state in _OVER:
                self._stream.close()

    def _events(self) -> list[events.Event]:
        """Return the events of the bytes that arrived. Refuse the bytes if too many frames carry no data or next to
        none, because such frames only take time."""
        happened: list[events.Event] = []
        small = 0
        for event in self._connection.events():
            happened.append(event)
            small += not isinstance(event, events.BytesMessage | events.TextMessage) or len(event.data) < _SMALL
            if small > _MOST_SMALL:
                raise RemoteProtocolError(
                    f"the broker sent more than {_MOST_SMALL:,} frames with less than {_SMALL} bytes of data at once"
                )
        return happened

    def _after_heads(self, data: bytes) -> bytes:
        """Give the parser of HTTP the complete answers to the handshake, one after the other. Return the bytes behind
        them.

        Refuse bytes that are not an HTTP answer, as soon as they come, because the parser would not notice such bytes
        before the end of the first line.
        """
        head = self._head
        searched = max(0, len(head) - 2)
        head += data
        if not self._read_of_head and not _HTTP.startswith(head[: len(_HTTP)]):
            raise RemoteProtocolError(f"expected an answer of HTTP, got {bytes(head[:20])!r}")
        while self._connection.state is ConnectionState.CONNECTING:
            blank = _BLANK_LINE.search(head, searched)
            size = len(head) if blank is None else blank.end()
            if self._read_of_head + size > _LONGEST_HEAD:
                raise RemoteProtocolError(f"the answer of HTTP has more than {_LONGEST_HEAD:,} bytes")
            if blank is None:
                return b""
            answer = bytes(head[:size])
            lines = answer.split(b"\n")
            if max(map(len, lines)) > _LONGEST_LINE:
                raise RemoteProtocolError(f"a line of the answer of HTTP has more than {_LONGEST_LINE:,} bytes")
            # a server must not send such lines (RFC 9112, 5.2), and the parser would join them to one long line
            if any(line.startswith((b" ", b"\t")) for line in lines):
                raise RemoteProtocolError("a header of the answer of HTTP goes over several lines")
            self._read_of_head += size
            self._connection.receive_data(answer)
            del head[:size]
            searched = 0
        rest = bytes(head)
        head.clear()
        return rest

    def _handle(self, happened: Sequence[events.Event]) -> None:
        unwrapped = bytearray()
        for event in happened:
            if isinstance(event, events.BytesMessage):
                unwrapped += event.data
            elif isinstance(event, events.TextMessage):
                unwrapped += event.data.encode()
            else:
                self._deliver(unwrapped)
                self._on_event(event)
        self._deliver(unwrapped)

    def _deliver(self, unwrapped: bytearray) -> None:
        if unwrapped and self._open:
            self._inner.receive_data(bytes(unwrapped))
        unwrapped.clear()

    def data_to_send(self) -> bytes:
        """Return the waiting frames of WebSocket itself, such as a Pong. If no such frame waits, return the bytes of
        the protocol in WebSocket frames.

        After a Close frame of the broker, bytes of the protocol cannot be sent any more. An error of ``wsproto`` would
        show them, and they may contain a password.
        """
        if not self._output and self._open and self._connection.state is ConnectionState.OPEN:
            data = self._inner.data_to_send()
            for start in range(0, len(data), _MOST):
                self._output += self._connection.send(events.BytesMessage(data=data[start : start + _MOST]))
            if not data and self._closing:
                self._open = False
                self._output += self._connection.send(events.CloseConnection(CloseReason.NORMAL_CLOSURE))
        output = bytes(self._output)
        self._output.clear()
        return output

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the protocol that the stream ended. An error of WebSocket comes first, because it explains more."""
        self._open = False
        self._inner.connection_lost(self._reason or error)

    def tick(self, now: float) -> float | None:
        """Let the protocol do the work that is due at ``now``. Return its next deadline."""
        return self._inner.tick(now) if self._open else None

    # -- the stream, for the protocol ---------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the bytes that wait to be sent."""
        if self._stream is not None:
            self._stream.flush()

    def retick(self) -> None:
        """Let the driver ask for the next deadline again."""
        if self._stream is not None:
            self._stream.retick()

    def pause(self) -> None:
        """Stop reading until :meth:`resume` is called."""
        if self._stream is not None:
            self._stream.pause()

    def resume(self) -> None:
        """Start to read again."""
        if self._stream is not None:
            self._stream.resume()

    def close(self) -> None:
        """Write the remaining bytes and a Close frame. Do not wait for an answer, because the protocol has ended
        already.
        """
        self._closing = True
        if self._stream is not None:
            self._stream.close()

    def abort(self) -> None:
        """Close the stream at once. Bytes that are not written yet are dropped."""
        if self._stream is not None:
            self._stream.abort()

    # -- events -------------------------------------------------------------------------------------------------

    def _on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AcceptConnection):
            self._on_accepted(event)
        elif isinstance(event, events.RejectConnection):
            self._fail(self._refused(event.status_code))
        elif isinstance(event, events.Ping):
            self._answer(event)
        elif isinstance(event, events.CloseConnection):
            self._on_closed(event)

    def _answer(self, ping: events.Ping) -> None:
        """Answer a Ping with a Pong, unless the broker has closed the WebSocket or reads no answers."""
        if self._connection.state is ConnectionState.OPEN and len(self._output) < _MOST:
            self._output += self._connection.send(ping.response())

    def _on_accepted(self, event: events.AcceptConnection) -> None:
        if event.subprotocol != self._subprotocol:
            self._fail(
                ConnectionLostException(f"{self._endpoint} speaks WebSocket, but not {self._subprotocol} over it")
            )
            return
        self._open = True
        self._inner.connection_made(self)

    def _on_closed(self, event: events.CloseConnection) -> None:
        self._open = False
        broken = self._connection.state is ConnectionState.OPEN  # the broker sent no Close frame: its bytes are wrong
        if not self._closing:
            self._output += self._connection.send(event.response())
        if broken:
            self._fail(self._wrong(event.reason or event.code))
        elif event.code not in _ORDERLY:
            self._fail(ConnectionLostException(f"the broker closed the WebSocket: {event.code} {event.reason or ''}"))

    def _wrong(self, reason: object) -> ConnectionLostException:
        return ConnectionLostException(f"{self._endpoint} does not speak WebSocket as it should: {reason}")

    def _refused(self, status: int) -> JMSException:
        kind: Any = JMSSecurityException if status in (401, 403) else ConnectionLostException
        error: JMSException = kind(f"{self._endpoint} refused the WebSocket: HTTP status {status}")
        return error

    def _fail(self, error: JMSException) -> None:
        self._open = False
        self._reason = error
