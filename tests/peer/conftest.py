"""Fixtures of the scripted-peer tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from peer_faces import AioFace, Face, SyncFace


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
