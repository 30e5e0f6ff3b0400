"""The findings of a migration: rows with verdicts, connection factories, listeners, and methods that send."""

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

_MOST_ROWS: Final = 100_000
_MOST_TEXT: Final = 16 * 1024 * 1024
"""The largest number of characters of all rows and listeners together, without the reasons. A few lines of a file can
stand for very many rows, and for very long ones: factories share policies, and values have placeholders.
"""
USER: Final = "PYJMSACK_USER"
"""The environment variable with the user name, for code without a user name in the files."""


class Verdict(str, Enum):
    """The verdict about one key: what happens to the key in Python."""

    SAME = "same"
    """The name, the value and the unit stay the same."""
    CHANGED = "changed"
    """Another name, unit or value has the same effect."""
    DEFAULT = "default"
    """The Java client has another default than pyjmsack, and the new URL sets the default of the Java client."""
    IGNORED = "ignored"
    """pyjmsack does not need the setting."""
    BROKER = "broker"
    """The setting belongs to the broker, and stays there."""
    REFUSED = "refused"
    """pyjmsack has no replacement; the reason names an alternative."""
    BY_HAND = "by hand"
    """Python code, or a decision of the user, replaces the setting."""

    @property
    def open(self) -> bool:
        """Whether the user has to do something."""
        return self in (Verdict.REFUSED, Verdict.BY_HAND)


class Unreadable(Exception):  # noqa: N818 - the name says what the input is, as UnsupportedFeatureException does
    """A file or URL cannot be read, or all of them together have too many settings. The text gives the reason, and
    shows no secret.
    """


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file. Line 0 means that the place has no line number."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the report: a key, its value, and the replacement. ``value`` and ``python`` hold no secrets."""

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
    """The protocol of the new URLs: ``amqp`` or ``stomp``."""
    broker: str = ""
    """The broker: ``artemis``, ``classic-5`` or ``classic-6``. If empty, the files decide."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """For each port in the files, the port of the new protocol."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for ``${NAME}``."""


@dataclass(slots=True)
class Factory:
    """A connection factory of the Java service, with its new URL."""

    name: str
    place: Place
    client: str
    """The Java client that reads the old options: ``activemq``, ``artemis`` or ``qpid``."""
    broker: str
    """The broker: ``artemis``, ``classic-5`` or ``classic-6``. Empty if the broker is not known."""
    url: str = ""
    """The pyjmsack URL, without secrets. Empty if the old URL cannot be translated."""
    username: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    """The options of the pyjmsack URL whose value is a secret, each with the environment variable that holds it."""

    suffix: str = ""
    """A suffix for the names of the factory's environment variables. Empty for the first factory of a service."""

    @property
    def user_variable(self) -> str:
        """The environment variable that holds the user name."""
        return f"{USER}{self.suffix}"

    @property
    def asks_for_user(self) -> bool:
        """Whether the factory has a password, but no file has the user name. In this case the code reads the name from
        ``user_variable``.
        """
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
    """The name of the listener's connection factory. Empty if there is only one factory."""
    client_id: str = ""
    label: str = ""
    """The id of the listener in Spring. Empty if the listener has no id."""
    function: str = ""
    """The name of the listener's method. Empty if the listener has no method."""
    parameters: list[tuple[str, str]] = field(default_factory=list)
    """The name and the Python annotation of each parameter of the method."""
    answers: str = ""
    """The annotation of the value that the method returns. Empty if the method returns nothing."""
    reply_to: str = ""
    reply_topic: bool = False
    """Whether ``reply_to`` is the name of a topic."""
    answer: str = ""
    """The Python code of an answer, if answers have settings such as a priority. Otherwise empty."""
    autostart: bool = True
    on_error: str = ""
    """The bean whose ``ErrorHandler`` gets the errors of the listener. Empty if there is none."""


@dataclass(slots=True)
class Schedule:
    """A method that Spring runs at a fixed rate."""

    function: str
    """The name of the method."""
    place: Place
    seconds: float
    delay: float = 0.0

    def python(self, app: str) -> str:
        """Return the Python decorator of an app that replaces the annotation ``@Scheduled``."""
        delay = f", delay={self.delay:.10g}" if self.delay else ""
        return f"{app}.every({self.seconds:.10g}{delay})"


