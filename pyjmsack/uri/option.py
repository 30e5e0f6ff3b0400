"""Declares options, and turns the text of an option into a typed value.

An option is declared once, as a dataclass field that :func:`option` makes. The rest of the library reads the typed
value of the field. The metadata of the field has an :class:`Option`, which is the row of the option table. The parser
and the documentation use this table. The text of an option has the names and units of Java (milliseconds, bytes). A
typed duration is in seconds.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, TypeVar, cast, overload

from pyjmsack.errors import JMSException, UnsupportedFeatureException
from pyjmsack.types import Outcome

__all__ = [
    "BOOLEAN",
    "BYTES_OR_SYSTEM",
    "BYTES_OR_UNLIMITED",
    "COUNT_OR_UNLIMITED",
    "CREDIT",
    "LIST",
    "METADATA_KEY",
    "MILLIS",
    "MILLIS_AT_LEAST_1",
    "MILLIS_FROM_0",
    "MILLIS_OR_DEFAULT",
    "MILLIS_OR_FOREVER",
    "NAME",
    "PASSWORD",
    "PENDING_LIMIT",
    "PORT",
    "SHARE_OR_UNLIMITED",
    "STORE_TYPE",
    "TEXT",
    "USER",
    "Kind",
    "Option",
    "Secret",
    "choice",
    "did_you_mean",
    "first_of",
    "integer",
    "named",
    "names",
    "nearest",
    "not_here",
    "number",
    "option",
    "outcomes",
    "parse_values",
    "shown",
    "store_conversion",
    "text_of",
]

T = TypeVar("T")
METADATA_KEY: Final = "pyjmsack.option"
_INT_MAX: Final = 2**31 - 1
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


class Secret:
    """A text that ``repr``, ``str``, formats and logs do not show. Only :meth:`reveal` returns the text.

    Args:
        text: the secret.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself, for a login. Never write the text into a log."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A type of option value.

    Attributes:
        type: the name of the type, for the documentation.
        expected: a description of the valid texts, for error messages.
        parse: turns the text into the value, or raises ``ValueError`` or ``KeyError`` if the text is wrong.
        unit: the unit of the text. Empty if the text has no unit.
        secret: whether the value must not be printed.
    """

    type: str
    expected: str
    parse: Callable[[str], T]
    unit: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the option table.

    Attributes:
        name: the Java name, with its prefix.
        kind: the type, the unit and the parser of the value.
        default: the default, in the form that it would have in a URL. ``None`` if there is no default.
        help: one line for the documentation.
        source: the rule number, or the Java client that has the option with this default.
        also: other names of the option, such as the name in the other Java client.
        alias_of: the main name of the option, if this row is for another name. Otherwise empty.
        targets: the dataclass fields that the option sets, as dotted paths from the object that owns the table.
    """

    name: str
    kind: Kind[Any]
    default: str | None
    help: str
    source: str
    also: tuple[str, ...] = ()
    alias_of: str = ""
    targets: tuple[str, ...] = ()


@overload
def option(
    name: str,
    kind: Kind[T],
    default: str,
    help: str,
    source: str = ...,
    *,
    also: str = ...,
) -> T: ...
@overload
def option(
    name: str,
    kind: Kind[T],
    default: None,
    help: str,
    source: str = ...,
    *,
    also: str = ...,
) -> T | None: ...
def option(
    name: str,
    kind: Kind[Any],
    default: str | None,
    help: str,
    source: str = "Qpid JMS",
    *,
    also: str = "",
) -> Any:
    """Declare a dataclass field that is also a row of the option table.

    Args:
        name: the Java name, with its prefix.
        kind: the type, the unit and the parser of the value.
        default: the default, in the form that it would have in a URL. ``None`` if there is no default.
        help: one line for the documentation.
        source: the rule number, or the Java client that has the option with this default.
        also: other names of the option, with spaces between them.
    """
    row = Option(name, kind, default, help, source, tuple(also.split()))
    value = None if default is None else kind.parse(default)
    return field(default=value, metadata={METADATA_KEY: row}, repr=not kind.secret)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _whole_number(text: str, minimum: int, maximum: int) -> int:
    if not _INTEGER.fullmatch(text) or not minimum <= int(text) <= maximum:
        raise ValueError
    return int(text)


def integer(minimum: int, maximum: int, unit: str = "") -> Kind[int]:
    """Return the kind of option whose value is a whole number from ``minimum`` to ``maximum``, both included."""
    of_unit = f" of {unit}" if unit else ""
    return Kind(
        "integer",
        f"a whole number{of_unit} from {minimum} to {maximum}",
        lambda text: _whole_number(text, minimum, maximum),
        unit,
    )


