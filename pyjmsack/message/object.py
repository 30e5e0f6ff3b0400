"""``ObjectMessage``: a body that is one value, plain or serialised."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.base import Message
from pyjmsack.message.codecs import SerializedObject, deserialize, known_codec, serialize
from pyjmsack.message.fields import check_field

__all__ = ["ObjectMessage"]

MAX_DEPTH = 60
"""The most lists and dicts within each other. A codec for the wire must have room for one more level."""


class ObjectMessage(Message):
    """A message with an object (S175).

    A plain value (``None``, ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``UUID``, the wrappers of Java types, and
    lists, tuples and dicts of these) travels with its types, as Qpid JMS does with ``JMS_AMQP_TYPED_ENCODING``. Any
    other object needs a content type for which a codec is registered, see :func:`register_object_codec`. Java clients
    cannot read such an object, so send them text or bytes. Objects that Java serialised are not decoded: they appear as
    :class:`SerializedObject`, and a program may send them on.

    The message holds a copy. A change of the object after it was set, or after it was read, does not change the
    message.

    Args:
        obj: the object.
        content_type: write it with the codec for this type; a plain value needs none.

    Raises:
        MessageFormatException: the object is not a plain value and the codec cannot write it, or there is no codec for
            the content type.
    """

    __slots__ = ()

    wire_type: ClassVar[int] = 1

    def __init__(self, obj: Any = None, content_type: str | None = None) -> None:
        super().__init__()
        self._body = _to_body(obj, content_type)

    @property
    def object(self) -> Any:
        """The object. Each read returns a new copy.

        Setting it keeps the content type of the message, if a codec is registered for that type.

        Raises:
            MessageFormatException: (reading) the codec cannot read it, or it is larger than the codec's limit.
            MessageFormatException: (setting) as for the constructor.
            MessageNotWriteableException: (setting) the message was received (S163), or has a completion listener.
        """
        body = self._body
        return deserialize(body) if isinstance(body, SerializedObject) else _copy(body)

    @object.setter
    def object(self, obj: Any) -> None:
        self._check_body_writeable()
        held = self.content_type
        self._body = _to_body(obj, held if held is not None and known_codec(held) else None)

    @property
    def body(self) -> Any:
        """The same as ``object``."""
        return self.object

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Return whether ``get_body(type)`` would succeed. It would not if the codec cannot read the object.

        Args:
            type: the type of the object.
        """
        try:
            return super().is_body_assignable_to(type)
        except MessageFormatException:
            return False

    @property
    def content_type(self) -> str | None:
        """The content type of the serialised form; ``None`` for a plain value. Setting it serialises the object
        again.
        """
        body = self._body
        return body.content_type if isinstance(body, SerializedObject) else None

    @content_type.setter
    def content_type(self, value: str | None) -> None:
        self._check_body_writeable()
        held = self.object
        if isinstance(held, SerializedObject):
            raise MessageFormatException(
                f"{held!r} cannot be written as {value or 'a plain value'}: "
                "no codec can read its bytes; register one with register_object_codec()"
            )
        self._body = _to_body(held, value)

    @property
    def _typed_encoding(self) -> bool:
        return self.content_type is None

    def _set_typed_encoding(self, typed: bool) -> None:
        if typed:
            self.content_type = None
        elif self._typed_encoding:
            raise MessageFormatException(
                "property 'JMS_AMQP_TYPED_ENCODING': Java's serialisation cannot be written; to write the object with a"
                " codec set message.content_type"
            )


def _to_body(obj: Any, content_type: str | None) -> Any:
    if isinstance(obj, SerializedObject):
        return obj
    return _check(obj, 0) if content_type is None else serialize(obj, content_type)


def _check(value: Any, depth: int) -> Any:
    """Return a copy of a plain value.

    Raises:
        MessageFormatException: a part of the value is not plain.
    """
    kind = type(value)
    if kind is UUID:
        return value
    if not isinstance(value, (list, dict)) and kind is not tuple:
        try:
            return check_field("object", value)
        except MessageFormatException as error:
            raise MessageFormatException(
                f"object: expected a plain value, not {kind.__name__} ({error}); "
                "to send it, set a content_type with a registered codec"
            ) from error
    if depth >= MAX_DEPTH:
        raise MessageFormatException(f"object: expected at most {MAX_DEPTH} lists and dicts within each other")
    if isinstance(value, dict):
        return {_check_key(key): _check(item, depth + 1) for key, item in value.items()}
    return [_check(item, depth + 1) for item in value]


def _check_key(key: Any) -> Any:
    if isinstance(key, tuple):
        raise MessageFormatException(f"object: the key {key!r} of a dict must not be a tuple")
    return _check(key, 0)


def _copy(value: Any) -> Any:
    """Return a copy of the value. Only lists and dicts are copied, because nothing else can be changed."""
    kind = type(value)
    if kind is list:
        return [_copy(item) for item in value]
    return {key: _copy(item) for key, item in value.items()} if kind is dict else value
