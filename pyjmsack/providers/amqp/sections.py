"""Finds the sections of an AMQP 1.0 message (3.2), and reads the sections before the body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from struct import error as StructError  # noqa: N812 - "error" says too little
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.foreign import as_jms_map
from pyjmsack.providers.amqp.wire import check_values, decode_value, malformed, skip, told
from pyjmsack.providers.amqp.wire_types import Symbol, Timestamp, UByte, UInt, ULong
from pyjmsack.spi.envelope import NotOneMessageError

__all__ = [
    "LARGEST_PROPERTIES",
    "MOST_SECTIONS",
    "Annotations",
    "Header",
    "Sections",
    "Span",
    "body_begins",
    "content",
    "read_application_properties",
    "read_header",
    "read_properties",
    "split",
    "told_annotations",
]

Span = tuple[int, int]
"""The positions at which the value of a section begins and ends."""
_Types = tuple[frozenset[type], ...]
T = TypeVar("T")

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)

NAMES = {
    HEADER: "header",
    DELIVERY_ANNOTATIONS: "delivery-annotations",
    ANNOTATIONS: "message-annotations",
    PROPERTIES: "properties",
    APPLICATION_PROPERTIES: "application-properties",
    DATA: "data",
    SEQUENCE: "amqp-sequence",
    VALUE: "amqp-value",
    FOOTER: "footer",
}
_CODES = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_REPEATABLE = frozenset((DATA, SEQUENCE))
_DESCRIPTORS = {bytes((0x00, 0x53, code)): code for code in NAMES}

MESSAGE_ID, USER_ID, TO, SUBJECT, REPLY_TO, CORRELATION_ID, CONTENT_TYPE = range(7)
ABSOLUTE_EXPIRY_TIME, CREATION_TIME, GROUP_ID, GROUP_SEQUENCE, REPLY_TO_GROUP_ID = range(8, 13)

_NONE: type = type(None)
_ID_TYPES: frozenset[type] = frozenset((_NONE, str, bytes, UUID, ULong))
_TEXT_TYPES: frozenset[type] = frozenset((_NONE, str))
_SYMBOL_TYPES: frozenset[type] = frozenset((_NONE, Symbol, str))
_TIME_TYPES: frozenset[type] = frozenset((_NONE, int, Timestamp))
_BOOLEAN_TYPES: frozenset[type] = frozenset((_NONE, bool))
_UINT_TYPES: frozenset[type] = frozenset((_NONE, UInt))
_HEADER_TYPES: _Types = (_BOOLEAN_TYPES, frozenset((_NONE, UByte)), _UINT_TYPES, _BOOLEAN_TYPES, _UINT_TYPES)
_PROPERTY_TYPES: _Types = (
    _ID_TYPES,
    frozenset((_NONE, bytes)),
    _TEXT_TYPES,
    _TEXT_TYPES,
    _TEXT_TYPES,
    _ID_TYPES,
    _SYMBOL_TYPES,
    _SYMBOL_TYPES,
    _TIME_TYPES,
    _TIME_TYPES,
    _TEXT_TYPES,
    _UINT_TYPES,
    _TEXT_TYPES,
)
_ORIGIN = {
    "x-opt-ORIG-ADDRESS": "_AMQ_ORIG_ADDRESS",
    "x-opt-ORIG-QUEUE": "_AMQ_ORIG_QUEUE",
    "x-opt-ORIG-MESSAGE-ID": "_AMQ_ORIG_MESSAGE_ID",
    "x-opt-ACTUAL-EXPIRY": "_AMQ_ACTUAL_EXPIRY",
}
_NOTED = "x-opt-ORIG-"
"""The prefix of the annotations that Artemis adds to a dead letter."""
_ABSENT = tuple([None] * (len(_PROPERTY_TYPES) - count) for count in range(len(_PROPERTY_TYPES) + 1))

_U32 = Struct(">I").unpack_from
_I64 = Struct(">q").unpack_from

# the number of bytes of the size field behind a type code (1.2). 0 means that there is no size field, and then skip()
# finds the end
_SIZE_WIDTHS = bytes((0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 1, 4, 1, 4)[code >> 4] for code in range(256))
# the number of bytes of type code, size and number of elements together, for a type with a size field
_HEAD_LENGTHS = bytes((0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 5, 3, 9, 3, 9)[code >> 4] for code in range(256))

_CACHED_SECTION = 256
"""The largest number of bytes of a header or annotations section whose decoded form is kept for later messages."""
_CACHE_LIMIT = 512
MOST_SECTIONS = 65_536
"""The largest number of sections of the body that one message may have."""
_LARGEST_HEADER = 256
"""The largest number of bytes of a header, which has five fields of fixed sizes."""
_LARGEST_ANNOTATIONS = 16_384
"""The largest number of bytes of message annotations. They have no natural limit, and are read on the I/O loop."""
LARGEST_PROPERTIES: Final = 1 << 20
"""The largest number of bytes of the properties section, which holds most headers. A loop reads this section."""
_MOST_IN_PROPERTIES = 100_000
"""The largest number of names and values in the application properties of a message. A loop may wait for them."""
_DESCRIPTOR_TYPES = frozenset((0x44, 0x53, 0x80, 0xA3, 0xB3))
"""The codes of the types that the descriptor of a section may have: ulong and symbol."""


class Header(NamedTuple):
    """The content of the header section (3.2.1), with the defaults of JMS."""

    durable: bool = False
    priority: int = 4
    ttl_ms: int = 0
    delivery_count: int = 0


class Annotations(NamedTuple):
    """The annotations that JMS needs. They are in the message-annotations section (S165, S157). ``None`` means that the
    annotation is absent."""

    wire_type: int | None = None
    to_kind: int | None = None
    reply_kind: int | None = None
    delivery_time: int = 0
    origin: tuple[tuple[str, str], ...] = ()
    """The origin of a dead letter, which Artemis writes into annotations. The names are those that the selectors of
    Artemis know."""


_NO_HEADER = Header()
_NO_ANNOTATIONS = Annotations()
_NAMES_OF_ANNOTATIONS: dict[bytes, str] = {
    name.encode(): name
    for name in ("x-opt-jms-msg-type", "x-opt-jms-dest", "x-opt-jms-reply-to", "x-opt-delivery-time", *_ORIGIN)
}
_TEXT_HEADS = {0xA1: 2, 0xA3: 2, 0xB1: 5, 0xB3: 5}
"""The number of bytes before the characters of a string or a symbol: the type code and the size."""
_told: dict[bytes, bytes] = {}
_headers: dict[bytes, Header] = {}
_annotations: dict[bytes, Annotations] = {}
_good_properties: set[tuple[type, ...]] = set()


class Sections:
    """The positions of the sections of one message, which ``_scan`` finds."""

    __slots__ = (
        "_annotations",
        "_annotations_span",
        "_application_properties",
        "_body",
        "_body_code",
        "_header",
        "_properties",
    )

    _header: Header
    _annotations: Annotations
    _annotations_span: Span | None
    _properties: Span | None
    _application_properties: Span | None
    _body_code: int
    _body: list[Span]

    def _scan(self, data: bytes) -> None:
        """Find all sections, and decode the header and the annotations, which are often the same in many messages.

        Raises:
            NotOneMessageError: the bytes contain no message, or another message follows.
            MessageFormatException: the bytes are not a sequence of sections, or the sections are out of order (3.2).
        """
        if not data:
            raise NotOneMessageError("the delivery has no bytes; expected a message")
        self._header, self._annotations = _NO_HEADER, _NO_ANNOTATIONS
        self._annotations_span = self._properties = self._application_properties = None
        self._body_code = 0
        body: list[Span] = []
        position, end, last = 0, len(data), HEADER - 1
        while position < end:
            code = _DESCRIPTORS.get(data[position : position + 3])
            start = position + 3
            if code is None:
                code, start = _long_descriptor(data, position, end)
            if (code <= last and not (code == last and code in _REPEATABLE)) or DATA <= last < code < FOOTER:
                error = malformed(f"{NAMES[code]} section: out of order; expected the order of AMQP 1.0 3.2", position)
                # a header begins another message, even if the first message has no body
                raise NotOneMessageError(str(error)) if last >= DATA or code == HEADER else error
            position = _section_end(data, start, end, code)
            last = code
            if DATA <= code < FOOTER:
                self._body_code = code
                body.append((start, position))
                if len(body) > MOST_SECTIONS:
                    raise malformed(f"more than {MOST_SECTIONS} sections of the body", position)
            elif code == PROPERTIES:
                self._properties = (start, position)
            elif code == ANNOTATIONS:
                self._annotations_span = (start, position)
                self._annotations = _cached(_annotations, data, start, position, _read_annotations)
            elif code == HEADER:
                self._header = _cached(_headers, data, start, position, _read_header)
            elif code == APPLICATION_PROPERTIES:
                self._application_properties = (start, position)
        self._body = body


def content(data: bytes, span: Span) -> Span:
    """Return the positions of a section's content, which follows the type and the size. The number of bytes of type and
    size varies (1.2)."""
    start, end = span
    return start + _HEAD_LENGTHS[data[start]], end


def _section_end(data: bytes, start: int, end: int, code: int) -> int:
    try:
        width = _SIZE_WIDTHS[data[start]]
        if width == 0:
            return skip(data, start, end)
        after: int = start + 2 + data[start + 1] if width == 1 else start + 5 + _U32(data, start + 1)[0]
    except (IndexError, StructError):
        after = end + 1
    except MessageFormatException as error:
        raise MessageFormatException(f"{NAMES[code]} section: {error}") from error
    if after > end:
        raise malformed(f"{NAMES[code]} section: its size is larger than the rest of the message", start)
    return after


def _long_descriptor(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the code and the position of the value of a section whose descriptor is not in the shortest form."""
    if data[position] != 0:
        raise malformed("expected the beginning of a section", position)
    if position + 1 < end and data[position + 1] not in _DESCRIPTOR_TYPES:
        raise malformed("unknown section", position)
    descriptor, start = decode_value(data, position + 1, end)
    code: Any = None
    if isinstance(descriptor, Symbol):
        code = _CODES.get(descriptor)
    elif isinstance(descriptor, ULong):
        code = descriptor
    if code not in NAMES:
        raise malformed("unknown section", position)
    return int(code), start


