"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest
from cli_support import Cli


@pytest.fixture
def cli(broker_url: str) -> Cli:
    """The command line, pointed at the shared broker."""
    return Cli(broker_url)
