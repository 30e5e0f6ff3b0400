"""Fixtures of the scripted-peer tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from peer_faces import AioFace, Face, SyncFace

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A hang is a failure, not a wait."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(40))


@pytest.fixture(params=[SyncFace, AioFace], ids=["sync", "aio"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """Each face in turn."""
    face: Face = request.param()
    yield face
    face.close()


@pytest.fixture
def sync() -> Iterator[SyncFace]:
    """The blocking face, for what the faces share."""
    face = SyncFace()
    yield face
    face.close()


@pytest.fixture
def aio() -> Iterator[AioFace]:
    """The asyncio face."""
    face = AioFace()
    yield face
    face.close()