def _cached(cache: dict[bytes, T], data: bytes, start: int, end: int, read: Callable[[bytes, int, int], T]) -> T:
    """Return ``read(data, start, end)``. If another message had an equal section, return the kept result."""
    if end - start > _CACHED_SECTION:
        return read(data, start, end)
    key = data[start:end]
    value = cache.get(key)
    if value is None:
        value = read(data, start, end)
        if len(cache) >= _CACHE_LIMIT:
            cache.clear()
        cache[key] = value
    return value


def read_header(data: bytes) -> Header:
    """Return the header, which is the first section if the message has one. No other section is read.

    Raises:
        MessageFormatException: the header cannot be decoded.
    """
    if _DESCRIPTORS.get(data[:3]) != HEADER:
        return _NO_HEADER
    return _cached(_headers, data, 3, _section_end(data, 3, len(data), HEADER), _read_header)


def after_header(data: bytes) -> int:
    """Return the position behind the header. It is 0 if there is no header, or the header cannot be decoded."""
    if _DESCRIPTORS.get(data[:3]) != HEADER:
        return 0
    try:
        return _section_end(data, 3, len(data), HEADER)
    except MessageFormatException:
        return 0


def told_annotations(data: bytes, span: Span | None) -> bytes:
    """Return the annotations that the sender wrote, encoded for the identity of the message (S105). An annotation whose
    name begins with ``_NOTED`` is left out, because the sender did not write it. If the annotations cannot be decoded,
    return their bytes.
    """
    return b"" if span is None else _cached(_told, data, *span, _read_told)


