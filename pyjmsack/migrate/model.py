"""The findings of a migration: rows with a verdict each, connection factories, listeners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pyjmsack.types import AckMode

__all__ = [
    "USER",
    "Factory",
    "Findings",
    "Function",
    "Listener",
    "Place",
    "Row",
    "Schedule",
    "Send",
    "Settings",
    "Unreadable",
    "Verdict",
]

USER: Final = "PYJMSACK_USER"
"""The environment variable with the name of the user, where no file says the name."""


class Verdict(str, Enum):
    """The result for one key."""

    SAME = "same"
    """The name, the value and the unit stay the same."""
    CHANGED = "changed"
    """Another name, unit or value does the same."""
    DEFAULT = "default"
    """A default of the Java client differs from ours, and the new URL sets it."""
    IGNORED = "ignored"
    """The setting is not needed."""
    BROKER = "broker"
    """The setting belongs to the broker, and stays there."""
    REFUSED = "refused"
    """pyjmsack has no replacement; the reason names an alternative."""
    BY_HAND = "by hand"
    """Python code, or a decision of the user, replaces the setting."""

    @property
    def open(self) -> bool:
        """Whether the user has something to do."""
        return self in (Verdict.REFUSED, Verdict.BY_HAND)


class Unreadable(Exception):  # noqa: N818 - the name says what the input is, as UnsupportedFeatureException does
    """A file or URL that cannot be read; the text names it, says why, and shows no secret."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file. Line 0 means that there is no line."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Row:
    """One key and its replacement. ``value`` and ``python`` hold no secrets."""

    place: Place
    key: str
    value: str
    verdict: Verdict
    python: str
    why: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices of the caller of :func:`migrate`."""

    protocol: str = "amqp"
    """``amqp`` or ``stomp``."""
    broker: str = ""
    """``artemis``, ``classic-5``, ``classic-6``, or empty, which means: as the files say."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """The port of the new protocol, by the port in the files."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for ``${NAME}``."""


@dataclass(slots=True)
class Factory:
    """A connection factory."""

    name: str
    place: Place
    client: str
    """``activemq``, ``artemis`` or ``qpid``: the Java client of the options."""
    broker: str
    """As for :attr:`Settings.broker`."""
    url: str = ""
    """A pyjmsack URL without secrets; empty if the old URL cannot be translated."""
    username: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    """The options of the pyjmsack URL whose value is a secret, each with the environment variable that holds it."""

    suffix: str = ""
    """The end of the names of its variables, if another factory of the same service has the names without it."""

    @property
    def user_variable(self) -> str:
        """The variable with the name of the user."""
        return f"{USER}{self.suffix}"

    @property
    def asks_for_user(self) -> bool:
        """Whether there is a password but no file names the user. The user name comes from ``USER`` in this case."""
        return not self.username and "jms.password" in self.secrets


@dataclass(slots=True)
class Listener:
    """A listener of the Java service."""

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
    client_id: str = ""
    label: str = ""
    """The id of the listener in Spring, or empty."""
    function: str = ""
    """The name of its method, or empty."""
    parameters: list[tuple[str, str]] = field(default_factory=list)
    """The parameters of its method in Python: name and annotation."""
    answers: str = ""
    """The annotation of the value that its method returns; empty if it returns none."""
    reply_to: str = ""
    reply_topic: bool = False
    """Whether ``reply_to`` is the name of a topic."""
    answer: str = ""
    """The Python text of its answers, if they have settings of their own."""
    autostart: bool = True
    on_error: str = ""
    """The bean whose ``ErrorHandler`` gets the errors of the listener, or empty."""


@dataclass(slots=True)
class Schedule:
    """A method that Spring runs at a fixed rate."""

    function: str
    """The name of the method."""
    place: Place
    seconds: float
    delay: float = 0.0

    def python(self, app: str) -> str:
        """Return the call of an app that takes the place of the annotation."""
        delay = f", delay={self.delay:.10g}" if self.delay else ""
        return f"{app}.every({self.seconds:.10g}{delay})"


@dataclass(frozen=True, slots=True)
class Send:
    """A call of a template of Spring."""

    place: Place
    source: str
    """The call in Java, shortened."""
    call: str
    """``send`` or ``request`` of ``app.sender``; or a text that says what replaces the call, which may be empty."""
    arguments: tuple[str, ...] = ()
    """The arguments in Python, of ``send`` and ``request``."""
    factory: str = ""
    """The name of the connection factory, or empty for the only one."""
    why: str = ""
    """What is left to do by hand, or empty."""

    def python(self, app: str) -> str:
        """Return what replaces the call, for an app with this name."""
        return f"{app}.sender.{self.call}({', '.join(self.arguments)})" if self.arguments else self.call


@dataclass(slots=True)
class Function:
    """A method of Java with ``@JmsListener`` or ``@Scheduled``, or one that sends."""

    name: str
    place: Place
    last: int
    """Its last line. The line of ``place`` is the first one, with the annotations."""
    parameters: list[tuple[str, str]] = field(default_factory=list)
    answers: str = ""
    """As for :attr:`Listener.answers`."""
    sends: list[Send] = field(default_factory=list)
    annotations: tuple[str, ...] = ()
    """The names of its annotations."""
    whole: bool = False
    """Whether the method does nothing but these sends, and each of them is known in full."""
    returns: bool = False
    """Whether the method returns the result of its only send."""

    def has(self, place: Place) -> bool:
        """Whether a place is in this method."""
        return place.file == self.place.file and self.place.line <= place.line <= self.last


@dataclass(slots=True)
class Findings:
    """All findings, in the order of the files."""

    rows: list[Row] = field(default_factory=list)
    factories: list[Factory] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    nameless: list[Listener] = field(default_factory=list)
    """Listeners whose destination is not known. No code can register them; ``destination`` is its source in Java."""
    functions: list[Function] = field(default_factory=list)
    """The methods of the listeners and schedules, and the methods that send."""
    type_property: str = ""
    """The property of a message that names the type of its JSON, or empty."""
    types: dict[str, str] = field(default_factory=dict)
    """The simple name of a Java class for each value of the property ``type_property``. If Spring has no mapping for a
    class, the value is the full name of the class."""
    classes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The classes, records and enumerations of the sources: each field with its annotation and default. The names of an
    enumeration have ``= `` and their value in JSON."""
    sent: list[str] = field(default_factory=list)
    """The simple names of the classes that the service sends."""
    camel_case: bool = False
    """Whether the converter needs ``camel_case=True``, because a field is a word of Python."""
    areas: dict[str, tuple[Place, int]] = field(default_factory=dict)
    """The place and the last line of each of these classes."""
    records: set[str] = field(default_factory=set)
    """The names of those that are records."""
    unreadable: list[str] = field(default_factory=list)
    other_keys: int = 0
    """Keys that have nothing to do with messaging."""
    files: int = 0

    def add(self, place: Place, key: str, value: str, verdict: Verdict, python: str = "", why: str = "") -> None:
        """Add a row.

        Args:
            place: where the setting is.
            key: the name of the setting in the Java configuration.
            value: the value of the setting there, without secrets.
            verdict: the result for the setting.
            python: the replacement in Python; empty = the setting has no replacement.
            why: the reason; empty = the row needs no reason.
        """
        self.rows.append(Row(place, key, value, verdict, python, why))
