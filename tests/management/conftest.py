"""Brokers of these tests: Artemis as everybody's, Artemis where nobody may manage, and Classic with Jolokia in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from managed_brokers import Managed, classic_with_jolokia, guarded_artemis
from shared_brokers import Served


@pytest.fixture(scope="session")
def classic() -> Iterator[Managed]:
    """ActiveMQ Classic with a Jolokia agent."""
    with classic_with_jolokia() as urls:
        yield Managed(*urls)


@pytest.fixture(scope="session")
def artemis(brokers: Callable[[str], Served]) -> Managed:
    """Artemis over AMQP."""
    return Managed(brokers("artemis").amqp_url)


@pytest.fixture(params=["artemis", "classic"])
def managed(request: pytest.FixtureRequest) -> Managed:
    """Each broker in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Managed)
    return found


@pytest.fixture(scope="session")
def guarded_url() -> Iterator[str]:
    """Artemis whose user may not manage."""
    with guarded_artemis() as url:
        yield url
