"""What the provider needs of an engine, whichever of the two it is, and what both have in common.

Two layers in a row: :class:`SaslClient`, then an engine for AMQP itself. The engine tells the owner of a link or
session directly what happens to it; :class:`LinkHandler` and :class:`SessionHandler` say what an owner has to hear.
The words in which links, states and errors are described are those of :mod:`.engine.performatives` in both cases.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyjmsack.errors import ConnectionLostException, JMSException
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

log = logging.getLogger("pyjmsack.amqp")
MOST_UNWRITTEN = 8 << 20
"""Bytes of large messages that may wait for the disk before nothing more is read from the socket."""
_FEW_UNWRITTEN = 2 << 20
"""With so few the socket is read again."""


class LinkHandler(Protocol):
    """The events of a link, which the engine reports to the owner of the link."""

    def on_remote_open(self) -> None:
        """Handle the Attach frame of the peer."""
        ...

    def on_remote_close(self) -> None:
        """Handle the Detach frame of the peer, which detaches or closes the link."""
        ...

    def on_flow(self) -> None:
        """Handle a change of the credit."""
        ...

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        """A whole message arrived; ``delivery`` is what :meth:`ReceiverEnd.settle` takes."""
        ...

    def on_oversize(self, delivery: Any, start: bytes, size: int, settled: bool) -> None:
        """A message of ``size`` bytes, more than the link takes, went by; its first bytes are ``start``."""
        ...

    def on_beginning(self, delivery: Any, start: bytes) -> None:
        """So many bytes of a message are here that it may be taken in pieces: the owner calls
        :meth:`ReceiverEnd.take_pieces`, or gets the message whole."""
        ...

    def on_piece(self, payload: bytes, more: bool, settled: bool, aborted: bool) -> None:
        """More of a message that is taken in pieces; the last one has no ``more``. The peer took an ``aborted`` message
        back."""
        ...

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """The peer says what became of a message that we sent. ``None``: the message was settled without an outcome."""
        ...


class SessionHandler(Protocol):
    """The events of a session, which the engine reports to the owner of the session."""

    def on_remote_open(self) -> None:
        """Handle the Begin frame of the peer."""
        ...

    def on_remote_close(self) -> None:
        """Handle the End frame of the peer."""
        ...


class EngineListener(Protocol):
    """The events of the whole connection, which the engine reports to the provider."""

    def on_ready(self) -> None:
        """SASL is over; the connection may be opened."""
        ...

    def on_remote_open(self) -> None:
        """The peer's Open frame is here."""
        ...

    def on_failure(self, error: JMSException) -> None:
        """The connection has ended, and no more events follow. Called once."""
        ...

    def on_burst_end(self) -> None:
        """All events of the bytes received at once have been handled."""
        ...


class LinkEnd(Protocol):
    """Our end of a link."""

    @property
    def credit(self) -> int:
        """Messages that may be sent, or may still arrive."""
        ...

    @property
    def remote(self) -> Attach | None:
        """The peer's Attach, once it is here."""
        ...

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer detached; ``None`` if the peer gave no error."""
        ...

    def detach(self, *, closed: bool, error: Error | None = None) -> None:
        """Detach. With ``closed`` the link ends for good. A second call does nothing."""
        ...


class StreamEnd(Protocol):
    """The sending of one message in pieces."""

    def write(self, piece: bytes, *, last: bool) -> None:
        """Send a piece of a body. The engine asks for each piece except the first."""
        ...

    def abort(self) -> None:
        """Take the message back, before its last piece was written."""
        ...


class SenderEnd(LinkEnd, Protocol):
    """A link to send on."""

    @property
    def drain(self) -> bool:
        """Whether the peer asks to use up the credit."""
        ...

    def send(self, payload: bytes, context: Any, *, state: bytes = b"", settled: bool = False) -> None:
        """Send a message, with an encoded state; ``context`` comes back with the outcome, unless ``settled``."""
        ...

    def stream(
        self, context: Any, wants: Callable[[], None], *, state: bytes = b"", settled: bool = False
    ) -> StreamEnd:
        """Begin a message in pieces; ``wants`` is called, never from within ``write``, when the next may be written."""
        ...

    def drained(self) -> None:
        """Give back the credit that is not needed."""
        ...

    def abandon(self) -> list[Any]:
        """Return the contexts of all that has no outcome; none will be told."""
        ...


class ReceiverEnd(LinkEnd, Protocol):
    """A link to receive on."""

    def grant(self, credit: int) -> None:
        """Allow this number of further messages. Does nothing on a link that has ended."""
        ...

    def start_drain(self, credit: int = 0) -> None:
        """Ask the peer to use up the credit now, and as much more."""
        ...

    def take_pieces(self) -> None:
        """Take the message that begins to arrive in pieces, in answer to :meth:`LinkHandler.on_beginning`."""
        ...

    def settle(self, delivery: Any, state: bytes, /) -> None:
        """Settle a message with an encoded outcome or transactional state."""
        ...


class SessionEnd(Protocol):
    """Our end of a session."""

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer ended the session; ``None`` if the peer gave no error."""
        ...

    def attach_sender(self, attach: Attach, owner: LinkHandler) -> SenderEnd:
        """Attach a link to send on."""
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
        """Attach a link to receive on, for messages of so many bytes; ``overdraft`` messages without credit are no
        reason to end anything, ``None``: any number. Larger messages than ``pieces_over`` are offered in pieces."""
        ...

    def end(self) -> None:
        """End the session. A second call does nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The settings of an engine.

    Args:
        max_frame_size: bytes of the largest frame that is accepted.
        channel_max: the highest channel number.
        idle_timeout: seconds of silence after which the peer counts as dead, or ``None``.
        trace: log every frame at DEBUG, with so many bytes of its payload (``amqp.traceFrames``); SASL frames, which
            carry secrets, are not among them. ``None``: log none.
        trace_bytes: log all bytes at DEBUG but those of the SASL layer (``transport.traceBytes``).
    """

    max_frame_size: int
    channel_max: int
    idle_timeout: float | None = None
    trace: int | None = None
    trace_bytes: bool = False


