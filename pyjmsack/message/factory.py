"""Makes a message from the object that a caller gives to ``send``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.base import Message
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.map import MapMessage
from pyjmsack.message.stream import StreamMessage
from pyjmsack.message.text import TextMessage

__all__ = ["to_message"]


def to_message(obj: Any) -> Message:
    """Return ``obj`` as a message.

    A message is returned as it is. A ``str`` becomes a text message, bytes become a bytes message, a mapping becomes a
    map message, and a list or a tuple becomes a stream message.

    Raises:
        MessageFormatException: ``obj`` is ``None`` (S69), or no message class takes its type or its content.
    """
    if isinstance(obj, Message):
        return obj
    if isinstance(obj, str):
        return TextMessage(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return BytesMessage(obj)
    if isinstance(obj, Mapping):
        return MapMessage(obj)
    if isinstance(obj, (list, tuple)):
        return StreamMessage(obj)
    raise MessageFormatException(
        f"send: expected a Message, str, bytes, mapping, list or tuple, not {type(obj).__name__};"
        " for another plain value call create_object_message()"
    )
