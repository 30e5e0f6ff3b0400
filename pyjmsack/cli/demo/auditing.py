"""The ledger of the demo's own connections, and its audit."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from pyjmsack.cli.audit import audit_ledgers, missing_for_audit
from pyjmsack.cli.errors import Failure

if TYPE_CHECKING:
    from pyjmsack.spark.audit import Audit

__all__ = ["LedgerOfDemo"]


class LedgerOfDemo:
    """A context manager for the directory in which the demo's connections write their ledger.

    Args:
        path: where to keep the ledger. ``None`` means a temporary directory, which is removed at the end.
        audits: whether to audit the ledger. ``None`` audits it if this machine can.
    """

    def __init__(self, path: Path | None, audits: bool | None) -> None:
        self.path = path
        self.left_out: str | None = None
        """The reason why this machine cannot run the audit, and the next step of the user. ``None`` if the audit ran,
        or if the user does not want it."""
        self._audits = audits
        self._temporary: TemporaryDirectory[str] | None = None

    def __enter__(self) -> LedgerOfDemo:
        if self.path is None and self._audits is not False and importlib.util.find_spec("pyarrow") is not None:
            self._temporary = TemporaryDirectory(prefix="pyjmsack-demo-")
            self.path = Path(self._temporary.name)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def audit(self) -> Audit | None:
        """Return the result of the audit, or ``None`` if there is no audit.

        Raises:
            Failure: the user asked for the audit, and this machine cannot run it.
        """
        if self._audits is False:
            return None
        missing = missing_for_audit()
        try:
            if missing is not None:
                raise Failure(missing)
            assert self.path is not None  # the path is None only if pyarrow is missing
            click.echo("Auditing the demo's ledger on Spark …", err=True)
            return audit_ledgers((self.path,))
        except Failure as failure:
            if self._audits:
                raise
            self.left_out = f"Left out: the audit of this run's ledger on Spark. {failure.message}"
            return None

    @staticmethod
    def page(found: Audit) -> Path:
        """Write the page of the audit to a new file in the directory for temporary files, and return its path."""
        from pyjmsack.spark.audit import write_page

        handle, name = tempfile.mkstemp(prefix="pyjmsack-demo-audit-", suffix=".html")
        os.close(handle)
        write_page(found, Path(name))
        return Path(name)
