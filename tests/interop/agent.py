"""The Java ends: a JMS client in a process of its own, told by JSON lines what to do, and a service of Spring."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyjmsack import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["Agent", "JavaMissingError", "SpringService", "started", "telemetry_agent", "typed"]

_PROJECT = Path(__file__).parent / "java"
_TARGET = _PROJECT / "target"
_JAR = _TARGET / "interop.jar"
_LIBRARIES = _TARGET / "lib" / "*"
_TELEMETRY = "opentelemetry-javaagent", "2.16.0"
_JAVA_NAMES = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    Char: "char",
    str: "string",
    float: "double",
}


class JavaMissingError(Exception):
    """There is no Java or no Maven here."""


def typed(value: Any) -> list[str]:
    """Return a value as the Java end writes it: its Java type and its text."""
    if value is None:
        return ["null", ""]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if type(value) is int:
        return ["int" if -(1 << 31) <= value < 1 << 31 else "long", str(value)]
    return [_JAVA_NAMES[type(value)], _text(value)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value))
    return str(int(value)) if isinstance(value, int) else str.__str__(value)


class Agent:
    """One Java client, ``qpid`` or ``openwire``.

    Args:
        client: which of the two.
        options: more options of the JVM.
    """

    def __init__(self, client: str, options: Sequence[str] = ()) -> None:
        self._process = started([*options], "interop.Agent", client)

    def start(self, what: str, url: str, **command: Any) -> None:
        """Give a command whose answer comes later, by :meth:`answer`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, "url": url, **command}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return the answer to the oldest command without one."""
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def do(self, what: str, url: str, **command: Any) -> Any:
        """Give a command and return the answer."""
        self.start(what, url, **command)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


class SpringService:
    """A service of Spring that answers emails in JSON; see ``SpringService.java``.

    Args:
        url: where the service connects, as Qpid JMS writes it.
        form: ``TEXT`` or ``BYTES``, the kind of its messages.
        queue: the queue on which it answers.
    """

    def __init__(self, url: str, form: str, queue: str) -> None:
        self._process = started([f"-Durl={url}", f"-Dform={form}", f"-Dqueue={queue}"], "hello.SpringService")
        assert self._said() == "ready"

    def ask(self, queue: str) -> str:
        """Let the service send an email to a queue, and return the answer that it got."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{queue}\n")
        self._process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def started(options: Sequence[str], program: str, *arguments: str) -> subprocess.Popen[str]:
    """Build the Java programs if they are stale, and start one.

    Raises:
        JavaMissingError: there is no Java or no Maven here.
    """
    java = _java()
    with _only_one():
        if _stale():
            _build()
    classes = f"{_JAR}{os.pathsep}{_TARGET / 'lib'}/*"
    return subprocess.Popen(
        [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", *options, "-cp", classes, program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )


def telemetry_agent() -> Path:
    """Return the jar of the OpenTelemetry agent for Java, fetched by Maven once.

    Raises:
        JavaMissingError: there is no Maven, or it cannot fetch the jar.
    """
    name, number = _TELEMETRY
    jar = _TARGET / "telemetry" / f"{name}-{number}.jar"
    with _only_one():
        if not jar.exists():
            _copy(f"io.opentelemetry.javaagent:{name}:{number}", jar.parent)
    return jar


def _copy(artifact: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaMissingError("there is no mvn on PATH to fetch the OpenTelemetry agent")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    command = [maven, "--quiet", "--batch-mode", goal, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    fetched = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise JavaMissingError(f"Maven cannot fetch {artifact}: {fetched.stdout[-300:]}")


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        raise JavaMissingError("there is no java on PATH")
    return java


@contextmanager
def _only_one() -> Iterator[None]:
    """Let one test process build at a time."""
    _TARGET.mkdir(exist_ok=True)
    with (_PROJECT / "target.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _stale() -> bool:
    if not _JAR.exists():
        return True
    sources = [_PROJECT / "pom.xml", *(_PROJECT / "src").rglob("*.java")]
    return max(source.stat().st_mtime for source in sources) > _JAR.stat().st_mtime


def _build() -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaMissingError("there is no mvn on PATH to build the Java end")
    command = [maven, "--quiet", "--batch-mode", "package"]
    built = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout[-2000:]
