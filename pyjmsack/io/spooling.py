"""Keeps the bodies of large messages that arrive in files, which are written away from the loop (S168)."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from typing import IO, Final
from weakref import WeakSet

from pyjmsack.errors import JMSException

__all__ = ["Spool", "Spooler"]

_ENOUGH: Final = 1 << 26
"""Bytes after which a file takes no further body. Bodies share files, because a descriptor for each would be too many;
a file takes room on the disk until its last body is forgotten."""


class SpoolFile:
    """A file without a name: nothing of it stays behind, whatever ends the process. It goes with its last reader."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._using = threading.Lock()
        """The file has one position, for the thread that writes and for all readers."""
        self.end = 0
        """Where the next body begins."""

    def write(self, position: int, data: bytes) -> None:
        """Write bytes; on a thread.

        Raises:
            OSError: the directory cannot be used, or the disk is full.
        """
        with self._using:
            if self._file is None:
                # no context, because the file lives as long as somebody may read it
                self._file = tempfile.TemporaryFile(prefix="pyjmsack-", dir=self._directory, buffering=0)  # noqa: SIM115
            self._file.seek(position)
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a position; on any thread. Fewer at the end of the file."""
        with self._using:
            if self._file is None:
                return b""
            self._file.seek(position)
            return self._file.read(size)

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()


class Spool:
    """The place of one message in a file; see :class:`pyjmsack.spi.engine.Spool`."""

    def __init__(self, spooler: Spooler, file: SpoolFile, told: Callable[[int], None]) -> None:
        self._spooler = spooler
        self._file = file
        self._begin = file.end
        self._size = 0
        self._told = told
        self._finished = False
        self.written = 0
        self.error: JMSException | None = None
        self.dropped = False

    @property
    def unwritten(self) -> int:
        """Bytes of all messages of this connection that wait for the disk."""
        return self._spooler.unwritten

    def write(self, data: bytes) -> None:
        """Append bytes, later. On the loop."""
        if not self.dropped and self.error is None:
            position, self._size = self._begin + self._size, self._size + len(data)
            self._spooler.write(self, position, data)

    def finish(self) -> None:
        """No more bytes come. On the loop."""
        self._finished = True
        self._file.end = self._begin + self._size
        self._spooler.give_back(self._file)
        self._forget()

    def drop(self) -> None:
        """Nobody wants the message: its place is free again. On the loop."""
        self.dropped = True
        self._spooler.give_back(self._file)

    def read(self, position: int, size: int) -> bytes:
        """Return bytes that were written. On any thread.

        Raises:
            OSError: they cannot be read.
        """
        data = self._file.read(self._begin + position, size)
        if len(data) < size:
            raise OSError(f"the file of the message ends {size - len(data):,} bytes too early")
        return data

    def tell(self, size: int) -> None:
        """So many more bytes were written, or could not be. On the loop."""
        told = self._told
        if self.error is None:
            self.written += size
            self._forget()
        told(self.unwritten)

    def _forget(self) -> None:
        """Forget whom to tell, when all of the message is in the file: the message may live longer than they."""
        if self._finished and self.written == self._size:
            self._told = _nobody

    def put(self, position: int, data: bytes) -> None:
        """Write bytes; on a thread. After an error, and when nobody wants them any more, do nothing."""
        if self.error is not None or self.dropped:
            return
        try:
            self._file.write(position, data)
        except Exception as error:  # beside OSError, what a name of a directory can cause
            self.error = JMSException(
                f"a large message cannot be kept in a temporary file: {error}; amqp.spoolDirectory names the directory,"
                " and amqp.spoolOver=-1 keeps messages in memory"
            )
            self.error.__cause__ = error


def _nobody(unwritten: int) -> None:
    """Nobody waits any more."""


class Spooler:
    """The files of one connection. One thread at a time writes them, so a slow disk holds up nobody else.

    Args:
        elsewhere: ``elsewhere(work, then)`` runs work on a thread, and then the other function on the loop.
    """

    def __init__(self, elsewhere: Callable[[Callable[[], None], Callable[[], None]], None]) -> None:
        self._elsewhere = elsewhere
        self._free: WeakSet[SpoolFile] = WeakSet()
        """Files with room for another body, as long as one of their bodies is in use."""
        self._waiting: list[tuple[Spool, int, bytes]] = []
        self._busy = False
        self.unwritten = 0
        """Bytes that wait for the disk."""

    def open(self, directory: str | None, told: Callable[[int], None]) -> Spool:
        """Return a place for a message. ``told`` is called on the loop after each write, with the bytes that
        wait."""
        try:
            file = self._free.pop()
        except KeyError:
            file = SpoolFile(directory)
        return Spool(self, file, told)

    def give_back(self, file: SpoolFile) -> None:
        """Let another message have the rest of a file."""
        if file.end < _ENOUGH:
            self._free.add(file)

    def write(self, spool: Spool, position: int, data: bytes) -> None:
        """Have bytes written."""
        self.unwritten += len(data)
        self._waiting.append((spool, position, data))
        if not self._busy:
            self._go_on()

    def _go_on(self) -> None:
        batch, self._waiting = self._waiting, []
        self._busy = True

        def work() -> None:
            for spool, position, data in batch:
                spool.put(position, data)

        def then() -> None:
            self._busy = False
            self.unwritten -= sum(len(data) for _, _, data in batch)
            if self._waiting:
                self._go_on()
            for spool, _, data in batch:
                spool.tell(len(data))

        self._elsewhere(work, then)