def _read_told(data: bytes, start: int, end: int) -> bytes:
    try:
        found = _read_map(data, start, end, "message-annotations")
    except MessageFormatException:
        return data[start:end]
    return told({name: found[name] for name in found if not str(name).startswith(_NOTED)}).encode()


def split(data: bytes) -> Iterator[tuple[int, int, Span]]:
    """Yield for each section its code, the position at which it begins, and the positions of its value.

    Call this only after ``_scan``, which checks the message.
    """
    position, end = 0, len(data)
    while position < end:
        begin = position
        code, start = _DESCRIPTORS.get(data[position : position + 3]), position + 3
        if code is None:
            code, start = _long_descriptor(data, position, end)
        position = _section_end(data, start, end, code)
        yield code, begin, (start, position)


def body_begins(data: bytes) -> int | None:
    """Return the position of the first data section. ``data`` contains the first bytes of a message.

    Returns ``None`` if the body is of another kind or does not begin in these bytes, or if a section before the body is
    malformed.
    """
    position, end = 0, len(data)
    while position < end:
        code = _DESCRIPTORS.get(data[position : position + 3])
        if code is None or code > DATA:
            return None
        if code == DATA:
            return position
        try:
            position = _section_end(data, position + 3, end, code)
        except MessageFormatException:  # the first bytes end within a section
            return None
    return None


