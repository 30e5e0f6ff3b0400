"""``MapMessage``: a body that is a map of names and typed values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.base import Message
from pyjmsack.message.fields import check_field, convert_field, sized_field
from pyjmsack.types import Char, Value

__all__ = ["MapMessage"]


class MapMessage(Message, MutableMapping[str, Value]):
    """A message with a map of names and values (S172).

    A map message is a mutable mapping (``message["price"] = Float(1.5)``), and it has the getters and setters of JMS.
    A value is a ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``None`` or a wrapper such as ``Short`` or ``Char``.
    An ``int`` becomes an int of Java if it fits in 32 bits, and otherwise a long. A ``float`` becomes a double. A
    wrapper keeps its own type. A map message differs from other mappings, because it is a message: it is true even if
    it is empty, and it is equal only to itself.

    The getters make the conversions of S173. They treat a missing name like a name with the value ``None``.
    ``get_boolean`` then returns ``False``. ``get_string``, ``get_bytes`` and ``get_object`` return ``None``. The other
    getters raise ``MessageFormatException``. They also raise this error for a conversion that JMS does not allow.

    Args:
        items: the first names and values.

    Raises (on writing):
        MessageFormatException: the name or the value is not allowed.
        MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
    """

    __slots__ = ()

    wire_type: ClassVar[int] = 2
    _body_is: ClassVar[str] = "a map; read `body`, or one value with `message['name']`"

    def __init__(self, items: Mapping[str, Value] | Iterable[tuple[str, Value]] | None = None) -> None:
        super().__init__()
        self._body = {}
        if items is not None:
            self._fill(items)

    def _fill(self, items: Any) -> None:
        try:
            pairs = dict(items)
        except (TypeError, ValueError) as error:
            raise MessageFormatException(f"items: expected a mapping, not {type(items).__name__}") from error
        self.update(pairs)

    def __getitem__(self, name: str) -> Value:
        return self._body[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._check_body_writeable()
        self._body[_check_key(name)] = check_field(name, value)

    def __delitem__(self, name: str) -> None:
        self._check_body_writeable()
        del self._body[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._body)

    def __len__(self) -> int:
        return len(self._body)

    def __bool__(self) -> bool:
        """Return ``True``, because ``while message := consumer.receive(1)`` must not end at an empty map."""
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    def body(self) -> dict[str, Value]:
        """A copy of the map as a ``dict``."""
        return dict(self._body)

    def clear_body(self) -> None:
        """Make the map empty and writeable. Headers and properties stay (S163)."""
        super().clear_body()
        self._body = {}

    @property
    def names(self) -> list[str]:
        """The names in the map."""
        return list(self._body)

    def item_exists(self, name: str) -> bool:
        """Return whether the map has the name. A name with the value ``None`` counts too.

        Args:
            name: the name to look for.
        """
        return name in self._body

    def _read(self, name: str, wanted: str) -> Any:
        return convert_field(name, self._body.get(name), wanted)

    def get_boolean(self, name: str) -> bool:
        """Return a value of the map as a boolean (S173).

        Only a boolean and a string can be read as a boolean. The string ``true``, in any letter case, gives ``True``.
        Each other string gives ``False``.

        Args:
            name: the name in the map. If the name is missing, the result is ``False``.

        Raises:
            MessageFormatException: the value has another type.
        """
        return self._read(name, "boolean")

    def get_byte(self, name: str) -> int:
        """Return a value of the map as a byte (S173).

        Only a byte, or a string with a number, can be read as a byte.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "byte")

    def get_short(self, name: str) -> int:
        """Return a value of the map as a short (S173).

        Only a byte, a short, or a string with a number can be read as a short.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "short")

    def get_char(self, name: str) -> Char:
        """Return a value of the map as a char (S173).

        Only a char can be read as a char.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None`` or has another type.
        """
        return self._read(name, "char")

    def get_int(self, name: str) -> int:
        """Return a value of the map as an int (S173).

        Only a byte, a short, an int, or a string with a number can be read as an int.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "int")

    def get_long(self, name: str) -> int:
        """Return a value of the map as a long (S173).

        Any whole number, or a string with a number, can be read as a long.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "long")

    def get_float(self, name: str) -> float:
        """Return a value of the map as a float (S173).

        Only a float (32 bits), or a string with a number, can be read as a float.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "float")

    def get_double(self, name: str) -> float:
        """Return a value of the map as a double (S173).

        Only a float, a double, or a string with a number can be read as a double.

        Args:
            name: the name in the map.

        Raises:
            MessageFormatException: the name is missing, or the value is ``None``, has another type, or is a string that
                is not a number of this type.
        """
        return self._read(name, "double")

    def get_string(self, name: str) -> str | None:
        """Return a value of the map as text (S173). The value may have any type except bytes.

        Args:
            name: the name in the map.

        Returns:
            The text. A boolean gives ``true`` or ``false``. ``None`` if the name is missing or its value is ``None``.

        Raises:
            MessageFormatException: the value is bytes.
        """
        return self._read(name, "string")

    def get_bytes(self, name: str) -> bytes | None:
        """Return a value of the map as bytes (S173). The value must be bytes.

        Args:
            name: the name in the map.

        Returns:
            The bytes. ``None`` if the name is missing or its value is ``None``.

        Raises:
            MessageFormatException: the value has another type.
        """
        return self._read(name, "bytes")

    def get_object(self, name: str) -> Value:
        """Return a value of the map as it was set, with its type.

        Args:
            name: the name in the map.

        Returns:
            The value. ``None`` if the name is missing.
        """
        return self._body.get(name)

    def _write(self, name: str, kind: str, value: Any) -> None:
        self[name] = sized_field(name, kind, value)

    def set_boolean(self, name: str, value: bool) -> None:
        """Set a name of the map to a boolean.

        Args:
            name: the name in the map. It must not be empty.
            value: ``True`` or ``False``.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a ``bool``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "boolean", value)

    def set_byte(self, name: str, value: int) -> None:
        """Set a name of the map to a byte.

        Args:
            name: the name in the map. It must not be empty.
            value: a whole number of 8 bits, -128 to 127.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a whole number or does not
                fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "byte", value)

    def set_short(self, name: str, value: int) -> None:
        """Set a name of the map to a short.

        Args:
            name: the name in the map. It must not be empty.
            value: a whole number of 16 bits, -32,768 to 32,767.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a whole number or does not
                fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "short", value)

    def set_char(self, name: str, value: str) -> None:
        """Set a name of the map to a char.

        Args:
            name: the name in the map. It must not be empty.
            value: a ``str`` of one UTF-16 code unit.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not one UTF-16 code unit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "char", value)

    def set_int(self, name: str, value: int) -> None:
        """Set a name of the map to an int.

        Args:
            name: the name in the map. It must not be empty.
            value: a whole number of 32 bits, -2,147,483,648 to 2,147,483,647.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a whole number or does not
                fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "int", value)

    def set_long(self, name: str, value: int) -> None:
        """Set a name of the map to a long.

        Args:
            name: the name in the map. It must not be empty.
            value: a whole number of 64 bits, -2**63 to 2**63 - 1.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a whole number or does not
                fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "long", value)

    def set_float(self, name: str, value: float) -> None:
        """Set a name of the map to a float.

        Args:
            name: the name in the map. It must not be empty.
            value: a number, which is rounded to 32 bits.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a number or is too large for
                32 bits.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "float", value)

    def set_double(self, name: str, value: float) -> None:
        """Set a name of the map to a double.

        Args:
            name: the name in the map. It must not be empty.
            value: a number of 64 bits.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is not a number.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "double", value)

    def set_string(self, name: str, value: str | None) -> None:
        """Set a name of the map to a string.

        Args:
            name: the name in the map. It must not be empty.
            value: a text, or ``None``.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is neither a ``str`` nor ``None``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "string", value)

    def set_bytes(self, name: str, value: bytes | bytearray | memoryview | None) -> None:
        """Set a name of the map to bytes.

        Args:
            name: the name in the map. It must not be empty.
            value: the bytes, which are copied, or ``None``.

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or the value is neither bytes nor ``None``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self._write(name, "bytes", value)

    def set_object(self, name: str, value: Value) -> None:
        """Set a name of the map, and keep the type of the value. This is the same as ``message[name] = value``.

        Args:
            name: the name in the map. It must not be empty.
            value: a ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``None`` or a wrapper such as ``Short`` or
                ``Char`` (S172).

        Raises:
            MessageFormatException: the name is empty or not a ``str``, or JMS does not allow the type of the value.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self[name] = value


def _check_key(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise MessageFormatException(f"name {name!r} of a map message: expected a non-empty string")
    return str(name)
