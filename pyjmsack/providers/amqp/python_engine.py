"""The adapter from our own engine (:mod:`.engine`) to the interface that the provider uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from pyjmsack.loggers import get_logger
from pyjmsack.providers.amqp.engine import Connection, Session
from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.engine.events import (
    ATTACHED,
    BEGINNING,
    BEGUN,
    CLOSED,
    CREDIT,
    DELIVERY,
    DETACHED,
    ENDED,
    FAILED,
    OPENED,
    OUTCOME,
    OVERSIZE,
    PIECE,
    Event,
)
from pyjmsack.providers.amqp.engine.frames import FrameReader
from pyjmsack.providers.amqp.engine.performatives import Composite, Open, decode
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineListener, EngineOptions, SessionHandler
from pyjmsack.providers.amqp.errors import connection_error, transport_error
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.version import VERSION

__all__ = ["PythonEngine"]

log = get_logger("pyjmsack.amqp")

_NOT_YET = Open(container_id="")


class PythonEngine(AmqpEngine):
    """One AMQP connection that uses our own engine."""

    name = f"pyjmsack {VERSION}"

    def __init__(
        self, listener: EngineListener, sasl: Callable[[bool], SaslClient] | None, options: EngineOptions
    ) -> None:
        super().__init__(listener, sasl, options)
        self._connection = Connection(
            max_frame_size=options.max_frame_size, channel_max=options.channel_max, idle_timeout=options.idle_timeout
        )
        trace = options.trace
        self._tracers = None if trace is None else (_Tracer("<-", trace), _Tracer("->", trace))

    @property
    def remote(self) -> Open:
        """The peer's Open frame. Until the frame has arrived, an empty ``Open``."""
        return self._connection.remote or _NOT_YET

    @property
    def peer_frame_size(self) -> int:
        """The number of bytes of the largest frame that the peer accepts."""
        return self._connection.peer_frame_size

    def open(self, description: Open) -> None:
        """Send the Open frame, which opens the connection."""
        self._connection.open(description)

    def begin(self, owner: SessionHandler) -> Session:
        """Begin a session."""
        return self._connection.begin(owner)

    def barrier(self) -> None:
        """Do nothing, because this engine always sends frames in the order of the calls."""

    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1), which has no meaning but makes the peer look at its connection."""
        self._connection.nudge()
        self.flush()

    def close_connection(self) -> None:
        """Send the Close frame, which ends the connection."""
        self._connection.close()

    def tick(self, now: float) -> float | None:
        """Check whether one of the two sides was silent for too long (AMQP 1.0 2.4.5). If this side was silent, send a
        frame. If the peer was silent, end the connection. Return the time of the next check.
        """
        if not self._ready or self.failed is not None:
            return None
        deadline, events = self._connection.tick(now)
        for event in events:
            self._on_rare(event)
        self.flush()
        return deadline

    def _bind(self) -> None:
        """Do nothing, because our engine needs no preparation before the Open."""

    def _feed(self, data: bytes) -> None:
        if self._tracers is not None:
            self._tracers[0].see(data)
        for event in self._connection.receive(data):
            kind = event[0]
            if kind == DELIVERY:
                event[1].owner.on_message(event[2], event[3], event[4])
            elif kind == OUTCOME:
                event[1].owner.on_outcome(event[2], event[3])
            else:
                self._on_rare(event)
                if self.failed is not None:
                    break
        self._listener.on_burst_end()

    def _take(self) -> bytes:
        data = self._connection.data_to_send()
        if self._tracers is not None and data:
            self._tracers[1].see(data)
        return data

    def _on_rare(self, event: Event) -> None:
        kind, subject = event[0], event[1]
        if kind == CREDIT:
            subject.owner.on_flow()
        elif kind in (ATTACHED, BEGUN):
            subject.owner.on_remote_open()
        elif kind in (DETACHED, ENDED):
            subject.owner.on_remote_close()
        elif kind == OVERSIZE:
            subject.owner.on_oversize(*event[2:])
        elif kind == BEGINNING:
            subject.owner.on_beginning(*event[2:])
        elif kind == PIECE:
            subject.owner.on_piece(*event[2:])
        elif kind == OPENED:
            self._opened()
        elif kind == CLOSED:
            self.parted = subject is None
            self.fail(connection_error(subject, "the broker closed the connection"))
        elif kind == FAILED:
            self.fail(transport_error(subject))


class _Tracer:
    """Logs the frames of one direction, sent or received."""

    def __init__(self, arrow: str, limit: int) -> None:
        self._arrow = arrow
        self._limit = limit
        self._frames = FrameReader(2**32 - 1)

    def see(self, data: bytes) -> None:
        """Take the next bytes, and log the frames that are complete now."""
        try:
            for channel, buffer, start, end in self._frames.cut(data):
                log.debug("%s %d %s", self._arrow, channel, self._describe(buffer, start, end))
        except ViolationError as error:
            log.debug("%s %s", self._arrow, error)

    def _describe(self, buffer: bytes, start: int, end: int) -> str:
        if start == end:
            return "(empty frame)"
        performative, payload = decode(buffer, start, end)
        text = f"@{performative.name.split(':')[1]}({performative.code}) [{_shown(performative)}]"
        if payload == end:
            return text
        dots = "..." if end - payload > self._limit else ""
        return f"{text} ({end - payload}) {buffer[payload : min(end, payload + self._limit)]!r}{dots}"


def _shown(performative: Composite) -> str:
    """Return a text with those fields of a frame that do not have their default value."""
    rows = fields(performative)  # type: ignore[arg-type]  # each composite is a dataclass
    values = ((row.name, getattr(performative, row.name), row.default) for row in rows)
    return ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
