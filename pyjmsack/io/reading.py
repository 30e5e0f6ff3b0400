"""Reads the body of a message that is being sent, on a thread of its own: no disk, and no code of a user, holds up the
loop (S168)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from traceback import format_exception_only

from pyjmsack.errors import JMSException
from pyjmsack.message import BodySource
from pyjmsack.spi.engine import Piece

__all__ = ["BodyReading"]


class BodyReading:
    """One reading of one body; see :class:`pyjmsack.spi.engine.Reading`.

    The thread ends with the reading. It holds one piece of the body at a time. An iterator that never returns keeps
    its thread, which does not keep the process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, source: BodySource) -> None:
        self._loop = loop
        self._source = source
        self._asked: SimpleQueue[Piece | None] = SimpleQueue()
        self._begun = self._closed = False

    def ask(self, answer: Piece) -> None:
        """Read the next piece, then call ``answer`` on the loop."""
        self._asked.put(answer)
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._run, name="pyjmsack-body", daemon=True).start()

    def close(self) -> None:
        """End the thread, once it has read what it reads now."""
        self._closed = True
        self._asked.put(None)

    def _give(self, answer: Piece, piece: bytes, error: JMSException | None) -> None:
        if not self._closed:
            answer(piece, error)

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        pieces: Iterator[bytes] | None = None
        while (answer := self._asked.get()) is not None:
            piece, failure = b"", None
            try:
                pieces = self._source.pieces() if pieces is None else pieces
                piece = next(pieces)
            except BaseException as error:  # an iterator of a user may raise anything, and the sends behind it wait
                failure = self._failure(error)
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                self._loop.call_soon_threadsafe(self._give, answer, piece, failure)
        pieces = None  # closes the file

    def _failure(self, error: BaseException) -> JMSException:
        if isinstance(error, JMSException):
            return error
        cause = "".join(format_exception_only(error)).strip()  # works also for an error whose own text fails
        failure = JMSException(f"the body cannot be read from {self._source!r}: {cause}")
        failure.__cause__ = error
        return failure
