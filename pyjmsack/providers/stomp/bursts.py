"""Cuts the bytes that wait to be sent into parts of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

__all__ = ["Bursts"]

Answer = Callable[["BaseException | None"], None]

_BURST = 1 << 20
"""The largest number of bytes that are sent at once if more bytes wait. While the peer does not read, very many bytes
may wait. Joining all of them would take long and double their memory."""


class Bursts:
    """The frames that were taken from the output of an engine, and the callbacks of frames without a receipt."""

    def __init__(self) -> None:
        self._pieces: deque[bytes | memoryview] = deque()
        self._waiting: list[Answer] = []
        """The callbacks of the frames that were not taken from the output yet."""
        self._going: list[Answer] = []
        """The callbacks of the frames that were taken, to be called when the last piece has left."""

    def __bool__(self) -> bool:
        """Whether there are more bytes."""
        return bool(self._pieces)

    def expect(self, left: Answer) -> None:
        """Call ``left(None)`` when all frames that are in the output now have left."""
        self._waiting.append(left)

    def take_callbacks(self) -> None:
        """Note that all frames of the output are being taken, so that later frames do not delay their callbacks."""
        self._going, self._waiting = self._waiting, []

    def begin(self, pieces: Sequence[bytes]) -> bytes:
        """Take frames, and return the first bytes of them. There must be no bytes left."""
        if sum(map(len, pieces)) > _BURST:
            self._pieces.extend(pieces)
            return self.next()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def next(self) -> bytes:
        """Return the next bytes. A larger piece is cut."""
        pieces, burst, room = self._pieces, [], _BURST
        while pieces and room > 0:
            piece = pieces.popleft()
            if len(piece) > room:
                view = memoryview(piece)
                pieces.appendleft(view[room:])
                piece = view[:room]
            burst.append(piece)
            room -= len(piece)
        return b"".join(burst)

    def call_back(self) -> None:
        """Call the callbacks, if the last piece has left."""
        if self._going and not self._pieces:
            going, self._going = self._going, []
            for left in going:
                left(None)

    def give_up(self) -> list[Answer]:
        """Forget all, because the connection is over. Return the callbacks."""
        left = [*self._going, *self._waiting]
        self._going.clear()
        self._waiting.clear()
        self._pieces.clear()
        return left
