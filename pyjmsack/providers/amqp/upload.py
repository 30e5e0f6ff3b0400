"""One message whose body is read while it is sent (S168)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.engines import SenderEnd
from pyjmsack.spi.engine import Reading
from pyjmsack.spi.envelope import Outbound, StreamedPayload

__all__ = ["Upload"]


class Upload:
    """Reads pieces and writes them, one after the other.

    Args:
        outbound: the send. The caller of this class tells it of its end.
        payload: of the send.
        reading: of its body.
        flush: writes what is pending.
        over: called once, not from within the constructor: with ``None`` when the last piece is written, with an error
            when the body cannot be read; then the message has to be stopped.
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
        """Read the first piece; nothing leaves before it is here."""
        self._stream = link.stream(self.outbound, self._ask, state=state, settled=self.outbound.presettled)
        self._ask()

    @property
    def begun(self) -> bool:
        """Whether a part of it has left."""
        return not self._start

    def stop(self) -> None:
        """Take back what has left of it: the broker forgets the message."""
        self._reading.close()
        self._stream.abort()

    def forget(self) -> None:
        """The link is gone, and with it what has left."""
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
