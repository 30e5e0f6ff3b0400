"""The engine that uses the library proton, without sockets. The engine takes and returns bytes, and reports events.

This engine uses only the public interface of proton, and not the SASL and TLS of proton. The objects of proton are used
and freed only on the loop.
"""

from __future__ import annotations

import atexit
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

import cproton  # type: ignore[import-untyped]  # it has no types
import proton
from proton import Collector, Connection, Endpoint, Event, EventType, Link, ProtonException, Session, Transport, symbol

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.frames import EMPTY_FRAME
from pyjmsack.providers.amqp.engine.idle import LEAST_INTERVAL
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineListener, EngineOptions, SessionHandler
from pyjmsack.providers.amqp.errors import connection_error, transport_error
from pyjmsack.providers.amqp.proton_ends import ProtonLink, ProtonSession
from pyjmsack.providers.amqp.proton_strays import Strays
from pyjmsack.providers.amqp.proton_words import error_of
from pyjmsack.providers.amqp.sasl import SaslClient

__all__ = ["ProtonEngine"]

log = get_logger("pyjmsack.amqp")

Happening: TypeAlias = Any  # an Event; its link and delivery are typed as Optional for every kind of event
_BURST = 1 << 16
"""The largest number of bytes that are taken from proton at once."""
MOST_UNASKED = 100
"""The number of sessions and links that the peer may begin without a request of this client. There is a limit, because
each session and each link takes memory until the connection ends."""
UNREADABLE = (TypeError, ValueError, OverflowError, RuntimeError)
"""The errors that proton raises when it reads a malformed field of the peer: a text that is not UTF-8, a list or a
binary as the key of a map, a character that Unicode does not have, a text that has no bytes in memory, or too many
nested values. proton does not document these errors. A fuzzer found them."""
_TRANSFER = re.compile(r"(.*@transfer\(20\) \[.*?\] \(\d+\) )(.*)", re.DOTALL)


