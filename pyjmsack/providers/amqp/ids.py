"""Converts message ids: an id is a string in JMS, and has one of four types in AMQP 1.0 (3.2.11 to 3.2.14; S159).

==================== ============================== =================================
AMQP                 as message id in JMS           as correlation id in JMS
==================== ============================== =================================
string ``ID:x``      ``ID:x``                       ``ID:x``
string ``x``         ``ID:AMQP_NO_PREFIX:x``        ``x``
string that has one  ``ID:AMQP_STRING:`` + itself   ``ID:AMQP_STRING:`` + itself
of these prefixes
uuid                 ``ID:AMQP_UUID:`` + text       the same
ulong                ``ID:AMQP_ULONG:`` + digits    the same
binary               ``ID:AMQP_BINARY:`` + hex      the same
==================== ============================== =================================
"""

from __future__ import annotations

import re
from typing import Any, NoReturn
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.wire_encode import encode_string, encode_value
from pyjmsack.providers.amqp.wire_types import ULong

__all__ = ["encode_id", "to_correlation_id", "to_message_id"]

_TYPED = "ID:AMQP_"
_UUID = "ID:AMQP_UUID:"
_ULONG = "ID:AMQP_ULONG:"
_BINARY = "ID:AMQP_BINARY:"
_STRING = "ID:AMQP_STRING:"
_NO_PREFIX = "ID:AMQP_NO_PREFIX:"
_ENCODED = (_UUID, _ULONG, _BINARY, _STRING, _NO_PREFIX)

_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ULONG_TEXT = re.compile(r"[0-9]{1,20}")
_HEX_TEXT = re.compile(r"([0-9a-fA-F]{2})*")


def encode_id(text: str) -> bytes:
    """Encode a JMS message id or correlation id. A prefix of the table above selects the AMQP type.

    Raises:
        MessageFormatException: the text after the prefix does not fit the type.
    """
    return encode_value(_from_text(text)) if text.startswith(_TYPED) else encode_string(text)


def _from_text(text: str) -> Any:
    for prefix, convert in ((_UUID, _uuid), (_ULONG, _ulong), (_BINARY, _binary), (_STRING, str), (_NO_PREFIX, str)):
        if text.startswith(prefix):
            return convert(text[len(prefix) :])
    return text


def _uuid(text: str) -> UUID:
    if not _UUID_TEXT.fullmatch(text):
        _refuse(_UUID, text, "8-4-4-4-12 hexadecimal digits")
    return UUID(text)


def _ulong(text: str) -> int:
    if not _ULONG_TEXT.fullmatch(text) or int(text) >= 1 << 64:
        _refuse(_ULONG, text, "a whole number of 64 bits, unsigned")
    return ULong(int(text))


def _binary(text: str) -> bytes:
    if not _HEX_TEXT.fullmatch(text):
        _refuse(_BINARY, text, "pairs of hexadecimal digits")
    return bytes.fromhex(text)


def _refuse(prefix: str, text: str, expected: str) -> NoReturn:
    raise MessageFormatException(f"id {prefix + text!r}: expected {expected} behind {prefix}")


def to_message_id(value: Any) -> str | None:
    """Return the JMSMessageID for the message-id of an AMQP message."""
    if type(value) is str and not value.startswith("ID:"):
        return _NO_PREFIX + value
    return to_correlation_id(value)


def to_correlation_id(value: Any) -> str | None:
    """Return the JMSCorrelationID for the correlation-id of an AMQP message."""
    if value is None or type(value) is str:
        return _STRING + value if value is not None and value.startswith(_ENCODED) else value
    if isinstance(value, UUID):
        return f"{_UUID}{value}"
    return _BINARY + value.hex().upper() if isinstance(value, bytes) else f"{_ULONG}{int(value)}"
