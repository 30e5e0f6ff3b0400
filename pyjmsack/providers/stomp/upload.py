"""SEND frames whose body is read while they are being sent (S168)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.errors import JMSException
from pyjmsack.message import BodySource
from pyjmsack.spi.engine import Reading
from pyjmsack.spi.envelope import StreamedPayload

__all__ = ["Upload", "Uploads"]

Answer = Callable[["BaseException | None"], None]


class Upload:
    """A frame that is sent in pieces. In STOMP, nothing can be sent between the pieces of a frame, not even a
    heart-beat, and a frame cannot be taken back.

    Args:
        start: the first line, and the header lines that the connection adds.
        payload: the rest of the frame.
        receipt: the id of the RECEIPT (confirmation) that the frame asks for. ``None`` means that the frame asks for no
            RECEIPT.
        answered: called with the error if the body cannot be read. If the frame asks for no RECEIPT, it is also called
            when the whole frame was sent.
    """

    def __init__(self, start: bytes, payload: StreamedPayload, receipt: bytes | None, answered: Answer) -> None:
        self.receipt = receipt
        self.answered = answered
        self.body = payload.body
        self.begun = False
        """Whether a part of the frame was taken and may have been sent."""
        self.failed: JMSException | None = None
        """The error that prevents reading the body. ``None`` if there is no error."""
        self._start = start + payload.head + payload.mark
        self._tail = payload.tail
        self._left = payload.body.length
        self._ready = b""

    def take(self) -> bytes:
        """Return the bytes of the frame that are ready to be sent, or ``b""`` if no bytes are ready."""
        ready, self._ready = self._ready, b""
        self.begun = self.begun or bool(ready)
        return ready

    def add(self, piece: bytes, error: JMSException | None) -> None:
        """Add the next piece of the body, or the error that prevents reading it."""
        self.failed = error
        self._left -= len(piece)
        self._ready = self._start + piece if self._left else self._start + piece + self._tail
        self._start = b""

    @property
    def over(self) -> bool:
        """Whether all bytes of the frame were taken."""
        return self.begun and not self._left and not self._ready


class Uploads:
    """The frames of one connection that are sent in pieces.

    Args:
        read: begins to read a body.
        arrived: called when more bytes of a frame are ready, or when the body of a frame cannot be read.
    """

    def __init__(self, read: Callable[[BodySource], Reading], arrived: Callable[[Upload], None]) -> None:
        self.waiting: list[Upload] = []
        """The frames that wait, because other frames must be sent before them."""
        self.current: Upload | None = None
        """The frame that is being sent now. ``None`` if there is none."""
        self._read = read
        self._arrived = arrived
        self._reading: Reading | None = None
        self._asked = False

    def begin(self, upload: Upload) -> None:
        """Begin to send a frame, because all earlier frames were sent."""
        self.waiting.remove(upload)
        self.current, self._reading = upload, self._read(upload.body)

    def take(self, upload: Upload) -> bytes:
        """Return the bytes of the present frame that are ready. If no bytes are ready, ask for the next piece of the
        body."""
        data = upload.take()
        if upload.over:
            self.end()
        elif not data and not self._asked and self._reading is not None:
            self._asked = True
            self._reading.ask(self._take)
        return data

    def _take(self, piece: bytes, error: JMSException | None) -> None:
        upload = self.current
        assert upload is not None  # a reading gives nothing after it was closed
        self._asked = False
        upload.add(piece, error)
        if error is not None:
            self.end()
        self._arrived(upload)

    def end(self) -> None:
        """End the upload of the present frame, because no more bytes of this frame are needed."""
        if self._reading is not None:
            self._reading.close()
        self.current = self._reading = None
        self._asked = False

    def give_up(self) -> list[Answer]:
        """Forget all frames, because the connection is over. Return the callbacks of the frames that ask for no
        receipt.
        """
        waiting = [upload.answered for upload in [self.current, *self.waiting] if upload and upload.receipt is None]
        self.end()
        self.waiting.clear()
        return waiting