class ProtonEngine(AmqpEngine):
    """One AMQP connection that uses proton."""

    name = f"python-qpid-proton {proton.VERSION_MAJOR}.{proton.VERSION_MINOR}.{proton.VERSION_POINT}"

    def __init__(
        self, listener: EngineListener, sasl: Callable[[bool], SaslClient] | None, options: EngineOptions
    ) -> None:
        super().__init__(listener, sasl, options)
        _engines.add(self)
        self._connection = Connection()
        self._transport = Transport()
        self._transport.max_frame_size = options.max_frame_size
        self._transport.channel_max = options.channel_max
        if options.idle_timeout is not None:
            self._transport.idle_timeout = options.idle_timeout
        self._collector = Collector()
        self._connection.collect(self._collector)
        self._output: deque[bytes] = deque()
        self.links: dict[Link, ProtonLink] = {}
        self.sessions: dict[Session, ProtonSession] = {}
        self._unasked = 0
        self._strays = Strays(options.channel_max)
        if options.trace is not None:
            self._transport.tracer = partial(_trace, options.trace)
            self._transport.trace(Transport.TRACE_FRM)

    # -- verbs --------------------------------------------------------------------------------------------------

    @property
    def remote(self) -> Open:
        """The peer's Open frame. Until the frame has arrived, an empty ``Open``."""
        connection = self._connection
        properties: object = connection.remote_properties
        try:
            offered = tuple(str(name) for name in connection.remote_offered_capabilities or ())
        except UNREADABLE:  # a field that cannot be read offers no feature
            offered = ()
        return Open(
            container_id=connection.remote_container or "",
            max_frame_size=self._transport.remote_max_frame_size or 0xFFFFFFFF,
            offered_capabilities=offered,
            properties=_texts(properties),
        )

    @property
    def peer_frame_size(self) -> int:
        """The number of bytes of the largest frame that the peer accepts. 0 means any size. The number is known after
        the peer's Open frame."""
        return int(self._transport.remote_max_frame_size)

    def open(self, description: Open) -> None:
        """Send the Open frame, which opens the connection."""
        connection = self._connection
        connection.container = description.container_id
        if description.hostname:
            connection.hostname = description.hostname
        connection.desired_capabilities = [symbol(name) for name in description.desired_capabilities]
        connection.properties = {symbol(key): value for key, value in (description.properties or {}).items()}
        connection.open()

    def begin(self, owner: SessionHandler) -> ProtonSession:
        """Begin a session.

        Raises:
            StateError: all channels are in use. proton would write nothing more on this connection, without an error.
        """
        most = min(self._transport.channel_max, self._transport.remote_channel_max)
        if len(self.sessions) > most:
            raise StateError(f"all {most + 1} channels of the connection are in use")
        return ProtonSession(self, self._connection.session(), owner)

    @property
    def handle_max(self) -> int:
        """The highest number of a link that the peer allows in a session, as far as the peer has answered."""
        return self._strays.handle_max

    def barrier(self) -> None:
        """Send the frames of all earlier calls before the frames of the calls that follow.

        Otherwise proton would write all waiting transfers (messages) before all waiting dispositions (outcomes). The
        request that ends a transaction is a transfer. Therefore an acknowledgement could come after the end of its
        transaction.
        """
        while output := self._written():
            self._output.append(output)

    def rewritten(self, act: Callable[[], None], rewrite: Callable[[bytes], bytes]) -> None:
        """Call ``act``, after which proton writes one frame. Send the frame that ``rewrite`` makes of this frame."""
        self.barrier()
        before = len(self._output)
        act()
        self.barrier()
        frame = b"".join([self._output.pop() for _ in range(len(self._output) - before)][::-1])
        self._output.append(rewrite(frame))

    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1), which has no meaning but makes the peer look at its connection."""
        self.barrier()
        self._output.append(EMPTY_FRAME)
        self.flush()

    def close_connection(self) -> None:
        """Send the Close frame, which ends the connection."""
        try:
            self._connection.close()
        except ProtonException as error:  # pragma: no cover - proton refuses only an unbound, never-opened connection
            log.debug("close: %s", error)

    def tick(self, now: float) -> float | None:
        """Check whether one of the two sides was silent for too long (AMQP 1.0 2.4.5). If this side was silent, send a
        frame. If the peer was silent, end the connection. Return the time of the next check.
        """
        if not self._ready or self.failed is not None:
            return None
        deadline = self._transport.tick(now)
        self._process_events()
        self.flush()
        return max(deadline, now + LEAST_INTERVAL) if deadline > 0 else None

    def fail(self, error: JMSException) -> None:
        """End the connection with this error. Later errors are ignored."""
        super().fail(error)
        self._forget()

    def abort(self, error: BaseException) -> None:
        """End the connection. Send nothing to the peer, and report nothing to the listener."""
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
        whole = self._push(self._strays.without(data))
        self._process_events()
        if self._strays.violation is not None:
            self.fail(ConnectionLostException(f"the peer sent {self._strays.violation}"))
        self._listener.on_burst_end()
        if not whole:  # proton stopped reading and reported no event, so the bytes are not AMQP
            self._on_transport_error()

    def _push(self, data: bytes) -> bool:
        """Give the peer's bytes to proton. Return True if proton took all of them."""
        position = 0
        try:
            while position < len(data):
                room = self._transport.capacity()
                if room <= 0:
                    return False
                self._transport.push(data[position : position + room])
                position += room
        except (ProtonException, OverflowError) as error:
            log.debug("push: %s", error)
            return False
        return True

    def _take(self) -> bytes:
        return self._output.popleft() if self._output else self._written()

    def _written(self) -> bytes:
        """Take the next bytes to write from proton, at most ``_BURST``."""
        try:
            size = min(self._transport.pending(), _BURST)
            data = bytes(self._transport.peek(size) or b"") if size > 0 else b""
        except ProtonException as error:  # pragma: no cover - proton reports this error by an event as well
            log.debug("peek: %s", error)
            return b""
        if data:
            self._transport.pop(len(data))
            self._strays.sent(data)
        return data

    def _process_events(self) -> None:
        """Handle all events of proton.

        proton decodes a field of the peer only when this module reads the field. If the field is malformed, reading the
        field raises an error, and the error ends the connection.
        """
        try:
            self._pop_events()
        except UNREADABLE as error:
            log.debug("malformed", exc_info=error)
            malformed = ConnectionLostException(f"the peer sent bytes that are no AMQP 1.0 frame: {error}")
            malformed.__cause__ = error
            self.fail(malformed)

    def _pop_events(self) -> None:
        collector = self._collector
        while self.failed is None and (event := collector.peek()) is not None:
            action = _ACTIONS.get(event.type)
            if action is not None:
                action(self, event)
            collector.pop()

    def _on_delivery(self, event: Happening) -> None:
        link = self.links.get(event.link)
        if link is not None:
            link.on_delivery(event.delivery)

    def _on_link_flow(self, event: Happening) -> None:
        link = self.links.get(event.link)
        if link is not None:
            link.on_flow()

    def _on_link_open(self, event: Happening) -> None:
        link = self.links.get(event.link)
        if link is not None:
            link.owner.on_remote_open()
        else:
            self._count_unasked(event.link)

    def _on_link_close(self, event: Happening) -> None:
        link = self.links.get(event.link)
        if link is not None:
            link.on_remote_close()

    def _on_session_open(self, event: Happening) -> None:
        session = self.sessions.get(event.session)
        if session is not None:
            session.owner.on_remote_open()
        else:
            self._count_unasked(event.session)

    def _count_unasked(self, end: Link | Session) -> None:
        if not end.state & Endpoint.LOCAL_UNINIT:
            return
        self._unasked += 1
        if self._unasked > MOST_UNASKED:
            text = f"the peer began {self._unasked} sessions or links that nobody asked for"
            self.fail(ConnectionLostException(text))

    def _on_session_close(self, event: Happening) -> None:
        session = self.sessions.get(event.session)
        if session is not None:
            session.on_remote_close()

    def _on_connection_open(self, _: Happening) -> None:
        self._opened()

    def _on_connection_close(self, _: Happening) -> None:
        error = error_of(self._connection.remote_condition)
        self.parted = error is None
        self.fail(connection_error(error, "the broker closed the connection"))

    def _on_transport_error(self, _: Happening = None) -> None:
        """End the connection because of an error of the transport.

        For some malformed frames, proton stops reading and names no error. In all other cases, proton names the error.
        """
        self.fail(transport_error(error_of(self._transport.condition)))

    def _on_transport_closed(self, _: Happening) -> None:
        self.fail(ConnectionLostException("the AMQP connection ended"))


