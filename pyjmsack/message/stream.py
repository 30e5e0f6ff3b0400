"""``StreamMessage``: a body of typed values, which are written and read one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from pyjmsack.errors import MessageEOFException, MessageFormatException, MessageNotReadableException
from pyjmsack.message.base import Message
from pyjmsack.message.fields import check_field, convert_field, sized_field
from pyjmsack.types import Char, Value

__all__ = ["StreamMessage"]


class StreamMessage(Message):
    """A message with a stream of values (S172, S174).

    A new message is write-only, and its ``write_`` methods append values. ``reset()`` makes the message read-only and
    puts the cursor at the start. A sent message and a received message are also read-only. ``clear_body()`` makes the
    message empty and write-only again. ``body`` is the list of all values, in both states. A loop over the message
    reads the values from the cursor to the end. A stream message takes the same values as a :class:`MapMessage`.

    A failed read leaves the cursor where it was.

    Args:
        items: the first values.

    Raises:
        MessageNotReadableException: a ``read_`` method was called, and the message is write-only.
        MessageEOFException: a ``read_`` method was called, and there are no more values.
        MessageFormatException: a ``read_`` method was called, and JMS does not allow the conversion (S173), or the
            value is bytes that were read in part. Or a ``write_`` method was called, and the value is not allowed.
        MessageNotWriteableException: a ``write_`` method was called, and the message is read-only.
    """

    __slots__ = ("_part", "_position")

    wire_type: ClassVar[int] = 4
    _body_is: ClassVar[str] = "a stream of values; read `body`"

    def __init__(self, items: Iterable[Value] | None = None) -> None:
        super().__init__()
        self._body = []
        self._position: int = 0
        self._part: int | None = None
        """The number of bytes that were read of the field at the cursor. ``None`` if nobody began to read the field."""
        if items is not None:
            self._fill(items)

    def _fill(self, items: Any) -> None:
        if isinstance(items, (str, bytes, bytearray, memoryview)):
            raise MessageFormatException(f"items: expected a list, not {type(items).__name__}")
        try:
            values = iter(items)
        except TypeError as error:
            raise MessageFormatException(f"items: expected a list, not {type(items).__name__}") from error
        for value in values:
            self.write_object(value)

    @property
    def body(self) -> list[Value]:
        """A copy of all values. The position of the cursor does not matter."""
        return list(self._body)

    def reset(self) -> None:
        """Make the body read-only and put the cursor at its start."""
        self._body_readonly = True
        self._position = 0
        self._part = None

    def clear_body(self) -> None:
        """Make the body empty and write-only. Headers and properties stay (S163)."""
        super().clear_body()
        self._body = []
        self._position = 0
        self._part = None

    def __iter__(self) -> Iterator[Value]:
        """Read the values from the cursor to the end."""
        self._check_readable()
        while self._position < len(self._body):
            yield self.read_object()

    def _check_readable(self) -> None:
        if not self._body_readonly:
            raise MessageNotReadableException("the body is write-only; reset() makes it readable")

    def _peek(self) -> Any:
        """Return the value at the cursor."""
        self._check_readable()
        if self._position >= len(self._body):
            raise MessageEOFException(f"the stream has {len(self._body)} values, and all values were read")
        return self._body[self._position]

    def _whole(self) -> Any:
        value = self._peek()
        if self._part is not None:
            raise MessageFormatException(
                f"the bytes at position {self._position} were read in part; read the rest with read_bytes() first"
            )
        return value

    def _read(self, wanted: str) -> Any:
        value = convert_field(self._position, self._whole(), wanted)
        self._position += 1
        return value

    def read_boolean(self) -> bool:
        """Read the next value as a boolean (S173). The value must be a boolean or a string, or ``None``.

        Returns:
            The boolean. The string ``true``, in any letter case, gives ``True``. Each other string, and ``None``, give
            ``False``.

        Raises:
            MessageFormatException: the value has another type. The cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("boolean")

    def read_byte(self) -> int:
        """Read the next value as a byte (S173). The value must be a byte, or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("byte")

    def read_short(self) -> int:
        """Read the next value as a short (S173). The value must be a byte, a short, or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("short")

    def read_char(self) -> Char:
        """Read the next value as a char (S173). The value must be a char.

        Raises:
            MessageFormatException: the value is ``None`` or has another type. The cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("char")

    def read_int(self) -> int:
        """Read the next value as an int (S173). The value must be a byte, a short, an int, or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("int")

    def read_long(self) -> int:
        """Read the next value as a long (S173). The value must be a whole number, or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("long")

    def read_float(self) -> float:
        """Read the next value as a float (S173). The value must be a float (32 bits), or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("float")

    def read_double(self) -> float:
        """Read the next value as a double (S173). The value must be a float, a double, or a string with a number.

        Raises:
            MessageFormatException: the value is ``None``, has another type, or is a string that is not a number. The
                cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("double")

    def read_string(self) -> str | None:
        """Read the next value as text (S173). The value may have any type except bytes.

        Returns:
            The text. A boolean gives ``true`` or ``false``. ``None`` if the value is ``None``.

        Raises:
            MessageFormatException: the value is bytes. The cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        return self._read("string")

    def read_object(self) -> Value:
        """Read the next value as it was written, with its type.

        Raises:
            MessageFormatException: the value is bytes that were read in part. The cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        value: Value = self._whole()
        self._position += 1
        return value

    def read_bytes(self, length: int | None = None) -> bytes | None:
        """Read a field of bytes, or up to ``length`` bytes of the field (S174).

        A call without ``length``, or a result that is shorter than ``length``, ends the field. The cursor then moves to
        the next value. A result of exactly ``length`` bytes does not end the field, even if no bytes are left. So one
        more call must end the field.

        Args:
            length: the largest number of bytes to read, at least 0. ``None`` reads the rest of the field.

        Returns:
            The bytes. ``None`` (where JMS returns -1) if the field is ``None``, or if ``length`` is given and earlier
            calls have read all bytes. Without ``length`` the result is ``b""`` if earlier calls have read all bytes.

        Raises:
            MessageFormatException: ``length`` is negative, or the value is not bytes. The cursor stays where it was.
            MessageEOFException: there are no more values.
            MessageNotReadableException: the message is write-only.
        """
        if length is not None and length < 0:
            raise MessageFormatException(f"read_bytes: expected a length of 0 or more, not {length}")
        field = convert_field(self._position, self._peek(), "bytes")
        start = self._part
        if field is None or (start == len(field) and length is not None):
            self._next()
            return None
        start = start or 0
        found: bytes = field[start:] if length is None else field[start : start + length]
        if length is None or len(found) < length:
            self._next()
        else:
            self._part = start + length
        return found

    def _next(self) -> None:
        self._position += 1
        self._part = None

    def _write(self, kind: str, value: Any) -> None:
        self._check_body_writeable()
        self._body.append(sized_field(len(self._body), kind, value))

    def write_boolean(self, value: bool) -> None:
        """Append a boolean.

        Args:
            value: ``True`` or ``False``.

        Raises:
            MessageFormatException: the value is not a ``bool``.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("boolean", value)

    def write_byte(self, value: int) -> None:
        """Append a byte.

        Args:
            value: a whole number of 8 bits, -128 to 127.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("byte", value)

    def write_short(self, value: int) -> None:
        """Append a short.

        Args:
            value: a whole number of 16 bits, -32,768 to 32,767.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("short", value)

    def write_char(self, value: str) -> None:
        """Append a char.

        Args:
            value: a ``str`` of one UTF-16 code unit.

        Raises:
            MessageFormatException: the value is not one UTF-16 code unit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("char", value)

    def write_int(self, value: int) -> None:
        """Append an int.

        Args:
            value: a whole number of 32 bits, -2,147,483,648 to 2,147,483,647.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("int", value)

    def write_long(self, value: int) -> None:
        """Append a long.

        Args:
            value: a whole number of 64 bits, -2**63 to 2**63 - 1.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("long", value)

    def write_float(self, value: float) -> None:
        """Append a float.

        Args:
            value: a number, which is rounded to 32 bits.

        Raises:
            MessageFormatException: the value is not a number, or is too large for 32 bits.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("float", value)

    def write_double(self, value: float) -> None:
        """Append a double.

        Args:
            value: a number of 64 bits.

        Raises:
            MessageFormatException: the value is not a number.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("double", value)

    def write_string(self, value: str | None) -> None:
        """Append a string.

        Args:
            value: a text, or ``None``.

        Raises:
            MessageFormatException: the value is neither a ``str`` nor ``None``.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("string", value)

    def write_bytes(self, value: bytes | bytearray | memoryview | None) -> None:
        """Append bytes, as one field.

        Args:
            value: the bytes, which are copied, or ``None``.

        Raises:
            MessageFormatException: the value is neither bytes nor ``None``.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._write("bytes", value)

    def write_object(self, value: Value) -> None:
        """Append a value, and keep its type. An ``int`` becomes an int of Java if it fits in 32 bits, and otherwise a
        long. A ``float`` becomes a double.

        Args:
            value: a ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``None`` or a wrapper such as ``Short`` or
                ``Char`` (S172). A wrapper keeps its own type.

        Raises:
            MessageFormatException: JMS does not allow the type of the value.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._check_body_writeable()
        self._body.append(check_field(len(self._body), value))
