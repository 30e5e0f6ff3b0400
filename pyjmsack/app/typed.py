"""Turns values of JSON into the types of annotations, and back. A value that does not fit a type is an error."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pyjmsack.app.names import DEEPEST, as_camel, as_fields, camel, is_model, keys
from pyjmsack.errors import MessageFormatException
from pyjmsack.message.mapping import check_elements

__all__ = ["Written", "build", "check_keys", "plain", "wants_decimals"]

_NANOSECONDS: Final = re.compile(r"(\.[0-9]{6})[0-9]+")


class Written(float):
    """A float that also keeps its text from the JSON. A ``Decimal`` that is made of this text loses no digit."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Written:
        """Return the float for the text of a number in JSON. The float keeps the text."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def _moment(text: str) -> datetime:
    """Return a time from its text. The text may end in ``Z``, and may have nanoseconds, which become microseconds."""
    plain = _NANOSECONDS.sub(r"\1", text)
    return datetime.fromisoformat(f"{plain[:-1]}+00:00" if plain.endswith("Z") else plain)


_PARSED: Final[dict[type, Callable[[str], Any]]] = {
    datetime: _moment,
    date: date.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}
"""Types whose values are text in JSON."""
_AS_THEY_ARE: Final = frozenset((bool, int, float, str))
"""Types whose values need no look at all the other types. Most values of a large body have one of these."""
_TYPES_SEEN: Final = 1000
"""The largest number of types that a search through a type and its parts visits, because one type may refer to many
others."""
_MOST_TRIED: Final = 100_000
"""The largest number of values of one body that are built in tries, beyond the number of values in the body. A try
builds a value, and all values inside, as one of the types of a union."""
_TEXT: Final = 16
"""The number of characters that count like one more value, because some types are looked for in the whole text."""
_FIELDS: Final = 8
"""The number of fields of a dataclass that count like one more value, because each field is looked for."""
_SHOWN: Final = 100
"""The largest number of characters of a key that an error shows."""
_REASON: Final = 1000
"""The largest number of characters of a class's own error text that an error shows."""


def plain(value: Any, camel_case: bool = False, depth: int = 0) -> Any:
    """Return the value in a form that JSON can write.

    Args:
        value: the value.
        camel_case: whether the names of fields are written in camelCase.
        depth: how many levels deep the value is nested in the body.

    Raises:
        MessageFormatException: JSON has no form of this value, the value has more than 64 levels of nested values, or
            two of its fields have the same name in camelCase.
    """
    if depth > DEEPEST:
        raise MessageFormatException(f"a body: expected at most {DEEPEST} levels of nested values")
    if value is None or isinstance(value, str | bool | int | float):
        return value.value if isinstance(value, Enum) else value
    if is_model(type(value)):
        dumped = value.model_dump(mode="json", by_alias=True)
        return as_camel(value, dumped, depth) if camel_case else dumped
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = _names(type(value), camel_case)
        return {key: plain(getattr(value, name), camel_case, depth + 1) for name, key in names.items()}
    if isinstance(value, Mapping):
        return {_key(key): plain(each, camel_case, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each, camel_case, depth + 1) for each in value]
    if isinstance(value, Enum):
        return plain(value.value, camel_case, depth + 1)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise MessageFormatException(f"a {type(value).__name__} has no form in JSON; convert it, or give a converter")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise MessageFormatException(f"the key {key!r} of a mapping is not a string, which JSON requires")
    return key