def _read_header(data: bytes, start: int, end: int) -> Header:
    durable, priority, ttl, _, delivery_count = _header_fields(data, start, end)
    return Header(
        bool(durable),
        4 if priority is None else min(int(priority), 9),  # JMS has the priorities 0 to 9 (S152)
        int(ttl or 0),
        int(delivery_count or 0),
    )


def _header_fields(data: bytes, start: int, end: int) -> list[Any]:
    """Return the five fields of a header. Fields that are missing at the end are ``None``.

    Raises:
        MessageFormatException: the section is no list, has too many fields, is too large, or a field has a wrong type.
    """
    most = len(_HEADER_TYPES)
    try:
        if end - start > _LARGEST_HEADER:
            raise malformed(f"{end - start} bytes, expected at most {_LARGEST_HEADER}", start)
        values, after = decode_value(data, start, end)
        if not isinstance(values, list) or len(values) > most or after != end:
            raise malformed(f"expected a list of at most {most} fields", start)
    except MessageFormatException as error:
        raise MessageFormatException(f"header section: {error}") from error
    _check_types(values, _HEADER_TYPES, "header", start)
    return values + [None] * (most - len(values))


def _check_types(values: list[Any], types: _Types, section: str, start: int) -> None:
    for index, value in enumerate(values):
        if type(value) not in types[index]:
            raise malformed(f"{section} section: field {index} has the wrong type {type(value).__name__}", start)


def read_properties(data: bytes, span: Span | None) -> list[Any]:
    """Return the 13 fields of the properties section (3.2.4). A field that is absent is ``None``.

    Raises:
        MessageFormatException: the section cannot be decoded.
    """
    if span is None:
        return _ABSENT[0]
    start, end = span
    if end - start > LARGEST_PROPERTIES:
        raise malformed(f"properties section: {end - start:,} bytes, expected at most {LARGEST_PROPERTIES:,}", start)
    code = data[start]
    if code == 0x45:  # the empty list
        return _ABSENT[0]
    if code != 0xC0 and code != 0xD0:
        raise malformed("properties section: expected a list", start)
    try:
        if code == 0xC0:
            values = _read_fields(data, start + 3, data[start + 2], end)
        else:
            values = _read_fields(data, start + 9, _U32(data, start + 5)[0], end)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise malformed(f"properties section: {error}", start) from error
    except MessageFormatException as error:
        raise MessageFormatException(f"properties section: {error}") from error
    signature = tuple(map(type, values))
    if signature not in _good_properties:
        _check_types(values, _PROPERTY_TYPES, "properties", start)
        if len(_good_properties) < _CACHE_LIMIT:
            _good_properties.add(signature)
    return values + _ABSENT[len(values)]