class AmqpEngine(ABC):
    """One AMQP connection without a socket: the byte contract (``spi.engine.Engine``), SASL, and how it ends.

    Args:
        listener: gets the connection's events.
        sasl: makes the login for a stream that is encrypted or not; ``None`` for no SASL layer.
        options: the settings of the connection.
    """

    name: str
    """What the metadata of a connection call it."""

    def __init__(
        self, listener: EngineListener, sasl: Callable[[bool], SaslClient] | None, options: EngineOptions
    ) -> None:
        self._listener = listener
        self._make_sasl = sasl
        self._sasl: SaslClient | None = None
        self._ready = False
        self.failed: JMSException | None = None
        self.stream: Stream | None = None
        self._trace_bytes = options.trace_bytes

    # -- what an engine is --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def remote(self) -> Open:
        """The peer's Open; empty until it is here."""

    @property
    @abstractmethod
    def peer_frame_size(self) -> int:
        """Bytes of the largest frame that the peer takes, once its Open is here; 0 = any."""

    @abstractmethod
    def open(self, description: Open) -> None:
        """Send Open."""

    @abstractmethod
    def begin(self, owner: SessionHandler) -> SessionEnd:
        """Begin a session."""

    @abstractmethod
    def barrier(self) -> None:
        """Let what was asked for so far become frames before what comes next."""

    @abstractmethod
    def nudge(self) -> None:
        """Send an empty frame (AMQP 1.0 2.3.1): it says nothing, and makes the peer look at its connection."""

    @abstractmethod
    def close_connection(self) -> None:
        """Send the Close frame."""

    @abstractmethod
    def tick(self, now: float) -> float | None:
        """Keep the idle time-outs of both sides (AMQP 1.0 2.4.5)."""

    @abstractmethod
    def _bind(self) -> None:
        """SASL is over."""

    @abstractmethod
    def _feed(self, data: bytes) -> None:
        """Take bytes of the peer behind SASL and handle every event this causes."""

    @abstractmethod
    def _take(self) -> bytes:
        """Return the next bytes for the peer, ``b""`` when there are none."""

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
            self._feed(data)
        self.flush()

    def data_to_send(self) -> bytes:
        """Return the next bytes for the peer, ``b""`` when there are none."""
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
        """Write what is pending."""
        if self.stream is not None:
            self.stream.flush()

    def pace(self, unwritten: int) -> None:
        """Read nothing more from the socket while so many bytes wait for the disk."""
        if self.stream is None or self.failed is not None:
            return
        if unwritten > MOST_UNWRITTEN:
            self.stream.pause()
        elif unwritten <= _FEW_UNWRITTEN:
            self.stream.resume()

    def apart(self, work: Callable[[], None]) -> None:
        """Do what becomes possible without bytes of the peer, such as handing out a message that is now on the disk,
        and finish the burst that this is."""
        if self.failed is None:
            work()
            self._listener.on_burst_end()
            self.flush()

    def fail(self, error: JMSException) -> None:
        """End the connection with this error; later ones are ignored."""
        if self.failed is None:
            self.failed = error
            if self.stream is not None:
                self.stream.close()
            self._listener.on_failure(error)

    def abort(self, error: BaseException) -> None:
        """End the connection without telling the peer or the listener."""
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

    def _opened(self) -> None:
        """The peer's Open is here."""
        self._listener.on_remote_open()
        if self.stream is not None:
            self.stream.retick()  # now the peer's idle time-out is known
