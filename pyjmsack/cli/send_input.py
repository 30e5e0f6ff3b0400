"""The input of ``pyjmsack send``: lines, JSON objects or whole files, one message each, read as they come."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pyjmsack import (
    BytesMessage,
    JMSException,
    MapMessage,
    Message,
    MessageFormatException,
    ObjectMessage,
    Queue,
    StreamMessage,
    TextMessage,
    Topic,
    portable,
)
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.values import restore_properties, set_properties

__all__ = ["FILE_NAME", "FORMATS", "KINDS", "STRUCTURED", "InputError", "Item", "check_exported", "read_items"]

FILE_NAME = "file_name"
"""Property of a message that is a whole file: its name without directories."""

STRUCTURED: Mapping[str, type[MapMessage | StreamMessage | ObjectMessage]] = {
    "body_map": MapMessage,
    "body_stream": StreamMessage,
    "body_object": ObjectMessage,
}
"""The fields of a JSON line for a body in the portable form, and the class of message for each."""

KINDS: Mapping[str, type[Message]] = {
    "text": TextMessage,
    "bytes": BytesMessage,
    "map": MapMessage,
    "stream": StreamMessage,
    "object": ObjectMessage,
    "message": Message,
}
"""The values of the field ``kind`` of a JSON line. A message of the last kind has no body."""

_CHUNK = 1 << 16
_TEXT_HEADERS = ("correlation_id", "type")
_SEND_OPTIONS = ("priority", "time_to_live", "delivery_delay")
_KNOWN = {
    "body",
    "body_base64",
    *STRUCTURED,
    "properties",
    "property_types",
    "reply_to",
    "reply_to_kind",
    "kind",
    "persistent",
    *_TEXT_HEADERS,
    *_SEND_OPTIONS,
}
_RECEIVED = {
    "message_id",
    "timestamp",
    "destination",
    "destination_kind",
    "expiration",
    "redelivered",
    "delivery_count",
    "dead_letter",
}
"""Fields that ``receive --format jsonl`` writes and ``send`` ignores, because each send sets them anew."""


class InputError(Exception):
    """A part of the input is not a message. The text names its place."""


@dataclass
class Item:
    """One message to send, with its place in the input and the options that differ from the producer's defaults."""

    place: str
    message: Message
    options: dict[str, Any] = field(default_factory=dict)
    expiration: datetime | None = None
    """The moment at which the message of the line expires. ``import`` uses this moment; ``send`` does not."""
    digest: str = ""
    """The digest of the JSON line. Two different lines have different digests."""


def read_items(format_name: str, files: tuple[Path, ...], as_bytes: bool, stop: Stop) -> Iterator[Item]:
    """Yield the messages of all files, or of standard input if there are none, until a stop is requested.

    Args:
        format_name: a name of :data:`FORMATS`; or ``export`` for JSON lines whose properties get their old values and
            types, even if a program of JMS could not set them.
        files: the files; ``-`` is standard input.
        as_bytes: whether lines and files become bytes messages.
        stop: ends the wait for a line of standard input.

    Raises:
        InputError: a part of the input is not a message. The text names its place.
    """
    make = _MAKERS[format_name]
    for source in files or (Path("-"),):
        name = "standard input" if str(source) == "-" else str(source)
        if format_name == "file":
            yield _checked(make, name, _whole(source), as_bytes)
            continue
        for number, line in enumerate(_lines(source, stop), 1):
            yield _checked(make, f"{name}, line {number}", line, as_bytes)


Make = Callable[[str, bytes, bool], Item]
SetAll = Callable[[Message, Mapping[str, Any], Mapping[str, str]], None]
"""A function that sets the properties of a message: their values by name, and their types by name."""
Structured = Callable[[type[Any], Any], Message]
"""A function that returns a message of a class with a map, stream or object as its body."""


def _plain(kind: type[Any], body: Any) -> Message:
    message: Message = kind(body)
    return message


def _restored(kind: type[Any], body: Any) -> Message:
    """Return a message with the body that was exported. The body may contain values that a program of JMS could not
    set, such as a list in a stream.
    """
    try:
        return _plain(kind, body)
    except MessageFormatException:
        message: Message = kind()
        message._body = body
        return message


def _checked(make: Make, place: str, data: bytes, as_bytes: bool) -> Item:
    try:
        return make(place, data, as_bytes)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{place}: not UTF-8 ({error.reason} at byte {error.start}); --bytes sends any bytes"
        ) from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, JMSException) as error:
        raise InputError(f"{place}: {error}") from error


