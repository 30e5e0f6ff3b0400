"""Run the demo, and write the picture in ``README.md`` from what it printed: ``python docs/make_demo_picture.py``."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from rich.console import Console

from pyjmsack.cli.main import cli

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 84
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A picture loads nothing from elsewhere; it names the font, and any other of equal width does."""


def main() -> None:
    """Record one run; nothing is drawn if it fails."""
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    recorder.print("[bold]$ pyjmsack demo")
    with patch("pyjmsack.cli.demo.command.stdout_console", lambda: recorder), redirect_stdout(io.StringIO()):
        cli(["demo", "--no-audit"], standalone_mode=False)
    picture = recorder.export_svg(title="pyjmsack demo")
    PICTURE.write_text(_FONT.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
