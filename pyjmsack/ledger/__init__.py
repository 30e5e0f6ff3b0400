"""Ledgers: a record of the sends, deliveries and events of a connection, in files that outlive its process.

``ConnectionFactory(..., ledger=path)`` writes one, ``read_ledgers`` reads them. Needs the extra ``pyjmsack[ledger]``;
``import pyjmsack`` does not load it.
"""

from __future__ import annotations

from pyjmsack.extras import missing_extra

try:
    import pyarrow  # noqa: F401 - only for the error that names the missing extra
except ImportError as missing:
    raise ImportError(missing_extra("ledger", "A ledger", missing)) from missing

from pyjmsack.ledger.reader import LedgerError, LedgerFiles, read_ledgers
from pyjmsack.ledger.schema import SCHEMAS
from pyjmsack.ledger.writer import Ledger

__all__ = ["SCHEMAS", "Ledger", "LedgerError", "LedgerFiles", "read_ledgers"]
