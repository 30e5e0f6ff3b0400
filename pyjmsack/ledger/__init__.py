"""Ledgers. A ledger records the sends, deliveries and events of connections, in files that stay after the process ends.

``ConnectionFactory(..., ledger=path)`` writes a ledger, and ``read_ledgers`` reads ledgers. This package needs the
extra ``pyjmsack[ledger]``. ``import pyjmsack`` does not load this package.
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
