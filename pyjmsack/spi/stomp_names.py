"""The header names of STOMP: those of the protocol, of the brokers and of this library.

STOMP has one list of headers for everything, so a JMS property is a header too, and its value is a string. A property
whose name is also a header name gets another name in the frame. Brokers pass headers on as properties to receivers that
use other protocols.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyjmsack.kept import kept
from pyjmsack.message.convert import kind_of
from pyjmsack.types import Byte, Float, Long, Short

__all__ = [
    "BODY",
    "COPY",
    "TYPES",
    "header_name",
    "is_property",
    "properties_of",
    "property_name",
    "sent_over_stomp",
    "text_of",
    "types_line",
]

BODY = "JMS_pyjmsack_body"
"""The header with the kind of a body that STOMP has no name for: ``message``, ``text``, ``null-text``, ``bytes``."""
TYPES = "JMS_pyjmsack_types"
"""The header with the Java types of the properties that are not strings: a JSON object with a type for each name
(S161)."""
COPY = "JMS_pyjmsack_copy_"
"""The prefix for a copy of ``JMSXGroupID`` and similar headers. Some brokers pass on only the copy."""
_ESCAPED = "JMS_pyjmsack_property_"
"""The prefix for a property whose own name has another meaning in a frame, such as ``type`` or ``priority``."""

_TAKEN_TEXT = """
destination destination-type subscription-type subscription message-id ack redelivered receipt transaction
content-length content-type persistent priority expires timestamp correlation-id reply-to type browser
amq-msg-type transformation originalDestination original-destination originalExpiration brokerInTime brokerOutTime
JMSXGroupID JMSXGroupSeq JMSXUserID JMSXDeliveryCount JMSDestination JMSReplyTo JMSCorrelationID JMSType JMSMessageID
JMSTimestamp JMSExpiration JMSPriority JMSDeliveryMode JMSRedelivered
_AMQ_CONTENT_TYPE
NATIVE_MESSAGE_ID __HDR_MESSAGE_ID __AMQ_CID _AMQ_GROUP_ID _AMQ_GROUP_SEQUENCE _AMQ_SCHED_DELIVERY
_AMQ_LARGE_SIZE AMQ_SCHEDULED_TIME scheduledJobId
"""
_TAKEN = frozenset(_TAKEN_TEXT.split())
"""The headers of the frame, of the broker and of JMS, which are not properties of the application. They include
``receipt`` and ``destination-type``, because Artemis delivers these headers of the sender with the message
(docs/broker-facts.md, trap 25)."""
_ORDERS = frozenset(("AMQ_SCHEDULED_TIME",))
"""The headers of ``_TAKEN`` that an application may set, to ask the broker for a service."""
_OURS = frozenset((BODY, TYPES))
_NATIVE_ID = "NATIVE_MESSAGE_ID"
_CONVERTED = "JMSXDeliveryCount"
"""When Artemis converts a message to AMQP, it adds a property with this name and without a value. Senders over AMQP do
not set this property, because JMS forbids it."""
_FRAME = frozenset(("destination-type", "receipt", "content-length"))


def is_property(header: str) -> bool:
    """Return True if a header of a MESSAGE frame is a property of the application."""
    return not (header in _TAKEN or header in _OURS or header.startswith(("JMS_AMQP_", COPY)))


def sent_over_stomp(properties: Mapping[str, Any], address: str | None, *, by_classic: bool) -> bool:
    """Return True if the message was sent over STOMP. In this case the broker made these properties from STOMP headers.

    Both brokers deliver a header of this library as a property. Classic also delivers the message id of a STOMP sender.
    Artemis delivers all headers except the message id, and the property ``destination`` is then the address of the
    message. A name alone is no evidence, because an application may have properties of any name.

    Args:
        address: the address of the message.
        by_classic: whether the message looks as if Classic had made it from a message of another protocol.
    """
    if TYPES in properties or BODY in properties:
        return True
    native, destination = properties.get(_NATIVE_ID), properties.get("destination")
    if by_classic and isinstance(native, str) and native.startswith("ID:"):
        return True
    if not address or not isinstance(destination, str) or _FRAME.isdisjoint(properties):
        return False
    # the acceptor of Artemis may put a prefix before the address
    return _CONVERTED in properties and destination.endswith(address)


def properties_of(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers that are properties of the application.

    Their types come from the header ``TYPES``, which this library writes.
    """
    properties = {property_name(name): value for name, value in headers.items() if is_property(name)}
    types = headers.get(TYPES)
    return _typed(properties, types) if isinstance(types, str) else properties


@kept(1024)
def header_name(name: str) -> str:
    """Return the name of the header that contains a property."""
    clear = (is_property(name) or name in _ORDERS) and not name.startswith(_ESCAPED)
    return name if clear else _ESCAPED + name


def property_name(header: str) -> str:
    """Return the name of the property that a header contains."""
    return header.removeprefix(_ESCAPED)


def text_of(value: Any) -> str:
    """Return a property's value as the text of a header. The header ``TYPES`` has the type of the value; see
    :func:`types_line`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _REALS.get(repr(float(value)), repr(float(value)))
    return str(int(value)) if isinstance(value, int) else str(value)


_REALS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
"""The texts for infinite numbers and for "not a number": the keys are the texts of Python, and the values are the texts
of Java."""


def types_line(properties: dict[str, Any]) -> str | None:
    """Return the value of the header ``TYPES``, or ``None`` if all properties are strings.

    The names are sorted, because two copies of a message have to be the same, whatever the order of its properties
    (S105)."""
    kinds = tuple(
        sorted([(name, "null" if value is None else kind_of(value)) for name, value in properties.items()
                if type(value) is not str])
    )  # fmt: skip
    return _types_text(kinds) if kinds else None


@kept(256, lambda kinds: sum(len(name) for name, _ in kinds))
def _types_text(kinds: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(dict(kinds), separators=(",", ":"))


def _typed(properties: dict[str, Any], types: str) -> dict[str, Any]:
    """Return the properties with the types that the header ``TYPES`` gives them.

    A value that does not fit its type stays a string, because it was changed after it was sent. All values stay as they
    are if ``types_line`` did not write the header: a stranger must not make the properties of a message unreadable.
    """
    for name, kind in _types_of(types):
        text = properties.get(name)
        if isinstance(text, str):
            try:
                properties[name] = _READERS[kind](text)
            except (ValueError, KeyError):
                continue
    return properties


@kept(256)
def _types_of(text: str) -> tuple[tuple[str, str], ...]:
    try:
        kinds = json.loads(text)
        return tuple((str(name), str(kind)) for name, kind in kinds.items())
    except (ValueError, AttributeError, RecursionError):
        return ()


def _int(text: str) -> int:
    value = int(text)
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{text} does not fit the 32 bits of an int")
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    "null": lambda text: None,
    "boolean": lambda text: text == "true",
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": _int,
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": float,
}
