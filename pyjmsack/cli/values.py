"""Typed properties: ``amount:int=5`` on the command line, ``"property_types": {"amount": "int"}`` in JSON.

A sender over AMQP may choose values of types that JMS does not have, such as bytes and lists. In JSON they are objects
in the portable form of a body (``pyjmsack.portable``): ``{"bytes": "AAE="}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from pyjmsack import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    Message,
    MessageFormatException,
    ObjectMessage,
    Short,
    portable,
)

__all__ = [
    "Value",
    "json_value",
    "parse_properties",
    "readable_properties",
    "restore_properties",
    "set_properties",
    "text_of",
    "typed_value",
    "wire_types",
]

Value = bool | int | float | str

_BOOLEANS = {"true": True, "false": False}


def _boolean(value: object) -> bool:
    if str(value).lower() not in _BOOLEANS:
        raise ValueError(f"{value!r} is neither true nor false")
    return _BOOLEANS[str(value).lower()]


_TYPES: Mapping[str, Callable[[object], Value]] = {
    "boolean": _boolean,
    "byte": Byte,
    "short": Short,
    "int": Int,
    "long": Long,
    "float": lambda value: Float(str(value)),
    "double": lambda value: Double(str(value)),
    "char": lambda value: Char(str(value)),
    "string": str,
}
_ALIASES = {"bool": "boolean", "str": "string", "text": "string"}
_SPECIAL: Mapping[type, str] = {Byte: "byte", Short: "short", Long: "long", Float: "float", Char: "char"}
_INT_LIMIT = 1 << 31


def typed_value(kind: str, value: object) -> Value:
    """Return a value as the JMS type ``kind``.

    Raises:
        ValueError: the type is unknown, or the value does not fit the type.
    """
    convert = _TYPES.get(_ALIASES.get(kind, kind))
    if convert is None:
        raise ValueError(f"type {kind!r} is unknown; expected one of {', '.join(_TYPES)}")
    return convert(value)


def wire_types(properties: Mapping[str, object]) -> dict[str, str]:
    """Return the types that JSON would lose. For example, JSON writes a long like an int, and a float like a double."""
    types = ((name, _lost_type(value)) for name, value in properties.items())
    return {name: kind for name, kind in types if kind is not None}


def _lost_type(value: object) -> str | None:
    if isinstance(value, Long) and not -_INT_LIMIT <= value < _INT_LIMIT:
        return None
    is_text_in_json = isinstance(value, float) and not math.isfinite(value)
    return _SPECIAL.get(type(value)) or ("double" if is_text_in_json else None)


def text_of(message: Message, name: str) -> str | None:
    """Return any property as text for people, even if JMS cannot read its value as text. Return ``None`` if the
    property is missing.
    """
    try:
        return message.get_string_property(name)
    except MessageFormatException:
        try:
            value = message.properties.get(name)  # this reads one property, because a sender chooses how many there are
        except MessageFormatException:  # no property of this message can be read
            return None
        return None if value is None else str(value)


def readable_properties(message: Message) -> tuple[dict[str, Any], str | None]:
    """Return the properties of a message, and the reason if they cannot be read.

    The client hands out a message whose properties cannot be decoded (S160). One such message must not end a command.
    """
    try:
        return dict(message.properties), None
    except MessageFormatException as error:
        return {}, str(error)


def json_value(value: object) -> object:
    """Return a property for JSON, in the portable form if JSON has no such type.

    NaN and the infinities are texts, as in the portable form, because strict parsers refuse them as bare words. They
    have a type of :func:`wire_types`, so that ``send`` and ``import`` read them as numbers.

    Raises:
        MessageFormatException: the value has no portable form.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    beyond = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63  # no number of Java, so no import can send it
    if value is None or (isinstance(value, bool | int | float | str) and not beyond):
        return value
    return json.loads(portable.encode(ObjectMessage(value))[1])


def restore_properties(message: Message, properties: Mapping[str, Any], types: Mapping[str, str]) -> None:
    """Set the properties of a message as :func:`json_value` and :func:`wire_types` wrote them.

    The properties get their old values and types, even if a program of JMS could not set them. If the protocol cannot
    carry them, the send is refused.

    Raises:
        ValueError: a value does not fit its type, or is not in the portable form.
    """
    for name, value in properties.items():
        if isinstance(value, dict | list):
            value = portable.decode(portable.CONTENT_TYPES[ObjectMessage.wire_type], json.dumps(value))[1]
        elif (kind := types.get(name)) is not None:
            value = typed_value(kind, value)
        if not isinstance(value, Char):  # this one would become a text
            try:
                message.properties[name] = value
                continue
            except MessageFormatException:
                pass
        message._properties = {**(message._properties or {}), name: value}


def set_properties(message: Message, properties: Mapping[str, object], types: Mapping[str, str]) -> None:
    """Set the properties of a message: ``properties`` has the values, and ``types`` the JMS types of some of them.

    Raises:
        ValueError: a value does not fit its type, or a property cannot have such a value.
    """
    for name, value in properties.items():
        kind = types.get(name)
        if kind is not None:
            value = typed_value(kind, value)
        if value is not None and not isinstance(value, bool | int | float | str):
            raise ValueError(f"property {name!r}: expected a string, number, boolean or null")
        message.properties[name] = value


def parse_properties(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, Value]:
    """Return the properties in ``NAME=VALUE`` and ``NAME:TYPE=VALUE``. This is the callback of an option."""
    return dict(_parse_property(value) for value in values)


def _parse_property(text: str) -> tuple[str, Value]:
    left, equals, right = text.partition("=")
    name, colon, kind = left.partition(":")
    if not equals or not name:
        raise click.BadParameter(f"{text!r}: expected NAME=VALUE or NAME:TYPE=VALUE, such as amount:int=5")
    try:
        return name, typed_value(kind if colon else "string", right)
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from error
