"""What the tests of `pyjmsack migrate` share: small files, and one row by its key."""

from __future__ import annotations

from pathlib import Path

from pyjmsack.migrate import Findings, Row, Settings, migrate


def row(findings: Findings, key: str) -> Row:
    """Return the only row of a key."""
    found = [one for one in findings.rows if one.key == key]
    assert len(found) == 1, f"{key}: {len(found)} rows among {[one.key for one in findings.rows]}"
    return found[0]


def of_text(folder: Path, name: str, text: str, **settings: object) -> Findings:
    """Return what is found in one file."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    findings = migrate([str(file)], Settings(**settings))  # type: ignore[arg-type] - the tests name its fields
    assert findings.unreadable == []
    return findings


def of_url(url: str, **settings: object) -> Findings:
    """Return what is found in one URL."""
    return migrate([url], Settings(**settings))  # type: ignore[arg-type] - as above
