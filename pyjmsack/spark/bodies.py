"""Turns message bodies into bytes and back. Text becomes UTF-8, and maps and streams become JSON without loss."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from pyjmsack import (
    Byte,
    BytesMessage,
    Char,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    MessageFormatException,
    Session,
    Short,
    StreamMessage,
    TextMessage,
)

__all__ = ["body_of", "message_of"]

_MARKED: dict[type, str] = {Byte: "byte", Short: "short", Int: "int", Long: "long", Float: "float", Char: "char"}
_UNMARKED: dict[str, Callable[[Any], Any]] = {
    **{name: kind for kind, name in _MARKED.items()},
    "bytes": lambda text: base64.b64decode(text, validate=True),
}


def body_of(message: Message) -> tuple[bytes | None, str]:
    """Return the body as bytes, and its type. Instead of bytes, return ``None`` if the message has no body.

    The type is ``text``, ``bytes``, ``map``, ``stream``, ``none`` or ``other``. A body of another class of
    message becomes JSON and has the type ``other``. So does a map or stream with a value that JMS does not allow there,
    such as a list, which a sender over AMQP may use. ``message_of`` cannot make a message from such a body.

    Raises:
        MessageFormatException: the body cannot be decoded.
    """
    if isinstance(message, BytesMessage):
        return message.data, "bytes"
    if isinstance(message, TextMessage):
        text = message.text
        return (None if text is None else text.encode("utf-8", "surrogatepass")), "text"
    body = message.body
    if isinstance(message, MapMessage) and all(_is_name(name) and _is_plain(body[name]) for name in body):
        return _dump({name: _mark(value) for name, value in body.items()}), "map"
    if isinstance(message, StreamMessage) and all(map(_is_plain, body)):
        return _dump([_mark(value) for value in body]), "stream"
    return (None, "none") if body is None else (_dump(body), "other")


def message_of(session: Session, body: bytes | str | None, body_type: str | None) -> Message:
    """Return a new message with this body, as the reverse of :func:`body_of`. Without a type, a ``str`` makes a text
    message and ``bytes`` make a bytes message.

    The session creates the message, so that the URL options for properties apply to the message.

    Raises:
        MessageFormatException: the type cannot be sent, or the body does not fit the type.
    """
    if body_type is None:
        body_type = "none" if body is None else "text" if isinstance(body, str) else "bytes"
    raw = body.encode() if isinstance(body, str) else body
    if body_type == "bytes":
        return session.create_bytes_message(raw or b"")
    if body_type == "text":
        return session.create_text_message(None if raw is None else raw.decode("utf-8", "surrogatepass"))
    if body_type == "none":
        return session.create_message()
    try:
        if body_type == "map":
            return session.create_map_message({n: _unmark(value) for n, value in json.loads(raw or b"{}").items()})
        if body_type == "stream":
            return session.create_stream_message([_unmark(value) for value in json.loads(raw or b"[]")])
    except (ValueError, AttributeError, TypeError, RecursionError, OverflowError) as error:
        raise MessageFormatException(
            f"a body of type {body_type!r} needs JSON in the form that the column body has after a read: {error}"
        ) from error
    raise MessageFormatException(f"body_type {body_type!r}: expected text, bytes, map, stream or none")


def _dump(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except TypeError:  # a sender over AMQP may choose keys of any type
        text = json.dumps(_with_texts(value), ensure_ascii=False, default=repr)
    return text.encode("utf-8", "surrogatepass")


def _with_texts(value: Any) -> Any:
    """Return the value. Each key that JSON cannot hold is replaced by a text."""
    if isinstance(value, dict):
        return {_key(key): _with_texts(each) for key, each in value.items()}
    return [_with_texts(each) for each in value] if isinstance(value, list | tuple) else value


def _key(key: Any) -> Any:
    return key if key is None or isinstance(key, str | int | float) else repr(key)


def _is_name(name: Any) -> bool:
    return type(name) is str and name != ""


def _is_plain(value: Any) -> bool:
    """Return whether :func:`_unmark` gives this value of a map or stream back as it was."""
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return value is None or isinstance(value, str | float) or type(value) is bytes


def _mark(value: Any) -> Any:
    """Return a value for JSON. If JSON does not have the type of the value, the result names the type, as in
    ``{"byte": 5}``.
    """
    kind = type(value)
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is Double:
        return float(value)
    return {_MARKED[kind]: value} if kind in _MARKED else value


def _unmark(value: Any) -> Any:
    if isinstance(value, dict):
        ((name, plain),) = value.items()
        if name not in _UNMARKED:
            raise ValueError(f"{name!r} is not the name of a type")
        return _UNMARKED[name](plain)
    return value
