"""Reads the body sections of an AMQP 1.0 message (3.2.6 to 3.2.8), and finds the JMS class for them (S165, S166)."""

from __future__ import annotations

import re
from typing import Any

from pyjmsack.errors import MessageFormatException
from pyjmsack.message import SerializedObject
from pyjmsack.message.codecs import JAVA_SERIALIZED
from pyjmsack.message.portable import decode as decode_portable
from pyjmsack.message.portable import is_portable
from pyjmsack.providers.amqp.foreign import as_jms, as_jms_map
from pyjmsack.providers.amqp.sections import DATA, NAMES, SEQUENCE, VALUE, Span
from pyjmsack.providers.amqp.wire import check_values, decode_value, has_more_values, malformed
from pyjmsack.spi.envelope import HEAVY

__all__ = ["FEW_VALUES", "is_plain_bytes", "is_quick", "read_body"]

MESSAGE, OBJECT, MAP, BYTES, STREAM, TEXT = range(6)
"""The numbers that stand for the JMS classes in an AMQP message (S165)."""

_HEADS = {0xA0: (2, False), 0xA1: (2, True), 0xB0: (5, False), 0xB1: (5, True)}
"""The type codes of binary values and strings. For each code, the number of bytes before the content, and whether the
content is text."""

FEW_VALUES = 1000
"""The largest number of values that are decoded quickly, in less than a millisecond."""

