"""Bodies that are not in memory: a file, or pieces that a caller makes. A send reads the body (S168)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, Any, BinaryIO, ClassVar, Final

from pyjmsack.errors import BodyConsumedException, IllegalStateException, MessageFormatException

__all__ = ["PIECE", "BodySource", "FileSource", "IterableSource", "OpenFileSource", "to_source"]

PIECE: Final = 1 << 18
"""The largest number of bytes of a body that are read at once."""


class BodySource:
    """The source of a body that is not in memory.

    Attributes:
        length: the number of bytes in the whole body. The number is known before the first byte is read, because both
            protocols send the length before the body.
    """

    repeatable: ClassVar[bool] = True
    """Whether the body can be read again, for example to repeat a send after a failover."""
    length: int
    used: bool = False
    """Whether a send began to read the body."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces, at least one piece. The pieces have ``length`` bytes together. Each call reads from
        the start.

        The last piece is yielded only after the whole body was checked. So the receiver gets no message if the check
        fails.

        Raises:
            MessageFormatException: the source has more or fewer bytes than ``length``, or was changed while it was
                read.
            OSError: the source cannot be read.
        """
        raise NotImplementedError


class FileSource(BodySource):
    """A file, given by its path. Each call of ``pieces`` opens the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.length = os.stat(path).st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the file's bytes; see :meth:`BodySource.pieces`."""
        self.used = True
        with open(self._path, "rb") as file:
            yield from _read(file, self.length, self)

    def __repr__(self) -> str:
        return f"file {self._path!r}"


class OpenFileSource(BodySource):
    """An open, seekable binary file. The body is the bytes from the present position of the file to its end. Only one
    send at a time may use the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._start = file.tell()
        self.length = max(0, file.seek(0, os.SEEK_END) - self._start)
        file.seek(self._start)
        self._busy = False

    def pieces(self) -> Iterator[bytes]:
        """Yield the file's bytes; see :meth:`BodySource.pieces`.

        Raises:
            IllegalStateException: another send is reading the file.
        """
        if self._busy:
            raise IllegalStateException(
                f"{self!r} is being read for another send, and a file has only one position; wait for that send, or"
                " give a path instead of an open file"
            )
        self._busy = self.used = True
        try:
            self._file.seek(self._start)
            yield from _read(self._file, self.length, self)
        finally:
            self._busy = False

    def __repr__(self) -> str:
        return f"open file {getattr(self._file, 'name', None)!r}"


class IterableSource(BodySource):
    """An iterable that gives pieces of bytes. The iterable can be read only once."""

    repeatable = False

    def __init__(self, pieces: Iterable[Any], length: int) -> None:
        self._pieces: Iterable[Any] | None = pieces
        self.length = length

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces of at most :data:`PIECE`; see :meth:`BodySource.pieces`.

        Raises:
            BodyConsumedException: the iterable was read before.
        """
        given, self._pieces = self._pieces, None
        self.used = True
        if given is None:
            raise BodyConsumedException(
                f"{self!r} can be read only once, and was read already; for a body that is sent again, give a path"
            )
        return self._cut(given)

    def _cut(self, given: Iterable[Any]) -> Iterator[bytes]:
        gathered, left = bytearray(), self.length
        for piece in given:
            if not isinstance(piece, (bytes, bytearray, memoryview)):
                raise MessageFormatException(f"{self!r}: expected pieces of bytes, not {type(piece).__name__}")
            for start in range(0, len(piece), PIECE):
                gathered += piece[start : start + PIECE]
                if len(gathered) > left:
                    raise MessageFormatException(f"{self!r} gave more bytes than its length of {self.length:,}")
                if PIECE <= len(gathered) < left:
                    left -= len(gathered)
                    yield bytes(gathered)
                    gathered.clear()
        if len(gathered) != left:
            raise MessageFormatException(f"{self!r} ended too early: {left - len(gathered):,} bytes are missing")
        yield bytes(gathered)

    def __repr__(self) -> str:
        return f"iterable of {self.length:,} bytes"


def to_source(data: object, length: int | None) -> BodySource | None:
    """Return a source that reads ``data``, or ``None`` if ``data`` is plain bytes.

    Args:
        data: the body that the caller gave: bytes, a path, an open binary file or an iterable of bytes.
        length: the number of bytes in the body. It must be given for an iterable, and for a file that cannot seek.

    Raises:
        MessageFormatException: ``data`` cannot be a body, or the length is missing or wrong.
        OSError: the file cannot be read, for example because it does not exist.
    """
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        if length is not None:
            raise MessageFormatException(
                "length: expected None, because the length of these bytes is known; only an iterable needs a length"
            )
        return None
    if isinstance(data, str):
        raise MessageFormatException("data: expected bytes, a pathlib.Path, a binary file or an iterable, not str")
    source = _to_file(data)
    if source is not None:
        if length is not None and length != source.length:
            raise MessageFormatException(f"length: {source!r} has {source.length:,} bytes, not {length!r}")
        return source
    if not isinstance(data, Iterable):
        raise MessageFormatException(
            f"data: expected bytes, a pathlib.Path, a binary file or an iterable, not {type(data).__name__}"
        )
    if isinstance(length, bool) or not isinstance(length, int) or length < 0:
        raise MessageFormatException(
            f"length {length!r}: an iterable, or a file that cannot seek, needs its number of bytes, because the client"
            " sends this number before the bytes"
        )
    return IterableSource(_blocks(data) if hasattr(data, "read") else data, length)


def _to_file(data: Any) -> BodySource | None:
    if isinstance(data, os.PathLike):
        return FileSource(os.fsdecode(data))
    if hasattr(data, "read") and hasattr(data, "seekable") and data.seekable():
        if hasattr(data, "encoding"):
            raise MessageFormatException("data: the file is open for text; open it with mode 'rb'")
        return OpenFileSource(data)
    return None


def _blocks(file: Any) -> Iterator[bytes]:
    """Yield the pieces that a pipe or a socket gives. A loop over the file would give lines, which may be too long."""
    while block := file.read(PIECE):
        yield block


def _read(file: IO[bytes] | BinaryIO, length: int, source: BodySource) -> Iterator[bytes]:
    before = _stamp(file)
    left = length
    while True:
        piece = file.read(min(PIECE, left)) if left else b""
        left -= len(piece)
        if left and not piece:
            raise MessageFormatException(f"{source!r} became shorter while it was sent: {left:,} bytes are missing")
        if not left:
            break
        yield piece
    if file.read(1) or _stamp(file) != before:
        raise MessageFormatException(f"{source!r} was changed while it was sent; the message was not sent")
    yield piece


def _stamp(file: IO[bytes] | BinaryIO) -> tuple[int, int] | None:
    """Return the values that change when somebody writes to the file. Return ``None`` for a file in memory."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):  # a file without a number raises io.UnsupportedOperation, which is an OSError
        return None
    return status.st_size, status.st_mtime_ns
