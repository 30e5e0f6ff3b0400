"""Connections: protocol header, open and close, channels, and idle time-outs (AMQP 1.0 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from pyjmsack.providers.amqp.engine.deliveries import SERIAL_MASK
from pyjmsack.providers.amqp.engine.errors import StateError, ViolationError
from pyjmsack.providers.amqp.engine.events import BEGUN, CLOSED, ENDED, FAILED, OPENED, Event
from pyjmsack.providers.amqp.engine.fastpath import DISPOSITION, TRANSFER, disposition_frame
from pyjmsack.providers.amqp.engine.frames import (
    EMPTY_FRAME,
    FRAMING_ERROR,
    LEAST_MAX_FRAME_SIZE,
    PROTOCOL_HEADER,
    FrameReader,
    frame,
)
from pyjmsack.providers.amqp.engine.idle import IdleTimes
from pyjmsack.providers.amqp.engine.link import Link
from pyjmsack.providers.amqp.engine.performatives import (
    Begin,
    Close,
    Composite,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
    decode,
    encode,
)
from pyjmsack.providers.amqp.engine.session import HANDLERS, LARGEST_WINDOW, Session

__all__ = ["Connection"]

_BURST: Final = 1 << 18
"""The largest number of bytes that are returned at once. Further bytes would only be copied again while they wait for
the socket."""

_CLOSE_BESIDES: Final = 112
"""The number of bytes that a Close frame may need beside the description of its error."""


class Connection:
    """The client's end of one connection.

    Args:
        max_frame_size: the number of bytes of the largest frame that is accepted, at least 512.
        channel_max: the highest channel number, 0 to 65535. It is one less than the largest number of sessions.
        idle_timeout: seconds without bytes of the peer after which the connection counts as lost. The Open frame
            announces half of this time, so that the frames of the peer come in time (2.4.5). ``None`` means no limit.
    """

    def __init__(
        self, *, max_frame_size: int = 1 << 20, channel_max: int = 0xFFFF, idle_timeout: float | None = None
    ) -> None:
        self.local: Open | None = None
        self.remote: Open | None = None
        """The peer's Open frame. ``None`` until the frame has arrived."""
        self.closed = False
        """True if our Close frame was sent, so that nothing can be sent any more."""
        self._max_frame_size = max_frame_size
        self._channel_max = channel_max
        self._idle = IdleTimes(idle_timeout)
        self._frames = FrameReader(max_frame_size)
        self._over = False
        """True if bytes of the peer are ignored, because the connection has ended."""
        self._sessions: dict[int, Session] = {}
        """The sessions by the number of our channel. A session stays here until both sides have ended it."""
        self._remote_sessions: dict[int, Session] = {}
        self._output: list[bytes | memoryview] = []
        self._hungry: list[Callable[[], None]] = []
        """The functions to call when ``data_to_send`` has returned all output."""
        self._echoes: dict[tuple[Session, Link | None], None] = {}
        """The sessions and links whose state the peer asked for (echo). The answer is made when the peer reads bytes,
        because a peer that asks without end and never reads would otherwise fill the memory. One answer is enough for
        several questions, because the answer contains only the present state."""
        self._flows: dict[Link, None] = {}
        """The links whose state has to be told to the peer before the next frame that is no disposition. One Flow frame
        is enough for several changes, because it contains only the present state. A peer that causes changes without
        end and never reads would otherwise fill the memory."""
        self._settling: tuple[int, bool, bytes] | None = None
        """The channel, role and state of a disposition (a frame with outcomes) that is not written yet, because more
        deliveries may join the same frame."""
        self._first = self._last = 0

    # -- verbs --------------------------------------------------------------------------------------------------

    def open(self, description: Open) -> None:
        """Send the protocol header and an Open frame. The Open frame also contains the limits that the constructor got.

        Raises:
            StateError: the connection is open already.
        """
        if self.local is not None:
            raise StateError("the connection is open already")
        self.local = Open(
            container_id=description.container_id,
            hostname=description.hostname,
            max_frame_size=self._max_frame_size,
            channel_max=self._channel_max,
            idle_time_out=self._idle.announced_ms,
            desired_capabilities=description.desired_capabilities,
            properties=description.properties,
        )
        self._output.append(PROTOCOL_HEADER)
        self._output.append(frame(0, encode(self.local)))

    def begin(self, owner: Any = None, *, incoming_window: int = LARGEST_WINDOW, first_id: int = 0) -> Session:
        """Begin a session on the lowest free channel. The session may be used at once.

        Raises:
            StateError: the connection is not open, or all channels are in use.
        """
        if self.local is None or self.closed:
            raise StateError("the connection is not open")
        most = self._channel_max if self.remote is None else min(self._channel_max, self.remote.channel_max)
        channel = next(number for number in range(len(self._sessions) + 1) if number not in self._sessions)
        if channel > most:
            raise StateError(f"all {most + 1} channels of the connection are in use")
        session = Session(self, channel, owner, incoming_window=incoming_window, first_id=first_id)
        session.start()
        self._sessions[channel] = session
        return session

    def close(self, error: Error | None = None) -> None:
        """Send a Close frame, which ends the connection. After that, nothing can be sent. A second call does
        nothing."""
        if self.local is not None and not self.closed:
            self.send(0, Close(error=error))
            self._end_all()

    def nudge(self) -> None:
        """Send an empty frame, which has no meaning but makes the peer look at its connection."""
        if self.local is not None and not self.closed:
            self.flush_postponed()
            self._output.append(EMPTY_FRAME)

    def data_to_send(self) -> bytes:
        """Return bytes for the peer. The caller calls this method until it returns ``b""``."""
        if self._settling is not None or self._flows:
            self.flush_postponed()
        if self._echoes:
            self._answer_echoes()
        output = self._output
        if not output:
            if self._hungry:
                self._feed()
            return b""
        if len(output) < 64:  # the usual burst is returned in one piece
            self._output = []
            return self._counted(b"".join(output))
        end, size = 0, 0
        while end < len(output) and size < _BURST:
            size += len(output[end])
            end += 1
        burst = b"".join(output[:end])
        del output[:end]
        return self._counted(burst)

    def when_empty(self, wants: Callable[[], None]) -> None:
        """Call ``wants`` once, when ``data_to_send`` has returned all output.

        Output that ``wants`` adds is returned only by a later call of ``data_to_send``.
        """
        self._hungry.append(wants)

    def echo(self, session: Session, link: Link | None) -> None:
        """Remember that the peer asked for the state of a session or link (echo). ``data_to_send`` makes the answer.
        While the socket is full, ``data_to_send`` is not called. If the peer asks for the state of one link several
        times meanwhile, the peer gets one answer.
        """
        self._echoes[session, link] = None

    def postpone_flow(self, link: Link) -> None:
        """Remember that the state of a link has to be told to the peer."""
        self._flows[link] = None

    def _answer_echoes(self) -> None:
        echoes, self._echoes = self._echoes, {}
        for session, link in echoes:
            if not session.ended:
                session.send_flow(None if link is None or link.detached else link)

    def _feed(self) -> None:
        hungry, self._hungry = self._hungry, []
        for wants in hungry:
            wants()

    def _counted(self, data: bytes) -> bytes:
        self._idle.written += len(data)
        return data

    def tick(self, now: float) -> tuple[float | None, list[Event]]:
        """Do the work that is due at ``now``, a time in seconds. The caller may use any clock that does not go back.

        Returns:
            The time of the next call, or ``None`` if no call is needed. Also the event ``FAILED`` if the peer is lost.
        """
        if self.local is None or self._over:
            return None, []
        if self._idle.silent(now):
            text = f"the peer sent no frame within the idle time-out of {self._idle.timeout:g} s"
            return None, [self._fail(ViolationError("amqp:resource-limit-exceeded", text))]
        if self._idle.must_write(now, waiting=bool(self._output)):
            self.nudge()
        return self._idle.deadline(now), []

    # -- for sessions and links ---------------------------------------------------------------------------------

    @property
    def peer_frame_size(self) -> int:
        """The number of bytes of the largest frame that the peer accepts. 512 until the peer's Open frame has arrived
        (2.4.1)."""
        return LEAST_MAX_FRAME_SIZE if self.remote is None else self.remote.max_frame_size

    def send(self, channel: int, performative: Composite) -> None:
        """Send a frame without a payload.

        Raises:
            StateError: the frame is larger than the peer accepts.
        """
        if self.closed:
            return
        data = frame(channel, encode(performative))
        if self.remote is not None and len(data) > self.remote.max_frame_size:
            text = (
                f"{performative.name} needs a frame of {len(data)} bytes, and the peer accepts {self.peer_frame_size}"
            )
            raise StateError(text)
        if self._settling is not None or self._flows:
            self.flush_postponed()
        self._output.append(data)

    def put(self, head: bytes, payload: bytes | memoryview) -> None:
        """Send a transfer frame, which carries a message. ``head`` contains the bytes before the payload."""
        if self._settling is not None or self._flows:
            self.flush_postponed()
        self._output.append(head)
        self._output.append(payload)

    def settle(self, channel: int, role: bool, first: int, state: bytes, last: int | None = None) -> None:
        """Settle deliveries. If consecutive deliveries have the same outcome, one frame settles all of them (2.7.6)."""
        if self.closed:
            return
        what = (channel, role, state)
        if self._settling is not None:
            if self._settling == what and first == (self._last + 1) & SERIAL_MASK:
                self._last = first if last is None else last
                return
            self._flush_settling()
        self._settling = what
        self._first, self._last = first, first if last is None else last

    def flush_postponed(self) -> None:
        """Write the disposition and the Flow frames that are not written yet."""
        self._flush_settling()
        flows, self._flows = self._flows, {}
        for link in flows:
            link.tell()

    def _flush_settling(self) -> None:
        if self._settling is not None:
            channel, role, state = self._settling
            self._settling = None
            self._output.append(disposition_frame(channel, role, self._first, self._last, state))

    # -- bytes of the peer --------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> Iterator[Event]:
        """Take bytes of the peer and yield their events.

        The bytes are read frame by frame, so the caller can act on an event before the next frame is read. The caller
        has to iterate to the end, because otherwise the rest of the bytes is lost.
        """
        if self._over:
            return
        self._idle.read += len(data)
        try:
            for channel, buffer, start, end in self._frames.cut(data):
                if start == end:
                    continue
                session = self._remote_sessions.get(channel)
                kind = buffer[start : start + 3]
                if session is not None and kind == TRANSFER:
                    event = session.on_transfer(buffer, start, end)
                    if event is not None:
                        yield event
                elif session is not None and kind == DISPOSITION:
                    yield from session.on_disposition(buffer, start, end)
                else:
                    yield from self._on_frame(channel, session, buffer, start, end)
                if self._over:
                    return
        except ViolationError as violation:
            yield self._fail(violation)

    def _on_frame(self, channel: int, session: Session | None, buffer: bytes, start: int, end: int) -> list[Event]:
        performative, after = decode(buffer, start, end)
        kind = type(performative)
        if kind is Transfer and session is not None:  # its descriptor has another legal spelling than TRANSFER
            event = session.on_transfer(buffer, start, end)
            return [] if event is None else [event]
        if after != end:
            raise ViolationError(FRAMING_ERROR, f"{end - after} bytes follow {performative.name}; expected none")
        if isinstance(performative, Open):
            return self._on_open(performative)
        if isinstance(performative, Close):
            return self._on_close(performative)
        if self.remote is None:
            raise ViolationError("amqp:illegal-state", f"{performative.name} came before the Open frame")
        if isinstance(performative, Begin):
            return self._on_begin(channel, session, performative)
        if session is None:
            if kind is Flow:  # Artemis may answer a drain after the session has ended, and the other sessions go on
                return []
            raise ViolationError(
                "amqp:not-allowed", f"{performative.name} came on channel {channel}, which has no session"
            )
        if kind is Disposition:  # its descriptor has another legal spelling than DISPOSITION
            return session.on_disposition(buffer, start, end)
        if isinstance(performative, End):
            return self._on_end(channel, session, performative)
        handler = HANDLERS.get(kind)
        if handler is None:
            raise ViolationError("amqp:not-allowed", f"{performative.name} is not a performative")
        events: list[Event] = handler(session, performative)
        return events

    def _on_open(self, performative: Open) -> list[Event]:
        if self.remote is not None:
            raise ViolationError("amqp:illegal-state", "a second Open frame came")
        if performative.max_frame_size < LEAST_MAX_FRAME_SIZE:
            text = f"max-frame-size is {performative.max_frame_size}; expected at least {LEAST_MAX_FRAME_SIZE}"
            raise ViolationError("amqp:invalid-field", text)
        self.remote = performative
        self._idle.peer_announced(performative.idle_time_out)
        return [(OPENED, performative)]

    def _on_begin(self, channel: int, session: Session | None, begin: Begin) -> list[Event]:
        if session is not None:
            raise ViolationError("amqp:illegal-state", f"a second Begin frame came on channel {channel}")
        ours = self._sessions.get(-1 if begin.remote_channel is None else begin.remote_channel)
        if ours is None or ours.remote is not None:
            raise ViolationError(
                "amqp:not-allowed",
                "a Begin frame came that nobody asked for: a client accepts no session that its peer begins",
            )
        ours.begun(begin, channel, self.peer_frame_size)
        self._remote_sessions[channel] = ours
        return [(BEGUN, ours)]

    def _on_end(self, channel: int, session: Session, end: End) -> list[Event]:
        """Handle the peer's End frame: answer it and free both channels, because both ends have ended (2.5.5)."""
        session.remote_error = end.error
        session.end()
        del self._remote_sessions[channel]
        del self._sessions[session.channel]
        return [(ENDED, session)]

    def _on_close(self, close: Close) -> list[Event]:
        self.close()
        self._over = True
        return [(CLOSED, close.error)]

    def _fail(self, violation: ViolationError) -> Event:
        """Send a Close frame that names the mistake of the peer, and ignore all further bytes (2.4.3)."""
        error = Error(condition=violation.condition, description=violation.description)
        room = self.peer_frame_size - _CLOSE_BESIDES
        described = violation.description.encode(errors="replace")[:room].decode(errors="ignore")
        self.close(replace(error, description=described))
        self._over = True
        return FAILED, error

    def _end_all(self) -> None:
        self.closed = True
        for session in self._sessions.values():
            session.over()
