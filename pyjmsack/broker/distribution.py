"""The Artemis distribution: fetched once, checked against a pinned SHA-512, unpacked into the user's cache.

Several processes may ask at the same time (pytest-xdist). Each works in a directory of its own and a rename makes the
result visible, so a reader sees all of it or nothing; a lock only spares the others the same download.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.locks import FileLock
from pyjmsack.broker.progress import ProgressFactory, default_progress

__all__ = ["DEFAULT_VERSION", "SHA512", "Distribution", "cache_directory", "ensure_distribution"]

DEFAULT_VERSION = "2.56.0"
SHA512 = {
    "2.56.0": "441ad38aa1b0526e5709edf43542039f016669d24134056613e4cbafdf6b101e"
    "5351f79f7ee190b43fc8031f6ec596a5fd075490dcee4d3eb3a88d8ed2cfc01b",
}

_MANIFEST = "pyjmsack-manifest.json"
_log = logging.getLogger("pyjmsack.broker")


@dataclass(frozen=True)
class Distribution:
    """An unpacked distribution."""

    version: str
    home: Path

    @property
    def class_path(self) -> str:
        """Every library, sorted: a class archive is only valid for the same order."""
        return os.pathsep.join(sorted(str(jar) for jar in (self.home / "lib").glob("*.jar")))


def cache_directory() -> Path:
    """Return the cache directory, made if it was missing: ``$PYJMSACK_CACHE``, else ``pyjmsack`` in the user's cache.

    Raises:
        BrokerError: it cannot be made or used.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("PYJMSACK_CACHE") or Path(base) / "pyjmsack").absolute()
    if os.pathsep in str(cache):
        raise BrokerError(f"{cache}: Java cannot use a path with {os.pathsep!r} in it; set PYJMSACK_CACHE to another.")
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrokerError(f"The cache directory cannot be made ({error}); set PYJMSACK_CACHE to another.") from error
    return cache


def ensure_distribution(
    version: str = DEFAULT_VERSION, *, sha512: str | None = None, progress: ProgressFactory | None = None
) -> Distribution:
    """Return the unpacked distribution, fetching and unpacking what is missing or damaged.

    Raises:
        BrokerError: unknown version, no network, or a file that is not the one pinned here.
    """
    expected = sha512 or SHA512.get(version)
    if expected is None:
        known = ", ".join(sorted(SHA512))
        raise BrokerError(f"No SHA-512 is known for Artemis {version} (known: {known}); give it with sha512=.")
    cache = cache_directory()
    home = cache / f"artemis-{version}-{expected[:12]}"
    if not _is_complete(home):
        with _only_one_downloads(cache):
            if not _is_complete(home):
                _unpack(_archive(cache, version, expected, progress or default_progress), home, version)
    return Distribution(version, home)


def _is_complete(home: Path) -> bool:
    """Compare names and sizes with the manifest, which is written last."""
    try:
        manifest: object = json.loads((home / _MANIFEST).read_bytes())
        return manifest == _sizes(home / "lib")
    except (OSError, ValueError):
        return False


def _sizes(directory: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_size for entry in os.scandir(directory)}


@contextlib.contextmanager
def _only_one_downloads(cache: Path) -> Iterator[None]:
    lock = FileLock(cache / "download.lock")
    # a file system without locks costs a second download, no more: the renames keep it right
    with contextlib.suppress(OSError):
        lock.acquire(wait=True)
    try:
        yield
    finally:
        lock.release()


def _archive(cache: Path, version: str, expected: str, progress: ProgressFactory) -> Path:
    """Return the checked archive: the one in the cache (placed by hand, on a machine without network) or a new one."""
    archive = cache / f"apache-artemis-{version}-bin.tar.gz"
    if archive.exists():
        try:
            _check(archive, expected)
        except BrokerError as error:
            _log.warning("%s Fetching it anew.", error)
        else:
            return archive
    _download(archive, version, expected, progress)
    return archive


def _download(archive: Path, version: str, expected: str, progress: ProgressFactory) -> None:
    try:
        from jgo.maven import MavenContext, PythonResolver
    except ImportError as error:
        raise BrokerError("Fetching the broker needs the extra: pip install 'pyjmsack[broker]'.") from error
    with tempfile.TemporaryDirectory(prefix="download-", dir=archive.parent) as private:
        context = MavenContext(repo_cache=Path(private), resolver=PythonResolver(progress_callback=progress))
        component = context.project("org.apache.artemis", "apache-artemis").at_version(version)
        try:
            fetched = Path(component.artifact("bin", "tar.gz").resolve())
        except (OSError, RuntimeError) as error:
            raise BrokerError(
                f"Artemis {version} could not be downloaded ({error}). "
                f"Check network and proxy, or place {archive.name} in {archive.parent} yourself."
            ) from error
        _check(fetched, expected)
        fetched.replace(archive)


def _check(file: Path, expected: str) -> None:
    """Refuse and remove a file with another SHA-512."""
    digest = hashlib.sha512()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != expected:
        file.unlink()
        raise BrokerError(
            f"{file} was removed: its SHA-512 is {digest.hexdigest()}, expected {expected}. "
            "Start again to fetch it anew; if it differs again, the download is being tampered with: do not use it."
        )


def _unpack(archive: Path, home: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=home.parent) as private:
        fresh = Path(private) / f"apache-artemis-{version}"
        with tarfile.open(archive) as tar:
            wanted = [member for member in tar if _is_wanted(member.name, fresh.name)]
            if hasattr(tarfile, "data_filter"):
                tar.extractall(private, members=wanted, filter="data")
            else:  # Python before 3.10.12 and 3.11.4
                tar.extractall(private, members=wanted)  # noqa: S202 - content pinned by its SHA-512
        (fresh / _MANIFEST).write_text(json.dumps(_sizes(fresh / "lib")))
        if home.exists():  # damaged, as found by the caller
            home.rename(Path(private) / "damaged")
        _publish(fresh, home)


def _is_wanted(name: str, root: str) -> bool:
    """The libraries and the licence: the web console and the examples are half of the archive."""
    return name.startswith((f"{root}/lib/", f"{root}/LICENSE", f"{root}/NOTICE"))


def _publish(fresh: Path, home: Path) -> None:
    os.sync()  # the manifest only holds sizes: after a power cut, no file may have its size and no content
    try:
        fresh.rename(home)
    except OSError:
        if not _is_complete(home):  # another process, on a file system without locks, was faster
            raise
