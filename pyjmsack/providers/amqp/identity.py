"""Computes the identity of a delivered AMQP message: bytes that are the same at each delivery of the message, and
different for other messages.

The identity covers everything that the sender wrote: the bare message (3.2) and the sender's parts of the header and
the annotations. The bare message consists of the properties, the application properties, the body and the footer. The
brokers change the other parts, and ``tests/faults/test_identity.py`` checks for each broker which parts it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp import sections
from pyjmsack.providers.amqp.wire import check_values, decode_value, told

__all__ = ["LARGE", "as_it_came", "as_values", "head_parts"]

LARGE = 4096
"""The largest number of bytes that an identity contains unchanged. A digest replaces a larger number of bytes, because
a second copy of a large message would take too much memory."""
_TEXT = (0xA1, 0xB1)
_TEXT_OR_BINARY = (0xA0, 0xA1, 0xB0, 0xB1)


def as_it_came(message: sections.Sections, payload: bytes) -> bytes:
    """Return the identity of a message, for a broker that never changes the bytes of the bare message.

    The identity consists of the sender's parts of the header and the annotations, and of the payload from the
    properties on. If this part of the payload is large, its digest takes its place.
    """
    assert message._properties is not None  # the caller looked for the id
    start = message._properties[0]
    end = len(payload)
    return head_parts(message, payload) + (payload[start:] if end - start <= LARGE else _digest(payload, start, end))


def as_values(
    message: sections.Sections, payload: bytes, fields: list[Any], bodies: Iterable[bytes] | None = None
) -> bytes:
    """Return the identity for a broker that encodes a message anew when it delivers the message again.

    ActiveMQ Classic is such a broker: it leaves out empty fields at the end, and uses the shortest form of a size or
    number. Therefore the identity consists of the decoded values and their types, and the order of the names in a map
    does not count.

    Args:
        bodies: the bytes that represent each section of the body, if the body is not in the payload.
    """
    parts = [head_parts(message, payload), repr(fields).encode(), b"\0"]
    span = message._application_properties
    if span is not None:
        parts.append(_values(payload, span))
    after = max(end for _, end in (message._properties or (0, 0), span or (0, 0), *message._body))
    for body in bodies or _bodies(payload, message._body):
        parts += (b"\0%d" % message._body_code, body)
    if after < len(payload):
        parts += (b"\0footer", _values(payload, (after + 3, len(payload))))
    whole = b"".join(parts)
    return whole if len(whole) <= LARGE else parts[0] + _digest(whole, 0, len(whole))


def head_parts(message: sections.Sections, payload: bytes) -> bytes:
    """Return the parts of the header and the annotations that the sender wrote.

    The time to live and the counts are left out, because the broker changes them.
    """
    header = message._header
    annotations = sections.told_annotations(payload, message._annotations_span)
    if len(annotations) > LARGE:
        annotations = _digest(annotations, 0, len(annotations))
    return b"%d%d%b\0" % (header.durable, header.priority, annotations)


def _digest(data: bytes, start: int, end: int) -> bytes:
    return b"sha256 %b" % sha256(memoryview(data)[start:end]).digest()


def _bodies(payload: bytes, spans: list[sections.Span]) -> Iterator[bytes]:
    """Yield the content of each body section. Sections with too many values, which nobody decodes, stay encoded."""
    plain = False
    try:
        if spans:
            check_values(payload, spans[0][0], spans[-1][1])
    except MessageFormatException:
        plain = True
    for start, end in spans:
        yield payload[start:end] if plain else _body(payload, (start, end))


def _body(payload: bytes, section: sections.Span) -> bytes:
    """Return the content of a body section. Text and binary content stays encoded."""
    code = payload[section[0]]
    if code not in _TEXT_OR_BINARY:
        return _values(payload, section)
    start, end = sections.content(payload, section)
    content = payload[start:end] if end - start <= LARGE else _digest(payload, start, end)
    return (b"text " if code in _TEXT else b"binary ") + content


def _values(payload: bytes, section: sections.Span) -> bytes:
    """Return the decoded values of a section, because two encodings of the same value must give the same identity. If
    the values cannot be decoded, return the bytes of the section.
    """
    start, end = section
    try:
        check_values(payload, start, end)
        value, _ = decode_value(payload, start, end)
    except MessageFormatException:
        return payload[start:end]
    return told(value).encode()
