"""Fetches the libraries of Artemis from the archive that the Artemis project publishes."""

from __future__ import annotations

import logging
import tarfile
from pathlib import Path

from pyjmsack.broker.distribution import Artefact, Distribution, cache_directory, check, ensure
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.progress import ProgressFactory, default_progress

__all__ = ["DEFAULT_VERSION", "SHA512", "ensure_artemis"]

DEFAULT_VERSION = "2.56.0"
SHA512 = {
    "2.56.0": "441ad38aa1b0526e5709edf43542039f016669d24134056613e4cbafdf6b101e"
    "5351f79f7ee190b43fc8031f6ec596a5fd075490dcee4d3eb3a88d8ed2cfc01b",
}

_log = logging.getLogger("pyjmsack.broker")


def ensure_artemis(
    version: str = DEFAULT_VERSION, *, sha512: str | None = None, progress: ProgressFactory | None = None
) -> Distribution:
    """Return the libraries of Artemis. If they are missing or damaged, they are downloaded and unpacked.

    Args:
        version: the version of Artemis.
        sha512: the SHA-512 of the archive, for a version that this release does not know.
        progress: shows the download. ``None`` means the default.

    Raises:
        BrokerError: the version is unknown, there is no network, or a file has another checksum than expected.
    """
    expected = sha512 or SHA512.get(version)
    if expected is None:
        known = ", ".join(sorted(SHA512))
        raise BrokerError(
            f"Artemis {version} cannot be checked, because this release knows the SHA-512 of {known} only. "
            "Give its SHA-512 with sha512=."
        )
    artefact = Artefact("org.apache.artemis", "apache-artemis", version, expected, "bin", "tar.gz")
    cache = cache_directory()

    def unpack(home: Path) -> None:
        _unpack(_archive(artefact, cache, progress or default_progress), home, f"apache-artemis-{version}")

    return ensure(version, cache / f"artemis-{version}-{expected[:12]}", unpack)


def _archive(artefact: Artefact, cache: Path, progress: ProgressFactory) -> Path:
    """Return the archive after a check of its SHA-512. If the cache has no undamaged archive, download it. On a machine
    without network the user has to put the archive into the cache.
    """
    archive = cache / artefact.file_name
    if archive.exists():
        try:
            check(archive, artefact.sha512)
        except BrokerError as error:
            _log.warning("%s Fetching it anew.", error)
        else:
            return archive
    artefact.download(archive, progress)
    return archive


def _unpack(archive: Path, home: Path, root: str) -> None:
    """Unpack the libraries and the licence. The web console and the examples, half of the archive, are left out."""
    with tarfile.open(archive) as tar:
        wanted = []
        for member in tar:
            if member.name.startswith((f"{root}/lib/", f"{root}/LICENSE", f"{root}/NOTICE")):
                member.name = member.name.removeprefix(f"{root}/")
                wanted.append(member)
        if hasattr(tarfile, "data_filter"):
            tar.extractall(home, members=wanted, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            tar.extractall(home, members=wanted)  # noqa: S202 - content pinned by its SHA-512
