"""Reads ledgers: finds the Parquet parts, and reads the raw parts, which are not in Parquet yet, into tables."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from pyjmsack.errors import JMSException
from pyjmsack.ledger.schema import SCHEMAS, parse_lines

__all__ = ["LedgerError", "LedgerFiles", "read_ledgers"]


_PARQUET = b"PAR1"
"""The last bytes of each Parquet file."""


class LedgerError(JMSException):
    """A path is not a ledger, or a part of a ledger is damaged."""


@dataclass
class LedgerFiles:
    """The content of ledgers, which :func:`read_ledgers` returns. Each table has Parquet parts and raw rows."""

    parquet: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    """The paths of the Parquet parts of each table."""
    raw: dict[str, pa.Table] = field(
        default_factory=lambda: {name: table.empty_table() for name, table in SCHEMAS.items()}
    )
    """The rows of each table that are not in Parquet yet, because their process still runs or was killed."""

    def table(self, name: str) -> pa.Table:
        """Return a whole table: its Parquet parts and its raw rows together. The table must fit into the memory.

        Args:
            name: a name in ``SCHEMAS``: ``sends``, ``receives`` or ``events``.

        Raises:
            KeyError: there is no such table.
        """
        from pyarrow import parquet

        parts = [parquet.read_table(path, schema=SCHEMAS[name]) for path in self.parquet[name]]
        return pa.concat_tables([*parts, self.raw[name]])


def read_ledgers(paths: Iterable[str | os.PathLike[str]]) -> LedgerFiles:
    """Read ledgers. The processes that write them may still be running.

    Args:
        paths: the directories of the ledgers. A directory that is named twice is read once.

    Raises:
        LedgerError: a path is not a ledger, or a part of a ledger is damaged.
    """
    found = LedgerFiles()
    for path in dict.fromkeys(Path(given) for given in paths):
        if not all((path / name).is_dir() for name in SCHEMAS):
            raise LedgerError(f"{path} is not a ledger: expected a directory with {', '.join(SCHEMAS)} in it")
        for name in SCHEMAS:
            _look(path / name, name, found)
    return found


def _look(folder: Path, name: str, found: LedgerFiles) -> None:
    raw = {part: _read(part, name) for part in sorted(folder.glob("*.raw"))}
    # the Parquet parts are listed after the raw parts were read: so no part is missed, and a raw part that became
    # Parquet in the meantime is left out below
    sealed = sorted(folder.glob("*.parquet"))
    for part in sealed:
        _check_end(part)
    found.parquet[name] += [os.path.abspath(part) for part in sealed]
    known = {part.stem for part in sealed}
    tables = [table for part, table in raw.items() if part.stem not in known and table is not None]
    found.raw[name] = pa.concat_tables([found.raw[name], *tables])


def _check_end(part: Path) -> None:
    """Refuse a part that was copied incompletely. Without this check, a task of Spark would fail later, with an error
    that does not name the file."""
    with part.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_PARQUET)))
        if file.read() != _PARQUET:
            raise LedgerError(
                f"ledger part {part} is damaged: its {size} bytes do not end like a Parquet file; copy the part again,"
                " or move it away to read the other parts"
            )


def _read(part: Path, name: str) -> pa.Table | None:
    try:
        return parse_lines(name, part.read_bytes())
    except FileNotFoundError:
        return None
    except pa.ArrowException as error:
        raise LedgerError(f"ledger part {part} is damaged: {error}") from error
