"""Writes a body to a file, or cuts a body into pieces (S168)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from itertools import islice
from secrets import token_hex
from typing import IO, Any

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.source import PIECE, BodySource

__all__ = ["Chunks", "check_target", "save"]

_AT_ONCE = 8
"""The number of pieces that a thread reads at once for ``async for``. These pieces have 2 MiB together."""


class Chunks:
    """The body of a message in pieces of at most 256 KiB, for ``for`` and for ``async for``.

    Each loop begins at the start of the body. The body of a message that ``pyjmsack.aio`` received may be in a file.
    With ``async for``, a thread reads this file, so that the event loop does not wait for the disk.

    Args:
        body: the bytes, or the source that gives the bytes.
        away: runs a function on a thread. If it is ``None``, the calling thread reads the source.
    """

    __slots__ = ("_away", "_body")

    def __init__(self, body: bytes | BodySource, away: Callable[[Callable[[], Any]], Any] | None = None) -> None:
        self._body = body
        self._away = away if isinstance(body, BodySource) else None

    def __iter__(self) -> Iterator[bytes]:
        body = self._body
        if isinstance(body, BodySource):
            return body.pieces()
        return (body[start : start + PIECE] for start in range(0, len(body), PIECE))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        while True:
            read = partial(_some, pieces)
            found = read() if self._away is None else self._away(read)
            some: list[bytes] = await found if isawaitable(found) else found
            if not some:
                return
            for piece in some:
                yield piece


def _some(pieces: Iterator[bytes]) -> list[bytes]:
    """Return the next pieces. One call takes several pieces, because the use of a thread costs as much as a read."""
    return [piece for piece in islice(pieces, _AT_ONCE) if piece]


def check_target(target: object) -> None:
    """Check that a body can be saved to ``target``.

    Raises:
        MessageFormatException: ``target`` is neither a path nor a binary file.
    """
    if isinstance(target, os.PathLike):
        return
    if isinstance(target, str):
        raise MessageFormatException("save_to: expected a pathlib.Path or a binary file, not str")
    if not hasattr(target, "write"):
        raise MessageFormatException(f"save_to: expected a pathlib.Path or a binary file, not {type(target).__name__}")
    if hasattr(target, "encoding"):
        raise MessageFormatException("save_to: the file is open for text; open it with mode 'wb'")


def save(body: bytes | BodySource, target: os.PathLike[Any] | IO[bytes]) -> int:
    """Write a body, and return the number of its bytes.

    A body for a path is first written to a temporary file in the same directory. So a failure leaves an older file at
    the path as it was.

    Raises:
        OSError: the file cannot be written.
    """
    if not isinstance(target, os.PathLike):
        return _copy(body, target)
    path = os.fsdecode(target)
    # the temporary file is in the same directory, so that one step can move it to its place
    part = os.path.join(os.path.dirname(path), f".pyjmsack-{token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            size = _copy(body, file)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    return size


def _copy(body: bytes | BodySource, file: IO[bytes]) -> int:
    size = 0
    for piece in Chunks(body):
        rest = memoryview(piece)
        while rest:  # a file without a buffer may take fewer bytes than it was given
            rest = rest[file.write(rest) :]
        size += len(piece)
    return size
