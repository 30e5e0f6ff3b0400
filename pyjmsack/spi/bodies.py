"""The body of a large message that was received, in a file (S168)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyjmsack.message import PIECE, BodySource
from pyjmsack.spi.engine import Spool

__all__ = ["SpooledBody"]


class SpooledBody(BodySource):
    """The body of one received message. Any thread may read it, and several at a time.

    Args:
        spool: has the whole message.
        spans: where the body is in it, as beginnings and lengths.
    """

    def __init__(self, spool: Spool, spans: Sequence[tuple[int, int]]) -> None:
        self._spool = spool
        self._spans = spans
        self.length = sum(size for _, size in spans)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body; see :meth:`.BodySource.pieces`."""
        if not self.length:
            yield b""
        for begin, size in self._spans:
            for offset in range(0, size, PIECE):
                yield self._spool.read(begin + offset, min(PIECE, size - offset))

    def __repr__(self) -> str:
        return f"received body of {self.length:,} bytes"
