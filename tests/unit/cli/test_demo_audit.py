"""``pyjmsack demo --audit`` on a machine that cannot run the audit."""

from __future__ import annotations

import importlib.util

import pytest

from pyjmsack.cli.demo import auditing
from pyjmsack.cli.errors import Failure


def test_an_audit_that_the_user_wants_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(auditing, "missing_for_audit", lambda: "install pyjmsack[spark]")
    with auditing.LedgerOfDemo(None, audits=True) as ledger, pytest.raises(Failure, match=r"install pyjmsack\[spark\]"):
        ledger.audit()