@dataclass(frozen=True, slots=True)
class Send:
    """A call of Spring's ``JmsTemplate`` or a similar class."""

    place: Place
    source: str
    """The call in Java, shortened."""
    call: str
    """``send`` or ``request``, for a call of ``app.sender``. Otherwise a text about the replacement, which may be
    empty.
    """
    arguments: tuple[str, ...] = ()
    """The Python arguments for ``send`` or ``request``."""
    factory: str = ""
    """The name of the connection factory. Empty if there is only one factory."""
    why: str = ""
    """The step that is left to the user. Empty if there is none."""

    def python(self, app: str) -> str:
        """Return the replacement for the call as Python text. ``app`` is the name of the app."""
        return f"{app}.sender.{self.call}({', '.join(self.arguments)})" if self.arguments else self.call


@dataclass(slots=True)
class Function:
    """A Java method that has ``@JmsListener`` or ``@Scheduled``, or that sends."""

    name: str
    place: Place
    last: int
    """The last line of the method. The line of ``place`` is the first line, with the annotations."""
    parameters: list[tuple[str, str]] = field(default_factory=list)
    answers: str = ""
    """The annotation of the value that the method returns. Empty if the method returns nothing."""
    sends: list[Send] = field(default_factory=list)
    annotations: tuple[str, ...] = ()
    """The names of the method's annotations."""
    whole: bool = False
    """Whether the method consists only of the sends in ``sends``, and each send is fully translated."""
    returns: bool = False
    """Whether the method returns the result of its only send."""

    def has(self, place: Place) -> bool:
        """Return whether a place is in this method."""
        return place.file == self.place.file and self.place.line <= place.line <= self.last


@dataclass(slots=True)
class Findings:
    """All findings, in the order of the files."""

    rows: list[Row] = field(default_factory=list)
    factories: list[Factory] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    nameless: list[Listener] = field(default_factory=list)
    """Listeners whose destination is not known. The code cannot register them. Their ``destination`` is the Java
    expression.
    """
    functions: list[Function] = field(default_factory=list)
    """The methods of the listeners and schedules, and the methods that send."""
    type_property: str = ""
    """The property of a message that names the type of its JSON. Empty if there is no such property."""
    types: dict[str, str] = field(default_factory=dict)
    """For each value of the property ``type_property``: the simple name of the Java class. If Spring has no mapping for
    a class, the property has the full name of the class as its value.
    """
    classes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The classes, records and enumerations of the sources: each field with its annotation and default. For a name of
    an enumeration, the annotation is ``= `` and its value in JSON.
    """
    sent: list[str] = field(default_factory=list)
    """The simple names of the classes that the service sends."""
    camel_case: bool = False
    """Whether the converter needs ``camel_case=True``, because the name of a field is a keyword of Python."""
    areas: dict[str, tuple[Place, int]] = field(default_factory=dict)
    """For each class of ``classes``, its place and its last line."""
    records: set[str] = field(default_factory=set)
    """The names of the classes in ``classes`` that are records."""
    unreadable: list[str] = field(default_factory=list)
    other_keys: int = 0
    """The number of keys that are not about messaging."""
    files: int = 0
    characters: int = 0
    """The number of characters of the rows and listeners."""

    def add(self, place: Place, key: str, value: str, verdict: Verdict, python: str = "", why: str = "") -> None:
        """Add a row.

        Args:
            place: where the setting is.
            key: the name of the setting in the Java configuration.
            value: the value of the setting there, without secrets.
            verdict: the result for the setting.
            python: the replacement in Python; empty = the setting has no replacement.
            why: the reason; empty = the row needs no reason.

        Raises:
            Unreadable: all files together have too many settings, or too long ones.
        """
        if len(self.rows) >= _MOST_ROWS:
            raise Unreadable(f"the files have more than {_MOST_ROWS} settings together; give fewer files")
        self._count(key, value, python)
        self.rows.append(Row(place, key, value, verdict, python, why))

    def listen(self, listener: Listener) -> None:
        """Add a listener whose destination is known.

        Raises:
            Unreadable: all files together have too long settings.
        """
        self._count(listener.name, listener.destination, listener.selector, listener.concurrency, listener.subscription)
        self._count(listener.client_id, listener.label, listener.reply_to, listener.answer, listener.on_error)
        self.listeners.append(listener)

    def _count(self, *texts: str) -> None:
        self.characters += sum(map(len, texts))
        if self.characters > _MOST_TEXT:
            raise Unreadable(f"the settings of the files have more than {_MOST_TEXT} characters; give fewer files")
