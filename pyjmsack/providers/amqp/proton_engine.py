"""proton as a sans-IO engine: bytes in, events to the provider's objects, bytes out, next deadline.

Two layers in a row: :class:`SaslClient`, then a proton transport without SASL or TLS of its own. Events are popped with
the raw collector calls; deliveries are routed by the address of their link, everything else is rare.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from proton import Collector, Connection, Link, ProtonException, Transport

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp.attach import with_desired_capabilities
from pyjmsack.providers.amqp.errors import connection_error, transport_error
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.spi.engine import Stream, loss

__all__ = ["AmqpEngine", "EngineListener", "LinkHandler", "SessionHandler"]

log = logging.getLogger("pyjmsack.amqp")

LEAST_PAUSE = 0.05
"""Seconds between two looks at the idle time-outs, at least: a peer that asks for a frame each millisecond does not get
it."""
MOST_UNASKED = 100
"""Sessions and links that the peer may begin although nobody asked it to: each costs memory until the end."""
_EMPTY = b"\0\0\0\x08\x02\0\0\0"


_TRANSFER = re.compile(r"(.*@transfer\(20\) \[.*?\] \(\d+\) )(.*)", re.DOTALL)


class LinkHandler(Protocol):
    """What the engine tells the owner of a link."""

    def on_delivery(self, delivery: native.Delivery) -> None:
        """A transfer arrived, or an outcome for one of ours."""
        ...

    def on_flow(self) -> None:
        """Credit changed."""
        ...

    def on_remote_open(self) -> None:
        """The peer attached."""
        ...

    def on_remote_close(self) -> None:
        """The peer detached or closed."""
        ...


class SessionHandler(Protocol):
    """What the engine tells the owner of a session."""

    def on_remote_open(self) -> None:
        """The peer began."""
        ...

    def on_remote_close(self) -> None:
        """The peer ended."""
        ...


class EngineListener(Protocol):
    """What the engine tells the provider about the whole connection."""

    def on_ready(self) -> None:
        """SASL is over; the connection may be opened."""
        ...

    def on_remote_open(self) -> None:
        """The peer's Open frame is here."""
        ...

    def on_failure(self, error: JMSException) -> None:
        """The connection is over and nothing more will come of it. Called once."""
        ...

    def on_burst_end(self) -> None:
        """All events of the bytes received at once have been handled."""
        ...


