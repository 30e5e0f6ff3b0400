"""The interfaces between a provider and ``io``.

An :class:`Engine` of the provider takes the bytes that arrive, returns the bytes to send, and says when ``io`` has to
call it again. A :class:`Connector` of ``io`` gives the provider streams, timers, threads and files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.message import BodySource
from pyjmsack.uri import BrokerUrl, Endpoint

__all__ = ["Connector", "Engine", "Piece", "Reading", "Spool", "Stream", "Timer", "loss"]

Piece = Callable[[bytes, "JMSException | None"], None]
"""A function that takes the next piece of a body. If the piece cannot be read, the second argument is the error."""


class Engine(Protocol):
    """The protocol of one connection, without a socket and without a clock. Every method runs on the loop."""

    def opening(self, stream: Stream) -> None:
        """Remember the stream of a WebSocket that still opens, because the caller may give up before it is open. Until
        :meth:`connection_made` the engine may only end the stream.
        """
        ...

    def connection_made(self, stream: Stream) -> None:
        """Begin the protocol, because the stream is open. ``stream.encrypted`` tells whether the stream uses TLS."""
        ...

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer."""
        ...

    def data_to_send(self) -> bytes:
        """Return some bytes to send to the peer. ``b""`` means that there are no more bytes for now."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the stream.

        Args:
            error: ``None`` means that the peer closed the stream in an orderly way. If the error is a JMS exception,
                the user gets it unchanged. Any other error becomes the cause of a :class:`ConnectionLostException`.
        """
        ...

    def tick(self, now: float) -> float | None:
        """Do the work that is due at ``now``. Return the next deadline, or ``None`` if there is none.

        Both times are seconds of the loop's monotonic clock.
        """
        ...


class Stream(Protocol):
    """One open byte stream."""

    encrypted: bool

    def flush(self) -> None:
        """Write the bytes that the engine has to send, until the buffer of the socket is full."""
        ...

    def retick(self) -> None:
        """Call :meth:`Engine.tick` soon, because the engine has an earlier deadline now."""
        ...

    def pause(self) -> None:
        """Stop reading from the peer until :meth:`resume` is called. A second call does nothing."""
        ...

    def resume(self) -> None:
        """Read from the peer again. Does nothing if the stream is not paused."""
        ...

    def close(self) -> None:
        """Write the remaining bytes, then close the stream. If the peer does not read, drop these bytes."""
        ...

    def abort(self) -> None:
        """Close the stream at once. Bytes that are not written yet are dropped."""
        ...


class Timer(Protocol):
    """A function call that is scheduled for later."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class Reading(Protocol):
    """A body that is read piece by piece on a thread, so that the loop does not wait for it."""

    def ask(self, answer: Piece) -> None:
        """Read the next piece, and call ``answer`` with it later, on the loop.

        Ask for one piece at a time, and for none after the last piece.
        """
        ...

    def close(self) -> None:
        """End the reading. An ``answer`` that is still pending is never called."""
        ...


class Spool(Protocol):
    """The place in a file for one large message that is arriving.

    A thread writes the file, so that the loop does not wait for the disk. The bytes can be read as long as something
    refers to this object.
    """

    @property
    def written(self) -> int:
        """The number of bytes of this message that are in the file."""
        ...

    @property
    def unwritten(self) -> int:
        """The number of bytes of all messages of this connection that wait for the disk."""
        ...

    @property
    def error(self) -> JMSException | None:
        """The error that made writing fail. ``None`` if bytes can still be written."""
        ...

    def write(self, data: bytes) -> None:
        """Let a thread append bytes. Called on the loop; the call does not wait for the disk."""
        ...

    def finish(self) -> None:
        """Remember that no more bytes come. Bytes that wait for the disk are still written. Called on the loop."""
        ...

    def drop(self) -> None:
        """Give up the message: its bytes are not needed any more. Called on the loop."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes that were written, from ``position`` in the message. Any thread may call this.

        Raises:
            OSError: the bytes cannot be read.
        """
        ...


class Connector(Protocol):
    """Gives a provider new streams, timers, threads and files. Used on the loop only."""

    def connect(self, endpoint: Endpoint, engine: Engine, failed: Callable[[Exception], None]) -> None:
        """Open a stream. Then call ``engine.connection_made``, or ``failed(error)`` if the stream cannot be opened."""
        ...

    def cancel(self) -> None:
        """Give up streams that are still being opened."""
        ...

    def for_url(self, url: BrokerUrl) -> Connector:
        """Return a new connector for another broker, with the transport options of that broker's URL."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` after ``delay`` seconds."""
        ...

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Run ``work``, which takes long, on a thread. Then run ``then`` on the loop, even if ``work`` raised."""
        ...

    def read(self, source: BodySource) -> Reading:
        """Return a ``Reading`` of the body, which reads nothing before :meth:`Reading.ask` is called."""
        ...

    def spool(self, directory: str | None, told: Callable[[int], None]) -> Spool:
        """Return a place for a message in a file.

        Args:
            directory: the directory of the file. ``None`` means the directory for temporary files.
            told: called on the loop with ``Spool.unwritten`` after one or several writes, even if a write failed.
        """
        ...


def loss(error: Exception | None) -> JMSException:
    """Return the error of a connection whose stream ended.

    Args:
        error: the error of the stream. ``None`` means that the peer closed the stream in an orderly way.
    """
    if isinstance(error, JMSException):
        return error
    lost = ConnectionLostException("the broker closed the connection" if error is None else f"connection lost: {error}")
    lost.__cause__ = error
    return lost
