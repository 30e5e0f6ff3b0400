"""Fixtures of the command line's tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from cli_support import Cli


@pytest.fixture
def cli(broker_url: str) -> Iterator[Cli]:
    """The command line, pointed at the shared broker; the log is as it was afterwards."""
    log = logging.getLogger("pyjmsack")
    handlers, level = log.handlers[:], log.level
    yield Cli(broker_url)
    log.handlers[:] = handlers
    log.setLevel(level)
