"""Writes a ledger while a program sends and receives messages.

Each record is a line. The line is in a memory-mapped file before the program goes on. A killed process loses no line,
because the kernel keeps the mapped pages. A separate thread turns a full file into a Parquet part.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import uuid
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, parquet

from pyjmsack.errors import JMSException
from pyjmsack.ledger.schema import SCHEMAS, parse_lines
from pyjmsack.loggers import get_logger

__all__ = ["Ledger"]

log = get_logger("pyjmsack")

_PART_BYTES = {"sends": 4 << 20, "receives": 4 << 20, "events": 1 << 16}
"""The size of a raw part in bytes. Some 20,000 messages fill a part. The events of a connection hardly ever fill a
part."""
_DIFFER = frozenset({"message_id", "dedup_key", "seq", "ordinal", "t_send", "t_confirm", "t_recv", "t_ack", "time"})
"""The columns whose values hardly ever repeat. They have no dictionary in Parquet, because a dictionary would take a
third of the time and double the space."""


class Ledger:
    """The part of a ledger that one connection writes. Several threads may use this object. ``close`` blocks.

    If the ledger cannot be written any more, this object logs one error and takes no more records. Messages are sent
    and received as before. The ledger then has no event ``closed`` of this connection, so that an audit notices the
    gap.

    Args:
        path: the directory. It is created if it does not exist. Connections, threads and processes may share it.
        connection_id: the id of the connection, which is a part of the names of its files. ``None`` chooses an id at
            random.

    Raises:
        JMSException: the directory cannot be created or written to.
    """

    def __init__(self, path: str | os.PathLike[str], connection_id: str | None = None) -> None:
        self.connection_id = connection_id or uuid.uuid4().hex
        self._broken = False
        self._tables = {name: _Table(Path(path, name), name, self.connection_id, self._fail) for name in SCHEMAS}
        try:
            for table in self._tables.values():
                table.folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self._tables["events"].folder, os.W_OK):
                raise PermissionError(f"no permission to write to {path}")
        except OSError as error:
            raise JMSException(f"ledger {os.fspath(path)!r} cannot be created or written to: {error}") from error
        self.send = self._tables["sends"].write
        self.receive = self._tables["receives"].write
        self.event = self._tables["events"].write

    def close(self) -> None:
        """Turn the raw parts into Parquet, and wait until the conversions have ended. A second call has no effect."""
        for table in self._tables.values():
            table.close()

    def _fail(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            log.error("the ledger of this connection ends here, because it cannot be written: %s", error)
        for table in self._tables.values():
            table.stop()


class _Table:
    """One table: the raw part in use, and the threads that turn full parts into Parquet."""

    def __init__(self, folder: Path, name: str, writer: str, fail: Callable[[OSError], None]) -> None:
        self.folder = folder
        self._stopped = False
        self._name = name
        self._writer = writer
        self._fail = fail
        self._lock = threading.RLock()
        """A reentrant lock, because a signal handler may close the connection while the same thread opens a part."""
        self._append: Callable[[bytes], object] = _no_room
        """The function that appends a line: ``mmap.write`` of the part in use. While no part is open, the function is
        ``_no_room``. After :meth:`stop`, it is ``_discard``.

        Several threads may call the function without a lock, because the call is one step of the interpreter.
        """
        self._map: mmap.mmap | None = None
        self._path = folder
        self._parts = 0
        self._sealing: list[threading.Thread] = []

    def write(self, line: str) -> None:
        """Append a line. When this method returns, the line stays in the file even if this process is killed."""
        try:
            data = line.encode()
        except UnicodeEncodeError:
            data = line.encode(errors="replace")
        try:
            self._append(data)
        except ValueError:  # the part has no room for the line, or another thread is about to close it
            self._append_to_next(data)

    def _append_to_next(self, data: bytes) -> None:
        with self._lock:
            while True:  # another thread may have opened the next part, or may fill it before this line is in it
                try:
                    self._append(data)
                    return
                except ValueError:
                    if not self._next_part(len(data)):
                        return

    def stop(self) -> None:
        """Take no more lines. Any thread may call this."""
        self._stopped = True
        self._append = _discard

    def _next_part(self, room: int) -> bool:
        if self._stopped:
            return False
        try:
            self._seal_current()
            self._parts += 1
            path = self.folder / f"{self._writer}-{self._parts}.raw"
            size = max(_PART_BYTES[self._name], room)
            with path.open("x+b", buffering=0) as file:
                self._path, self._map = path, _reserved(file, path, size)
        except OSError as error:
            self._fail(error)
            return False
        self._append = self._map.write
        return True

    def _seal_current(self) -> None:
        current, self._map = self._map, None
        if current is not None:
            self._append = _no_room
            current.close()  # a thread that is about to write gets a ValueError, and tries again with the next part
            thread = threading.Thread(target=seal, args=(self._path, self._name), name="pyjmsack-ledger")
            try:
                thread.start()
            except RuntimeError as error:  # the system refuses new threads
                log.warning(
                    "ledger part %s stays a raw part, because it could not be turned into Parquet: %s",
                    self._path,
                    error,
                )
            else:
                self._sealing = [*filter(threading.Thread.is_alive, self._sealing), thread]

    def close(self) -> None:
        """Finish the open part, and wait for the conversions. A later line opens another part, which stays raw."""
        with self._lock:
            self._seal_current()
            sealing, self._sealing = self._sealing, []
        for thread in sealing:
            thread.join()


def _reserved(file: FileIO, path: Path, size: int) -> mmap.mmap:
    """Return the mapping of a new file of ``size`` zeros. The zeros reserve the space: a full disk is an error here,
    but would crash a write to the mapping. After an error the file is removed, because it would keep the disk full.

    Raises:
        OSError: the file cannot be written or mapped.
    """
    try:
        zeros = memoryview(bytes(size))
        while zeros:
            zeros = zeros[file.write(zeros) :]
        return mmap.mmap(file.fileno(), size)
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _no_room(data: bytes) -> object:
    """Raise the error that a full part raises. This function stands in for ``mmap.write`` while no part is open."""
    raise ValueError("no part is open")


def _discard(data: bytes) -> object:
    """Ignore a line. This function stands in for ``mmap.write`` when the ledger cannot be written any more."""
    return None


def seal(raw: Path, name: str) -> None:
    """Turn a raw part of a table into a Parquet part.

    At each moment the raw part or the Parquet part is complete. If both are complete, a reader takes the Parquet part.
    If the conversion fails, the raw part stays, and a reader takes the raw part.
    """
    finished = raw.with_suffix(".parquet")
    unfinished = raw.with_suffix(".tmp")
    try:
        table = parse_lines(name, raw.read_bytes())
        # the type stub of this function allows only bool
        repeat: Any = [column for column in table.column_names if column not in _DIFFER]
        parquet.write_table(table, unfinished, compression="zstd", use_dictionary=repeat)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(finished)
        raw.unlink()
    except (OSError, ArrowException) as error:
        log.warning("ledger part %s stays a raw part, because it could not be turned into Parquet: %s", raw, error)
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
