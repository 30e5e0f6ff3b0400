"""`--emit app` of what a Spring engineer's service had: nothing of it is lost without a row that says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrate_support import of_text
from test_migrate_app import made

from pyjmsack.migrate import Verdict, as_app

DEFAULTS = """\
class L {
    @JmsListener(destination = "q") void f(String body,
        @Header(name = "fast", defaultValue = "false") boolean fast,
        @Header(name = "again", defaultValue = "Yes") Boolean again,
        @Header(name = "attempt", defaultValue = "-1") int attempt,
        @Header(name = "rate", defaultValue = "1.50") double rate,
        @Header(name = "region", defaultValue = "1") String region,
        @Header(name = "count", defaultValue = "many") int count,
        @Header(name = "level", defaultValue = "LOW") Level level,
        @Header(name = "late", defaultValue = Config.LATE) boolean late) {}
    enum Level { LOW, HIGH }
}
"""


def test_a_default_of_a_header_has_the_type_of_its_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text "false" was the default of a bool, and true."""
    found = of_text(tmp_path, "L.java", DEFAULTS)
    names = made(as_app(found), monkeypatch)
    sources = names["app"].listeners["q"].arguments.sources
    defaults = {name: header.default for name, _, _, header in sources if header is not None}
    assert {name: defaults[name] for name in ("fast", "again", "attempt", "rate", "region")} == {
        "fast": False, "again": True, "attempt": -1, "rate": 1.5, "region": "1",
    }  # fmt: skip
    assert defaults["fast"] is False
    rows = {one.python.partition(":")[0]: one for one in found.rows if one.key == "@Header"}
    assert [name for name, one in rows.items() if one.verdict is Verdict.BY_HAND] == ["count", "level", "late"]
    assert "many is no literal of int" in rows["count"].why
    assert all("default=" not in rows[name].python for name in ("count", "level", "late"))