def _from_line(place: str, data: bytes, as_bytes: bool) -> Item:
    body = data.removesuffix(b"\n").removesuffix(b"\r")
    return Item(place, BytesMessage(body) if as_bytes else TextMessage(body.decode()))


def _from_file(place: str, data: bytes, as_bytes: bool) -> Item:
    message = BytesMessage(data) if as_bytes else TextMessage(data.decode())
    message.properties[FILE_NAME] = os.path.basename(place)
    return Item(place, message)


def _from_json(
    place: str, data: bytes, _: bool, set_all: SetAll = set_properties, structured: Structured = _plain
) -> Item:
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}, at column {error.colno}") from error
    if not isinstance(document, dict):
        raise ValueError('expected a JSON object, such as {"body": "hello"}')
    if "text" in document:
        document.setdefault("body", document.pop("text"))
    return _item(place, document, hashlib.sha256(data.strip()).hexdigest(), set_all, structured)


def _item(place: str, document: Mapping[str, Any], digest: str, set_all: SetAll, structured: Structured) -> Item:
    unknown = sorted(document.keys() - _KNOWN - _RECEIVED)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a field of a message; expected one of {', '.join(sorted(_KNOWN))}")
    message = _json_message(document, structured)
    set_all(message, document.get("properties") or {}, document.get("property_types") or {})
    for header in _TEXT_HEADERS:
        setattr(message, header, document.get(header))
    if document.get("reply_to") is not None:
        kind = Topic if document.get("reply_to_kind") == "topic" else Queue
        message.reply_to = kind._literal(document["reply_to"])
    expiration = document.get("expiration")
    expires = None if expiration is None else datetime.fromisoformat(expiration)
    if expires is not None and expires.tzinfo is None:
        raise ValueError(f"expiration: {expiration!r} has no time zone, such as +00:00")
    return Item(place, message, _json_options(document), expires, digest)


def _json_message(document: Mapping[str, Any], structured: Structured) -> Message:
    if document.get("body_base64") is not None:
        return BytesMessage(base64.b64decode(document["body_base64"], validate=True))
    for name, kind in STRUCTURED.items():
        if name in document:
            content_type = portable.CONTENT_TYPES[kind.wire_type]
            return structured(kind, portable.decode(content_type, json.dumps(document[name]))[1])
    body = document.get("body")
    if body is None:
        return TextMessage(None) if "body" in document or document.get("kind") == "text" else Message()
    if not isinstance(body, str):
        raise ValueError(
            f"body: expected a string, not {type(body).__name__}; send JSON as a string, bytes as body_base64,"
            f" typed values as {', '.join(STRUCTURED)}"
        )
    return TextMessage(body)


def _json_options(document: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: document[name] for name in _SEND_OPTIONS if document.get(name) is not None}
    if document.get("persistent") is not None:
        options["delivery_mode"] = 2 if document["persistent"] else 1
    return options


FORMATS: Mapping[str, Make] = {"lines": _from_line, "jsonl": _from_json, "file": _from_file}
_MAKERS: Mapping[str, Make] = {
    **FORMATS,
    "export": partial(_from_json, set_all=restore_properties, structured=_restored),
}


def check_exported(document: Mapping[str, Any]) -> Message:
    """Check that an import can read a line of an export, and return the message that it makes of the line.

    Args:
        document: the fields of the line.

    Raises:
        InputError: the line is not a message.
    """
    item = _checked(lambda place, *_: _item(place, document, "", restore_properties, _restored), "the line", b"", False)
    return item.message


def _whole(source: Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    try:
        return source.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error


def _lines(source: Path, stop: Stop) -> Iterator[bytes]:
    """Yield lines with their ends. The last line may lack its end."""
    if str(source) == "-":
        yield from _stdin_lines(stop)
        return
    try:
        with source.open("rb") as file:
            yield from file
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error


def _stdin_lines(stop: Stop) -> Iterator[bytes]:
    """Yield each line of standard input as soon as the line is there. A stop ends the wait for the next line."""
    stream: BinaryIO = sys.stdin.buffer
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # standard input of a test has no file descriptor
        yield from stream
        return
    rest = bytearray()
    while not stop.requested:
        if not stop.wait(readable=descriptor):
            continue
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        *ends, last = chunk.split(b"\n")
        for end in ends:
            yield bytes(rest) + end + b"\n"
            rest.clear()
        rest += last
    if rest and not stop.requested:
        yield bytes(rest)