_TEXT_TYPE = re.compile(
    r"\s*(?:text/[^;\s]+|application/(?:json|xml|xml-dtd|javascript|ecmascript|[^;\s]+\+(?:json|xml)))\s*(?:;(.*))?",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_TYPE = 1024
"""The largest number of characters of a content type that can name a character set."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_-]+)", re.IGNORECASE)
_CHARSETS = frozenset(
    ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "iso-8859-15", "windows-1252", "utf-16", "utf-16le")
)
"""The character sets that this module decodes. The other codecs of Python are rare, are no character sets, or need a
time that grows with the square of the length."""


def read_body(data: bytes, code: int, spans: list[Span], mark: int | None, content_type: str | None) -> tuple[int, Any]:
    """Return the wire type of the JMS class, and the body for it.

    The annotation ``x-opt-jms-msg-type`` decides, unless the body contradicts it. Without the annotation, the body
    decides.

    Args:
        data: the message.
        code: the descriptor (the number of the type) of the body sections. 0 means that there is no body section.
        spans: the positions of the body sections in the message.
        mark: the value of the annotation ``x-opt-jms-msg-type``. ``None`` means that it is absent.
        content_type: the content type in the properties section.

    Raises:
        MessageFormatException: the body cannot be decoded, or has too many values. The text names the section and the
            position.
    """
    try:
        if spans:
            check_values(data, spans[0][0], spans[-1][1])
        if code == VALUE:
            value = _whole(data, spans[0])
            if content_type is not None and type(value) is str and is_portable(content_type):
                return decode_portable(content_type, value)
            return _classify_value(mark, value)
        if code == DATA:
            return _classify_data(mark, _data(data, spans), content_type, spans[0][0])
        if code == SEQUENCE:
            return _classify_value(mark, _sequence(data, spans))
    except MessageFormatException as error:
        raise MessageFormatException(f"{NAMES[code]} section: {error}") from error
    return _classify_value(mark, None)


def is_quick(data: bytes, code: int, spans: list[Span], mark: int | None, content_type: str | None) -> bool:
    """Return whether :func:`read_body` reads the body quickly: it is one text, one run of bytes, or has few values in
    at most ``HEAVY`` bytes. The arguments and errors are those of :func:`read_body`."""
    if code == SEQUENCE or any(data[start] not in _HEADS for start, _ in spans):
        return len(data) <= HEAVY and not has_more_values(FEW_VALUES, data, spans[0][0], spans[-1][1])
    if content_type is not None and is_portable(content_type):
        return False
    return code != DATA or (mark != OBJECT and content_type != JAVA_SERIALIZED)


def _whole(data: bytes, span: Span) -> Any:
    """Return the value of a section that contains exactly one value."""
    start, end = span
    head = _HEADS.get(data[start])
    if head is not None:  # the size was checked when the sections were found
        raw = data[start + head[0] : end]
        return _decode_text(raw, "utf-8", start) if head[1] else raw
    value, after = decode_value(data, start, end)
    if after != end:
        raise malformed("expected one value, but more bytes follow it", after)
    return value


def _classify_value(mark: int | None, value: Any) -> tuple[int, Any]:
    if mark in (MESSAGE, OBJECT):
        return mark, value
    kind = type(value)
    if kind is str:
        return TEXT, value
    if kind is bytes:
        return BYTES, value
    if value is None:
        return _nothing(mark)
    if kind is list:
        return STREAM, [as_jms(item) for item in value]
    if kind is dict and all(isinstance(name, str) for name in value):
        return MAP, as_jms_map(value)
    return OBJECT, value


def _nothing(mark: int | None) -> tuple[int, Any]:
    """Return the JMS class of a message without a body, and the value that is used as its body."""
    if mark == BYTES:
        return BYTES, b""
    if mark == MAP:
        return MAP, {}
    return (STREAM, []) if mark == STREAM else (TEXT if mark == TEXT else MESSAGE, None)


def _data(data: bytes, spans: list[Span]) -> bytes:
    """Return the joined content of all data sections, because a sender may split a long body (3.2.6)."""
    parts = [_whole(data, span) for span in spans]
    for part, (start, _) in zip(parts, spans, strict=True):
        if type(part) is not bytes:
            raise malformed("expected a binary value", start)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _classify_data(mark: int | None, body: bytes, content_type: str | None, start: int) -> tuple[int, Any]:
    if content_type is not None and is_portable(content_type):
        return decode_portable(content_type, _decode_text(body, "utf-8", start))
    if mark == TEXT:
        return TEXT, _decode_text(body, charset_of(content_type) or "utf-8", start)
    if mark == BYTES:
        return BYTES, body
    if mark == MESSAGE:
        return MESSAGE, body
    if mark == OBJECT:
        return OBJECT, body if content_type is None else SerializedObject(body, content_type)
    if content_type == JAVA_SERIALIZED:
        return OBJECT, SerializedObject(body)
    charset = charset_of(content_type)
    return (BYTES, body) if charset is None else (TEXT, _decode_text(body, charset, start))


def is_plain_bytes(mark: int | None, content_type: str | None) -> bool:
    """Return True if the data sections of a message are the unchanged body of a bytes message.

    Args:
        mark: the value of the annotation ``x-opt-jms-msg-type``. ``None`` means that it is absent.
        content_type: the content type in the properties section.
    """
    if content_type is not None and is_portable(content_type):
        return False
    if mark is None or not MESSAGE <= mark <= TEXT or mark in (MAP, STREAM):
        return content_type != JAVA_SERIALIZED and charset_of(content_type) is None
    return mark == BYTES


def charset_of(content_type: str | None) -> str | None:
    """Return the character set of a content type, or ``None`` if the content is not text or the character set is
    unknown."""
    match = _TEXT_TYPE.fullmatch(content_type) if content_type and len(content_type) <= _LONGEST_TYPE else None
    if match is None:
        return None
    named = _CHARSET.search(match[1] or "")
    charset = named[1].lower() if named else "utf-8"
    return charset if charset in _CHARSETS else None


def _decode_text(body: bytes, charset: str, start: int) -> str:
    try:
        return body.decode(charset)
    except UnicodeDecodeError as error:
        raise malformed(f"the text is not {charset}", start) from error


def _sequence(data: bytes, spans: list[Span]) -> list[Any]:
    """Return the elements of all sequence sections in one list (3.2.7)."""
    elements: list[Any] = []
    for span in spans:
        part = _whole(data, span)
        if not isinstance(part, list):
            raise malformed("an amqp-sequence section is not a list", span[0])
        elements += part
    return elements
