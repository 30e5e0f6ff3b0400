"""The directory of a broker and its command line: the parts that are the same for all kinds of broker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import ClassVar

from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.java import Java
from pyjmsack.broker.private import write_private
from pyjmsack.broker.tls import KeyStore
from pyjmsack.broker.wanted import Wanted

__all__ = ["Instance", "as_properties_line", "check_logins"]

_JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",  # these three options halve start time and memory of a small broker
    "-XX:+UseSerialGC",
    "-Xss512k",
    "-Xms32m",
    "-Xmx1g",  # only a limit; with 256m the broker ran out of memory at 80,000 messages of 1 KB
    # exit, because a broker that has no memory left would go on and only collect garbage, and nobody would notice
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-CreateCoredumpOnCrash",
)


@dataclass(frozen=True)
class Instance(ABC):
    """The description of a broker that can be started: its directory, ports and logins.

    Attributes:
        logins: for each user name, the password or its hash, as the broker's file of users has it. ``None`` lets
            everybody in.
    """

    directory: Path
    java: Java
    distribution: Distribution
    amqp_port: int = 0
    stomp_port: int = 0
    logins: Mapping[str, str] | None = field(default=None, repr=False)
    anonymous: bool = False
    jvm_options: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
    tls: KeyStore | None = None

    etc_name: ClassVar[str]
    """The folder in this package's ``etc`` that has the broker's configuration."""

    @property
    def log_path(self) -> Path:
        """The file with the standard output and error of the broker. Every start appends to the file."""
        return self.directory / "broker.log"

    @property
    def etc(self) -> Path:
        """The directory of the configuration files."""
        return self.directory / "etc"

    def command(self, archive_flags: Sequence[str]) -> list[str]:
        """Return the command line; ``archive_flags`` come from :mod:`pyjmsack.broker.sharing`."""
        properties = {
            "java.io.tmpdir": self.directory / "tmp",
            "log4j2.configurationFile": (self.etc / "log4j2.properties").as_uri(),
            "log4j2.disableJmx": "true",
            **self._properties(),
        }
        return [
            str(self.java.executable),
            *archive_flags,
            *_JVM_FLAGS,
            f"-XX:ErrorFile={self.directory / 'jvm-crash.log'}",
            *(f"-D{name}={value}" for name, value in properties.items()),
            *self.jvm_options,
            "-cp",
            self.distribution.class_path,
            *self._main(),
        ]

    def write_configuration(self) -> None:
        """Write the configuration, and make the directories that the broker needs. Replace the files of an earlier
        start.
        """
        for wanted in (self.etc, self.directory / "data", self.directory / "tmp"):
            wanted.mkdir(parents=True, exist_ok=True)
        source = resources.files("pyjmsack.broker").joinpath("etc")
        for file in (source / "log4j2.properties", *(source / self.etc_name).iterdir()):
            write_private(self.etc / file.name, self._with_wishes(file.name, file.read_bytes()))
        for name, lines in self._login_files().items():
            write_private(self.etc / name, "".join(f"{line}\n" for line in lines).encode("ascii"))

    @abstractmethod
    def _properties(self) -> Mapping[str, object]:
        """Return the Java system properties that the configuration refers to."""

    @abstractmethod
    def _with_wishes(self, name: str, text: bytes) -> bytes:
        """Return the content of a configuration file, with the wanted destinations and settings in it."""

    @abstractmethod
    def _main(self) -> Sequence[str]:
        """Return the main class and its arguments."""

    @abstractmethod
    def _login_files(self) -> Mapping[str, Iterable[str]]:
        """Return the lines of each file with users, by the name of the file. Only the owner may read these files."""

    @abstractmethod
    def port_is_taken(self, log: str) -> bool:
        """Whether the log says that another process has one of the ports."""

    @abstractmethod
    def listens(self, log: str) -> bool:
        """Whether the log says that this broker listens on both ports. An answer on a port does not prove this, because
        another broker may have given it.
        """


def check_logins(users: Mapping[str, str]) -> None:
    """Check that the brokers' files of users can hold these names and passwords.

    Raises:
        ValueError: a name or a password is empty, or a name has a comma or white space at its ends.
    """
    for name, password in users.items():
        if not name or not password or "," in name or name != name.strip():
            raise ValueError(
                "users: expected a name and a password that are not empty; "
                "a name has no comma, and no white space at its ends"
            )


def as_properties_line(key: str, *values: str) -> str:
    """Return a line of a Java properties file. Several values are joined with commas."""
    return f"{_escape(key)} = {','.join(map(_escape, values))}"


def _escape(text: str) -> str:
    """Escape a text for a Java properties file. Space, ``=`` and ``:`` would end a key, and characters beyond ASCII are
    written as UTF-16 code units.
    """
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
