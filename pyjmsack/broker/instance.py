"""One broker's directory on disk, and the command line that runs it."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.java import Java

__all__ = ["Instance", "hash_passwords", "write_configuration"]

_OPEN_MAIN = "org.apache.activemq.artemis.core.server.embedded.Main"
_SECURED_MAIN = "org.apache.activemq.artemis.cli.Artemis"  # the one with a JAAS domain; 0.2 s slower to start
_JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",  # these three halve start time and memory of a small broker
    "-XX:+UseSerialGC",
    "-Xss512k",
    "-Xms32m",
    "-Xmx1g",  # a ceiling, not a reservation; measured: 256m ends in OutOfMemoryError at 80,000 messages of 1 KB
    "-XX:+ExitOnOutOfMemoryError",  # a dead broker is seen at once, one that only collects garbage is not
    "-XX:-CreateCoredumpOnCrash",
)
_HASH_ROUNDS = 1024  # the broker's own default for PBKDF2


@dataclass(frozen=True)
class Instance:
    """Where a broker lives and what it listens on."""

    directory: Path
    java: Java
    distribution: Distribution
    amqp_port: int
    stomp_port: int
    secured: bool = False
    anonymous: bool = False
    jvm_options: tuple[str, ...] = ()

    @property
    def log_path(self) -> Path:
        """Standard output and error of the broker, appended to by every start."""
        return self.directory / "broker.log"

    def command(self, archive_flags: Sequence[str]) -> list[str]:
        """Return the command line; ``archive_flags`` come from :mod:`pyjmsack.broker.sharing`."""
        return [
            str(self.java.executable),
            *archive_flags,
            *_JVM_FLAGS,
            f"-XX:ErrorFile={self.directory / 'jvm-crash.log'}",
            *(f"-D{name}={value}" for name, value in self._properties().items()),
            *self.jvm_options,
            "-cp",
            self.distribution.class_path,
            *([_SECURED_MAIN, "run"] if self.secured else [_OPEN_MAIN, str(self.directory)]),
        ]

    def _properties(self) -> dict[str, object]:
        etc = self.directory / "etc"
        return {
            "pyjmsack.security": str(self.secured).lower(),
            "pyjmsack.amqp.port": self.amqp_port,
            "pyjmsack.stomp.port": self.stomp_port,
            "pyjmsack.data": self.directory / "data",
            "pyjmsack.etc.uri": etc.as_uri(),
            "artemis.home": self.distribution.home,
            "artemis.instance": self.directory,
            "artemis.instance.etc": etc,
            "java.io.tmpdir": self.directory / "tmp",
            "java.security.auth.login.config": etc / ("login-anonymous.config" if self.anonymous else "login.config"),
            "log4j2.configurationFile": (etc / "log4j2.properties").as_uri(),
            "log4j2.disableJmx": "true",
        }


def write_configuration(directory: Path, logins: Mapping[str, str]) -> None:
    """Write ``etc``, and make the directories that the broker writes in; what an earlier start left there is replaced.

    ``logins`` comes from :func:`hash_passwords`.
    """
    etc = directory / "etc"
    for wanted in (etc, directory / "data", directory / "tmp"):
        wanted.mkdir(parents=True, exist_ok=True)
    for file in resources.files("pyjmsack.broker").joinpath("etc").iterdir():
        (etc / file.name).write_bytes(file.read_bytes())
    _write_private(etc / "users.properties", (f"{_escape(name)} = {word}" for name, word in logins.items()))
    _write_private(etc / "roles.properties", [f"amq = {','.join(map(_escape, logins))}"])


def hash_passwords(users: Mapping[str, str]) -> dict[str, str]:
    """Hash as the broker does for ``artemis user add``, so that no password is kept in memory or on the disk.

    Raises:
        ValueError: what the broker's files cannot hold: an empty name or password, a name with a comma or with white
            space at its ends.
    """
    for name, password in users.items():
        if not name or not password or "," in name or name != name.strip():
            raise ValueError("users: a name needs a password, no comma and no white space at its ends")
    return {name: _hash(password) for name, password in users.items()}


def _write_private(path: Path, lines: Iterable[str]) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def _hash(password: str) -> str:
    salt = secrets.token_bytes(32)
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, _HASH_ROUNDS, 64)
    return f"ENC({_HASH_ROUNDS}:{salt.hex().upper()}:{digest.hex().upper()})"


def _escape(name: str) -> str:
    """Escape for a Java properties file, where space, ``=`` and ``:`` end a key; beyond ASCII, UTF-16 code units."""
    units = name.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