@lru_cache(maxsize=256)
def _names(kind: Any, camel_case: bool) -> dict[str, str]:
    """For each field of a dataclass, return the key that stands for it in JSON.

    Raises:
        MessageFormatException: two fields have the same name in camelCase.
    """
    names = [field.name for field in dataclasses.fields(kind)]
    return keys(kind.__name__, ((name, camel(name) if camel_case else name) for name in names))


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return the fields that the constructor of a dataclass takes. Each field is a name, a type, and whether a value is
    required.
    """
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return tuple(
        (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(kind)
        if field.init
    )


class _Reading:
    """The state that all parts of a body share while the body is read: how fields are named, whether the body may have
    numbers with their text (:class:`Written`), and how much may still be built in tries.

    A value is built outside of all tries only once. In tries it is built again and again: each nested union doubles the
    work for all values inside. Therefore everything that is built in a try is counted.
    """

    def __init__(self, kind: Any, body: Any, camel_case: bool) -> None:
        self.camel_case = camel_case
        self.written = wants_decimals(kind)
        self.tries = 0
        """The number of tries that are under way, one inside another."""
        self._body = body
        self._left = _MOST_TRIED
        self._measured = False

    def use(self, where: _Place, amount: int = 1) -> None:
        """Count an amount of work that is done in a try.

        Raises:
            _TooManyError: the limit is reached.
        """
        self._left -= amount
        if self._left < 0 and not self._measured:
            self._measured = True
            self._left += _size(self._body)
        if self._left < 0:
            raise _TooManyError(
                f"{where}: more than {_MOST_TRIED:,} values, beyond those in the body, were built to find the types of"
                " the values in unions; nest fewer unions in the annotation"
            )


def _size(value: Any) -> int:
    """Return the number of values in a value of JSON. Long texts count more than once."""
    size, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        size += 1
        if isinstance(each, dict):
            size += sum(len(key) for key in each if isinstance(key, str)) // _TEXT
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, str | Written):
            size += len(each if isinstance(each, str) else each.text) // _TEXT
    return size


class _Place:
    """A place in a body. The text of a place is made only for an error.

    The text of a place contains the keys of all places around it, and a sender may choose long keys. If each place
    had its text, the time to read a message would grow with the square of its size.
    """

    __slots__ = ("around", "text")

    def __init__(self, text: Any, around: _Place | None = None) -> None:
        self.text = text
        self.around = around

    def __str__(self) -> str:
        return str(self.text) if self.around is None else f"{self.around}{self.text}"


class _Element(_Place):
    """The place of a value in a list. The number of the value names the place."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.around}[{self.text}]"


