"""Kill a broker under load, audit the ledger, and write the picture of the audit's page for ``docs/ledger.md``.

``python docs/make_audit_picture.py`` takes a minute. It starts a broker of its own, and needs the extra ``spark`` and
Debian's ``chromium``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from make_failover_picture import measure

from pyjmsack.broker import EmbeddedArtemis

PICTURE = Path(__file__).with_name("audit.png")
WIDTH, HEIGHT = 900, 1050
"""Pixels of the window. The page is longer: the picture shows its beginning."""


def audit(home: Path) -> Path:
    """Make a ledger, and return the page of its audit."""
    ledger, page = home / "orders", home / "audit.html"
    with EmbeddedArtemis() as broker:
        measure(broker, ledger)
        command = ["-m", "pyjmsack", "audit", ledger.name, "--url", broker.amqp_url, "--html", page.name]
        subprocess.run([sys.executable, *command], cwd=home, check=True)  # noqa: S603 - our own command
    return page


def photograph(page: Path, home: Path) -> None:
    """Let the browser draw the page. Without its sandbox, so that root may run it: the page is our own."""
    flags = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={home / 'profile'}"]
    size = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={PICTURE}"]
    command = ["chromium", *flags, *size, page.as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # noqa: S603 - Debian's program; no desktop is here


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        photograph(audit(Path(name)), Path(name))
