"""The JVM's class archive (AppCDS). It holds the broker's classes in parsed form, which halves the broker's start time.

An archive fits only the JVM and the class path that wrote it, so its name has a hash of both. A broker that is started
only for this purpose writes the archive under another name. The archive is renamed when it is complete. If one of these
steps fails, the broker starts without the archive and needs a second more.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from pyjmsack.broker.distribution import Distribution, cache_directory
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.java import Java
from pyjmsack.broker.locks import FileLock

__all__ = ["ClassArchive"]

_DUMP_SECONDS = 60.0
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_log = logging.getLogger("pyjmsack.broker")

Trainer = Callable[[list[str]], None]
"""A function that runs a broker with the given JVM flags, and ends the broker in an orderly way."""


class ClassArchive:
    """The class archive for one JVM and the libraries of one broker version."""

    def __init__(self, java: Java, distribution: Distribution) -> None:
        self._java = java
        identity = "\0".join((str(java.home), java.version_text, str(distribution.home), distribution.class_path))
        key = hashlib.sha256(identity.encode()).hexdigest()[:16]
        directory = cache_directory() / "class-archives"
        directory.mkdir(exist_ok=True)
        self._base = directory / f"{key}-jdk.jsa"
        self._broker = directory / f"{key}-broker.jsa"
        self._lock = FileLock(directory / f"{key}.lock")

    def flags(self) -> list[str]:
        """Return the JVM flags that make use of the archive; no flags if there is no archive."""
        if not self._broker.exists():
            return []
        layers = [self._broker] if self._java.has_class_archive else [self._base, self._broker]
        return ["-Xshare:auto", f"-XX:SharedArchiveFile={os.pathsep.join(map(str, layers))}"]

    @staticmethod
    def was_refused(log: str) -> bool:
        """Whether the JVM logged that it cannot use the archive. Return ``False`` if the user set options for the JVM,
        because these options may be the reason.
        """
        return "][cds" in log and not any(name in os.environ for name in _JVM_VARIABLES)

    def discard(self) -> None:
        """Remove a useless archive, so that the next start writes it again."""
        for file in (self._broker, self._base):
            file.unlink(missing_ok=True)

    def build(self, train: Trainer) -> None:
        """Write the archive if it is missing. Return at once if another process is writing the archive now."""
        try:
            if self._broker.exists() or not self._lock.acquire(wait=False):
                return
        except OSError:
            return  # without locks this process cannot know whether it is the only writer
        try:
            self._write(train)
        except (OSError, subprocess.SubprocessError, BrokerError) as error:
            _log.info("no class archive, the broker starts more slowly: %s", error)
        finally:
            self._lock.release()

    def _write(self, train: Trainer) -> None:
        if self._broker.exists():  # another process wrote it before this one got the lock
            return
        _log.info("preparing fast starts of the broker (once per Java, some seconds)")
        if not self._java.has_class_archive:
            self._write_base()
        with _temporary_name(self._broker) as fresh:
            base = [] if self._java.has_class_archive else [f"-XX:SharedArchiveFile={self._base}"]
            train([*base, f"-XX:ArchiveClassesAtExit={fresh}"])
            # fsync, because a power cut could leave a file full of zeros, which the JVM ignores without a message
            with fresh.open("rb") as stream:
                os.fsync(stream.fileno())
            fresh.replace(self._broker)

    def _write_base(self) -> None:
        """Write the archive of the JDK's own classes into the cache. The usual place, the directory of the JVM, may be
        read-only and belongs to the user.
        """
        with _temporary_name(self._base) as fresh:
            command = [str(self._java.executable), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={fresh}"]
            subprocess.run(  # noqa: S603 - the user's own java, no shell
                command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_DUMP_SECONDS
            )
            fresh.replace(self._base)


@contextlib.contextmanager
def _temporary_name(final: Path) -> Iterator[Path]:
    fresh = final.with_suffix(f".{os.getpid()}.tmp")
    try:
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)