def _read_fields(data: bytes, position: int, count: int, end: int) -> list[Any]:
    """Return ``count`` values that fill the bytes up to ``end``. This function itself decodes the most frequent types,
    because this is faster.

    While the fields are read, the position may go beyond ``end``. The position is checked after the last field.
    """
    if count > len(_PROPERTY_TYPES):
        raise malformed(f"{count} fields, expected at most {len(_PROPERTY_TYPES)}", position)
    values: list[Any] = []
    for _ in range(count):
        code = data[position]
        if code == 0x40:
            values.append(None)
            position += 1
        elif code == 0xA1:
            start = position + 2
            position = start + data[position + 1]
            values.append(data[start:position].decode())
        elif code == 0xB1:  # no broker writes modified UTF-8 here, which takes a hundred times as long
            start = position + 5
            position = start + _U32(data, position + 1)[0]
            values.append(data[start:position].decode())
        elif code == 0x83:
            values.append(_I64(data, position + 1)[0])
            position += 9
        elif code >= 0xC0 or code == 0:  # decoded, such a value could have any number of parts
            raise malformed(f"field {len(values)} is no simple value", position)
        else:
            value, position = decode_value(data, position, end)
            values.append(value)
    if position != end:
        raise malformed("the fields do not fill the section", position)
    return values


def _read_map(data: bytes, start: int, end: int, section: str) -> dict[Any, Any]:
    try:
        value, after = decode_value(data, start, end)
        if not isinstance(value, dict) or after != end:
            raise malformed("expected a map", start)
    except MessageFormatException as error:
        raise MessageFormatException(f"{section} section: {error}") from error
    return value


def _read_annotations(data: bytes, start: int, end: int) -> Annotations:
    """Return the annotations that JMS needs. The others are not decoded.

    Raises:
        MessageFormatException: the section is no map, or is too large.
    """
    try:
        found = _read_simple_entries(data, start, end)
    except (IndexError, StructError, MessageFormatException) as error:
        raise MessageFormatException(f"message-annotations section: {error}") from error
    delivery_time = found.get("x-opt-delivery-time")
    return Annotations(
        _small_int(found.get("x-opt-jms-msg-type")),
        _small_int(found.get("x-opt-jms-dest")),
        _small_int(found.get("x-opt-jms-reply-to")),
        int(delivery_time) if isinstance(delivery_time, int) else 0,
        tuple((name, str(found[key])) for key, name in _ORIGIN.items() if key in found),
    )


def _read_simple_entries(data: bytes, start: int, end: int) -> dict[str, Any]:
    """Return the entries of a map that JMS needs, if their values are simple. All other values are skipped."""
    if end - start > _LARGEST_ANNOTATIONS:
        raise malformed(f"{end - start} bytes, expected at most {_LARGEST_ANNOTATIONS}", start)
    code = data[start]
    if code == 0xC1:
        count, position = data[start + 2], start + 3
    elif code == 0xD1:
        count, position = _U32(data, start + 5)[0], start + 9
    else:
        raise malformed("expected a map", start)
    if count % 2 or count > end - position:
        raise malformed(f"a map has {count} elements in {end - position} bytes, expected pairs", start)
    found: dict[str, Any] = {}
    for _ in range(count // 2):
        begin, position = position, skip(data, position, end)
        name = _NAMES_OF_ANNOTATIONS.get(data[begin + _TEXT_HEADS.get(data[begin], 0) : position])
        begin, position = position, skip(data, position, end)
        if name is not None and 0 < data[begin] < 0xC0:
            found[name], _ = decode_value(data, begin, position)
    if position != end:
        raise malformed(f"{end - position} bytes follow the last entry, expected none", position)
    return found


def _small_int(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def read_application_properties(data: bytes, span: Span | None) -> dict[str, Any]:
    """Return the application properties (3.2.5) as a new dictionary, in types of JMS (S166).

    Raises:
        MessageFormatException: the section cannot be decoded, has too many values, or contains a name that is not text.
    """
    if span is None:
        return {}
    start, end = span
    check_values(data, start, end, _MOST_IN_PROPERTIES)
    found = _read_map(data, start, end, "application-properties")
    for name in found:
        if type(name) is not str:
            raise MessageFormatException(
                f"application-properties section: a name is a {type(name).__name__}, expected a string"
            )
    return as_jms_map(found)
