"""The interface between the provider and its two engines, and the base class that both engines share.

A connection first uses :class:`SaslClient` for the login, and then an engine for AMQP itself. The engine reports each
event of a link or a session to the owner of that link or session. :class:`LinkHandler` and :class:`SessionHandler` list
these events. Both engines describe links, states and errors with the classes of :mod:`.engine.performatives`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.amqp.engine.performatives import Attach, Composite, Error, Open
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.spi.engine import Stream, loss

__all__ = [
    "AmqpEngine",
    "EngineListener",
    "EngineOptions",
    "LinkEnd",
    "LinkHandler",
    "ReceiverEnd",
    "SenderEnd",
    "SessionEnd",
    "SessionHandler",
    "StreamEnd",
]

log = get_logger("pyjmsack.amqp")
MOST_UNWRITTEN = 8 << 20
"""If more than this number of bytes of large messages wait for the disk, the driver stops reading from the socket."""
_FEW_UNWRITTEN = 2 << 20
"""If at most this number of bytes wait for the disk, the driver reads from the socket again."""


class LinkHandler(Protocol):
    """The events of a link, which the engine reports to the owner of the link."""

    def on_remote_open(self) -> None:
        """Handle the Attach frame of the peer, which opens the peer's end of the link."""
        ...

    def on_remote_close(self) -> None:
        """Handle the Detach frame of the peer, which suspends or closes the link."""
        ...

    def on_flow(self) -> None:
        """Handle a change of the credit of the link."""
        ...

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        """Handle a whole message. ``delivery`` is the handle for :meth:`ReceiverEnd.settle`."""
        ...

    def on_oversize(self, delivery: Any, start: bytes, size: int, settled: bool) -> None:
        """Handle a message that was too large for the link. The message had ``size`` bytes, and only ``start``, its
        first bytes, were kept."""
        ...

    def on_beginning(self, delivery: Any, start: bytes) -> None:
        """Handle the first bytes of a large message, which may be taken in pieces.

        If the owner calls :meth:`ReceiverEnd.take_pieces` now, the owner gets the rest in pieces. Otherwise, the owner
        gets the whole message in one call.
        """
        ...

    def on_piece(self, payload: bytes, more: bool, settled: bool, aborted: bool) -> None:
        """Handle the next piece of a message that is taken in pieces.

        ``more`` is False for the last piece. If ``aborted`` is true, the peer took the message back.
        """
        ...

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """Handle the outcome of a message that this client sent. ``None`` means that the broker settled the message
        without an outcome."""
        ...


class SessionHandler(Protocol):
    """The events of a session, which the engine reports to the owner of the session."""

    def on_remote_open(self) -> None:
        """Handle the Begin frame of the peer, which opens the session."""
        ...

    def on_remote_close(self) -> None:
        """Handle the End frame of the peer, which ends the session."""
        ...


class EngineListener(Protocol):
    """The events of the whole connection, which the engine reports to the provider."""

    def on_ready(self) -> None:
        """Handle the end of the login. The connection may be opened now."""
        ...

    def on_remote_open(self) -> None:
        """Handle the Open frame of the peer, which opens the connection and describes the peer."""
        ...

    def on_failure(self, error: JMSException) -> None:
        """Handle the end of the connection. The engine calls this method once, and reports no event after it."""
        ...

    def on_burst_end(self) -> None:
        """Handle the end of a burst: all events of the bytes that arrived together have been reported."""
        ...


class LinkEnd(Protocol):
    """This client's end of a link."""

    @property
    def credit(self) -> int:
        """The number of messages that may still be sent on this link, or that may still arrive on it."""
        ...

    @property
    def remote(self) -> Attach | None:
        """The peer's Attach frame. ``None`` until the frame has arrived."""
        ...

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer detached the link. ``None`` if the peer gave no error."""
        ...

    def detach(self, *, closed: bool, error: Error | None = None) -> None:
        """Detach the link. If ``closed`` is true, the link ends for good. A second call does nothing."""
        ...


class StreamEnd(Protocol):
    """One message that is sent in pieces."""

    def write(self, piece: bytes, *, last: bool) -> None:
        """Send a piece of a body. The engine asks for each piece except the first one."""
        ...

    def abort(self) -> None:
        """Take the message back. The call is allowed only before the last piece is written."""
        ...


class SenderEnd(LinkEnd, Protocol):
    """This client's end of a link on which this client sends messages."""

    @property
    def drain(self) -> bool:
        """Whether the peer asks for a drain, so that this client has to use up or give back its credit."""
        ...

    def send(self, payload: bytes, context: Any, *, state: bytes = b"", left: Callable[[], None] | None = None) -> None:
        """Send a message. ``state`` is an encoded delivery state, for example the open transaction.

        The engine passes ``context`` to :meth:`LinkHandler.on_outcome`. If ``left`` is given, the message is sent
        settled, and gets no outcome. The engine calls ``left`` when the last frame of the message was sent.
        """
        ...

    def stream(
        self, context: Any, wants: Callable[[], None], *, state: bytes = b"", settled: bool = False
    ) -> StreamEnd:
        """Begin a message that is sent in pieces. The engine calls ``wants`` when the next piece may be written."""
        ...

    def drained(self) -> None:
        """Tell the peer that the rest of the credit is not needed, because the peer asked for a drain."""
        ...

    def abandon(self) -> list[Any]:
        """Return the contexts (the objects that :meth:`send` got) of all messages without an outcome. The engine will
        report no outcome for them."""
        ...


