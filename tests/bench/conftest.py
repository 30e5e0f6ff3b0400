"""The benchmarks, in short: each command runs to its end, and counts what it says that it counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are no part of the package

Bench = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def bench() -> Bench:
    """Run ``python -m benchmarks`` with these arguments and ``--json``; return its lines."""
    pytest.importorskip("proton", reason="the benchmarks measure python-qpid-proton, too")
    from benchmarks.__main__ import main

    def run(*arguments: object) -> list[dict[str, Any]]:
        result = CliRunner().invoke(main, [*map(str, arguments), "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        decoder, text, found = json.JSONDecoder(), result.stdout.strip(), []
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:].strip()
        return found

    return run
