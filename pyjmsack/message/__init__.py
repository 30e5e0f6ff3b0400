"""The messages of JMS (S150-S176). Each message class has a module of its own. All classes share the headers and the
properties."""

from __future__ import annotations

from pyjmsack.message import portable
from pyjmsack.message.base import Acknowledger, LazyContent, Message
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.codecs import JsonCodec, ObjectCodec, SerializedObject, register_object_codec
from pyjmsack.message.factory import to_message
from pyjmsack.message.map import MapMessage
from pyjmsack.message.object import ObjectMessage
from pyjmsack.message.properties import Properties
from pyjmsack.message.source import PIECE, BodySource, to_source
from pyjmsack.message.spooled import SpooledBytesMessage
from pyjmsack.message.stream import StreamMessage
from pyjmsack.message.streamed import StreamedBytesMessage
from pyjmsack.message.text import TextMessage

__all__ = [
    "PIECE",
    "Acknowledger",
    "BodySource",
    "BytesMessage",
    "JsonCodec",
    "LazyContent",
    "MapMessage",
    "Message",
    "ObjectCodec",
    "ObjectMessage",
    "Properties",
    "SerializedObject",
    "SpooledBytesMessage",
    "StreamMessage",
    "StreamedBytesMessage",
    "TextMessage",
    "portable",
    "register_object_codec",
    "to_message",
    "to_source",
]
