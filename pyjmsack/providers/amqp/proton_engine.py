"""proton as a sans-IO engine: bytes in, events to the provider's objects, bytes out, next deadline.

A proton transport without SASL or TLS of its own. Events are popped with the raw collector calls; deliveries are routed
by the address of their link, everything else is rare.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import proton
from proton import Collector, Connection, ProtonException, Transport, symbol

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineListener, SessionHandler
from pyjmsack.providers.amqp.errors import connection_error, transport_error
from pyjmsack.providers.amqp.proton_ends import ProtonLink, ProtonSession
from pyjmsack.providers.amqp.proton_words import error_of
from pyjmsack.providers.amqp.sasl import SaslClient

__all__ = ["ProtonEngine"]

log = logging.getLogger("pyjmsack.amqp")

_EMPTY = b"\0\0\0\x08\x02\0\0\0"


LEAST_PAUSE = 0.05
"""Seconds between two looks at the idle time-outs, at least: a peer that asks for a frame each millisecond does not get
it."""
MOST_UNASKED = 100
"""Sessions and links that the peer may begin although nobody asked it to: each costs memory until the end."""
_TRANSFER = re.compile(r"(.*@transfer\(20\) \[.*?\] \(\d+\) )(.*)", re.DOTALL)


class ProtonEngine(AmqpEngine):
    """One AMQP connection on proton.

    Args:
        listener: gets the connection's events.
        sasl: makes the login for a stream that is encrypted or not; ``None`` for no SASL layer.
        max_frame_size: bytes of the largest frame that is accepted.
        channel_max: the highest channel number.
        idle_timeout: seconds of silence after which the peer counts as dead, or ``None``.
        trace: log every frame at DEBUG, with so many bytes of its payload (``amqp.traceFrames``); SASL frames, which
            carry secrets, are not among them.
        trace_bytes: log all bytes at DEBUG but those of the SASL layer (``transport.traceBytes``).
    """

    name = f"python-qpid-proton {proton.VERSION_MAJOR}.{proton.VERSION_MINOR}.{proton.VERSION_POINT}"

    def __init__(
        self,
        listener: EngineListener,
        sasl: Callable[[bool], SaslClient] | None,
        *,
        max_frame_size: int,
        channel_max: int,
        idle_timeout: float | None,
        trace: int | None,
        trace_bytes: bool = False,
    ) -> None:
        super().__init__(listener, sasl, trace_bytes=trace_bytes)
        self._connection = Connection()
        self._transport = Transport()
        self._transport.max_frame_size = max_frame_size
        self._transport.channel_max = channel_max
        if idle_timeout is not None:
            self._transport.idle_timeout = idle_timeout
        self._collector = Collector()
        self._connection.collect(self._collector)
        self._native_transport: Any = self._transport._impl
        self._native_collector: Any = self._collector._impl
        self.scratch = native.new_scratch()
        self._output: deque[bytes] = deque()
        self.links: dict[native.Link, ProtonLink] = {}
        self.sessions: dict[Any, ProtonSession] = {}
        self._unasked = 0
        if trace is not None:
            self._transport.tracer = partial(_trace, trace)
            self._transport.trace(Transport.TRACE_FRM)

    # -- verbs --------------------------------------------------------------------------------------------------

    @property
    def remote(self) -> Open:
        """The peer's Open; empty until it is here."""
        connection = self._connection
        properties: object = connection.remote_properties
        try:
            offered = tuple(str(name) for name in connection.remote_offered_capabilities or ())
        except TypeError:  # proton's, for a field of another type: what cannot be read offers nothing
            offered = ()
        return Open(
            container_id=connection.remote_container or "",
            max_frame_size=self._transport.remote_max_frame_size or 0xFFFFFFFF,
            offered_capabilities=offered,
            properties=_texts(properties),
        )

    @property
    def peer_frame_size(self) -> int:
        """Bytes of the largest frame that the peer takes, once its Open is here; 0 = any."""
        return int(self._transport.remote_max_frame_size)

    def open(self, description: Open) -> None:
        """Send Open."""
        connection = self._connection
        connection.container = description.container_id
        if description.hostname:
            connection.hostname = description.hostname
        connection.desired_capabilities = [symbol(name) for name in description.desired_capabilities]
        connection.properties = {symbol(key): value for key, value in (description.properties or {}).items()}
        connection.open()

    def begin(self, owner: SessionHandler) -> ProtonSession:
        """Begin a session."""
        return ProtonSession(self, self._connection.session(), owner)

    def barrier(self) -> None:
        """Turn all that was asked for so far into frames, before what comes next.

        Within one turn proton writes transfers before dispositions; without this an acknowledgement could follow the
        discharge of its transaction, which is a transfer.
        """
        while output := native.take_output(self._native_transport, self.scratch):
            self._output.append(output)

    def rewritten(self, act: Callable[[], None], rewrite: Callable[[bytes], bytes]) -> None:
        """Do what produces one frame, and send that frame rewritten."""
        self.barrier()
        before = len(self._output)
        act()
        self.barrier()
        frame = b"".join([self._output.pop() for _ in range(len(self._output) - before)][::-1])
        self._output.append(rewrite(frame))

    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1): it says nothing, and makes the peer look at its connection."""
        self.barrier()
        self._output.append(_EMPTY)
        self.flush()

    def close_connection(self) -> None:
        """Send the Close frame."""
        try:
            self._connection.close()
        except ProtonException as error:  # pragma: no cover - proton refuses only an unbound, never-opened connection
            log.debug("close: %s", error)

    def tick(self, now: float) -> float | None:
        """Keep the idle time-outs of both sides (AMQP 1.0 2.4.5); proton counts milliseconds."""
        if not self._ready or self.failed is not None:
            return None
        deadline = native.tick(self._native_transport, int(now * 1000))
        self._process_events()
        self.flush()
        return max(deadline / 1000, now + LEAST_PAUSE) if deadline > 0 else None

    def fail(self, error: JMSException) -> None:
        """End the connection with this error; later ones are ignored."""
        super().fail(error)
        self._forget()

    def abort(self, error: BaseException) -> None:
        """End without a word to the peer or the listener."""
        super().abort(error)
        self._forget()

    def _forget(self) -> None:
        for session in [*self.sessions.values()]:
            session.forget()
        self.sessions.clear()

    # -- bytes --------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        self._transport.bind(self._connection)

    def _feed(self, data: bytes) -> None:
        unread = native.push(self._native_transport, data)
        self._process_events()
        self._listener.on_burst_end()
        if unread:  # proton stopped reading, without an event: what came is not AMQP
            self._on_transport_error(None)

    def _take(self) -> bytes:
        return self._output.popleft() if self._output else native.take_output(self._native_transport, self.scratch)

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
                link = links.get(native.delivery_link(delivery))
                if link is not None:
                    link.on_delivery(delivery)
            else:
                action = _RARE.get(kind)
                if action is not None:
                    action(self, event)
            pop(collector)
            event = peek(collector)

    def _on_link_flow(self, event: Any) -> None:
        link = self.links.get(native.event_link(event))
        if link is not None:
            link.owner.on_flow()

    def _on_link_open(self, event: Any) -> None:
        native_link = native.event_link(event)
        link = self.links.get(native_link)
        if link is not None:
            link.owner.on_remote_open()
        elif native.link_is_unasked(native_link):
            self._count_unasked()

    def _on_link_close(self, event: Any) -> None:
        link = self.links.get(native.event_link(event))
        if link is not None:
            link.on_remote_close()

    def _on_session_open(self, event: Any) -> None:
        native_session = native.event_session(event)
        session = self.sessions.get(native_session)
        if session is not None:
            session.owner.on_remote_open()
        elif native.session_is_unasked(native_session):
            self._count_unasked()

    def _count_unasked(self) -> None:
        self._unasked += 1
        if self._unasked > MOST_UNASKED:
            text = f"the peer began {self._unasked} sessions or links that nobody asked for"
            self.fail(ConnectionLostException(text))

    def _on_session_close(self, event: Any) -> None:
        session = self.sessions.get(native.event_session(event))
        if session is not None:
            session.on_remote_close()

    def _on_connection_open(self, event: Any) -> None:
        self._opened()

    def _on_connection_close(self, event: Any) -> None:
        error = error_of(self._connection.remote_condition)
        self.fail(connection_error(error, "the broker closed the connection"))

    def _on_transport_error(self, event: Any) -> None:
        """An error proton names, or one for which it only stops reading: a malformed frame."""
        self.fail(transport_error(error_of(self._transport.condition)))

    def _on_transport_closed(self, event: Any) -> None:
        self.fail(ConnectionLostException("the AMQP connection ended"))


def _texts(properties: object) -> dict[str, object]:
    return {str(key): value for key, value in properties.items()} if isinstance(properties, Mapping) else {}


def _trace(limit: int, transport: Transport, text: str) -> None:
    """Log a frame as proton writes it, with no more than ``limit`` characters of a transfer's payload."""
    transfer = _TRANSFER.fullmatch(text)
    if transfer is not None and len(transfer[2]) > limit:
        text = f"{transfer[1]}{transfer[2][:limit]}..."
    log.debug("%s", text)


_RARE: dict[int, Callable[[ProtonEngine, Any], None]] = {
    native.EVENT_LINK_FLOW: ProtonEngine._on_link_flow,
    native.EVENT_LINK_REMOTE_OPEN: ProtonEngine._on_link_open,
    native.EVENT_LINK_REMOTE_CLOSE: ProtonEngine._on_link_close,
    native.EVENT_LINK_REMOTE_DETACH: ProtonEngine._on_link_close,
    native.EVENT_SESSION_REMOTE_OPEN: ProtonEngine._on_session_open,
    native.EVENT_SESSION_REMOTE_CLOSE: ProtonEngine._on_session_close,
    native.EVENT_CONNECTION_REMOTE_OPEN: ProtonEngine._on_connection_open,
    native.EVENT_CONNECTION_REMOTE_CLOSE: ProtonEngine._on_connection_close,
    native.EVENT_TRANSPORT_ERROR: ProtonEngine._on_transport_error,
    native.EVENT_TRANSPORT_TAIL_CLOSED: ProtonEngine._on_transport_error,
    native.EVENT_TRANSPORT_CLOSED: ProtonEngine._on_transport_closed,
}
