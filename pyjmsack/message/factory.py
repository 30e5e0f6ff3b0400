"""From what a caller hands to ``send`` to a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjmsack.errors import MessageFormatException, UnsupportedFeatureException
from pyjmsack.message.base import Message
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.text import TextMessage

__all__ = ["to_message"]


def to_message(obj: Any) -> Message:
    """Return ``obj`` as a message: itself, or a new text or bytes message.

    Raises:
        MessageFormatException: ``None`` (S69), or a type that no message class takes.
        UnsupportedFeatureException: a mapping or a list.
    """
    if isinstance(obj, Message):
        return obj
    if isinstance(obj, str):
        return TextMessage(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return BytesMessage(obj)
    if isinstance(obj, (Mapping, list, tuple)):
        raise UnsupportedFeatureException("map and stream messages are not there yet")
    raise MessageFormatException(f"send: expected a Message, str or bytes, not {type(obj).__name__}")
