"""Checks the names and values that JMS allows for properties, and converts values to other types (S160-S162)."""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import Any, NoReturn

from pyjmsack.errors import MessageFormatException
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["check_name", "check_value", "convert", "kind_of", "sized"]

RESERVED_WORDS = frozenset(("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"))

READABLE_AS = {
    "boolean": frozenset(("boolean", "string")),
    "byte": frozenset(("byte", "string")),
    "short": frozenset(("byte", "short", "string")),
    "int": frozenset(("byte", "short", "int", "string")),
    "long": frozenset(("byte", "short", "int", "long", "string")),
    "float": frozenset(("float", "string")),
    "double": frozenset(("float", "double", "string")),
    "string": frozenset(("boolean", "byte", "short", "int", "long", "float", "double", "string")),
}
"""For each type that a caller may want, the stored types that can be read as this type (S162, and JMS 2.0 table 3-4).
"""

_KINDS: dict[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    float: "double",
    Char: "string",
    str: "string",
}
_SIZED: dict[str, type[Byte | Short | Int | Long]] = {"byte": Byte, "short": Short, "int": Int, "long": Long}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(NaN|Infinity|([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
"""The pattern of a number with a fraction. A text can match in only one way, because a sender chooses the text. With
two ways to match, a wrong text of 16 KB took 20 s."""
_FLOAT = Struct(">f")


def check_name(name: object, strict: bool) -> str:
    """Return ``name`` if a property may have this name (S160).

    Args:
        name: the name that the caller gave.
        strict: whether the name must be a Java identifier, and not a reserved word of selectors. The empty name and
            ``None`` are always refused.

    Raises:
        MessageFormatException: the name is not allowed.
    """
    if not isinstance(name, str) or not name:
        raise MessageFormatException(f"property name {name!r}: expected a non-empty string")
    if strict and not name.replace("$", "_").isidentifier():
        raise MessageFormatException(
            f"property name {name!r}: expected a Java identifier (letters, digits, '_' and '$', no digit first); "
            "jms.validatePropertyNames=false in the URL allows other names"
        )
    if strict and name in RESERVED_WORDS:
        raise MessageFormatException(
            f"property name {name!r}: expected a name that is not a reserved word of selectors"
        )
    return name


def check_value(name: object, value: Any, noun: str = "property") -> Any:
    """Return ``value`` as a property keeps it (S161). A ``Char`` becomes a ``str``. A value of an unknown subclass of
    ``str``, ``int`` or ``float`` becomes a plain value.

    Args:
        name: the name of the property or field, for the error text.
        value: the value that the caller gave.
        noun: the word "property" or "field", for the error text.

    Raises:
        MessageFormatException: JMS does not allow the type, or the number does not fit.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return _fit_64_bits(name, value, noun)
    if kind is Float:
        return _round_single(name, value, noun)
    if kind in _KINDS:
        return value if kind is not Char else str(value)
    for plain in (str, int, float):
        if isinstance(value, plain):
            return check_value(name, plain(value), noun)
    hint = "; send json.dumps(...) as a text" if issubclass(kind, dict | list | tuple) else ""
    raise MessageFormatException(
        f"{noun} {name!r}: expected bool, int, float, str, None or a wrapper of pyjmsack.types, not"
        f" {kind.__name__}{hint}"
    )


def _fit_64_bits(name: object, value: int, noun: str) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise MessageFormatException(f"{noun} {name!r}: {value} does not fit the 64 bits of a Java long")
    return value


def _round_single(name: object, value: float, noun: str) -> Float:
    """Return the number, rounded to 32 bits, so that the sender and the receiver read the same number."""
    try:
        return Float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError as error:
        raise MessageFormatException(f"{noun} {name!r}: {float(value)} is too large for a Java float") from error


def kind_of(value: Any) -> str:
    """Return the JMS name of the type of a stored value.

    The type of a plain ``int`` is ``int`` if the number fits in 32 bits, and otherwise ``long``.
    """
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    if type(value) is int:
        return "int" if -(1 << 31) <= value < 1 << 31 else "long"
    return "string" if isinstance(value, str) else type(value).__name__


def sized(name: object, kind: str, value: Any, noun: str = "property") -> Any:
    """Return ``value`` as the Java type ``kind``, for setters such as ``set_byte_property``.

    Raises:
        MessageFormatException: ``value`` has another Python type, or does not fit.
    """
    if kind in _SIZED and isinstance(value, int) and not isinstance(value, bool):
        return _SIZED[kind](value)
    if kind in ("float", "double") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return check_value(name, Float(value) if kind == "float" else float(value), noun)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "string" and (value is None or isinstance(value, str)):
        return None if value is None else str(value)
    raise MessageFormatException(f"{noun} {name!r}: expected a {kind}, not {type(value).__name__} {value!r}")


def convert(name: object, value: Any, wanted: str) -> Any:
    """Read ``value`` as the type ``wanted``, if the table of S162 allows this conversion.

    Args:
        name: the name of the property or field, for the error text.
        value: the stored value. ``None`` stands for a missing value.
        wanted: a key of ``READABLE_AS``.

    Returns:
        A plain ``bool``, ``int``, ``float`` or ``str``. ``None`` only if ``value`` is ``None`` and ``wanted`` is
        ``string``.

    Raises:
        MessageFormatException: the table does not allow this conversion, or the string is not a number of this type.
    """
    if value is None:
        return _convert_none(name, wanted)
    kind = kind_of(value)
    if kind not in READABLE_AS[wanted]:
        raise MessageFormatException(f"{name!r} has the type {kind}; JMS does not allow reading this type as {wanted}")
    if kind == "string":
        return _PARSERS[wanted](name, value)
    if wanted == "string":
        return _to_text(kind, value)
    return bool(value) if kind == "boolean" else _PLAIN[wanted](value)


def _convert_none(name: object, wanted: str) -> Any:
    if wanted == "string":
        return None
    if wanted == "boolean":
        return False
    raise MessageFormatException(f"{name!r} is missing or None; expected a value that can be read as {wanted}")


def _to_text(kind: str, value: Any) -> str:
    if kind == "boolean":
        return "true" if value else "false"
    if kind in _SIZED:
        return str(int(value))
    number = _as_single(value) if kind == "float" else float(value)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return _shortest_single(number) if kind == "float" else repr(number)


def _shortest_single(value: float) -> str:
    """Return a number of 32 bits as text, with as few digits as Java writes: 0.1, not 0.10000000149011612."""
    for digits in range(1, 9):
        shorter = float(f"{value:.{digits}g}")
        # fewer digits may make the largest numbers too large for 32 bits; then they are infinite here
        if _as_single(shorter) == value:
            return repr(shorter)
    return repr(float(f"{value:.9g}"))


def _no_number(name: object, text: str, wanted: str) -> NoReturn:
    raise MessageFormatException(f"{name!r} is the text {text!r}; expected a text that is a number of type {wanted}")


def _parse_whole(wanted: str) -> Callable[[object, str], int]:
    bits = _SIZED[wanted].bits

    def parse(name: object, text: str) -> int:
        if not _WHOLE.fullmatch(text) or len(text) > 40 or not -(1 << (bits - 1)) <= int(text) < 1 << (bits - 1):
            _no_number(name, text, wanted)
        return int(text)

    return parse


def _parse_double(name: object, text: str, wanted: str = "double") -> float:
    trimmed = text.strip()
    if not _REAL.fullmatch(trimmed):
        _no_number(name, text, wanted)
    # Java allows a letter for the type at the end; "Infinity" and "NaN" do not end in such a letter
    return float(trimmed.rstrip("fFdD"))


def _parse_single(name: object, text: str) -> float:
    return _as_single(_parse_double(name, text, "float"))


def _as_single(value: float) -> float:
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:  # Java rounds to infinity
        return float("inf") if value > 0 else float("-inf")
    return rounded


def _parse_boolean(name: object, text: str) -> bool:
    return text.lower() == "true"


_PARSERS: dict[str, Callable[[object, str], Any]] = {
    "boolean": _parse_boolean,
    "byte": _parse_whole("byte"),
    "short": _parse_whole("short"),
    "int": _parse_whole("int"),
    "long": _parse_whole("long"),
    "float": _parse_single,
    "double": _parse_double,
    "string": lambda name, text: str(text),
}
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "byte": int,
    "short": int,
    "int": int,
    "long": int,
    "float": _as_single,
    "double": float,
}
