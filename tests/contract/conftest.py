"""Runs each scenario over both faces, on every protocol and broker of :mod:`contract.brokers`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from shared_brokers import Served

from contract.brokers import Target, wanted
from contract.faces import AIO, SYNC, Face
from contract.harness import Jms

TIMEOUT = 120
"""Seconds for a scenario, which may wait 60 s for one event."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No scenario may hang the suite, and not every target has both faces."""
    items[:] = [item for item in items if _wanted(item)]
    for item in items:
        if item.path.parent.name == "contract" and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


def _wanted(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    face, target = parameters.get("face"), parameters.get("target")
    return not isinstance(target, Target) or wanted(item, target, face.name if isinstance(face, Face) else None)


@pytest.fixture(params=[SYNC, AIO], ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    """The face that the scenario runs on."""
    assert isinstance(request.param, Face)
    return request.param


@pytest.fixture
def jms(face: Face, target: Target, broker: Served, queue_name: str, no_leaks: None) -> Jms:
    """What a scenario works with."""
    return Jms(face, getattr(broker, f"{target.protocol}_url"), queue_name, target)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a scenario, a coroutine function, and close what it opened."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(_scenario(pyfuncitem.obj(**arguments), arguments.get("jms")))
    return True


async def _scenario(test: Coroutine[Any, Any, None], jms: Jms | None) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(16, "scenario"))
    try:
        await test
    finally:
        if jms is not None:
            await jms.close()
