"""Encodes a JMS message as the sections of an AMQP 1.0 message (3.2), with the same annotations as Qpid JMS (S165).

Many messages have the same header, annotations and addresses. Therefore this module encodes these parts once and keeps
them for later messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from struct import Struct
from typing import Any, Final
from uuid import uuid4

from pyjmsack.destination import Destination
from pyjmsack.errors import MessageFormatException
from pyjmsack.kept import kept
from pyjmsack.message import (
    BodySource,
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    SerializedObject,
    StreamMessage,
)
from pyjmsack.providers.amqp.ids import encode_id
from pyjmsack.providers.amqp.nested import check_nested
from pyjmsack.providers.amqp.sections import LARGEST_PROPERTIES
from pyjmsack.providers.amqp.wire_encode import (
    encode_binary,
    encode_map,
    encode_string,
    encode_symbol,
    encode_timestamp,
    encode_value,
)
from pyjmsack.providers.amqp.wire_types import ByteArray, Symbol, UByte, UInt
from pyjmsack.spi.envelope import DUPLICATE_ID, Payload, StreamedPayload
from pyjmsack.types import Byte, Long

__all__ = ["encode"]

_NULL = b"\x40"
_OCTET_STREAM = encode_symbol("application/octet-stream")
_TTL_LIMIT = 1 << 32
_LARGEST_SECTION: Final = (1 << 32) - 1
"""The largest number of bytes that one data section can contain. A body has only one section, because Qpid JMS reads
only one."""

_LIST8_HEAD = Struct(">4sBB").pack
_LIST32_HEAD = Struct(">4sII").pack
_SIZED_HEAD = Struct(">4sI").pack
_TEXT8_HEADS = [bytes((0x00, 0x53, 0x77, 0xA1, size)) for size in range(256)]
_DATA8_HEADS = [bytes((0x00, 0x53, 0x75, 0xA0, size)) for size in range(256)]


def encode(
    message: Message,
    address: str,
    ttl_ms: int = 0,
    address_of: Callable[[Destination], str] = attrgetter("name"),
    *,
    marks_repetitions: bool = False,
    checks_nested: bool = False,
) -> Payload:
    """Return the encoded message. If its body is read while it is sent, the result does not contain the body.

    A bytes or stream message is reset, as JMS requires of a send (S171).

    Args:
        message: the message, whose headers the producer has set (S71).
        address: the broker's name for the destination of the message.
        ttl_ms: the time to live for the header in milliseconds. 0 means no limit. The property ``JMS_AMQP_TTL`` has
            priority (S154). A time that does not fit in 32 bits is left out of the header. In this case only the
            absolute expiry time says when the message expires.
        address_of: returns the broker's name for a ``reply_to``.
        marks_repetitions: whether to add the duplicate mark if the message has none (S106). By this mark Artemis
            recognises a second copy of the message.
        checks_nested: whether to check the lists and maps in properties, because the broker is ActiveMQ Classic.

    Raises:
        MessageFormatException: AMQP or this broker cannot carry an id, text or property of the message. The error names
            the id, text or property.
    """
    ttl = ttl_ms if message._amqp_ttl is None else message._amqp_ttl
    reply_to = message._reply_to
    held = _marked(message, message._properties) if marks_repetitions else message._properties
    kind = message.wire_type
    later = kind == 3 and isinstance(message._body, BodySource)
    payload = b"".join(
        (
            _header(message._persistent, message._priority, ttl if 0 <= ttl < _TTL_LIMIT else 0),
            _annotations(message, kind, reply_to),
            _properties(message, address, None if reply_to is None else address_of(reply_to), kind),
            _application_properties(held, checks_nested=checks_nested) if held else b"",
            *(() if later else _BODIES[kind](message)),
        )
    )
    return streamed(payload, message._body) if later else payload


def streamed(head: bytes, source: BodySource) -> StreamedPayload:
    """Return an encoded message. ``head`` contains the sections before its body. The body is read while the message is
    sent.

    Raises:
        MessageFormatException: the body is too large for one data section.
    """
    if source.length > _LARGEST_SECTION:
        raise MessageFormatException(f"the body has {source.length:,} bytes; expected at most {_LARGEST_SECTION:,}")
    return StreamedPayload(head, _SIZED_HEAD(b"\x00\x53\x75\xb0", source.length), source, empty=_DATA8_HEADS[0])


@lru_cache(maxsize=256)
def _header(persistent: bool, priority: int, ttl: int) -> bytes:
    """Return the header section with the fields durable, priority and ttl (3.2.1). Return no bytes if all fields have
    their defaults."""
    fields = [persistent or None, None if priority == 4 else UByte(priority), UInt(ttl) if ttl else None]
    while fields and fields[-1] is None:
        fields.pop()
    return b"\x00\x53\x70" + encode_value(fields) if fields else b""


def _annotations(message: Message, kind: int, reply_to: Destination | None) -> bytes:
    destination = message._destination
    if kind == 0 and message._body is not None:
        kind = -1  # a plain message with a body: without the annotation, receivers look at the body (S166)
    to_kind = -1 if destination is None else destination.jms_type
    reply_kind = -1 if reply_to is None else reply_to.jms_type
    delivery_time = message._delivery_time
    if delivery_time > message._timestamp:  # a delayed delivery (S157)
        return _build_annotations(kind, to_kind, reply_kind, delivery_time)
    return _marks(kind, to_kind, reply_kind)


def _build_annotations(kind: int, to_kind: int, reply_kind: int, delivery_time: int) -> bytes:
    """Return the message-annotations section (3.2.3). A kind of -1 and a delivery time of 0 are left out."""
    marks: dict[Symbol, int] = {}
    for name, value in (("x-opt-jms-msg-type", kind), ("x-opt-jms-dest", to_kind), ("x-opt-jms-reply-to", reply_kind)):
        if value >= 0:
            marks[Symbol(name)] = Byte(value)
    if delivery_time:
        marks[Symbol("x-opt-delivery-time")] = Long(delivery_time)
    return b"\x00\x53\x72" + encode_value(marks) if marks else b""


@lru_cache(maxsize=256)
def _marks(kind: int, to_kind: int, reply_kind: int) -> bytes:
    return _build_annotations(kind, to_kind, reply_kind, 0)


_address = kept(1024)(encode_string)


def _properties(message: Message, address: str, reply_address: str | None, kind: int) -> bytes:
    """Return the properties section (3.2.4). Its 13 fields have a fixed order. Empty fields at the end are left out."""
    message_id = message._message_id
    user_id = message._user_id
    subject = message._type
    correlation_id = message._correlation_id
    expiry = message._expiration
    created = message._timestamp
    group = _group_fields(message)
    fields = b"".join(
        (
            _NULL if message_id is None else encode_id(message_id),
            _NULL if user_id is None else _user_id(user_id),
            _address(address),
            _NULL if subject is None else encode_string(subject),
            _NULL if reply_address is None else _address(reply_address),
            _NULL if correlation_id is None else encode_id(correlation_id),
            _OCTET_STREAM if kind == 3 else _NULL if kind != 1 else _object_type(message._body),
            b"\x40" + encode_timestamp(expiry) if expiry else b"\x40\x40",  # content-encoding is always null
            encode_timestamp(created) if created else _NULL,
            group,
        )
    )
    count = 13 if group else 10
    size = len(fields)
    if size > LARGEST_PROPERTIES - 9:
        raise MessageFormatException(f"the headers of the message have {size:,} bytes; at most 1 MiB can be received")
    if size < 255:
        return _LIST8_HEAD(b"\x00\x53\x73\xc0", size + 1, count) + fields
    return _LIST32_HEAD(b"\x00\x53\x73\xd0", size + 4, count) + fields


def _object_type(body: Any) -> bytes:
    """Return the content type of an object message. A plain value has no content type (S175)."""
    return encode_symbol(body.content_type) if isinstance(body, SerializedObject) else _NULL


def _user_id(text: str) -> bytes:
    try:
        return encode_binary(text.encode())
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"JMSXUserID is not Unicode at character {error.start}") from error


def _group_fields(message: Message) -> bytes:
    """Return the fields group-id, group-sequence and reply-to-group-id, encoded. Return no bytes if none of them is
    set."""
    group_id, sequence, reply_group = message._group_id, message._group_sequence, message._reply_to_group_id
    if group_id is None and sequence is None and reply_group is None:
        return b""
    # a Java int and an AMQP uint have the same 32 bits (S164)
    number = None if sequence is None else UInt(sequence & 0xFFFFFFFF)
    return encode_value(group_id) + encode_value(number) + encode_value(reply_group)


def _application_properties(held: dict[str, Any], *, checks_nested: bool) -> bytes:
    """Return the application-properties section (3.2.5)."""
    section = b"\x00\x53\x74" + encode_map(held, "property")
    if checks_nested:
        check_nested(held)
    return section


def _marked(message: Message, held: dict[str, Any] | None) -> dict[str, Any]:
    """Return the properties with a duplicate mark. A mark that the caller has set stays."""
    return {DUPLICATE_ID: message._message_id or f"ID:{uuid4()}", **(held or {})}


def _value_body(message: Message) -> tuple[bytes, bytes]:
    return b"\x00\x53\x77", _value(message._body)


def _value(body: Any) -> bytes:
    try:
        return encode_value(body)
    except MessageFormatException as error:
        raise MessageFormatException(f"body: {error}") from error


def _map_body(message: MapMessage) -> tuple[bytes, bytes]:
    return b"\x00\x53\x77", encode_map(message._body, "field")


def _stream_body(message: StreamMessage) -> tuple[bytes, bytes]:
    message.reset()
    return b"\x00\x53\x76", _value(message._body)


def _object_body(message: ObjectMessage) -> tuple[bytes, bytes]:
    body = message._body
    if isinstance(body, SerializedObject):
        return _data_section(body)
    # Qpid JMS reads bytes as an object only from an array of byte, and bytes in a list or map only from a binary
    return b"\x00\x53\x77", _value(ByteArray(body) if type(body) is bytes else body)


def _text_body(message: Message) -> tuple[bytes, bytes]:
    text = message._body
    if text is None:
        return b"\x00\x53\x77", _NULL
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"the body is not Unicode at character {error.start}: {error.reason}") from error
    size = len(raw)
    return (_TEXT8_HEADS[size] if size < 256 else _SIZED_HEAD(b"\x00\x53\x77\xb1", size)), raw


def _bytes_body(message: BytesMessage) -> tuple[bytes, bytes]:
    message.reset()
    return _data_section(message._body)


def _data_section(raw: bytes) -> tuple[bytes, bytes]:
    size = len(raw)
    return (_DATA8_HEADS[size] if size < 256 else _SIZED_HEAD(b"\x00\x53\x75\xb0", size)), raw


_BODIES: dict[int, Callable[[Any], tuple[bytes, bytes]]] = {
    0: _value_body,
    1: _object_body,
    2: _map_body,
    3: _bytes_body,
    4: _stream_body,
    5: _text_body,
}
"""For each ``Message.wire_type``, the function that encodes a body."""
