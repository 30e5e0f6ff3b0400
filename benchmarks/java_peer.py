"""The Java peer: Qpid JMS, built by Maven when it is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.job import Job
from benchmarks.processes import last_words

_PROJECT = Path(__file__).resolve().parent / "java"
_JAR = _PROJECT / "target" / "bench.jar"
_OLDEST_JAVA = 17  # Qpid JMS 2.10 needs it


class JavaMissingError(Exception):
    """Why Qpid JMS is left out."""


@dataclass(frozen=True)
class JavaPeer:
    """A built program, ready to run."""

    java: str
    version: str

    def command(self, job: Job) -> list[str]:
        """Return the command that runs a job."""
        class_path = os.pathsep.join([str(_JAR), str(_JAR.parent / "lib" / "*")])
        return [self.java, "-cp", class_path, "bench.Bench", *job.arguments()]


def prepare() -> JavaPeer:
    """Find Java, and build the program unless that was done before.

    Raises:
        JavaMissingError: with the reason.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise JavaMissingError(f"there is no java {f'in JAVA_HOME ({home})' if home else 'on PATH'}")
    version = _version(java)
    if int(version.split(".")[0]) < _OLDEST_JAVA:
        raise JavaMissingError(f"java {version} is older than {_OLDEST_JAVA}")
    if _stale():
        _build()
    return JavaPeer(java, version)


def _version(java: str) -> str:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d[^"]*)"', answer.stderr)
    if found is None:
        raise JavaMissingError(f"{java} -version says no version")
    return found.group(1)


def _stale() -> bool:
    if not _JAR.exists():
        return True
    sources = [_PROJECT / "pom.xml", *(_PROJECT / "src").rglob("*.java")]
    return max(source.stat().st_mtime for source in sources) > _JAR.stat().st_mtime


def _build() -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaMissingError("there is no mvn on PATH to build it")
    command = [maven, "--quiet", "--batch-mode", "clean", "package"]
    built = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    if built.returncode:
        raise JavaMissingError(f"mvn failed: {last_words(built.stdout, built.returncode)}")
