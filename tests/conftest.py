"""Fixtures for every test that needs a real broker, and the watch over what a test leaves behind.

``pytest`` runs the fast tier, ``pytest --tier full`` runs all; :mod:`tiers` says which test is in which.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from contract.brokers import FACTORIES, TARGETS, Embedded, Target
from hypothesis import settings
from shared_brokers import Served, SharedBrokers

from pyjmsack.providers.amqp import caution, opening
from pyjmsack.providers.stomp import deadletter

settings.register_profile("pyjmsack", deadline=None)  # a busy machine is no defect
settings.register_profile("few", settings.get_profile("pyjmsack"), max_examples=20)
settings.load_profile("pyjmsack")
pytest_plugins = ["pytester", "tiers", "without_proton", "option_marks"]

_STRICT = (
    "error::DeprecationWarning",
    "error::pytest.PytestUnraisableExceptionWarning",
    "error::pytest.PytestUnhandledThreadExceptionWarning",
)
_ONE_WORKER = {Path(__file__).parent / name for name in ("interop", "management", "security", "spark")}
"""Folders whose tests share brokers or JVMs of their own, which are therefore started once."""
_LONGEST_ID = 60
_DESCRIPTORS = Path("/proc/self/fd")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--amqp-engine=proton``: the same tests on the other engine."""
    parser.addoption("--amqp-engine", choices=("proton", "python"), help="what all AMQP connections of the tests use")


def pytest_configure(config: pytest.Config) -> None:
    """Turn warnings into errors: a deprecated call, a lost coroutine and a dying thread are all bugs."""
    if (engine := config.getoption("--amqp-engine", None)) is not None:
        chosen = opening.engine_class(engine)
        opening.engine_class = lambda _: chosen
    for line in _STRICT:
        config.addinivalue_line("filterwarnings", line)
    config.addinivalue_line("markers", "not_on(name, fact): cannot hold there (tests/contract/brokers.py)")
    config.addinivalue_line("markers", "alike(reason): once with each face (tests/contract/brokers.py)")
    config.addinivalue_line("markers", "only_on(name): to save time (tests/contract/brokers.py)")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and keep what was collected from it: some 20,000 tests are no garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run a folder in one worker. Xdist reads the groups before ``pytest_collection_modifyitems``."""
    if item.path.parent in _ONE_WORKER:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Keep the ids of rows short: a hostile text of a megabyte would go through every log and to every worker."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_ID:
        return f"{val[:_LONGEST_ID]!a}... {len(val)} long"
    return None


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Callable[[str], Served]]:
    """Brokers that nobody stops, by key, each started when it is first asked for; all workers share them."""
    own = tmp_path_factory.getbasetemp()
    shared = SharedBrokers(FACTORIES, (own.parent if hasattr(pytestconfig, "workerinput") else own) / "brokers")
    yield shared.get
    shared.close()


@pytest.fixture(scope="session")
def mortal_brokers() -> Iterator[Callable[[str], Embedded]]:
    """Brokers that a test may kill, by key; every worker has its own. A test that kills one starts it again."""
    running: dict[str, Embedded] = {}

    def get(key: str) -> Embedded:
        if key not in running:
            running[key] = FACTORIES[key]().start()
        return running[key]

    yield get
    for embedded in running.values():
        embedded.stop()


@pytest.fixture(params=TARGETS, ids=str)
def target(request: pytest.FixtureRequest) -> Target:
    """The protocol and the broker that the test runs on, of all that its marks do not exclude."""
    assert isinstance(request.param, Target)
    return request.param


@pytest.fixture
def broker(target: Target, brokers: Callable[[str], Served]) -> Served:
    """The broker that the test runs on."""
    return brokers(target.broker)


@pytest.fixture(scope="session")
def any_broker(brokers: Callable[[str], Served]) -> Served:
    """The broker of the tests to which its kind does not matter."""
    return brokers("artemis")


@pytest.fixture(scope="session")
def secured_broker(brokers: Callable[[str], Served]) -> Served:
    """A broker that knows only the user ``alice`` with the password ``wonderland``."""
    return brokers("secured")


@pytest.fixture(scope="session")
def broker_url(any_broker: Served) -> str:
    """Where the broker listens, without options."""
    return any_broker.amqp_url


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:60]}-{uuid.uuid4().hex[:12]}"


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """A command that runs inside the test process installs its own log handlers, as one command per process may."""
    loggers = [logging.getLogger(name) for name in ("pyjmsack", "pyjmsack.broker")]
    before = [(log.handlers[:], log.level) for log in loggers]
    yield
    for log, (handlers, level) in zip(loggers, before, strict=True):
        log.handlers[:] = handlers
        log.setLevel(level)


@pytest.fixture(autouse=True)
def no_earlier_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that cuts connections makes no link of a later test careful, and a refused copy keeps no other back."""
    monkeypatch.setattr(caution._Losses, "last", None)
    monkeypatch.setattr(caution._Losses, "due", {})
    monkeypatch.setattr(deadletter._Refusals, "until", {})
    monkeypatch.setattr(deadletter._Refusals, "lost", {})


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread of the library, or a socket, behind (S123)."""
    sockets, before = _open_sockets(), set(threading.enumerate())
    yield
    threads = [t for t in set(threading.enumerate()) - before if t.name.startswith("pyjmsack-")]
    for thread in threads:
        thread.join(1)
    alive = [thread.name for thread in threads if thread.is_alive()]
    assert not alive, f"threads left behind: {alive}"
    if left := _open_sockets() - sockets:
        gc.collect()
        left = _open_sockets() - sockets
        assert not left, f"sockets left behind: {left}"


def _open_sockets() -> set[str]:
    """Return the sockets of this process, by inode; none where the system does not show them."""
    found = set()
    if _DESCRIPTORS.is_dir():
        for descriptor in _DESCRIPTORS.iterdir():
            with contextlib.suppress(OSError):  # closed since it was listed
                found.add(os.readlink(descriptor))
    return {target for target in found if target.startswith("socket:")}
