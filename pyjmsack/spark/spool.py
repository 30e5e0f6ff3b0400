"""The spool has the only copy of messages that are acknowledged and not yet processed. Therefore it is durable and
shared.

::

    <spoolLocation>/<query>/<pull>/<partition>.arrow    rows that one task pulled; the file appears only when complete
                                  /<partition>.acked    exists if the broker has confirmed the acknowledgement
                           /processed                   a number; the pulls below it are processed, and deleted
                           /ids/...                     the identities of the messages of these deleted pulls
                           /tmp/...                     files that are being written or deleted
"""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["PULLS", "Span", "Spool", "write_once"]

_IDENTITY = "identity"
"""The column of the spool with the identity of a message. No other message has the same identity. Spark does not get
this column."""
PULLS = "[0-9]" * 10
"""The pattern for the names of the directories of pulls."""
_SPAN, _TAKEN, _SHORT, _END = (f"pyjmsack.{name}".encode() for name in ("created", "taken", "short", "end"))


class Span(NamedTuple):
    """The earliest and the latest ``created`` of some messages, in ms.

    A redelivered message keeps its time. Therefore, if two spans do not touch, no message belongs to both, and the ids
    need not be compared.
    """

    first: int
    last: int

    @classmethod
    def of(cls, created: pa.Array) -> Span:
        """Return the span of these times. If a time is missing, the span has no limits."""
        if created.null_count:
            return cls(-(1 << 62), 1 << 62)
        if not len(created):
            return cls(1, 0)
        microseconds = created.cast(pa.int64()).to_pylist()
        return cls(min(microseconds) // 1000, max(microseconds) // 1000)

    def touches(self, other: Span) -> bool:
        """Return whether the spans have a moment in common."""
        return self.first <= other.last and other.first <= self.last


class Spool:
    """The spool of one query.

    Args:
        location: the option ``spoolLocation``.
        query: the query's uuid, or ``drain-<drainId>``.
    """

    def __init__(self, location: Path, query: str) -> None:
        self.root = location / query
        self._ids = self.root / "ids"
        self._tmp = self.root / "tmp"

    def prepare(self, pull: int) -> None:
        """Make the directories that tasks of a pull write to. A task does not make them itself, because a late task
        would create the directory of a processed pull again.

        Raises:
            FileExistsError: the pull is processed already. New rows must not get the number of this pull, because Spark
                would regard the rows as processed.
        """
        for folder in (self._ids, self._tmp, self._pull(pull)):
            folder.mkdir(parents=True, exist_ok=True)
        _sync_directory(self.root.parent)
        _sync_directory(self.root)
        # this check comes after mkdir(), because retire() writes the number before it deletes the directory
        if pull < self._processed():
            raise FileExistsError(
                f"pull {pull} of {self.root} was processed already. New rows cannot have its number, because Spark"
                " would regard them as processed"
            )

    def _processed(self) -> int:
        path = self.root / "processed"
        # after a crash of the machine the file may be empty
        return int(path.read_text(encoding="utf-8") or 0) if path.exists() else 0

    def require_room(self, pull: int, room: int) -> None:
        """Check, before a message is taken, that the rows of a pull (a numbered batch) can be written.

        Without this check the task would have to give the messages back. Each attempt counts as a delivery, and after a
        few deliveries the broker makes a message a dead letter.

        Args:
            room: bytes that must be free.

        Raises:
            FileNotFoundError: the pull is processed already, or this host does not have the directory.
            OSError: the directory cannot be written to, or has no room.
        """
        folder = self._pull(pull)
        if not folder.is_dir():
            raise FileNotFoundError(
                errno.ENOENT,
                "this pull is processed already, or the driver and the executors do not share one spoolLocation",
                str(folder),
            )
        probe = self._tmp / uuid.uuid4().hex
        probe.touch()
        probe.unlink(missing_ok=True)
        if (free := shutil.disk_usage(self._tmp).free) < room:
            raise OSError(errno.ENOSPC, f"{free} bytes are free, and maxBytesPerPartition needs {room}", str(self.root))

    def _pull(self, pull: int) -> Path:
        return self.root / f"{pull:010d}"

    def file(self, pull: int, part: int) -> Path:
        """Return the path of the file that has the rows of this partition after :meth:`publish`."""
        return self._pull(pull) / f"{part}.arrow"

    # -- writing ------------------------------------------------------------------------------------------------

    def publish(
        self,
        pull: int,
        part: int,
        batch: pa.RecordBatch,
        identities: pa.Array,
        *,
        taken: int,
        short: bool,
        end: bool = False,
    ) -> bool:
        """Write the rows of one partition of a pull durably. Other processes see all rows or no rows.

        Args:
            identities: the identity of each row's message, by which a redelivery is recognised. The identity is null
                for a message without an id.
            taken: how many messages were received, including those that were dropped as redelivered.
            short: whether the queue was empty before the pull had as many messages as it may take.
            end: whether this partition has no further pulls. Only a read in the mode ``drain`` has an end.

        Returns:
            False if another task published this partition first, or the batch is processed already. Then the
            rows of this call are not used.
        """
        span = Span.of(batch["created"])
        notes = {_SPAN: _pair(span), _TAKEN: b"%d" % taken, _SHORT: b"%d" % short, _END: b"%d" % end}
        fields = batch.schema.append(pa.field(_IDENTITY, pa.string())).with_metadata(notes)
        rows = pa.RecordBatch.from_arrays([*batch.columns, identities], schema=fields)
        return self._link(rows, self.file(pull, part))

    def _link(self, batch: pa.RecordBatch, target: Path) -> bool:
        written = self._tmp / uuid.uuid4().hex
        try:
            with written.open("wb") as sink:
                with pa.ipc.new_file(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                sink.flush()
                os.fsync(sink.fileno())
            os.link(written, target)  # link() fails if the name exists; rename() would not
        except (FileExistsError, FileNotFoundError):
            return False
        finally:
            written.unlink(missing_ok=True)
        _sync_directory(target.parent)
        return True

    def confirm(self, pull: int, part: int) -> None:
        """Record that the broker confirmed the acknowledgement of this partition's messages."""
        with suppress(FileNotFoundError):  # the batch was processed in the meantime
            self.file(pull, part).with_suffix(".acked").touch()

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, pull: int, part: int) -> Iterator[pa.RecordBatch]:
        """Yield the published rows of a partition, in batches of a size that suits Spark."""
        with pa.memory_map(str(self.file(pull, part))) as source:
            table = pa.ipc.open_file(source).read_all().replace_schema_metadata(None)
            yield from table.to_batches(max_chunksize=10_000)

    def taken(self, pull: int) -> int:
        """Return how many messages the published partitions of a pull took from the queue."""
        return sum(int(_notes(path)[_TAKEN]) for path in self._pull(pull).glob("*.arrow"))

    def taken_by(self, pull: int, part: int) -> int:
        """Return how many messages one published partition of a pull took from the queue."""
        return int(_notes(self.file(pull, part))[_TAKEN])

    def was_short(self, pull: int, part: int) -> bool:
        """Return whether the queue was empty before this partition of the pull had as many messages as it may take."""
        return _notes(self.file(pull, part))[_SHORT] == b"1"

    def is_end(self, pull: int, part: int) -> bool:
        """Return whether this partition of a drain has no more pulls."""
        return _notes(self.file(pull, part)).get(_END) == b"1"

    def known(self, span: Span, asked: pa.Array) -> set[str]:
        """Return the identities in ``asked`` whose messages were spooled before. Only files with a message of this
        ``span`` of time are read.
        """
        known: set[str] = set()
        ids = asked.drop_null()
        for path in self._rows():
            # if the file was deleted just now, the list below has its ids, because the ids are written before the file
            # is deleted
            with suppress(FileNotFoundError):
                if span.touches(_span(_notes(path)[_SPAN].decode())):
                    known.update(_common_ids(path, ids))
        for path in self._ids.glob("*.ids"):
            if span.touches(_span(path.name.split("_")[2])):
                with suppress(FileNotFoundError):  # another process deleted the file just now
                    known.update(_common_ids(path, ids))
        return known

    # -- retention ----------------------------------------------------------------------------------------------

    def retire(self, before: int, window: float) -> None:
        """Delete the rows of processed pulls, which have numbers below ``before``. Keep the identities of the messages.

        Args:
            window: seconds to keep the identities of confirmed pulls. Identities of unconfirmed pulls are kept for
                ever, because the broker may still have the messages.
        """
        if not self.root.exists():
            return  # the next call that needs the spool reports the error
        if before > self._processed():
            written = self._tmp / uuid.uuid4().hex
            written.write_text(str(before), encoding="utf-8")
            written.replace(self.root / "processed")
        for folder in sorted(self.root.glob(PULLS)):
            if int(folder.name) < before:
                with suppress(FileNotFoundError):  # another process deletes the same file
                    self._retire(folder)
        oldest = time.time() - window
        for path in self._ids.glob("*_acked.ids"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _retire(self, folder: Path) -> None:
        for path in folder.glob("*.arrow"):
            state = "acked" if path.with_suffix(".acked").exists() else "open"
            # this makes no Python objects, because the first pa.array() of Python objects imports pandas, which takes
            # 0.25 s
            ids = pa.record_batch({_IDENTITY: _read_identities(path).combine_chunks()})
            self._link(ids, self._ids / f"{int(folder.name)}_{path.stem}_{_notes(path)[_SPAN].decode()}_{state}.ids")
        # the directory is renamed before it is deleted, because a late task could publish in a half empty directory
        gone = folder.rename(self._tmp / uuid.uuid4().hex)
        shutil.rmtree(gone)

    def sweep(self) -> None:
        """Delete unfinished files of killed tasks.

        A task that is still running cannot publish its rows after this call, and gives its messages back.
        """
        for path in self._tmp.glob("*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def has_rows(self) -> bool:
        """Return whether the spool has rows that no batch has processed."""
        return any(self._rows())

    def _rows(self) -> Iterator[Path]:
        return self.root.glob(f"{PULLS}/*.arrow")


def write_once(path: Path, text: str) -> str:
    """Write a file unless it exists, and return its text. If two processes write at once, both get the same text."""
    written = path.with_name(uuid.uuid4().hex)
    try:
        written.write_text(text, encoding="utf-8")
        with suppress(FileExistsError):
            os.link(written, path)
    finally:
        written.unlink(missing_ok=True)
    _sync_directory(path.parent)
    return path.read_text(encoding="utf-8")


def _pair(span: Span) -> bytes:
    return f"{span.first}-{span.last}".encode()


def _span(text: str) -> Span:
    first, _, last = text[1:].partition("-")  # the first character may be the sign of a time before 1970
    return Span(int(text[0] + first), int(last))


def _notes(path: Path) -> dict[bytes, bytes]:
    with pa.memory_map(str(path)) as source:
        return dict(pa.ipc.open_file(source).schema.metadata or {})


def _common_ids(path: Path, ids: pa.Array) -> list[str]:
    """Return the identities that are both in the file and in ``ids``. Arrow compares the identities, because the
    identities of several hours do not fit in memory as Python objects.
    """
    column = _read_identities(path)
    known = pc.is_in(column, value_set=ids)  # pyright: ignore[reportAttributeAccessIssue] - pyarrow makes it at import
    return column.filter(known).to_pylist()


def _read_identities(path: Path) -> pa.ChunkedArray:
    """Return the identities in a file. The identity of a message without an id is null."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()[_IDENTITY]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
