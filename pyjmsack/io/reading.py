"""Reads the body of a message on a separate thread while the message is being sent. Therefore the loop never waits for
the disk or for code of the user (S168)."""

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

    The thread ends when the reading ends, and holds one piece of the body at a time. If an iterator of the user never
    returns, its thread stays, but does not prevent the end of the process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, source: BodySource) -> None:
        self._loop = loop
        self._source = source
        self._asked: SimpleQueue[Piece | None] = SimpleQueue()
        self._begun = self._closed = False

    def ask(self, answer: Piece) -> None:
        """Read the next piece, and then call ``answer`` on the loop."""
        self._asked.put(answer)
        if not self._begun:
            self._begun = True
            try:
                threading.Thread(target=self._run, name="pyjmsack-body", daemon=True).start()
            except RuntimeError as error:  # the system refuses new threads, and the sends behind this one wait
                self._loop.call_soon(self._give, answer, b"", self._failure(error))

    def close(self) -> None:
        """End the thread when it has read the present piece."""
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
            except BaseException as error:  # an iterator of a user may raise anything, and later sends wait for it
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
