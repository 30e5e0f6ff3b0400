"""What a migration finds: rows with a verdict each, connection factories, listeners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyjmsack.types import AckMode

__all__ = ["Factory", "Findings", "Listener", "Place", "Row", "Settings", "Unreadable", "Verdict"]


class Verdict(str, Enum):
    """What becomes of one key."""

    SAME = "same"
    """The same name, value and unit."""
    CHANGED = "changed"
    """Another name, unit or value does the same."""
    DEFAULT = "default"
    """A default of the Java client that differs from ours and is set for you."""
    IGNORED = "ignored"
    """Nothing is lost without it."""
    BROKER = "broker"
    """A setting of the broker, which stays where it is."""
    REFUSED = "refused"
    """There is nothing like it; the reason names the alternative."""
    BY_HAND = "by hand"
    """Python code, or a decision of yours, replaces it."""

    @property
    def open(self) -> bool:
        """True where something is left to do."""
        return self in (Verdict.REFUSED, Verdict.BY_HAND)


class Unreadable(Exception):  # noqa: N818 - says what the input is, as UnsupportedFeatureException does
    """A file or URL that cannot be read; the text names it, says why, and shows no secret."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; line 0 is no line."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Row:
    """One key, and what becomes of it. ``value`` and ``python`` hold no secrets."""

    place: Place
    key: str
    value: str
    verdict: Verdict
    python: str
    why: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller asked for."""

    protocol: str = "amqp"
    """``amqp`` or ``stomp``."""
    broker: str = ""
    """``artemis``, ``classic-5``, ``classic-6``, or empty: as the files say."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """The broker's port of the new protocol, by the port in the files."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for ``${NAME}``."""


@dataclass(slots=True)
class Factory:
    """A connection factory."""

    name: str
    place: Place
    client: str
    """``activemq``, ``artemis`` or ``qpid``: whose options these are."""
    broker: str
    """As for :attr:`Settings.broker`."""
    url: str = ""
    """A pyjmsack URL without secrets; empty where none could be made."""
    username: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    """Options of ours whose value is a secret, and the environment variable that holds it."""


@dataclass(slots=True)
class Listener:
    """Something that receives."""

    name: str
    place: Place
    destination: str
    topic: bool = False
    mode: AckMode = AckMode.SESSION_TRANSACTED
    selector: str = ""
    concurrency: str = "1"
    subscription: str = ""
    durable: bool = False
    shared: bool = False
    factory: str = ""
    """The name of its connection factory, or empty for the only one."""


@dataclass(slots=True)
class Findings:
    """All that was found, in the order of the files."""

    rows: list[Row] = field(default_factory=list)
    factories: list[Factory] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    other_keys: int = 0
    """Keys that are about something else than messaging."""
    files: int = 0

    def add(self, place: Place, key: str, value: str, verdict: Verdict, python: str = "", why: str = "") -> None:
        """Add a row."""
        self.rows.append(Row(place, key, value, verdict, python, why))
