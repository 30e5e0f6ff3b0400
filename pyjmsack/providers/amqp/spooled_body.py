"""The body of a large received message, which is in a file (S168).

The limit on the size of a message is an option, ``jms.maxMessageSize``, in ``uri/connection.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyjmsack.message import PIECE, BodySource
from pyjmsack.spi.engine import Spool

__all__ = ["SpooledBody"]


class SpooledBody(BodySource):
    """The body of one received message. Several threads may read it at the same time.

    Args:
        spool: the place in a file where the whole message is.
        spans: the parts of the message that make up the body, each as its position and its length in bytes.
    """

    def __init__(self, spool: Spool, spans: Sequence[tuple[int, int]]) -> None:
        self._spool = spool
        self._spans = spans
        self.length = sum(size for _, size in spans)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces. :meth:`.BodySource.pieces` explains this."""
        if not self.length:
            yield b""
        for begin, size in self._spans:
            for offset in range(0, size, PIECE):
                yield self._spool.read(begin + offset, min(PIECE, size - offset))

    def __repr__(self) -> str:
        return f"received body of {self.length:,} bytes"
