"""Converters, which turn bodies into messages, and messages into bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pyjmsack.app.names import is_model
from pyjmsack.app.typed import Written, build, check_keys, plain, wants_decimals
from pyjmsack.errors import MessageFormatException
from pyjmsack.json_text import MOST_VALUES, read_json
from pyjmsack.message import BytesMessage, MapMessage, Message, TextMessage

__all__ = ["Converter", "JsonConverter", "is_large", "reads_on_thread"]

_LARGE = 1 << 16
"""The size in bytes of a message that takes a loop too long to read as plain JSON."""
_LARGE_TYPED = 1 << 12
"""The size in bytes of a message that takes a loop too long to read if each value is built as a type."""
_PLAIN: Final = (Any, object, dict, list, str, bytes, bool, int, float, None)
"""Annotations for which no value inside of the JSON is built as a type."""


class Converter(Protocol):
    """Turns bodies into messages, and messages into bodies. Both methods are plain functions in both faces."""

    def to_message(self, body: Any) -> Message:
        """Return the message to send.

        Args:
            body: the body that a program gave to ``send``, or that a listener returned.

        Raises:
            MessageFormatException: the body cannot be turned into a message.
        """
        ...

    def from_message(self, message: Message, wanted: Any) -> Any:
        """Return the body of a message.

        Args:
            message: the received message.
            wanted: the annotation of the parameter that gets the body; ``Any`` if the parameter has no annotation.

        Raises:
            MessageFormatException: the body of the message does not fit ``wanted``.
        """
        ...


class JsonConverter:
    """Writes bodies as JSON into text messages, and reads them again. A property can name the type of the body, as with
    Spring's ``MappingJackson2MessageConverter``.

    ``str``, ``bytes`` and messages are sent as they are. Dataclasses, pydantic models (with the aliases of their
    fields), mappings, lists, numbers and ``None`` become JSON. JSON is read from text messages and, in UTF-8, from
    bytes messages. If the property names ``java.lang.String``, the text of a message is read as JSON, because Jackson
    writes a ``String`` in quotes. Other names that begin with ``java.`` have no effect.

    In ``asyncio``, a message with more than 64 KiB is read on a thread, so that the loop goes on meanwhile. With
    ``types``, or with an annotation other than ``dict``, ``list``, ``Any`` and scalars such as ``str``, the thread
    reads messages with more than 4 KiB.

    >>> JsonConverter("_type", {"com.example.Order": Order})  # doctest: +SKIP

    Args:
        type_property: the name of the property, Spring's ``setTypeIdPropertyName``; ``None`` = no property.
        types: the class for each value of the property. A message can name only these classes.
        camel_case: whether the fields of dataclasses and pydantic models have names in camelCase in JSON, as Jackson
            writes the fields of Java objects: the field ``order_id`` is ``orderId``, and ``class_`` is ``class``. A
            field with an alias of pydantic has the alias. Keys of mappings stay as they are.
        max_values: the largest number of values in the JSON of one message, counted by commas and opening brackets. A
            message with more values is refused, because a few megabytes of JSON can fill the memory with gigabytes of
            values.

    Raises:
        ValueError: ``max_values`` is not positive, ``types`` is given without ``type_property``, or two fields of one
            of the types have the same name in camelCase. Classes that are not in ``types`` are checked when an object
            of them is sent.
    """

    def __init__(
        self,
        type_property: str | None = None,
        types: Mapping[str, type] | None = None,
        *,
        camel_case: bool = False,
        max_values: int = MOST_VALUES,
    ) -> None:
        if max_values < 1:
            raise ValueError(f"JsonConverter: max_values is {max_values}; expected at least 1")
        if types and type_property is None:
            raise ValueError("JsonConverter: types need a type_property, such as JsonConverter('_type', types)")
        self.type_property = type_property
        self.types = dict(types or {})
        self.camel_case = camel_case
        self.max_values = max_values
        self._names = {kind: name for name, kind in self.types.items()}
        for kind in self.types.values() if camel_case else ():
            check_keys(kind)

    def __repr__(self) -> str:
        cased = ", camel_case=True" if self.camel_case else ""
        return f"JsonConverter({self.type_property!r}, {sorted(self.types)}{cased})"

    def to_message(self, body: Any) -> Message:
        """Return a message with this body.

        Args:
            body: a message, ``str`` or ``bytes``, which stays as it is; or a value that becomes JSON.

        Raises:
            MessageFormatException: the body cannot be written as JSON, or the class of the body is not among the types.
        """
        if isinstance(body, Message):
            return body
        if isinstance(body, str):
            return TextMessage(body)
        if isinstance(body, bytes | bytearray | memoryview):
            return BytesMessage(bytes(body))
        try:
            text = json.dumps(plain(body, self.camel_case), ensure_ascii=False, allow_nan=False)
        except ValueError as error:  # JSON has no NaN and no infinities
            raise MessageFormatException(f"a {type(body).__name__} cannot be written as JSON: {error}") from error
        message = TextMessage(text)
        if self.type_property is not None and (name := self._name_of(body)) is not None:
            message.properties[self.type_property] = name
        return message

    def _name_of(self, body: Any) -> str | None:
        kind = type(body)
        if kind in self._names:
            return self._names[kind]
        if is_model(kind) or hasattr(kind, "__dataclass_fields__"):
            raise MessageFormatException(
                f"{kind.__name__} is not among the types of the converter, so the receiver could not tell the type; add"
                f" it to the types: JsonConverter({self.type_property!r}, {{'a.name': {kind.__name__}}})"
            )
        return None

    def from_message(self, message: Message, wanted: Any) -> Any:
        """Return the body of a message.

        Args:
            message: the received message.
            wanted: the type that the body must have. With ``Any`` an object or array of JSON becomes a ``dict`` or
                ``list``, and any other body stays as it is.

        Raises:
            MessageFormatException: the body is not JSON or does not fit ``wanted``, or the property names an unknown
                type.
        """
        if self._is_text_of_java(message, wanted):
            return self._json(message)
        if wanted is str and isinstance(message, TextMessage):
            return message.text
        if wanted is bytes and isinstance(message, BytesMessage):
            return message.data
        named = self._named(message)
        kind = wanted
        if named is not None and wanted is not dict:
            kind = named
            if wanted not in (Any, object) and isinstance(wanted, type) and not issubclass(named, wanted):
                raise MessageFormatException(
                    f"the property {self.type_property!r} of the message names the type {named.__name__}, not"
                    f" {wanted.__name__}"
                )
        elif wanted in (Any, object):
            return self._untyped(message)
        value = dict(message) if isinstance(message, MapMessage) else self._json(message, kind)
        return build(kind, value, camel_case=self.camel_case)

    def _untyped(self, message: Message) -> Any:
        """Return the body of a message. An object or array of JSON becomes a ``dict`` or ``list``, and any other body
        stays as it is.
        """
        if isinstance(message, TextMessage) and (message.text or "").lstrip()[:1] in ("{", "["):
            try:
                return self._json(message)
            except MessageFormatException:  # the text only looks like JSON
                return message.text
        return message.body

    def _is_text_of_java(self, message: Message, wanted: Any) -> bool:
        """Return whether a ``str`` is wanted, and the property names ``java.lang.String``. Jackson wrote the text of
        such a message as JSON, in quotes.
        """
        if not isinstance(message, TextMessage) or wanted not in (str, Any, object):
            return False
        of_type = self.type_property is not None and message.properties.get(self.type_property)
        return of_type == "java.lang.String" and "java.lang.String" not in self.types

    def _named(self, message: Message) -> type | None:
        if self.type_property is None:
            return None
        name = message.properties.get(self.type_property)
        if name is None or (isinstance(name, str) and name not in self.types and name.startswith("java.")):
            # Jackson also names classes of Java itself, such as java.util.HashMap; their JSON is read without a type
            return None
        if not isinstance(name, str) or name not in self.types:
            known = ", ".join(self.types) or "none"
            raise MessageFormatException(f"the type {name!r} of a message is unknown; expected one of: {known}")
        return self.types[name]

    def _json(self, message: Message, kind: Any = Any) -> Any:
        if isinstance(message, TextMessage):
            text: str | bytes | None = message.text
        elif isinstance(message, BytesMessage):
            text = message.data
        else:
            raise MessageFormatException(f"JSON is expected in a text or bytes message, not in {message!r}")
        if text is None:
            return None
        try:
            return read_json(text, self.max_values, parse_float=Written if wants_decimals(kind) else None)
        except (ValueError, RecursionError) as error:
            raise MessageFormatException(f"the body of {message!r} cannot be read as JSON: {error}") from error


def reads_on_thread(converter: Converter, message: Message, wanted: Any) -> bool:
    """Return whether ``asyncio`` reads the body of a message on a thread, because it may take long. A converter of the
    program itself is always called on the loop, because it may need the loop.

    Args:
        converter: the converter of the app.
        message: the received message.
        wanted: the annotation of the parameter that gets the body.
    """
    if type(converter) is not JsonConverter or message._delivery is None:
        return False
    typed = bool(converter.types) or not any(wanted is each for each in _PLAIN)
    return is_large(message) or (typed and bool(message._delivery.size > _LARGE_TYPED))


def is_large(message: Message) -> bool:
    """Return whether a received message has more than 64 KiB."""
    return bool(message._delivery.size > _LARGE)
