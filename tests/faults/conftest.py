"""A broker that may be killed, and both faces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from contract.brokers import Embedded, Target
from contract.faces import AIO, SYNC, Face
from contract.harness import Jms

from faults.faults_support import failover_url


@pytest.fixture(scope="session")
def mortal(mortal_brokers: Callable[[str], Embedded]) -> Embedded:
    """A broker that may be killed; a test that kills it starts it again."""
    return mortal_brokers("patient")


@pytest.fixture(params=[SYNC, AIO], ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    """The face that the scenario runs on."""
    assert isinstance(request.param, Face)
    return request.param


@pytest.fixture(params=["amqp", "stomp"])
def protocol(request: pytest.FixtureRequest) -> str:
    """The protocol that the scenario runs on."""
    return str(request.param)


@pytest.fixture
def jms(face: Face, protocol: str, mortal: Embedded, queue_name: str, no_leaks: None) -> Jms:
    """What a scenario works with, by way of a failover URL."""
    return Jms(face, failover_url(getattr(mortal, f"{protocol}_url")), queue_name, Target(protocol, "artemis"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a scenario, a coroutine function, and close what it opened."""
    if not asyncio.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32, "scenario"))
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            await arguments["jms"].close()

    asyncio.run(scenario())
    return True
