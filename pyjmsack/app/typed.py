"""Turns values of JSON into the types of annotations, and back. A value that does not fit a type is an error."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.mapping import check_elements

__all__ = ["Written", "build", "is_model", "plain", "wants_decimals"]

_NANOSECONDS: Final = re.compile(r"(\.[0-9]{6})[0-9]+")


class Written(float):
    """A float that keeps its text in JSON, so that a ``Decimal`` can be made of the text without a loss."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Written:
        """Return the number that a text of JSON stands for."""
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
_DEEPEST: Final = 64
_TYPES_SEEN: Final = 1000
"""The most types that are searched for a ``Decimal``, because one type may refer to many others."""
_MOST_TRIES: Final = 1_000_000
"""The most tries in one body. Each try builds a value as one of the types of a union."""
_SHOWN: Final = 100
"""The most characters of a key that an error shows."""
_REASON: Final = 1000
"""The most characters that an error shows of the reason that a class gives."""


def is_model(kind: Any) -> bool:
    """Return whether this is a pydantic model. pydantic itself is not imported."""
    return isinstance(kind, type) and hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value in a form that JSON can write.

    Raises:
        MessageFormatException: JSON has no form of this value, or the value has more than 64 levels of nested values.
    """
    if depth > _DEEPEST:
        raise MessageFormatException(f"a body: expected at most {_DEEPEST} levels of nested values")
    if value is None or isinstance(value, str | bool | int | float):
        return value.value if isinstance(value, Enum) else value
    if is_model(type(value)):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, Enum):
        return plain(value.value, depth + 1)
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
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return the fields that the constructor of a dataclass takes. Each is a name, a type, and whether a value is
    needed.
    """
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return tuple(
        (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(kind)
        if field.init
    )


class _Tries:
    """Limits how often values of a body are tried as a type of a union, because each nested union doubles the work."""

    def __init__(self) -> None:
        self.left = _MOST_TRIES

    def use(self, where: _Place) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooManyError(f"{where}: more than {_MOST_TRIES:,} tries to find the types of the values in unions")


class _Place:
    """A place in a body. Its text is made only for an error.

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
    """The place of a value in a list, which is its number."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.around}[{self.text}]"


class _Key(_Place):
    """The place of a value in a mapping, which is its key."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = self.text[:_SHOWN] + "…" if isinstance(self.text, str) and len(self.text) > _SHOWN else self.text
        return f"{self.around}, {shown!r}"


class _TooManyError(MessageFormatException):
    """The limit of tries is reached, so that no other type is tried."""


def build(kind: Any, value: Any, where: str = "the body") -> Any:
    """Return a value of JSON as ``kind``.

    Args:
        kind: a dataclass, a pydantic model, an enumeration, ``datetime``, ``date``, ``UUID``, ``Decimal``, a type of
            JSON, or ``list[...]``, ``dict[str, ...]``, ``tuple[..., ...]``, ``X | None`` of these.
        value: a value that ``json.loads`` returned.
        where: the name of the value in an error.

    Raises:
        MessageFormatException: the value does not fit. Names that a dataclass does not have are ignored.
    """
    return _build(kind, value, _Place(where), 0, _Tries())


def _build(kind: Any, value: Any, where: _Place, depth: int, tries: _Tries) -> Any:
    """Return a value of JSON as ``kind``. ``depth`` counts the values around it; ``tries`` belong to the whole body."""
    if depth > _DEEPEST:
        raise MessageFormatException(f"{where}: expected at most {_DEEPEST} levels of nested values")
    origin = typing.get_origin(kind)
    if kind is Any or kind is object:
        return _float(value, depth)
    if origin is typing.Annotated:
        return _build(typing.get_args(kind)[0], value, where, depth, tries)
    if origin in (typing.Union, types.UnionType):
        return _one_of(typing.get_args(kind), value, where, depth, tries)
    if origin is typing.Literal:
        if value in typing.get_args(kind):
            return value
        raise _wrong(kind, value, where)
    if origin is not None or kind in (list, dict, tuple):
        return _container(origin or kind, typing.get_args(kind), value, where, depth, tries)
    if is_model(kind):
        return _model(kind, _float(value, depth), where)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, where, depth, tries)
    return _scalar(kind, value, where)


def wants_decimals(kind: Any) -> bool:
    """Return whether a type contains a ``Decimal`` at any depth."""
    try:
        return _has_decimals(kind)
    except (NameError, TypeError):  # an annotation that cannot be read, or has no hash
        return False


@lru_cache(maxsize=256)
def _has_decimals(kind: Any) -> bool:
    seen: set[Any] = set()
    found = [kind]
    while found:
        each = found.pop()
        if each is Decimal:
            return True
        if each in seen or len(seen) > _TYPES_SEEN:
            continue
        seen.add(each)
        found += typing.get_args(each) if typing.get_origin(each) is not typing.Literal else ()
        if isinstance(each, type) and dataclasses.is_dataclass(each):
            found += [inner for _, inner, _ in _fields(each)]
    return False


def _float(value: Any, depth: int = 0) -> Any:
    """Return a value of JSON with a plain float in the place of each :class:`Written`, down to the greatest depth."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, Written):
        return float(value)
    if isinstance(value, dict):
        return {key: _float(each, depth + 1) for key, each in value.items()}
    return [_float(each, depth + 1) for each in value] if isinstance(value, list) else value


def _wrong(kind: Any, value: Any, where: _Place) -> MessageFormatException:
    return MessageFormatException(f"{where}: expected {getattr(kind, '__name__', kind)}, not {type(value).__name__}")


def _scalar(kind: Any, value: Any, where: _Place) -> Any:
    if kind is None or kind is type(None):
        if value is None:
            return None
        raise _wrong("null", value, where)
    if not isinstance(kind, type):
        raise MessageFormatException(f"{where}: {kind!r} is not a type that JSON can become")
    if isinstance(value, Written):
        value = value.text if kind is Decimal else float(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    try:
        if kind in (float, Decimal) and isinstance(value, int) and not isinstance(value, bool):
            return kind(value)
        if issubclass(kind, Enum):
            return kind(value)
        if kind in _PARSED and isinstance(value, str):
            return _PARSED[kind](value)
    except (ArithmeticError, ValueError):  # ArithmeticError: an integer of 400 digits, or a text that is no decimal
        raise _wrong(kind, value, where) from None
    raise _wrong(kind, value, where)


def _one_of(kinds: tuple[Any, ...], value: Any, where: _Place, depth: int, tries: _Tries) -> Any:
    if value is None and type(None) in kinds:
        return None
    found = [kind for kind in kinds if kind is not type(None)]
    for kind in found[:-1]:
        tries.use(where)
        try:
            return _build(kind, value, where, depth + 1, tries)
        except _TooManyError:
            raise
        except MessageFormatException:
            continue
    return _build(found[-1], value, where, depth + 1, tries)


def _container(origin: Any, inside: tuple[Any, ...], value: Any, where: _Place, depth: int, tries: _Tries) -> Any:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(dict, value, where)
        kind = inside[1] if len(inside) == 2 else Any
        return {key: _build(kind, each, _Key(key, where), depth + 1, tries) for key, each in value.items()}
    if not isinstance(value, list) or not isinstance(origin, type):
        raise _wrong(list, value, where)
    kind = inside[0] if inside else Any
    if origin is tuple and Ellipsis not in inside and inside:
        if len(inside) != len(value):
            raise MessageFormatException(f"{where}: expected {len(inside)} values, not {len(value)}")
        pairs = zip(inside, value, strict=True)
        return tuple(_build(each, item, _Element(at, where), depth + 1, tries) for at, (each, item) in enumerate(pairs))
    items = [_build(kind, each, _Element(number, where), depth + 1, tries) for number, each in enumerate(value)]
    if origin in (set, frozenset):
        return _set(origin, items, where)
    return tuple(items) if origin is tuple else items


def _set(origin: Any, items: list[Any], where: _Place) -> Any:
    """Return a set of the elements. Elements whose hashes would make the set slow are refused, because the sender
    chooses the elements.
    """
    try:
        check_elements(items)
    except (MessageFormatException, TypeError) as error:
        raise MessageFormatException(f"{where}: {error}") from error
    return origin(items)


def _dataclass(kind: Any, value: Any, where: _Place, depth: int, tries: _Tries) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(kind, value, where)
    given = {}
    for name, inner, needed in _fields(kind):
        if name in value:
            given[name] = _build(inner, value[name], _Place(f", {name!r} of {kind.__name__}", where), depth + 1, tries)
        elif needed:
            raise MessageFormatException(f"{where}: {kind.__name__} needs {name!r}, which is not there")
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise MessageFormatException(f"{where}: {kind.__name__} refuses the values: {_short(error)}") from error


def _model(kind: Any, value: Any, where: _Place) -> Any:
    try:
        return kind.model_validate(value)
    except ValueError as error:  # pydantic's own error is one
        raise MessageFormatException(f"{where}: {kind.__name__} refuses the values: {_short(error)}") from error


def _short(error: Exception) -> str:
    """Return the start of an error's text, because the text of pydantic lists every wrong value of a message."""
    text = str(error)
    return text if len(text) <= _REASON else text[:_REASON] + "…"
