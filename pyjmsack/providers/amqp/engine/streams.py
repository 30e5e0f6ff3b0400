"""Sends a message piece by piece while its sender produces the pieces (AMQP 1.0 2.6.14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjmsack.providers.amqp.engine.fastpath import TransferHeads

__all__ = ["OutgoingStream"]


class OutgoingStream:
    """One message that is sent piece by piece. :meth:`.SenderLink.stream` makes the object.

    A piece waits for the session's window as whole messages do. The engine asks for the next piece when the present
    piece and all other output have gone to the socket. Therefore only one piece of the message is in memory, and
    messages of other links are sent in between. Nothing else may be sent on the same link before the last piece is
    written.

    Args:
        context: the engine returns this object with the outcome, if an outcome is wanted.
        wants: called when the next piece may be written.
    """

    __slots__ = (
        "_aborted",
        "_begun",
        "_context",
        "_delivery_id",
        "_heads",
        "_last",
        "_over",
        "_piece",
        "_session",
        "_state",
        "_waiting",
        "_wants",
        "_written",
        "link",
        "settled",
    )

    def __init__(
        self,
        session: Any,
        link: Any,
        heads: TransferHeads,
        context: Any,
        wants: Callable[[], None],
        state: bytes,
        settled: bool,
    ) -> None:
        self.link = link
        self._session = session
        self._heads = heads
        self._context = context
        self._wants = wants
        self._state = state
        self.settled = settled
        self._delivery_id: int | None = None
        self._piece = memoryview(b"")
        self._waiting = False
        """Whether this message is in the session's queue of outgoing messages."""
        self._written = self._begun = self._last = self._aborted = False
        self._over = False
        """Whether the last frame of the message has been made."""

    def write(self, piece: bytes, *, last: bool) -> None:
        """Send a piece. Call this only after the previous piece was sent. If the link is detached, this method does
        nothing."""
        if self.link.detached:
            return
        if not self._written:
            self._written = True
            if not self.settled:
                self.link.expect(self, self._context)
        self._piece, self._last = memoryview(piece), last
        self._queue()

    def abort(self) -> None:
        """Take the message back. The peer then forgets the pieces that it has. After the last frame, this method does
        nothing."""
        if self.link.detached or self._over:
            return
        if not self._written:
            self.link.unsent(self)
            self._over = True
            return
        self.link.forget(self, self._delivery_id)
        self._aborted, self._piece = True, memoryview(b"")
        self._queue()

    def _queue(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._session.queue(self)

    def frame(self, max_frame_size: int) -> tuple[bytes, memoryview]:
        """Return the next transfer as two parts: the bytes before its payload, and the payload."""
        begun, self._begun = self._begun, True
        if not begun:
            self._delivery_id = self.link.number(self)
        if begun and self._aborted:
            self._over = True
            return self._heads.aborted(), memoryview(b"")
        overhead = len(self._head(begun, True, 0))
        piece = self._piece[: max_frame_size - overhead]
        self._piece = self._piece[len(piece) :]
        self._over = self._last and not self._piece and not self._aborted
        return self._head(begun, not self._over, len(piece)), piece

    def _head(self, begun: bool, more: bool, size: int) -> bytes:
        if begun:
            return self._heads.following(more, size)
        assert self._delivery_id is not None  # frame() has given the message its number
        return self._heads.first(self._delivery_id, self.settled, self._state, more, size)

    @property
    def done(self) -> bool:
        """Whether the message has nothing to send now."""
        return self._over or not (self._piece or self._aborted)

    def left(self) -> None:
        """Go on after a piece was sent: ask for the next piece, or finish the message if this piece was the last
        one."""
        self._waiting = False
        if self._over:
            self.link.sent(self)
        else:
            self._session.connection.when_empty(self._wants)
