"""Keeps large received messages in files. A thread writes the files, and therefore the loop never waits for the disk
(S168)."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from typing import IO, Final
from weakref import WeakSet, finalize

from pyjmsack.errors import JMSException

__all__ = ["Spool", "Spooler"]

_ENOUGH: Final = 1 << 26
"""The size in bytes from which a file takes no further message. Messages share files, because one file descriptor for
each message would be too many. But a file takes room on the disk until no message in it is used any more."""
_SMALL: Final = 1 << 12
"""The size in bytes below which a piece of a message is joined to the piece before it while both wait for the disk. The
list of what waits would otherwise take many times the memory of small pieces, and the sender chooses their size."""


class SpoolFile:
    """A temporary file without a name. The system removes the file even if the process is killed.

    A finalizer closes the file when no message in it is used any more. The method ``__del__`` cannot do this, because
    weak references to the file stay valid until ``__del__`` has returned, and other threads run in the meantime. So
    if ``__del__`` closed the file, the loop could take the closed file from a :class:`Spooler`, and a consumer would
    end with an error.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._using = threading.Lock()
        """A lock for the position of the file, because the thread that writes and all threads that read share this
        position."""
        self.end = 0
        """The position in the file at which the next message begins."""

    def write(self, position: int, data: bytes | bytearray) -> None:
        """Write bytes at a position. This method waits for the disk, and is therefore called on a separate thread.

        Raises:
            OSError: the directory cannot be used, or the disk is full.
        """
        with self._using:
            if self._file is None:
                # no ``with`` block, because the file lives as long as somebody may read it
                self._file = tempfile.TemporaryFile(prefix="pyjmsack-", dir=self._directory, buffering=0)  # noqa: SIM115
                finalize(self, self._file.close).atexit = False
            self._file.seek(position)
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes from a position, or fewer bytes if the file ends before. Any thread may call this
        method."""
        with self._using:
            if self._file is None:
                return b""
            self._file.seek(position)
            return self._file.read(size)


class Spool:
    """The place of one message in a file. :class:`pyjmsack.spi.engine.Spool` explains the methods."""

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
        """The number of bytes that still wait for the disk. All messages of this connection count together."""
        return self._spooler.unwritten

    def write(self, data: bytes) -> None:
        """Let a thread append bytes. This method is called on the loop and does not wait."""
        if data and not self.dropped and self.error is None:
            position, self._size = self._begin + self._size, self._size + len(data)
            self._spooler.write(self, position, data)

    def finish(self) -> None:
        """Remember that no more bytes come, so that another message may use the rest of the file. This method is called
        on the loop."""
        self._finished = True
        self._file.end = self._begin + self._size
        self._spooler.give_back(self._file)
        self._forget()

    def drop(self) -> None:
        """Give up the message and free its place in the file. This method is called on the loop."""
        self.dropped = True
        self._spooler.give_back(self._file)

    def read(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes that were written, from ``position`` in the message. Any thread may call this method.

        Raises:
            OSError: the bytes cannot be read.
        """
        data = self._file.read(self._begin + position, size)
        if len(data) < size:
            raise OSError(f"the file of a large message is damaged: {size - len(data):,} bytes are missing at its end")
        return data

    def tell(self, size: int) -> None:
        """Handle the end of a write of ``size`` bytes, which may have failed. This method is called on the loop."""
        told = self._told
        if self.error is None:
            self.written += size
            self._forget()
        told(self.unwritten)

    def _forget(self) -> None:
        """Forget the function ``told`` when the whole message is in the file.

        Otherwise ``told`` would keep the consumer in memory for as long as the program keeps the message.
        """
        if self._finished and self.written == self._size:
            self._told = _nobody

    def put(self, position: int, data: bytes | bytearray) -> None:
        """Write bytes to the file. Do nothing after an error, or if the message was given up. This method is called on
        a thread."""
        if self.error is not None or self.dropped:
            return
        try:
            self._file.write(position, data)
        except Exception as error:  # OSError, or another error that the name of a directory can cause
            self.error = JMSException(
                f"a large message cannot be kept in a temporary file: {error}; amqp.spoolDirectory names the directory,"
                " and amqp.spoolOver=-1 keeps messages in memory"
            )
            self.error.__cause__ = error


def _nobody(unwritten: int) -> None:
    """Do nothing. When no more calls are needed, this function replaces ``told``, the function to call after a
    write."""


class Spooler:
    """The files of one connection. Only one thread at a time writes the files, so that a slow disk occupies only one
    thread.

    Args:
        elsewhere: ``elsewhere(work, then)`` runs ``work`` on a thread, and after that ``then`` on the loop.
    """

    def __init__(self, elsewhere: Callable[[Callable[[], None], Callable[[], None]], None]) -> None:
        self._elsewhere = elsewhere
        self._free: WeakSet[SpoolFile] = WeakSet()
        """The files that have room for another message, and that a message still uses."""
        self._waiting: list[tuple[Spool, int, bytes | bytearray]] = []
        self._growing: dict[Spool, bytearray] = {}
        """For each message the joined small pieces to which its next small piece is added. A message whose last waiting
        piece is large is not in this table."""
        self._busy = False
        self.unwritten = 0
        """The number of bytes that still wait for the disk."""

    def open(self, directory: str | None, told: Callable[[int], None]) -> Spool:
        """Return a place for a message. After one or several writes, ``told`` is called on the loop with the number of
        bytes that still wait for the disk."""
        try:
            file = self._free.pop()
        except KeyError:
            file = SpoolFile(directory)
        return Spool(self, file, told)

    def give_back(self, file: SpoolFile) -> None:
        """Let another message use the rest of a file, unless the file is too large already."""
        if file.end < _ENOUGH:
            self._free.add(file)

    def write(self, spool: Spool, position: int, data: bytes) -> None:
        """Let a thread write bytes of a message at a position of its file."""
        self.unwritten += len(data)
        if len(data) >= _SMALL:
            self._growing.pop(spool, None)
            self._waiting.append((spool, position, data))
        elif spool in self._growing:
            self._growing[spool] += data
        else:
            self._growing[spool] = joined = bytearray(data)
            self._waiting.append((spool, position, joined))
        if not self._busy:
            self._go_on()

    def _go_on(self) -> None:
        batch, self._waiting = self._waiting, []
        self._growing.clear()
        self._busy = True

        def work() -> None:
            for spool, position, data in batch:
                spool.put(position, data)

        def then() -> None:
            self._busy = False
            sizes: dict[Spool, int] = {}
            for spool, _, data in batch:
                sizes[spool] = sizes.get(spool, 0) + len(data)
            self.unwritten -= sum(sizes.values())
            if self._waiting:
                self._go_on()
            for spool, size in sizes.items():  # once for each message, because a message may have very many pieces
                spool.tell(size)

        self._elsewhere(work, then)