def number(minimum: float, maximum: float) -> Kind[float]:
    """Return the kind of option whose value is a number from ``minimum`` to ``maximum``, both included."""

    def parse(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not minimum <= float(text) <= maximum:
            raise ValueError
        return float(text)

    return Kind("number", f"a number from {minimum:g} to {maximum:g}", parse)


def _off_below(lowest: int) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        number = _whole_number(text, -1, _INT_MAX)
        return None if number < lowest else number

    return parse


def _seconds(lowest: int) -> Callable[[str], float | None]:
    milliseconds = _off_below(lowest)

    def parse(text: str) -> float | None:
        number = milliseconds(text)
        return None if number is None else number / 1000

    return parse


def _share_or_unlimited(text: str) -> float | None:
    if text == "-1":
        return None
    if not _DECIMAL.fullmatch(text) or not float(text) > 0:
        raise ValueError
    return float(text)


def _milliseconds(lowest: int) -> Kind[float]:
    return Kind(
        "duration",
        f"a whole number of milliseconds from {lowest} to {_INT_MAX}",
        lambda text: _whole_number(text, lowest, _INT_MAX) / 1000,
        "ms",
    )


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def choice(values: Mapping[str, T]) -> Kind[T]:
    """Return the kind of option whose value is one of a few names. Letter case does not matter, and ``-`` and ``_`` are
    the same."""
    folded = {_fold(name): value for name, value in values.items()}
    return Kind("choice", f"one of {', '.join(values)}", lambda text: folded[_fold(text)])


def _fold(name: str) -> str:
    return name.strip().replace("-", "_").upper()


def outcomes(*allowed: Outcome) -> Kind[Outcome]:
    """Return the kind of option whose value is an outcome, given by its name or by its number. The numbers are those of
    the property ``JMS_AMQP_ACK_TYPE`` (S38)."""
    by_name = choice({member.name: member for member in allowed})
    by_text = {str(member.value): member for member in allowed}
    expected = "one of " + ", ".join(f"{member.name} ({member.value})" for member in allowed)
    return Kind("outcome", expected, lambda text: by_text.get(text) or by_name.parse(text))


def names(*known: str) -> Kind[tuple[str, ...]]:
    """Return the kind of option whose value is a comma-separated list of known names. Letter case does not matter."""
    folded = {name.upper(): name for name in known}
    return Kind(
        "list",
        f"a comma-separated list of {', '.join(known)}",
        lambda text: tuple(folded[name.upper()] for name in _listed(text)),
    )


def store_conversion(store_type: str, path: str = "store") -> str:
    """Return a text with the commands that convert a Java key store or trust store into a PEM file.

    Args:
        store_type: the type of the store, such as ``JKS`` or ``PKCS12``.
        path: the path of the store, which the commands name.
    """
    steps: list[str] = []
    if store_type != "PKCS12":
        source, path = path, f"{path}.p12"
        steps.append(
            f"`keytool -importkeystore -srckeystore {source} -srcstoretype {store_type}"
            f" -destkeystore {path} -deststoretype PKCS12`"
        )
    steps.append(f"`openssl pkcs12 -in {path} -out {path}.pem` (add -nokeys for a trust store)")
    return f"convert it to PEM with {', then '.join(steps)}"


def _store_type(text: str) -> str:
    upper = text.upper()
    if upper in ("JKS", "JCEKS"):
        raise UnsupportedFeatureException(f"{upper} stores cannot be read; {store_conversion(upper)}")
    return {"PEM": "PEM", "PKCS12": "PKCS12", "P12": "PKCS12"}[upper]


def _listed(text: str) -> tuple[str, ...]:
    given = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if not all(given):
        raise ValueError
    return given


BOOLEAN: Final = Kind("boolean", "true or false", _boolean)
TEXT: Final = Kind("text", "a text", str)
NAME: Final = Kind("text", "a text that is not empty", _not_empty)
USER: Final = Kind("text", NAME.expected, _not_empty, secret=True)
PASSWORD: Final = Kind("text", "a text", Secret, secret=True)
PORT: Final = integer(1, 65535)
CREDIT: Final = integer(0, _INT_MAX, "messages")
PENDING_LIMIT: Final = integer(0, _INT_MAX, "messages")
STORE_TYPE: Final = Kind("choice", "one of PEM, PKCS12", _store_type)
LIST: Final = Kind("list", "a comma-separated list", _listed)
MILLIS_OR_FOREVER: Final[Kind[float | None]] = Kind(
    "duration", f"a whole number of milliseconds from 1 to {_INT_MAX}, or -1 or 0 for no limit", _seconds(1), "ms"
)
MILLIS: Final[Kind[float | None]] = Kind(
    "duration", f"a whole number of milliseconds from 0 to {_INT_MAX}, or -1 for no limit", _seconds(0), "ms"
)
MILLIS_OR_DEFAULT: Final[Kind[float | None]] = Kind(
    "duration", f"a whole number of milliseconds from 0 to {_INT_MAX}, or -1 for the default", _seconds(0), "ms"
)
MILLIS_FROM_0: Final = _milliseconds(0)
MILLIS_AT_LEAST_1: Final = _milliseconds(1)
COUNT_OR_UNLIMITED: Final[Kind[int | None]] = Kind(
    "integer", f"a whole number from 0 to {_INT_MAX}, or -1 for no limit", _off_below(0)
)
SHARE_OR_UNLIMITED: Final[Kind[float | None]] = Kind(
    "number", "a number above 0, or -1 for no limit", _share_or_unlimited
)
BYTES_OR_UNLIMITED: Final[Kind[int | None]] = Kind(
    "integer", f"a whole number of bytes from 1 to {_INT_MAX}, or -1 or 0 for no limit", _off_below(1), "bytes"
)
BYTES_OR_SYSTEM: Final[Kind[int | None]] = Kind(
    "integer", f"a whole number of bytes from 1 to {_INT_MAX}, or -1 for the system's default", _off_below(1), "bytes"
)


def text_of(value: object) -> str:
    """Return a value of ``options={...}`` as its text in a URL.

    Raises:
        ValueError: the value has a type that a URL cannot express.
    """
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(item) for item in value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", value))
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    raise ValueError


# -- texts become values ---------------------------------------------------------------------------------------------


_SHOWN: Final = 60
_DESCRIBED: Final = 10
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,60}")


