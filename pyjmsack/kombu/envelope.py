"""Writes a message of kombu into a JMS message, and reads it again.

By default the whole message is one JSON text, as in kombu's other transports, which can hold any header. With
``envelope="jms"`` the body is the JMS body, and properties carry the rest, so that Java can read and write tasks:

====================================== =====================================================================
kombu                                  JMS
====================================== =====================================================================
body, text or bytes                    text message, bytes message
``content_type``, ``content_encoding`` properties ``kombu_content_type``, ``kombu_content_encoding``
``correlation_id``                     ``JMSCorrelationID``
``reply_to``, the name of a queue      ``JMSReplyTo``
a header that is text, number, boolean a property of its name
all other headers                      property ``kombu_headers``, a JSON object
====================================== =====================================================================

A received message may have either form, whatever value the option has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kombu.utils.json import dumps

from pyjmsack import BytesMessage, Destination, Message, MessageFormatException, Queue, TemporaryQueue, TextMessage
from pyjmsack.kombu.decoding import check_encoding, read_json
from pyjmsack.kombu.names import checked_name, queue_name, unescaped

__all__ = ["DUPLICATE_ID", "MARK", "ROUTING_KEY", "Outgoing", "from_jms", "reply_destination", "to_envelope", "to_jms"]

MARK: Final = "kombu_envelope"
"""The name of the property that marks a JMS message whose text is a whole message of kombu."""
ROUTING_KEY: Final = "kombu_routing_key"
"""The property with the routing key of a message that went to an exchange."""
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""The property by which Artemis drops the second copy of a message. kombu sends a second copy if no answer came."""
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS = "kombu_content_type", "kombu_content_encoding", "kombu_headers"
_OWN: Final = frozenset({MARK, ROUTING_KEY, _CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS})
_IDENTIFIER: Final = re.compile(r"(?!JMS|jms_|_AMQ|kombu_)[A-Za-z_$][A-Za-z0-9_$]*")
_RESERVED: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"},
)
_LONG: Final = 1 << 63
_KINDS: Final = {"content-type": str | None, "content-encoding": str | None, "body": str | bytes}
_TEMPORARY: Final = "temp-queue://"
"""The prefix of a name that stands for a temporary queue. The process that sends a reply knows only this name."""
_LITERAL: Final = "queue://"
"""The prefix of a name that stands for a queue of exactly this name, without the escapes of this transport."""


@dataclass
class Outgoing:
    """A message of kombu, ready to become a JMS message."""

    body: str | bytes
    properties: dict[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None
    reply_to: Destination | None = None


def to_envelope(message: Mapping[str, Any]) -> Outgoing:
    """Return a message of kombu as one JSON text."""
    properties = message["properties"]
    return Outgoing(dumps(message), {MARK: 1}, correlation_id=_text(properties.get("correlation_id")))


def to_jms(message: Mapping[str, Any], body: str | bytes) -> Outgoing:
    """Return a message of kombu as a JMS message that Java can read.

    Args:
        message: the message that kombu sends.
        body: its body, as its serializer made it.
    """
    known = {_CONTENT_TYPE: message.get("content-type"), _CONTENT_ENCODING: message.get("content-encoding")}
    properties: dict[str, Any] = {name: value for name, value in known.items() if value}
    others = {}
    for name, value in message["headers"].items():
        if _is_property(name, value):
            properties[name] = value
        else:
            others[name] = value
    if others:
        properties[_HEADERS] = dumps(others)
    given = message["properties"]
    reply_to = given.get("reply_to")
    return Outgoing(
        body,
        properties,
        correlation_id=_text(given.get("correlation_id")),
        reply_to=reply_destination(reply_to) if isinstance(reply_to, str) and reply_to else None,
    )


def _is_property(name: object, value: object) -> bool:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name) or name.upper() in _RESERVED:
        return False
    if isinstance(value, int) and not isinstance(value, bool):
        return -_LONG <= value < _LONG
    return isinstance(value, str | bool | float)


