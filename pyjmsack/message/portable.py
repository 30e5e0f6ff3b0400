"""Writes map, stream and object bodies as JSON that keeps the Java types, for STOMP.

STOMP has bodies of text and of bytes only. So a map, stream or object body is sent over STOMP as JSON text with one of
these content types. This library reads such a body over both protocols:

======================================== =====================
``application/vnd.pyjmsack.map+json``    object: name to value
``application/vnd.pyjmsack.stream+json`` array of values
``application/vnd.pyjmsack.object+json`` one value
======================================== =====================

A value is ``null``, ``true``, ``false``, a string, or a JSON object with one member. The type is the name of the
member:

============================================== =====================================================
``{"byte": 1}``, ``short``, ``int``, ``long``  a whole number
``{"float": 1.5}``, ``double``                 a number, or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
``{"char": "x"}``                              one UTF-16 code unit
``{"bytes": "AAE="}``                          Base64
``{"uuid": "12345678-..."}``                   a UUID; only in object bodies
``{"list": [value, ...]}``                     a list; only in object bodies
``{"map": [[value, value], ...]}``             keys and values; only in object bodies
``{"serialized": ["application/x", "AAE="]}``  content type and Base64; only in object bodies
============================================== =====================================================

The text is ASCII and has no control characters. AMQP's unsigned numbers and timestamps become whole numbers of JMS.
:func:`decode` also reads a bare number, which :func:`encode` never writes. A bare number without a fraction is an int
if it fits in 32 bits, and otherwise a long. A bare number with a fraction is a double.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

from pyjmsack.errors import JMSException, MessageFormatException
from pyjmsack.json_text import read_json
from pyjmsack.kept import kept
from pyjmsack.message.base import Message
from pyjmsack.message.codecs import SerializedObject, plain_type
from pyjmsack.message.convert import kind_of
from pyjmsack.message.mapping import check_keys, mapping
from pyjmsack.types import Byte, Char, Float, Int, Long, Short

__all__ = ["CONTENT_TYPES", "PREFIX", "decode", "encode", "is_portable"]

OBJECT, MAP, STREAM = 1, 2, 4

CONTENT_TYPES = {
    MAP: "application/vnd.pyjmsack.map+json",
    STREAM: "application/vnd.pyjmsack.stream+json",
    OBJECT: "application/vnd.pyjmsack.object+json",
}
"""The content type for each ``Message.wire_type``."""

PREFIX = b"application/vnd.pyjmsack."
"""The beginning of all these content types."""

_WIRE_TYPES = {content_type: wire_type for wire_type, content_type in CONTENT_TYPES.items()}
_MOST_VALUES = 4_000_000
"""The largest number of commas and opening brackets in a text. A number of a map or a stream has two of them."""
_NUMBERS = frozenset(("byte", "short", "int", "long"))


@kept(256)
def is_portable(content_type: str) -> bool:
    """Return whether ``decode`` reads this content type."""
    return plain_type(content_type) in _WIRE_TYPES


def encode(message: Message) -> tuple[str, str]:
    """Return the content type and the text for a map, stream or object message.

    Raises:
        MessageFormatException: the message is of another class, or holds a value without a type in JMS.
    """
    content_type = CONTENT_TYPES.get(message.wire_type)
    if content_type is None:
        raise MessageFormatException(f"{message!r} cannot be written as JSON; expected a map, stream or object message")
    body = message._body
    document: Any
    if message.wire_type == MAP:
        document = {name: _tagged(value) for name, value in body.items()}
    elif message.wire_type == STREAM:
        document = [_tagged(value) for value in body]
    else:
        document = _tagged(body)
    return content_type, json.dumps(document, separators=(",", ":"), allow_nan=False)


def decode(content_type: str, text: str) -> tuple[int, Any]:
    """Return the wire type of the message class, and the body: a dict, a list or an object.

    Raises:
        MessageFormatException: the content type is not in the table above, or the text does not fit the content type,
            or has too many values.
    """
    wire_type = _WIRE_TYPES.get(plain_type(content_type))
    if wire_type is None:
        raise MessageFormatException(f"content type {content_type!r}: expected one of {', '.join(_WIRE_TYPES)}")
    try:
        return wire_type, _body(wire_type, read_json(text, _MOST_VALUES))
    except JMSException as error:
        raise MessageFormatException(f"{content_type} body: {error}") from error
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise MessageFormatException(f"{content_type} body cannot be read: {error}") from error


def _body(wire_type: int, document: Any) -> Any:
    if wire_type == MAP:
        return {name: _value(tagged) for name, tagged in _expect(dict, document).items()}
    if wire_type == STREAM:
        return [_value(tagged) for tagged in _expect(list, document)]
    return _value(document)


def _tagged(value: Any) -> Any:
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        # the constructor refuses a char of AMQP above U+FFFF, which no reader of this form would take
        return {"char": str(Char(value))} if type(value) is Char else str(value)
    for kind, writer in _WRITERS.items():
        if isinstance(value, kind):
            return writer(value)
    raise MessageFormatException(
        f"a value of type {type(value).__name__} has no type in JMS, and cannot be written as JSON"
    )


def _tag_int(value: int) -> dict[str, int]:
    kind = kind_of(value)
    if kind in _NUMBERS:
        return {kind: int(value)}
    if not -(1 << 63) <= value < 1 << 63:
        raise MessageFormatException(f"{int(value)} does not fit the 64 bits of a Java long")
    return {kind_of(int(value)): int(value)}


def _tag_float(value: float) -> dict[str, float | str]:
    number: float | str = float(value)
    if not math.isfinite(value):
        number = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return {"float" if type(value) is Float else "double": number}


def _tag_map(value: dict[Any, Any]) -> dict[str, Any]:
    check_keys([*value])
    return {"map": [[_tagged(key), _tagged(item)] for key, item in value.items()]}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_WRITERS: dict[type, Callable[[Any], Any]] = {
    int: _tag_int,
    float: _tag_float,
    SerializedObject: lambda value: {"serialized": [value.content_type, _base64(value)]},
    bytes: lambda value: {"bytes": _base64(value)},
    UUID: lambda value: {"uuid": str(value)},
    dict: _tag_map,
    list: lambda value: {"list": [_tagged(item) for item in value]},
}
"""The function that writes a value of each class. If several classes fit, the first one counts."""


def _value(tagged: Any) -> Any:
    if tagged is None or isinstance(tagged, (bool, str, float)):
        return tagged
    if isinstance(tagged, int):
        return tagged if kind_of(tagged) == "int" else Long(tagged)
    if not isinstance(tagged, dict) or len(tagged) != 1:
        raise MessageFormatException(f"expected a JSON value or {{type: value}}, not {str(tagged)[:50]!r}")
    ((kind, content),) = tagged.items()
    reader = _READERS.get(kind)
    if reader is None:
        raise MessageFormatException(f"unknown type {kind!r}; expected one of {', '.join(_READERS)}")
    return reader(content)


def _expect(kind: type[Any], content: Any) -> Any:
    if type(content) is not kind:
        raise MessageFormatException(f"expected a {kind.__name__}, not {str(content)[:50]!r}")
    return content


def _read_double(content: Any) -> float:
    if type(content) is str and content in ("NaN", "Infinity", "-Infinity"):
        return float(content)
    return float(content if type(content) is int else _expect(float, content))


def _read_bytes(content: Any) -> bytes:
    return base64.b64decode(_expect(str, content), validate=True)


def _read_map(content: Any) -> dict[Any, Any]:
    pairs = [_pair(pair) for pair in _expect(list, content)]
    return mapping([_value(key) for key, _ in pairs], [_value(item) for _, item in pairs])


def _pair(content: Any) -> tuple[Any, Any]:
    first, second = _expect(list, content)
    return first, second


def _read_serialized(content: Any) -> SerializedObject:
    content_type, data = _pair(content)
    return SerializedObject(_read_bytes(data), _expect(str, content_type))


_READERS: dict[str, Callable[[Any], Any]] = {
    "byte": lambda content: Byte(_expect(int, content)),
    "short": lambda content: Short(_expect(int, content)),
    "int": lambda content: int(Int(_expect(int, content))),
    "long": lambda content: Long(_expect(int, content)),
    "float": lambda content: Float(_read_double(content)),
    "double": _read_double,
    "char": lambda content: Char(_expect(str, content)),
    "bytes": _read_bytes,
    "uuid": lambda content: UUID(_expect(str, content)),
    "list": lambda content: [_value(item) for item in _expect(list, content)],
    "map": _read_map,
    "serialized": _read_serialized,
}