class _Key(_Place):
    """The place of a value in a mapping. The key of the value names the place."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = self.text[:_SHOWN] + "…" if isinstance(self.text, str) and len(self.text) > _SHOWN else self.text
        return f"{self.around}, {shown!r}"


class _TooManyError(MessageFormatException):
    """The limit of tries is reached. The error has its own class, because after this error no further type of a union
    is tried.
    """


class _MisfitError(MessageFormatException):
    """A value that does not fit. The text is made only for the caller, because most misfits of tries are forgotten, and
    the text costs more than the try.
    """

    def __init__(self, where: _Place, reason: Callable[[], str]) -> None:
        super().__init__()
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason()}"


def build(kind: Any, value: Any, where: str = "the body", *, camel_case: bool = False) -> Any:
    """Return a value of JSON as ``kind``.

    Args:
        kind: a dataclass, a pydantic model, an enumeration, ``datetime``, ``date``, ``UUID``, ``Decimal``, a type of
            JSON, or ``list[...]``, ``dict[str, ...]``, ``tuple[..., ...]``, ``X | None`` of these.
        value: a value that ``json.loads`` returned.
        where: the name of the value in an error.
        camel_case: whether the names of fields are in camelCase.

    Raises:
        MessageFormatException: the value does not fit. Names in the JSON that a dataclass does not have are ignored.
    """
    try:
        return _build(kind, value, _Place(where), 0, _Reading(kind, value, camel_case))
    except (_MisfitError, _TooManyError) as error:
        raise MessageFormatException(str(error)) from error.__cause__


def _build(kind: Any, value: Any, where: _Place, depth: int, reading: _Reading) -> Any:
    """Return a value of JSON as ``kind``. ``depth`` tells how many levels deep ``value`` is nested in the body.
    ``reading`` is the state for the whole body.
    """
    if depth > DEEPEST:
        raise _MisfitError(where, lambda: f"expected at most {DEEPEST} levels of nested values")
    if reading.tries:
        reading.use(where)
    if type(value) is kind and kind in _AS_THEY_ARE:
        return value
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        if reading.tries and reading.written:
            reading.use(where, _size(value))
        return _plain_floats(value, depth, reading)
    if origin is typing.Annotated:
        return _build(typing.get_args(kind)[0], value, where, depth, reading)
    if origin in (typing.Union, types.UnionType):
        return _one_of(typing.get_args(kind), value, where, depth, reading)
    if origin is typing.Literal:
        if value in typing.get_args(kind):
            return value
        raise _wrong(kind, value, where)
    if origin is not None or kind in (list, dict, tuple):
        return _container(origin or kind, typing.get_args(kind), value, where, depth, reading)
    if is_model(kind):
        return _model(kind, value, where, depth, reading)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, where, depth, reading)
    return _scalar(kind, value, where, reading)


def wants_decimals(kind: Any) -> bool:
    """Return whether a type contains a ``Decimal`` at any depth."""
    try:
        return _has_decimals(kind)
    except (NameError, TypeError):  # the annotation cannot be read, or has no hash
        return False


@lru_cache(maxsize=256)
def _has_decimals(kind: Any) -> bool:
    return any(each is Decimal for each in _types_in(kind))


def check_keys(kind: type) -> None:
    """Check the names in camelCase of the fields of a class, and of the dataclasses inside this class.

    Raises:
        MessageFormatException: two fields of a class have the same name in camelCase.
    """
    try:
        for each in _types_in(kind):
            if is_model(each):
                as_fields(each, {}, lambda _, value: value)
            elif isinstance(each, type) and dataclasses.is_dataclass(each):
                _names(each, True)
    except (NameError, TypeError):  # the annotation cannot be read yet
        return


def _types_in(kind: Any) -> Iterator[Any]:
    """Yield a type and all types inside, including the types of the fields of dataclasses."""
    seen: set[Any] = set()
    found = [kind]
    while found:
        each = found.pop()
        if each in seen or len(seen) > _TYPES_SEEN:
            continue
        yield each
        seen.add(each)
        found += typing.get_args(each) if typing.get_origin(each) is not typing.Literal else ()
        if isinstance(each, type) and dataclasses.is_dataclass(each):
            found += [inner for _, inner, _ in _fields(each)]


def _plain_floats(value: Any, depth: int, reading: _Reading) -> Any:
    return _float(value, depth) if reading.written else value


def _float(value: Any, depth: int = 0) -> Any:
    """Return a value of JSON with a plain float in the place of each :class:`Written`, down to 64 levels of nested
    values.
    """
    if depth > DEEPEST:
        return value
    if isinstance(value, Written):
        return float(value)
    if isinstance(value, dict):
        return {key: _float(each, depth + 1) for key, each in value.items()}
    return [_float(each, depth + 1) for each in value] if isinstance(value, list) else value


def _wrong(kind: Any, value: Any, where: _Place) -> MessageFormatException:
    return _MisfitError(where, lambda: f"expected {getattr(kind, '__name__', kind)}, not {type(value).__name__}")


def _scalar(kind: Any, value: Any, where: _Place, reading: _Reading) -> Any:
    if kind is None or kind is type(None):
        if value is None:
            return None
        raise _wrong("null", value, where)
    if not isinstance(kind, type):
        raise _MisfitError(where, lambda: f"no value of JSON can become a {kind!r}")
    if isinstance(value, Written):
        value = value.text if kind is Decimal else float(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    if reading.tries and (kind in _PARSED or issubclass(kind, Enum)):  # these look at the whole value
        reading.use(where, _size(value))
    try:
        if kind in (float, Decimal) and isinstance(value, int) and not isinstance(value, bool):
            return kind(value)
        if issubclass(kind, Enum):
            return kind(value)
        if kind in _PARSED and isinstance(value, str):
            return _PARSED[kind](value)
    except (ArithmeticError, ValueError):  # ArithmeticError: an integer of 400 digits, or a text that is not a decimal
        raise _wrong(kind, value, where) from None
    raise _wrong(kind, value, where)


def _one_of(kinds: tuple[Any, ...], value: Any, where: _Place, depth: int, reading: _Reading) -> Any:
    if value is None and type(None) in kinds:
        return None
    found = [kind for kind in kinds if kind is not type(None)]
    for kind in found[:-1]:
        reading.tries += 1
        try:
            return _build(kind, value, where, depth + 1, reading)
        except _TooManyError:
            raise
        except MessageFormatException:
            continue
        finally:
            reading.tries -= 1
    return _build(found[-1], value, where, depth + 1, reading)


def _container(origin: Any, inside: tuple[Any, ...], value: Any, where: _Place, depth: int, reading: _Reading) -> Any:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(dict, value, where)
        kind = inside[1] if len(inside) == 2 else Any
        return {key: _build(kind, each, _Key(key, where), depth + 1, reading) for key, each in value.items()}
    if not isinstance(value, list) or not isinstance(origin, type):
        raise _wrong(list, value, where)
    kind = inside[0] if inside else Any
    if origin is tuple and Ellipsis not in inside and inside:
        if len(inside) != len(value):
            raise _MisfitError(where, lambda: f"expected {len(inside)} values, not {len(value)}")
        pairs = enumerate(zip(inside, value, strict=True))
        return tuple(_build(each, item, _Element(at, where), depth + 1, reading) for at, (each, item) in pairs)
    items = [_build(kind, each, _Element(number, where), depth + 1, reading) for number, each in enumerate(value)]
    if origin in (set, frozenset):
        return _set(origin, items, where)
    return tuple(items) if origin is tuple else items


def _set(origin: Any, items: list[Any], where: _Place) -> Any:
    """Return a set of the elements. Refuse elements whose hashes would make the set slow, because a sender may choose
    such elements on purpose.
    """
    try:
        check_elements(items)
    except (MessageFormatException, TypeError) as error:
        reason = str(error)
        raise _MisfitError(where, lambda: reason) from error
    return origin(items)


def _dataclass(kind: Any, value: Any, where: _Place, depth: int, reading: _Reading) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(kind, value, where)
    given, names = {}, _names(kind, reading.camel_case)
    if reading.tries:
        reading.use(where, len(names) // _FIELDS)
    for name, inner, needed in _fields(kind):
        key = names[name]
        if key in value:
            given[name] = _build(inner, value[key], _Place(f", {key!r} of {kind.__name__}", where), depth + 1, reading)
        elif needed:
            raise _missing(kind, key, where)
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise _refused(kind, error, where) from error


def _missing(kind: Any, key: str, where: _Place) -> MessageFormatException:
    return _MisfitError(where, lambda: f"{kind.__name__} needs {key!r}, which is missing")


def _model(kind: Any, value: Any, where: _Place, depth: int, reading: _Reading) -> Any:
    if reading.tries:
        reading.use(where, _size(value))  # pydantic looks at all values inside
    value = _plain_floats(value, depth, reading)
    if reading.camel_case:
        written, reading.written = reading.written, False  # nothing inside has to be copied once more
        try:
            value = as_fields(kind, value, lambda kinds, each: _one_of(kinds, each, where, depth + 1, reading), depth)
        finally:
            reading.written = written
    try:
        return kind.model_validate(value)
    except ValueError as error:  # the error of pydantic is a ValueError
        raise _refused(kind, error, where) from error


def _refused(kind: Any, error: Exception, where: _Place) -> MessageFormatException:
    """Return the error for values that a class refuses. The text is shortened, because pydantic lists every wrong value
    of a message.
    """

    def reason() -> str:
        text = str(error)
        return f"{kind.__name__} refuses the values: {text if len(text) <= _REASON else text[:_REASON] + '…'}"

    return _MisfitError(where, reason)
