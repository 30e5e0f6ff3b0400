"""A broker's libraries: downloaded once, checked against a known SHA-512, and kept in the user's cache.

Several processes may need the libraries at the same time (pytest-xdist). Each process works in a directory of its own,
which it renames at the end, so that a reader sees all files or none. A lock lets only one process download them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.locks import FileLock
from pyjmsack.broker.progress import ProgressFactory
from pyjmsack.extras import missing_extra

__all__ = ["Artefact", "Distribution", "cache_directory", "check", "ensure"]

_MANIFEST = "pyjmsack-manifest.json"


@dataclass(frozen=True)
class Distribution:
    """The libraries of one version of a broker, in ``lib``."""

    version: str
    home: Path

    @property
    def class_path(self) -> str:
        """The class path with all libraries. They are sorted, because a class archive is valid for one order only."""
        return os.pathsep.join(sorted(str(jar) for jar in (self.home / "lib").glob("*.jar")))


@dataclass(frozen=True)
class Artefact:
    """A file in a Maven repository, and the only content that this file may have."""

    group: str
    name: str
    version: str
    sha512: str
    classifier: str = ""
    packaging: str = "jar"

    @property
    def file_name(self) -> str:
        """The name of the file in every Maven repository."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.packaging}"

    def download(self, target: Path, progress: ProgressFactory) -> None:
        """Download this file, and place it at ``target`` if its content is the expected one.

        Raises:
            BrokerError: there is no network, or the content has another checksum.
        """
        try:
            from jgo.maven import MavenContext, PythonResolver
        except ImportError as error:
            raise BrokerError(missing_extra("broker", "Fetching a broker", error)) from error
        with tempfile.TemporaryDirectory(prefix="download-", dir=target.parent) as private:
            context = MavenContext(repo_cache=Path(private), resolver=PythonResolver(progress_callback=progress))
            component = context.project(self.group, self.name).at_version(self.version)
            try:
                fetched = Path(component.artifact(self.classifier, self.packaging).resolve())
            except (OSError, RuntimeError) as error:
                raise BrokerError(
                    f"{self.name} {self.version} could not be downloaded ({error}). "
                    f"Check network and proxy, or place {self.file_name} in {cache_directory()} yourself."
                ) from error
            check(fetched, self.sha512)
            fetched.replace(target)


def cache_directory() -> Path:
    """Return the cache directory, and create it if it is missing. This is ``$PYJMSACK_CACHE`` if it is set, and
    otherwise ``pyjmsack`` in the user's cache.

    Raises:
        BrokerError: the directory cannot be made or used.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("PYJMSACK_CACHE") or Path(base) / "pyjmsack").absolute()
    if os.pathsep in str(cache):
        raise BrokerError(
            f"{cache}: Java cannot use a path with {os.pathsep!r} in it; set PYJMSACK_CACHE to another directory."
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BrokerError(
            f"The cache directory cannot be made ({error}); set PYJMSACK_CACHE to another directory."
        ) from error
    return cache


def ensure(version: str, home: Path, fill: Callable[[Path], None]) -> Distribution:
    """Return the distribution in ``home``. If it is missing or damaged, ``fill`` writes a new directory first.

    Raises:
        BrokerError: ``fill`` could not get the files.
    """
    if not _is_complete(home):
        with _only_one_downloads(home.parent):
            if not _is_complete(home):
                _make(home, fill)
    return Distribution(version, home)


def check(file: Path, sha512: str) -> None:
    """Check the SHA-512 of a file, and remove the file if its SHA-512 is wrong.

    Raises:
        BrokerError: the SHA-512 is wrong.
    """
    digest = hashlib.sha512()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != sha512:
        file.unlink()
        raise BrokerError(
            f"{file} was removed: its SHA-512 is {digest.hexdigest()}, expected {sha512}. "
            "Start again to fetch it anew; if it differs again, somebody has changed the file: do not use it."
        )


def _is_complete(home: Path) -> bool:
    """Whether the libraries have the names and sizes in the manifest. A manifest is written after all other files."""
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
    # without a lock several processes download the libraries, but the renames still keep the result right
    with contextlib.suppress(OSError):
        lock.acquire(wait=True)
    try:
        yield
    finally:
        lock.release()


def _make(home: Path, fill: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=home.parent) as private:
        fresh = Path(private) / "fresh"
        (fresh / "lib").mkdir(parents=True)
        fill(fresh)
        (fresh / _MANIFEST).write_text(json.dumps(_sizes(fresh / "lib")))
        if home.exists():  # damaged, as the caller found
            home.rename(Path(private) / "damaged")
        _publish(fresh, home)


def _publish(fresh: Path, home: Path) -> None:
    os.sync()  # the manifest has only sizes, so a power cut must not leave empty files of the right size
    try:
        fresh.rename(home)
    except OSError:
        if not _is_complete(home):  # without locks another process may have been faster
            raise
