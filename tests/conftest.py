"""Fixtures for every test that needs a real broker, and the watch over what a test leaves behind."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyjmsack.broker import EmbeddedArtemis

_STRICT = (
    "error::DeprecationWarning",
    "error::pytest.PytestUnraisableExceptionWarning",
    "error::pytest.PytestUnhandledThreadExceptionWarning",
)
_LIMITED = '-Dbrokerconfig.addressSettings."limited.#".'
_DESCRIPTORS = Path("/proc/self/fd")


def pytest_configure(config: pytest.Config) -> None:
    """Turn warnings into errors: a deprecated call, a lost coroutine and a dying thread are all bugs."""
    for line in _STRICT:
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedArtemis]:
    """A broker that lets everybody in; each pytest-xdist worker has its own.

    Queues named ``limited.*`` take two messages and refuse the next.
    """
    limits = [f"{_LIMITED}addressFullMessagePolicy=FAIL", f"{_LIMITED}maxSizeMessages=2"]
    with EmbeddedArtemis(jvm_options=limits) as running:
        yield running


@pytest.fixture(scope="session")
def secured_broker() -> Iterator[EmbeddedArtemis]:
    """A broker that knows only the user ``alice`` with the password ``wonderland``."""
    with EmbeddedArtemis(users={"alice": "wonderland"}) as running:
        yield running


@pytest.fixture(scope="session")
def broker_url(broker: EmbeddedArtemis) -> str:
    """Where the broker listens, without options."""
    return broker.amqp_url


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:60]}-{uuid.uuid4().hex[:12]}"


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
