"""Fetches the libraries of ActiveMQ Classic one by one, because no Maven repository has an archive of version 6.

``jars/activemq-VERSION.txt`` names each library as ``group:name:version size sha512``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import resources
from pathlib import Path

from pyjmsack.broker.distribution import Artefact, Distribution, cache_directory, check, ensure
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.progress import ProgressFactory, default_progress

__all__ = ["DEFAULT_VERSION", "VERSIONS", "ensure_activemq"]

DEFAULT_VERSION = "6.3.1"
VERSIONS = ("6.3.1", "5.18.3")


def ensure_activemq(version: str = DEFAULT_VERSION, *, progress: ProgressFactory | None = None) -> Distribution:
    """Return the libraries of ActiveMQ Classic. Missing or damaged libraries are downloaded.

    Args:
        version: a version in ``VERSIONS``.
        progress: shows the download. ``None`` means the default.

    Raises:
        BrokerError: the version is unknown, there is no network, or a file has another checksum than expected.
    """
    if version not in VERSIONS:
        raise BrokerError(f"ActiveMQ {version} cannot be fetched. Give one of these versions: {', '.join(VERSIONS)}.")
    listing = resources.files("pyjmsack.broker").joinpath("jars").joinpath(f"activemq-{version}.txt").read_bytes()
    cache = cache_directory()
    rows = [line.split() for line in listing.decode().splitlines()]
    total = sum(int(size) for _, size, _ in rows)

    def fill(home: Path) -> None:
        with _together(progress or default_progress, f"ActiveMQ {version}", total) as shown:
            for coordinates, _, sha512 in rows:
                group, name, jar_version = coordinates.split(":")
                _place(Artefact(group, name, jar_version, sha512), cache, home / "lib", shown)

    return ensure(version, cache / f"activemq-{version}-{hashlib.sha512(listing).hexdigest()[:12]}", fill)


@contextmanager
def _together(progress: ProgressFactory, name: str, total: int) -> Iterator[ProgressFactory]:
    """Yield a ``progress`` function for single files. It adds the bytes of each file to one display for all files."""
    with progress(name, total) as advance:
        yield lambda *_: nullcontext(advance)


def _place(jar: Artefact, cache: Path, lib: Path, progress: ProgressFactory) -> None:
    """Copy the library from the cache if the user put it there, because the machine has no network. Otherwise download
    it.
    """
    target, placed = lib / jar.file_name, cache / jar.file_name
    if placed.exists():
        target.write_bytes(placed.read_bytes())
        check(target, jar.sha512)
    else:
        jar.download(target, progress)
