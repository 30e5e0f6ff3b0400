"""kombu's own integration tests, with the fixtures of this transport.

``test_acceptance.py`` runs this file in a pytest of its own, because the classes come out of kombu's source archive:
the archive is on ``PYTHONPATH``, and ``JMS_BROKER`` is the broker URL, with a scheme of the transport.
"""

# kombu has no types, and "t" is a folder of its source archive
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
from t.integration import common

from pyjmsack.kombu import Transport, names

assert Transport  # the import makes the schemes known
URL = os.environ["JMS_BROKER"]
_SCHEME = URL.partition("://")[0]
_NOBODY = f"{_SCHEME}://127.0.0.1:1"


class OneByOne(kombu.Connection):  # type: ignore[misc] # kombu has no types
    """One call of ``drain_events`` delivers one message, as with kombu's virtual transports; its classes expect all."""

    def drain_events(self, **how: Any) -> None:
        super().drain_events(**how)
        try:
            while True:
                super().drain_events(timeout=0.5)
        except TimeoutError:
            return


@pytest.fixture
def connection() -> Iterator[kombu.Connection]:
    with kombu.Connection(URL) as connection:
        yield connection


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return kombu.Connection(_NOBODY)


@pytest.fixture
def failover_connection() -> Iterator[kombu.Connection]:
    with kombu.Connection(f"{_NOBODY};{URL}", connect_timeout=10) as connection:
        yield connection


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queues of kombu's tests have fixed names, and other tests use the broker, too."""
    own, escape = uuid.uuid4().hex[:8], names.escaped
    monkeypatch.setattr(names, "escaped", lambda name, **how: f"{own}{escape(name, **how)}")


class TestBasicFunctionality(common.BasicFunctionality):
    pass


class TestExchangeTypes(common.BaseExchangeTypes):
    pass


class TestMessage(common.BaseMessage):
    pass


class TestTimeToLive(common.BaseTimeToLive):
    pass


class TestPriority(common.BasePriority):
    @pytest.fixture
    def connection(self) -> Iterator[kombu.Connection]:
        with OneByOne(URL) as connection:
            yield connection


class TestEventLoop(common.BaseEventLoop):
    pass


class TestFailover(common.BaseFailover):
    def test_failover_switches_to_alternate_url(self, failover_connection: kombu.Connection) -> None:
        """kombu's own text looks at ``port`` first, which kombu does not know of a URL with a plus sign."""
        failover_connection.connect()
        assert failover_connection.connected
        assert failover_connection.transport_cls == _SCHEME
        assert str(failover_connection.port) in URL
