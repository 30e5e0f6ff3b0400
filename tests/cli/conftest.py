"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli_support import Cli
from managed_brokers import classic_with_jolokia, guarded_artemis


@pytest.fixture
def cli(broker_url: str) -> Cli:
    """The command line, pointed at the shared broker."""
    return Cli(broker_url)


@pytest.fixture(scope="session")
def classic() -> Iterator[tuple[str, str]]:
    """ActiveMQ Classic, and the Jolokia agent in it."""
    with classic_with_jolokia() as urls:
        yield urls


@pytest.fixture(scope="session")
def guarded() -> Iterator[Cli]:
    """Artemis with the user ``alice``, password ``wonderland``, who may not manage."""
    with guarded_artemis() as url:
        yield Cli(url)
