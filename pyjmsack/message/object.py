"""``ObjectMessage``: a body that is one value, which is plain or serialised."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.base import Message
from pyjmsack.message.codecs import SerializedObject, deserialize, known_codec, serialize
from pyjmsack.message.fields import check_field

__all__ = ["ObjectMessage"]

MAX_DEPTH = 60
"""The largest number of lists and dicts within each other. The AMQP codec must allow at least one more level, because
a body may add a level."""


class _Ready(NamedTuple):
    """A copy of the object of a message, or the error of the codec."""

    body: Any
    """The body that was copied. The message may have another one meanwhile."""
    value: Any
    error: MessageFormatException | None


class ObjectMessage(Message):
    """A message with an object (S175).

    A plain value is ``None``, a ``bool``, ``int``, ``float``, ``str``, ``bytes`` or ``UUID``, a wrapper of a Java type,
    or a list, tuple or dict of plain values. The message carries a plain value together with its types, as Qpid JMS
    does with ``JMS_AMQP_TYPED_ENCODING``.

    Any other object needs a content type for which a codec is registered (see :func:`register_object_codec`). Java
    clients cannot read such an object, so send text or bytes to Java clients. An object that Java serialised is not
    decoded. It appears as a :class:`SerializedObject`, and a program may send it again.

    The message holds a copy of the object. So a later change of the object does not change the message.

    Args:
        obj: the object.
        content_type: the content type whose codec writes the object. ``None`` for a plain value.

    Raises:
        MessageFormatException: ``content_type`` is ``None`` and the object is not a plain value, no codec is registered
            for the content type, or the codec cannot write the object.
    """

    __slots__ = ("_ready",)

    wire_type: ClassVar[int] = 1
    _body_is: ClassVar[str] = "an object; read `object`"

    def __init__(self, obj: Any = None, content_type: str | None = None) -> None:
        super().__init__()
        self._body = _to_body(obj, content_type)
        self._ready: _Ready | None = None
        """A copy of the object that was made before somebody reads the object."""

    @property
    def object(self) -> Any:
        """The object. Each read returns a new copy.

        A new object is written with the content type that the message has, if a codec is registered for this type.
        Otherwise the new object must be a plain value.

        Raises (on reading):
            MessageFormatException: the codec cannot read the object, or the object is larger than the codec's limit.

        Raises (on setting):
            MessageFormatException: the object cannot be written, as for the constructor.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        ready = self._get_ready()
        self._ready = None
        if ready.error is not None:
            raise ready.error
        return ready.value

    @object.setter
    def object(self, obj: Any) -> None:
        self._check_body_writeable()
        held = self.content_type
        self._body = _to_body(obj, held if held is not None and known_codec(held) else None)

    def _prepare(self) -> None:
        """Make the copy that the next read of ``object`` returns."""
        self._get_ready()

    def _get_ready(self) -> _Ready:
        body, ready = self._body, self._ready
        if ready is None or ready.body is not body:
            value, error = None, None
            try:
                value = deserialize(body) if isinstance(body, SerializedObject) else _copy(body)
            except MessageFormatException as failure:
                error = failure
            self._ready = ready = _Ready(body, value, error)
        return ready

    @property
    def body(self) -> Any:
        """The object, as in ``object``."""
        return self.object

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Return whether ``get_body(type)`` would succeed. The result is ``False`` if the codec cannot read the object.

        Args:
            type: the type of the object.
        """
        ready = self._get_ready()
        return ready.error is None and (ready.value is None or isinstance(ready.value, type))

    @property
    def content_type(self) -> str | None:
        """The content type of the serialised form. ``None`` for a plain value. A new content type serialises the object
        again.

        Raises (on setting):
            MessageFormatException: no codec can read the present form, or no codec can write the new form.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        body = self._body
        return body.content_type if isinstance(body, SerializedObject) else None

    @content_type.setter
    def content_type(self, value: str | None) -> None:
        self._check_body_writeable()
        held = self.object
        if isinstance(held, SerializedObject):
            raise MessageFormatException(
                f"{held!r} cannot be written as {value or 'a plain value'}, because no codec can read its bytes;"
                " register a codec with register_object_codec()"
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
                "property 'JMS_AMQP_TYPED_ENCODING': false means Java's serialisation, which this library cannot write;"
                " to write the object with a codec, set message.content_type"
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
                "to send such an object, register a codec and set its content_type"
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
    """Return a copy of the value. Only lists and dicts are copied, because the other plain values cannot be changed."""
    kind = type(value)
    if kind is list:
        return [_copy(item) for item in value]
    return {key: _copy(item) for key, item in value.items()} if kind is dict else value