def reply_destination(name: str) -> Destination:
    """Return the queue to which the exchange without a name sends a message whose routing key is ``name``. The key may
    be a name that :func:`_reply_name` made.

    Raises:
        InvalidDestinationException: the name is too long.
    """
    if name.startswith(_TEMPORARY):
        return TemporaryQueue._literal(checked_name(name.removeprefix(_TEMPORARY)))
    if name.startswith(_LITERAL):
        # a sender chose the name, so it must not set options
        return Queue._literal(checked_name(name.removeprefix(_LITERAL)))
    return Queue(queue_name(name))


def from_jms(message: Message) -> dict[str, Any]:
    """Return the content of a message as kombu's mapping of headers, properties, body and content type.

    Raises:
        MessageFormatException: the parts of the message do not have the types that a message of kombu has, its content
            encoding is no character set, or its JSON has too many values.
        Exception: kombu's decoder of JSON cannot read the text. The decoder may raise errors of many kinds, because the
            sender chooses the text.
    """
    return _checked(_payload(message))


def _checked(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload, after a check that its parts have the types that kombu and Celery expect, and that kombu may
    look its content encoding up.
    """
    for name, kind in _KINDS.items():
        if not isinstance(payload.get(name), kind):
            raise MessageFormatException(
                f"{name} is of the type {type(payload.get(name)).__name__}; text is expected in a message of kombu"
            )
    check_encoding(payload.get("content-type"), payload.get("content-encoding"))
    return payload


def _payload(message: Message) -> dict[str, Any]:
    if MARK in message.properties and isinstance(message, TextMessage):
        return _from_envelope(message.text or "")
    body, content_type, encoding = _body(message)
    properties: dict[str, Any] = {"delivery_info": {}, "priority": message.priority}
    if message.correlation_id is not None:
        properties["correlation_id"] = _text(message.correlation_id)
    if message.reply_to is not None:
        properties["reply_to"] = _reply_name(message.reply_to)
    return {
        "body": body,
        "content-type": message.properties.get(_CONTENT_TYPE, content_type),
        "content-encoding": message.properties.get(_CONTENT_ENCODING, encoding),
        "headers": _headers(message),
        "properties": properties,
    }


def _from_envelope(text: str) -> dict[str, Any]:
    payload = read_json(text, "the envelope")
    if not isinstance(payload, dict) or not isinstance(payload.get("properties"), dict):
        raise MessageFormatException(
            f"the property {MARK} marks a message of kombu, but the text is no JSON object with 'properties'"
        )
    if not isinstance(payload["properties"].get("delivery_info"), dict):
        payload["properties"]["delivery_info"] = {}
    if not isinstance(payload.get("headers"), dict):
        payload["headers"] = {}
    return payload


def _headers(message: Message) -> dict[str, Any]:
    headers = {name: value for name, value in message.properties.items() if name not in _OWN}
    text = message.properties.get(_HEADERS)
    if isinstance(text, str):
        others = read_json(text, f"the property {_HEADERS}")
        if not isinstance(others, dict):
            raise MessageFormatException(f"the property {_HEADERS} is not a JSON object")
        headers.update(others)
    return headers


def _body(message: Message) -> tuple[str | bytes, str, str]:
    """Return the body of a message, and the content type and the encoding to use if no property names them."""
    if isinstance(message, TextMessage):
        is_task = "task" in message.properties
        return message.text or "", "application/json" if is_task else "text/plain", "utf-8"
    if isinstance(message, BytesMessage):
        return message.data, "application/octet-stream", "binary"
    body = message.body
    return (
        dumps(body if isinstance(body, list | str | int | float | bool) else _plain(body)),
        "application/json",
        "utf-8",
    )


def _plain(body: object) -> object:
    return dict(body) if isinstance(body, Mapping) else None if body is None else repr(body)


def _reply_name(destination: Destination) -> str:
    """Return a name for the destination of a reply. The process that sends the reply gets only this name, and
    :func:`reply_destination` finds the destination by it.
    """
    if isinstance(destination, TemporaryQueue):
        return f"{_TEMPORARY}{destination.name}"
    name = unescaped(destination.name)
    return name if queue_name(name) == destination.name else f"{_LITERAL}{destination.name}"


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)