def shown(value: object) -> str:
    """Return a value for an error message. A long value is shortened. A value that may contain a password becomes
    ``***``."""
    text = repr(value)
    if "passw" in text.lower() or "@" in text:
        return "***"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def named(name: str) -> str:
    """Return the name of an option for an error message. A text that does not look like a name becomes ``***``, because
    it may be a part of a password."""
    return name if _PLAIN_NAME.fullmatch(name) else "***"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``name`` for an error message, and add the nearest known name if there is a similar name."""
    near = nearest(name, known)
    return f"{named(name)} (did you mean {near}?)" if near else named(name)


def first_of(names: Sequence[str], describe: Callable[[str], str]) -> str:
    """Return the descriptions of the first ten names for an error message, and the number of the others. The search
    for a nearest name takes about a millisecond, and a file may hold thousands of wrong names."""
    described = ", ".join(map(describe, names[:_DESCRIBED]))
    return f"{described} and {len(names) - _DESCRIBED} more" if len(names) > _DESCRIBED else described


def not_here(names: Iterable[str], hints: Mapping[str, str]) -> str:
    """Return the text of an error about options that Java clients know and this library does not support."""
    listed = (f"{name} ({hints[name]})" if hints.get(name) else name for name in names)
    return "known in Java, not supported here: " + ", ".join(listed)


def parse_values(texts: Mapping[str, str], table: Mapping[str, Option], error: type[JMSException]) -> dict[str, Any]:
    """Parse ``texts`` in the order of the table. Return each value under the dotted path of its field.

    Raises:
        JMSException: values are wrong. The exception has the class ``error`` and lists all wrong values.
        UnsupportedFeatureException: this library knows the type of a store, but cannot read such a store.
    """
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    problems: list[str] = []
    unsupported: list[str] = []
    for row in table.values():
        if row.name not in texts:
            continue
        first = given.setdefault(row.alias_of or row.name, row.name)
        if first != row.name:
            problems.append(f"options {first} and {row.name} are two names of the same option; give only one of them")
            continue
        try:
            values.update(dict.fromkeys(row.targets, _parse_value(row, texts[row.name])))
        except _WrongValueError as wrong:
            problems.append(str(wrong))
        except UnsupportedFeatureException as known:
            unsupported.append(known.args[0])
    if problems:
        raise error("; ".join(problems + unsupported))
    if unsupported:
        raise UnsupportedFeatureException("; ".join(unsupported))
    return values


class _WrongValueError(Exception):
    """The text of an option cannot be parsed as the kind of this option."""


def _parse_value(row: Option, text: str) -> Any:
    try:
        return row.kind.parse(text)
    except (KeyError, ValueError):
        # the error has no cause, because the text of the cause would show the value, and shown() may have to hide it
        raise _WrongValueError(f"option {row.name}={shown(text)}: expected {row.kind.expected}") from None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the user probably meant. This name differs from ``name`` in letter case or in its
    prefix, or has a similar spelling. Return ``None`` if there is no such name.
    """
    folded = {candidate.lower(): candidate for candidate in known}
    wanted = name.lower()
    if wanted in folded:
        return folded[wanted]
    last = wanted.rpartition(".")[2]
    for tail in (wanted, last):
        for candidate, spelling in folded.items():
            if candidate.endswith("." + tail):
                return spelling
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    if close:
        return folded[close[0]]
    tails = {candidate.rpartition(".")[2]: spelling for candidate, spelling in folded.items()}
    close = difflib.get_close_matches(last, tails, n=1, cutoff=0.7)
    return tails[close[0]] if close else None
