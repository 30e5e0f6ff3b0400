"""Turns an object into the bytes of a message and back, with the codec that is registered for a content type (S175)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Protocol

from pyjmsack.errors import MessageFormatException
from pyjmsack.json_text import MOST_VALUES, read_json

__all__ = ["JAVA_SERIALIZED", "JsonCodec", "ObjectCodec", "SerializedObject", "known_codec", "register_object_codec"]

JAVA_SERIALIZED = "application/x-java-serialized-object"

MAX_BYTES = 1 << 24
"""The largest serialised object that is decoded, in bytes. A codec can be registered with another limit."""


class ObjectCodec(Protocol):
    """Turns objects into bytes and back. Any exception of a codec becomes a ``MessageFormatException``.

    In ``asyncio``, a received message with many values is decoded on a thread before the program gets it.
    """

    def encode(self, obj: Any) -> bytes:
        """Return the object as bytes.

        Args:
            obj: the object that a program gave to an object message.

        Raises:
            Exception: this codec cannot write the object. The codec may raise any exception.
        """
        ...

    def decode(self, data: bytes) -> Any:
        """Return the object that the bytes describe. Do not trust the bytes, because each program that may send to the
        queue can choose them.

        Args:
            data: the body of a message. It has at most ``max_bytes`` bytes (see :func:`register_object_codec`).
        """
        ...


class SerializedObject(bytes):
    """An object in its serialised form. ``ObjectMessage.object`` is a ``SerializedObject`` if no codec is registered
    for the content type, so that the program can keep the bytes and send them again.

    Args:
        data: the bytes.
        content_type: the format of the bytes. The default is Java's serialisation.
    """

    content_type: str

    def __new__(cls, data: bytes = b"", content_type: str = JAVA_SERIALIZED) -> SerializedObject:
        self = super().__new__(cls, data)
        self.content_type = content_type
        return self

    def __repr__(self) -> str:
        return f"<SerializedObject, {len(self)} bytes of {self.content_type}>"


class JsonCodec:
    """The codec for JSON in UTF-8, which is registered for ``application/json``.

    JSON has numbers, strings, lists, and dicts whose keys are strings. JSON does not keep the types of Java.
    """

    def encode(self, obj: Any) -> bytes:
        """Return the object as JSON.

        Args:
            obj: ``None``, ``bool``, numbers, text, and lists and dicts of these. The keys of a dict become text.

        Raises:
            TypeError: a part of the object has another type. The message raises ``MessageFormatException`` instead.
            ValueError: a number is infinite or NaN. The message raises ``MessageFormatException`` instead.
        """
        return json.dumps(obj, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, data: bytes) -> Any:
        """Return the object that the JSON describes.

        Args:
            data: JSON in UTF-8, UTF-16 or UTF-32.

        Raises:
            ValueError: ``data`` is not JSON, or has more than 2,000,000 values. The message raises
                ``MessageFormatException`` instead.
        """
        return read_json(data, MOST_VALUES)


class _Known(NamedTuple):
    codec: ObjectCodec
    max_bytes: int


_codecs: dict[str, _Known] = {}


def plain_type(content_type: str) -> str:
    """Return a content type in lower case, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def register_object_codec(content_type: str, codec: ObjectCodec, *, max_bytes: int = MAX_BYTES) -> None:
    """Let ``codec`` read and write the bodies of object messages of a content type, in the whole process.

    A codec for JSON (``application/json``) is registered already. There is no codec for Java's serialisation or for
    pickle, because reading these formats runs code that the sender chose.

    >>> register_object_codec("application/cbor", CborCodec())  # doctest: +SKIP

    Args:
        content_type: the content type, such as ``application/cbor``. Parameters and letter case do not matter.
        codec: an object with the methods of :class:`ObjectCodec`. It replaces the codec that was registered before.
        max_bytes: the size of the largest body that the codec gets, in bytes. The default is 16 MiB. Reading a larger
            body raises ``MessageFormatException``.

    Raises:
        ValueError: ``content_type`` does not have the form type/subtype, or ``max_bytes`` is not positive.
        TypeError: the codec has no method ``encode`` or no method ``decode``.
    """
    name = plain_type(content_type)
    if "/" not in name:
        raise ValueError(f"content type {content_type!r}: expected type/subtype, such as application/cbor")
    if not (callable(getattr(codec, "encode", None)) and callable(getattr(codec, "decode", None))):
        raise TypeError(f"codec {codec!r}: expected an object with encode(obj) and decode(data)")
    if max_bytes <= 0:
        raise ValueError(f"max_bytes {max_bytes}: expected a positive number")
    _codecs[name] = _Known(codec, max_bytes)


def known_codec(content_type: str) -> bool:
    """Return whether a codec is registered for a content type."""
    return plain_type(content_type) in _codecs


def serialize(obj: Any, content_type: str) -> SerializedObject:
    """Return ``obj`` as the bytes of a content type.

    Raises:
        MessageFormatException: no codec is registered for the content type, or the codec cannot write this object.
    """
    known = _codecs.get(plain_type(content_type))
    if known is None:
        raise MessageFormatException(
            f"no codec is registered for {content_type!r}; expected one of {', '.join(sorted(_codecs))}, "
            "or a codec that you add with register_object_codec()"
        )
    try:
        return SerializedObject(known.codec.encode(obj), content_type)
    except Exception as error:
        raise MessageFormatException(f"the codec for {content_type} cannot write a {type(obj).__name__}") from error


def deserialize(form: SerializedObject) -> Any:
    """Return the object whose serialised form is ``form``. Return ``form`` itself if no codec is registered for its
    content type.

    Raises:
        MessageFormatException: the object is too large, or the codec cannot read it.
    """
    known = _codecs.get(plain_type(form.content_type))
    if known is None:
        return form
    if len(form) > known.max_bytes:
        raise MessageFormatException(
            f"the object has {len(form)} bytes; "
            f"the codec for {form.content_type} takes at most {known.max_bytes} (max_bytes)"
        )
    try:
        return known.codec.decode(bytes(form))
    except Exception as error:
        raise MessageFormatException(f"the codec for {form.content_type} cannot read the object") from error


register_object_codec("application/json", JsonCodec())