def _texts(properties: object) -> dict[str, object]:
    return {str(key): value for key, value in properties.items()} if isinstance(properties, Mapping) else {}


def _trace(limit: int, transport: Transport, text: str) -> None:
    """Log proton's text of a frame, with no more than ``limit`` characters of a transfer's payload."""
    transfer = _TRANSFER.fullmatch(text)
    if transfer is not None and len(transfer[2]) > limit:
        text = f"{transfer[1]}{transfer[2][:limit]}..."
    log.debug("%s", text)


_engines: WeakSet[ProtonEngine] = WeakSet()


def _free_if_unused(free: Callable[[], object]) -> None:
    """Let proton free its objects at the end of the program, if no engine exists that may still use them."""
    if not len(_engines):
        free()


def _keep_objects_in_use() -> None:
    """Keep proton from freeing the objects of open connections when the program ends.

    Python calls the functions for the end of a program in reverse order, and proton is imported late. So proton would
    free its objects before the last sends leave, and while the thread of a loop still runs. The next event would then
    abort the process. Without that function the memory is freed with the process.
    """
    free = getattr(cproton, "clear_retained_objects", None)
    if free is not None:
        atexit.unregister(free)
        atexit.register(_free_if_unused, free)


_keep_objects_in_use()

_ACTIONS: dict[EventType, Callable[[ProtonEngine, Happening], None]] = {
    Event.DELIVERY: ProtonEngine._on_delivery,
    Event.LINK_FLOW: ProtonEngine._on_link_flow,
    Event.LINK_REMOTE_OPEN: ProtonEngine._on_link_open,
    Event.LINK_REMOTE_CLOSE: ProtonEngine._on_link_close,
    Event.LINK_REMOTE_DETACH: ProtonEngine._on_link_close,
    Event.SESSION_REMOTE_OPEN: ProtonEngine._on_session_open,
    Event.SESSION_REMOTE_CLOSE: ProtonEngine._on_session_close,
    Event.CONNECTION_REMOTE_OPEN: ProtonEngine._on_connection_open,
    Event.CONNECTION_REMOTE_CLOSE: ProtonEngine._on_connection_close,
    Event.TRANSPORT_ERROR: ProtonEngine._on_transport_error,
    Event.TRANSPORT_TAIL_CLOSED: ProtonEngine._on_transport_error,
    Event.TRANSPORT_CLOSED: ProtonEngine._on_transport_closed,
}
