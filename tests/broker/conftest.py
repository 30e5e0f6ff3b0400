"""Fixtures of the embedded broker's tests."""

from __future__ import annotations

import sys
import tempfile
import types
from pathlib import Path

import pytest
from broker_support import FakeMaven

from pyjmsack.broker.artemis_distribution import DEFAULT_VERSION, ensure_artemis
from pyjmsack.broker.distribution import cache_directory


def pytest_itemcollected(item: pytest.Item) -> None:
    """One worker for the tests of a broker that each leaves as it found it, so that this broker is started once."""
    if {"any_broker", "broker"} & {*getattr(item, "fixturenames", ())}:
        item.add_marker(pytest.mark.xdist_group("one broker of each kind"))


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch) -> FakeMaven:
    """A Maven repository without a network."""
    fake = FakeMaven()
    monkeypatch.setitem(sys.modules, "jgo", types.ModuleType("jgo"))
    monkeypatch.setitem(sys.modules, "jgo.maven", fake.module())
    return fake


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, in use for this test."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("PYJMSACK_CACHE", str(directory))
    return directory


@pytest.fixture(scope="session")
def real_archive() -> Path:
    """The real distribution's archive, in the cache that the tests share."""
    ensure_artemis()
    return cache_directory() / f"apache-artemis-{DEFAULT_VERSION}-bin.tar.gz"


@pytest.fixture
def cold_cache(real_archive: Path, cache: Path) -> Path:
    """A cache that holds the archive and nothing made of it."""
    cache.mkdir()
    (cache / real_archive.name).symlink_to(real_archive)
    return cache


@pytest.fixture
def temporary_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which temporary directories are made, empty at first."""
    root = tmp_path / "tmp"
    root.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    return root
