"""The interfaces between a provider and ``io``: an engine takes and returns bytes, and says when it wants to be called
again.

With :class:`Connector`, a provider asks ``io`` for a stream or a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.message import BodySource
from pyjmsack.uri import BrokerUrl, Endpoint

__all__ = ["Connector", "Engine", "Piece", "Reading", "Spool", "Stream", "Timer", "loss"]

Piece = Callable[[bytes, "JMSException | None"], None]
"""A function that takes the next piece of a body, or the error because of which there is no piece."""


class Engine(Protocol):
    """One connection of a protocol, without a socket and without a clock. Every method runs on the loop."""

    def connection_made(self, stream: Stream) -> None:
        """Begin the protocol, because the stream is open. The stream is encrypted if ``stream.encrypted``."""
        ...

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer."""
        ...

    def data_to_send(self) -> bytes:
        """Return bytes for the peer, or ``b""``; call again until empty."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """The stream is gone; ``None`` means the peer closed it in order, a JMS exception says what it means."""
        ...

    def tick(self, now: float) -> float | None:
        """Do the work that is due at ``now`` (seconds, monotonic). Return the next deadline, or ``None``."""
        ...


class Stream(Protocol):
    """One open byte stream."""

    encrypted: bool

    def flush(self) -> None:
        """Write the bytes that the engine has to send, unless the socket is full."""
        ...

    def retick(self) -> None:
        """Ask the engine soon for its next deadline again, because a deadline moved nearer."""
        ...

    def pause(self) -> None:
        """Read nothing from the peer until :meth:`resume`. A second call does nothing."""
        ...

    def resume(self) -> None:
        """Read again. Does nothing if the stream is not paused."""
        ...

    def close(self) -> None:
        """Write the remaining bytes, then close."""
        ...

    def abort(self) -> None:
        """Close now; unwritten bytes are dropped."""
        ...


class Timer(Protocol):
    """A pending call."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class Reading(Protocol):
    """A body that is being read, piece by piece, away from the loop."""

    def ask(self, answer: Piece) -> None:
        """Read the next piece; ``answer`` is called later, on the loop. Ask for one at a time, not after the last."""
        ...

    def close(self) -> None:
        """No more is wanted: a pending answer is never called."""
        ...


class Spool(Protocol):
    """The place of one large message that arrives, in a file that is written away from the loop. It goes with its last
    user."""

    @property
    def written(self) -> int:
        """Bytes that are in the file."""
        ...

    @property
    def unwritten(self) -> int:
        """Bytes of all messages of this connection that wait for the disk."""
        ...

    @property
    def error(self) -> JMSException | None:
        """Why no more can be written."""
        ...

    def write(self, data: bytes) -> None:
        """Append bytes, later. On the loop."""
        ...

    def finish(self) -> None:
        """No more bytes come; those that wait are still written. On the loop."""
        ...

    def drop(self) -> None:
        """Nobody wants the message any more, so its bytes may go. On the loop."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Return bytes that were written. From any thread.

        Raises:
            OSError: they cannot be read.
        """
        ...


class Connector(Protocol):
    """Gives a provider new streams, the time and timers. Used on the loop only."""

    def connect(self, endpoint: Endpoint, engine: Engine, failed: Callable[[Exception], None]) -> None:
        """Open a stream. Then call ``engine.connection_made``, or ``failed(error)`` if that did not work."""
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
        """Run ``work``, which takes long, on a thread that nobody waits for; ``then`` runs on the loop, whatever became
        of it."""
        ...

    def read(self, source: BodySource) -> Reading:
        """Return a reading of a body; nothing is read before it is asked for."""
        ...

    def spool(self, directory: str | None, told: Callable[[int], None]) -> Spool:
        """Return a place for a message, in a file in a directory (``None`` = where temporary files are). ``told`` is
        called on the loop after each write, also a failed one, with ``Spool.unwritten``."""
        ...


def loss(error: Exception | None) -> JMSException:
    """Return what a connection ends with when its stream does: ``None`` means that the peer closed it in order."""
    if isinstance(error, JMSException):
        return error
    lost = ConnectionLostException("the broker closed the connection" if error is None else f"connection lost: {error}")
    lost.__cause__ = error
    return lost
