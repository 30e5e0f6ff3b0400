"""Sends one message while its body is being read (S168)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.engines import SenderEnd
from pyjmsack.spi.engine import Reading
from pyjmsack.spi.envelope import Outbound, StreamedPayload

__all__ = ["Upload"]


class Upload:
    """Sends one message piece by piece. An upload reads a piece of the body, writes this piece, and then reads the next
    piece.

    Args:
        outbound: the send. This class does not call its ``done``.
        payload: the encoded message, whose body is not read yet.
        reading: the reading of the body.
        flush: writes the bytes that wait to be sent.
        over: called once, but never from the constructor. Its argument is ``None`` when the last piece is written, or
            the error if the body cannot be read. After an error, the caller must call :meth:`stop`.
    """

    def __init__(
        self,
        outbound: Outbound,
        payload: StreamedPayload,
        reading: Reading,
        flush: Callable[[], None],
        over: Callable[[JMSException | None], None],
    ) -> None:
        self.outbound = outbound
        self._start = payload.head + payload.mark
        self._left = payload.body.length
        self._reading = reading
        self._flush = flush
        self._over = over

    def begin(self, link: SenderEnd, state: bytes) -> None:
        """Read the first piece. No part of the message is sent before the piece is read."""
        self._stream = link.stream(self.outbound, self._ask, state=state, settled=self.outbound.presettled)
        self._ask()

    @property
    def begun(self) -> bool:
        """Whether a part of the message was sent."""
        return not self._start

    def stop(self) -> None:
        """Abort the message. The broker then forgets the parts of the message that it has."""
        self._reading.close()
        self._stream.abort()

    def forget(self) -> None:
        """Stop reading the body, because the link ended. The broker forgets the parts of the message that it has."""
        self._reading.close()

    def _ask(self) -> None:
        self._reading.ask(self._take)

    def _take(self, piece: bytes, error: JMSException | None) -> None:
        if error is not None:
            self._over(error)
        else:
            self._left -= len(piece)
            start, self._start = self._start, b""
            self._stream.write(start + piece if start else piece, last=not self._left)
            if not self._left:
                self._reading.close()
                self._over(None)
        self._flush()