class ReceiverEnd(LinkEnd, Protocol):
    """This client's end of a link on which this client receives messages."""

    @property
    def arriving(self) -> int | None:
        """The number of bytes that have arrived of a message whose end is still to come. ``None`` if there is none."""
        ...

    @property
    def cut_short(self) -> bool:
        """Whether a part of a message has arrived, and the peer has no credit for the rest by its own count."""
        ...

    @property
    def overdraft(self) -> int:
        """The number of messages that arrived without credit, or 0 or less."""
        ...

    def grant(self, credit: int) -> None:
        """Allow the peer to send this number of further messages. On a link that has ended, this method does
        nothing."""
        ...

    def start_drain(self, credit: int = 0) -> None:
        """Add ``credit`` to the credit of the link, and ask the peer to use up the whole credit now."""
        ...

    def bring_rest(self) -> None:
        """Grant credit for the rest of a message that is :attr:`cut_short`. The rest uses up this credit."""
        ...

    def take_pieces(self) -> None:
        """Ask for the message that is arriving now to come in pieces. Call this only within
        :meth:`LinkHandler.on_beginning`."""
        ...

    def settle(self, delivery: Any, state: bytes, /) -> bool:
        """Settle a message with an encoded outcome or transactional state. Return False if the peer has settled it."""
        ...