class AmqpEngine:
    """One AMQP connection without a socket.

    Args:
        listener: gets the connection's events.
        sasl: makes the login for a stream that is encrypted or not; ``None`` for no SASL layer.
        trace: log every frame at DEBUG, with so many bytes of its payload (``amqp.traceFrames``); SASL frames, which
            carry secrets, are not among them.
        trace_bytes: log all bytes at DEBUG but those of the SASL layer (``transport.traceBytes``).
    """

    def __init__(
        self,
        listener: EngineListener,
        sasl: Callable[[bool], SaslClient] | None,
        *,
        trace: int | None,
        trace_bytes: bool = False,
    ) -> None:
        self._listener = listener
        self._make_sasl = sasl
        self._sasl: SaslClient | None = None
        self._ready = False
        self._unasked = 0
        self.failed: JMSException | None = None
        self.stream: Stream | None = None
        self.connection = Connection()
        self.transport = Transport()
        self._collector = Collector()
        self.connection.collect(self._collector)
        self._native_transport: Any = self.transport._impl
        self._native_collector: Any = self._collector._impl
        self.scratch = native.new_scratch()
        self._output: deque[bytes] = deque()
        self.links: dict[native.Link, LinkHandler] = {}
        self.sessions: dict[Any, SessionHandler] = {}
        self._trace_bytes = trace_bytes
        if trace is not None:
            self.transport.tracer = partial(_trace, trace)
            self.transport.trace(Transport.TRACE_FRM)

    # -- the byte contract (spi.engine.Engine) ------------------------------------------------------------------

    def connection_made(self, stream: Stream) -> None:
        """Start the SASL exchange, or AMQP at once where the user switched SASL off."""
        if self.failed is not None:
            stream.abort()
            return
        self.stream = stream
        if self._make_sasl is None:
            self._start()
        else:
            self._sasl = self._make_sasl(stream.encrypted)
        self.flush()

    def receive_data(self, data: bytes) -> None:
        """Feed both layers and handle every event this causes, then flush once."""
        if self.failed is not None:
            return
        if not self._ready:
            data = self._receive_sasl(data)
        if data and self._ready:
            if self._trace_bytes:
                log.debug("<- %s", data.hex())
            unread = native.push(self._native_transport, data)
            self._process_events()
            self._listener.on_burst_end()
            if unread:  # proton stopped reading, without an event: what came is not AMQP
                self.fail(transport_error(self.transport.condition))
        self.flush()

    def data_to_send(self) -> bytes:
        """Return the next bytes for the peer, ``b""`` when there are none."""
        if self._sasl is not None and self._sasl.output:
            output = bytes(self._sasl.output)
            self._sasl.output.clear()
            return output
        if self._output:
            data = self._output.popleft()
        else:
            data = native.take_output(self._native_transport, self.scratch) if self._ready else b""
        if self._trace_bytes and data:
            log.debug("-> %s", data.hex())
        return data

    def barrier(self) -> None:
        """Turn all that was asked for so far into frames, before what comes next.

        Within one turn proton writes transfers before dispositions; without this an acknowledgement could follow the
        discharge of its transaction, which is a transfer.
        """
        while output := native.take_output(self._native_transport, self.scratch):
            self._output.append(output)

    def attach(self, link: Link, desired: Sequence[str]) -> None:
        """Attach a link, asking for capabilities."""
        self.barrier()
        before = len(self._output)
        link.open()
        self.barrier()
        frame = b"".join([self._output.pop() for _ in range(len(self._output) - before)][::-1])
        self._output.append(with_desired_capabilities(frame, desired))

    def connection_lost(self, error: Exception | None) -> None:
        """The stream is gone: whatever is open is lost."""
        self.fail(loss(error))

    def tick(self, now: float) -> float | None:
        """Keep the idle time-outs of both sides (AMQP 1.0 2.4.5); proton counts milliseconds."""
        if not self._ready or self.failed is not None:
            return None
        deadline = native.tick(self._native_transport, int(now * 1000))
        self._process_events()
        self.flush()
        return max(deadline / 1000, now + LEAST_PAUSE) if deadline > 0 else None

    # -- for the provider ---------------------------------------------------------------------------------------

    @property
    def peer_frame_size(self) -> int:
        """Bytes of the largest frame that the peer takes, once its Open is here; 0 = any."""
        return int(self.transport.remote_max_frame_size)

    def flush(self) -> None:
        """Write what is pending."""
        if self.stream is not None:
            self.stream.flush()

    def fail(self, error: JMSException) -> None:
        """End the connection with this error; later ones are ignored."""
        if self.failed is None:
            self.failed = error
            if self.stream is not None:
                self.stream.close()
            self._listener.on_failure(error)

    def abort(self, error: BaseException) -> None:
        """End without a word to the peer or the listener."""
        if self.failed is None:
            self.failed = error if isinstance(error, JMSException) else ConnectionLostException(str(error))
        if self.stream is not None:
            self.stream.abort()

    def _start(self) -> None:
        self.transport.bind(self.connection)
        self._ready = True
        self._listener.on_ready()

    def _receive_sasl(self, data: bytes) -> bytes:
        assert self._sasl is not None  # set before the first byte can arrive
        try:
            rest = self._sasl.receive(data)
        except JMSException as error:
            self.fail(error)
            return b""
        if self._sasl.done:
            self._start()
        return rest

    def _process_events(self) -> None:
        """Handle all events. proton decodes fields of the peer when they are asked for, and raises where it cannot:
        UnicodeDecodeError for a text that is none, TypeError for a list as the key of a map."""
        try:
            self._pop_events()
        except (UnicodeDecodeError, TypeError) as error:
            log.debug("malformed", exc_info=error)
            malformed = ConnectionLostException(f"the peer sent what is not an AMQP 1.0 frame: {error}")
            malformed.__cause__ = error
            self.fail(malformed)

    def _pop_events(self) -> None:
        collector, links = self._native_collector, self.links
        peek, pop, kind_of = native.collector_peek, native.collector_pop, native.event_type
        event = peek(collector)
        while event and self.failed is None:
            kind = kind_of(event)
            if kind == native.EVENT_DELIVERY:
                delivery = native.event_delivery(event)
                handler = links.get(native.delivery_link(delivery))
                if handler is not None:
                    handler.on_delivery(delivery)
            else:
                action = _RARE.get(kind)
                if action is not None:
                    action(self, event)
            pop(collector)
            event = peek(collector)

    def _on_link_flow(self, event: Any) -> None:
        handler = self.links.get(native.event_link(event))
        if handler is not None:
            handler.on_flow()

    def _on_link_open(self, event: Any) -> None:
        link = native.event_link(event)
        handler = self.links.get(link)
        if handler is not None:
            handler.on_remote_open()
        elif native.link_is_unasked(link):
            self._count_unasked()

    def _on_link_close(self, event: Any) -> None:
        handler = self.links.get(native.event_link(event))
        if handler is not None:
            handler.on_remote_close()

    def _on_session_open(self, event: Any) -> None:
        session = native.event_session(event)
        handler = self.sessions.get(session)
        if handler is not None:
            handler.on_remote_open()
        elif native.session_is_unasked(session):
            self._count_unasked()

    def _count_unasked(self) -> None:
        self._unasked += 1
        if self._unasked > MOST_UNASKED:
            self.fail(
                ConnectionLostException(f"the peer began {self._unasked} sessions or links that nobody asked for")
            )

    def _on_session_close(self, event: Any) -> None:
        handler = self.sessions.get(native.event_session(event))
        if handler is not None:
            handler.on_remote_close()

    def _on_connection_open(self, event: Any) -> None:
        self._listener.on_remote_open()
        if self.stream is not None:
            self.stream.retick()  # now the peer's idle time-out is known

    def _on_connection_close(self, event: Any) -> None:
        self.fail(connection_error(self.connection.remote_condition, "the broker closed the connection"))

    def _on_transport_error(self, event: Any) -> None:
        """An error proton names, or one for which it only stops reading: a malformed frame."""
        self.fail(transport_error(self.transport.condition))

    def _on_transport_closed(self, event: Any) -> None:
        self.fail(ConnectionLostException("the AMQP connection ended"))

    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1): it says nothing, and makes the peer look at its connection."""
        self.barrier()
        self._output.append(_EMPTY)
        self.flush()

    def close_connection(self) -> None:
        """Send the Close frame."""
        try:
            self.connection.close()
        except ProtonException as error:  # pragma: no cover - proton refuses only an unbound, never-opened connection
            log.debug("close: %s", error)


def _trace(limit: int, transport: Transport, text: str) -> None:
    """Log a frame as proton writes it, with no more than ``limit`` characters of a transfer's payload."""
    transfer = _TRANSFER.fullmatch(text)
    if transfer is not None and len(transfer[2]) > limit:
        text = f"{transfer[1]}{transfer[2][:limit]}..."
    log.debug("%s", text)


_RARE: dict[int, Callable[[AmqpEngine, Any], None]] = {
    native.EVENT_LINK_FLOW: AmqpEngine._on_link_flow,
    native.EVENT_LINK_REMOTE_OPEN: AmqpEngine._on_link_open,
    native.EVENT_LINK_REMOTE_CLOSE: AmqpEngine._on_link_close,
    native.EVENT_LINK_REMOTE_DETACH: AmqpEngine._on_link_close,
    native.EVENT_SESSION_REMOTE_OPEN: AmqpEngine._on_session_open,
    native.EVENT_SESSION_REMOTE_CLOSE: AmqpEngine._on_session_close,
    native.EVENT_CONNECTION_REMOTE_OPEN: AmqpEngine._on_connection_open,
    native.EVENT_CONNECTION_REMOTE_CLOSE: AmqpEngine._on_connection_close,
    native.EVENT_TRANSPORT_ERROR: AmqpEngine._on_transport_error,
    native.EVENT_TRANSPORT_TAIL_CLOSED: AmqpEngine._on_transport_error,
    native.EVENT_TRANSPORT_CLOSED: AmqpEngine._on_transport_closed,
}
