"""Fixtures of the command line's tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from cli_support import Cli


@pytest.fixture
def cli(broker_url: str) -> Cli:
    """The command line, pointed at the shared broker."""
    return Cli(broker_url)


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """A command that runs inside the test process installs its own log handlers, as one command per process may."""
    loggers = [logging.getLogger(name) for name in ("pyjmsack", "pyjmsack.broker")]
    before = [(log.handlers[:], log.level) for log in loggers]
    yield
    for log, (handlers, level) in zip(loggers, before, strict=True):
        log.handlers[:] = handlers
        log.setLevel(level)