class SessionEnd(Protocol):
    """This client's end of a session."""

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer ended the session. ``None`` if the peer gave no error."""
        ...

    def attach_sender(self, attach: Attach, owner: LinkHandler) -> SenderEnd:
        """Attach a link on which this client sends messages."""
        ...

    def attach_receiver(
        self,
        attach: Attach,
        owner: LinkHandler,
        *,
        max_message_size: int | None = None,
        overdraft: int | None = 0,
        pieces_over: int | None = None,
    ) -> ReceiverEnd:
        """Attach a link on which this client receives messages.

        Args:
            attach: the fields of the Attach frame.
            owner: gets the events of the link.
            max_message_size: the number of bytes of the largest message that is kept. ``None`` means no limit.
            overdraft: the number of messages that the peer may send without credit before the connection ends. ``None``
                means any number.
            pieces_over: a message with more bytes than this is offered to the owner in pieces. ``None`` means never.
        """
        ...

    def end(self) -> None:
        """End the session. A second call does nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The settings of an engine.

    Args:
        max_frame_size: the number of bytes of the largest frame that is accepted.
        channel_max: the highest channel number.
        idle_timeout: the connection counts as lost after this number of seconds without bytes from the peer. ``None``
            means never.
        trace: the number of bytes of a payload that the log shows (``amqp.traceFrames``). Every frame is logged at
            DEBUG, except the SASL frames, because they contain secrets. ``None`` means that no frame is logged.
        trace_bytes: whether all bytes are logged at DEBUG, except the bytes of the SASL layer
            (``transport.traceBytes``).
    """

    max_frame_size: int
    channel_max: int
    idle_timeout: float | None = None
    trace: int | None = None
    trace_bytes: bool = False


class AmqpEngine(ABC):
    """The base class of both engines: one AMQP connection without a socket. This class implements
    ``spi.engine.Engine``: the login by SASL, the end of a connection after an error, and the end that the provider
    demands.

    Args:
        listener: gets the events of the connection.
        sasl: makes the SASL client; its argument says whether the stream is encrypted. ``None`` means no SASL layer.
        options: the settings of the connection.
    """

    name: str
    """The name of the engine in the metadata of a connection."""

    def __init__(
        self, listener: EngineListener, sasl: Callable[[bool], SaslClient] | None, options: EngineOptions
    ) -> None:
        self._listener = listener
        self._make_sasl = sasl
        self._sasl: SaslClient | None = None
        self._ready = False
        self.failed: JMSException | None = None
        self.parted = False
        """True if the connection ended because the peer sent a Close frame without an error."""
        self.stream: Stream | None = None
        self._trace_bytes = options.trace_bytes

    # -- what an engine is --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def remote(self) -> Open:
        """The peer's Open frame. Until the frame has arrived, an empty ``Open``."""

    @property
    @abstractmethod
    def peer_frame_size(self) -> int:
        """The number of bytes of the largest frame that the peer accepts. 0 means any size. The number is known after
        the peer's Open frame."""

    @abstractmethod
    def open(self, description: Open) -> None:
        """Send the Open frame, which opens the connection."""

    @abstractmethod
    def begin(self, owner: SessionHandler) -> SessionEnd:
        """Begin a session."""

    @abstractmethod
    def barrier(self) -> None:
        """Send the frames of all earlier calls before the frames of the calls that follow."""

    @abstractmethod
    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1), which has no meaning but makes the peer look at its connection."""

    @abstractmethod
    def close_connection(self) -> None:
        """Send the Close frame, which ends the connection."""

    @abstractmethod
    def tick(self, now: float) -> float | None:
        """Check whether one of the two sides was silent for too long (AMQP 1.0 2.4.5). If this side was silent, send a
        frame. If the peer was silent, end the connection. Return the time of the next check.
        """

    @abstractmethod
    def _bind(self) -> None:
        """Prepare the engine for AMQP, because the login is over."""

    @abstractmethod
    def _feed(self, data: bytes) -> None:
        """Take bytes of the peer that come after the login, and handle all events that they cause."""

    @abstractmethod
    def _take(self) -> bytes:
        """Return the next bytes of AMQP for the peer, or ``b""`` if no bytes wait."""

    # -- the byte contract (spi.engine.Engine) ------------------------------------------------------------------

    def opening(self, stream: Stream) -> None:
        """Remember the stream, so that :meth:`abort` ends it although it is not open yet."""
        if self.failed is not None:  # the caller gave up while the stream was being opened
            stream.abort()
        else:
            self.stream = stream

    def connection_made(self, stream: Stream) -> None:
        """Start the SASL login, or start AMQP at once if the user switched SASL off."""
        self.opening(stream)
        if self.failed is not None:
            return
        if self._make_sasl is None:
            self._start()
        else:
            self._sasl = self._make_sasl(stream.encrypted)
            self._sasl.go_on = self._go_on
        self.flush()

    def receive_data(self, data: bytes) -> None:
        """Pass the bytes to SASL or AMQP, handle all events that they cause, and then flush once."""
        if self.failed is not None:
            return
        if not self._ready:
            data = self._receive_sasl(data)
        if data and self._ready:
            if self._trace_bytes:
                log.debug("<- %s", data.hex())
            self._feed(data)
        self.flush()

    def data_to_send(self) -> bytes:
        """Return the next bytes for the peer, or ``b""`` if there are none."""
        if self._sasl is not None and self._sasl.output:
            output = bytes(self._sasl.output)
            self._sasl.output.clear()
            return output
        data = self._take() if self._ready else b""
        if self._trace_bytes and data:
            log.debug("-> %s", data.hex())
        return data

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the loss of the byte stream: all open sessions and links are lost."""
        self.fail(loss(error))

    # -- for the provider ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the bytes that wait to be sent."""
        if self.stream is not None:
            self.stream.flush()

    def pace(self, unwritten: int) -> None:
        """Stop reading from the socket if too many bytes wait for the disk. Read again if few bytes wait."""
        if self.stream is None or self.failed is not None:
            return
        if unwritten > MOST_UNWRITTEN:
            self.stream.pause()
        elif unwritten <= _FEW_UNWRITTEN:
            self.stream.resume()

    def apart(self, work: Callable[[], None]) -> None:
        """Run ``work``, and then do the same as after a burst, although no bytes of the peer arrived.

        For example, ``work`` hands out a message that is now on the disk.
        """
        if self.failed is None:
            work()
            self._listener.on_burst_end()
            self.flush()

    def fail(self, error: JMSException) -> None:
        """End the connection with this error. Later errors are ignored."""
        if self.failed is None:
            self.failed = error
            if self.stream is not None:
                self.stream.close()
            self._listener.on_failure(error)

    def abort(self, error: BaseException) -> None:
        """End the connection. Send nothing to the peer, and report nothing to the listener."""
        if self.failed is None:
            self.failed = error if isinstance(error, JMSException) else ConnectionLostException(str(error))
        if self.stream is not None:
            self.stream.abort()

    def _start(self) -> None:
        self._bind()
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

    def _go_on(self) -> None:
        """Continue the login, because a thread has computed a response."""
        try:
            self.receive_data(b"")
        except Exception as error:  # nobody above this method would end the connection
            self.fail(loss(error))

    def _opened(self) -> None:
        """Handle the peer's Open frame, which opens the connection and describes the peer."""
        self._listener.on_remote_open()
        if self.stream is not None:
            self.stream.retick()  # now the peer's idle time-out is known
