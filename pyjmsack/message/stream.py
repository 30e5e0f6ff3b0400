"""``StreamMessage``: a body of typed values, written and read one after the other."""

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

    A new message is write-only: the ``write_`` methods append. ``reset()`` makes the message read-only and puts the
    cursor at the start. Sending and receiving do the same. ``clear_body()`` makes the message empty and write-only
    again. ``body`` is the whole list in either state. Iterating reads the values from the cursor to the end. The values
    are those of :class:`MapMessage`.

    Args:
        items: the first values.

    Raises:
        MessageNotReadableException: (``read_`` methods) the message is write-only.
        MessageEOFException: (``read_`` methods) there are no more values.
        MessageFormatException: (``read_`` methods) JMS does not know the conversion (S173), or a field of bytes was
            read in part; (``write_`` methods) the value is not allowed. After any failed read the cursor stays where it
            was.
        MessageNotWriteableException: (``write_`` methods) the message is read-only.
    """

    __slots__ = ("_part", "_position")

    wire_type: ClassVar[int] = 4

    def __init__(self, items: Iterable[Value] | None = None) -> None:
        super().__init__()
        self._body = []
        self._position: int = 0
        self._part: int | None = None
        """The bytes read of the field of bytes at the cursor; ``None`` if no byte of it was read."""
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
        """A copy of all values, wherever the cursor is."""
        return list(self._body)

    def reset(self) -> None:
        """Make the body read-only and put the cursor at its start."""
        self._body_readonly = True
        self._position = 0
        self._part = None

    def clear_body(self) -> None:
        """Make the body empty and write-only; headers and properties stay (S163)."""
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
            raise MessageNotReadableException("the body is write-only until reset()")

    def _peek(self) -> Any:
        """Return the value at the cursor."""
        self._check_readable()
        if self._position >= len(self._body):
            raise MessageEOFException(f"the stream has {len(self._body)} values, and all of them were read")
        return self._body[self._position]

    def _whole(self) -> Any:
        value = self._peek()
        if self._part is not None:
            raise MessageFormatException(
                f"the bytes at position {self._position} were read in part; read_bytes() must finish them first"
            )
        return value

    def _read(self, wanted: str) -> Any:
        value = convert_field(self._position, self._whole(), wanted)
        self._position += 1
        return value

    def read_boolean(self) -> bool:
        """Read a boolean, or a string (``true`` in any case is true)."""
        return self._read("boolean")

    def read_byte(self) -> int:
        """Read a byte, or a string."""
        return self._read("byte")

    def read_short(self) -> int:
        """Read a byte, short, or string."""
        return self._read("short")

    def read_char(self) -> Char:
        """Read a char."""
        return self._read("char")

    def read_int(self) -> int:
        """Read a byte, short, int, or string."""
        return self._read("int")

    def read_long(self) -> int:
        """Read any whole number, or a string."""
        return self._read("long")

    def read_float(self) -> float:
        """Read a float (32 bits), or a string."""
        return self._read("float")

    def read_double(self) -> float:
        """Read a float, double, or string."""
        return self._read("double")

    def read_string(self) -> str | None:
        """Read anything but bytes as text."""
        return self._read("string")

    def read_object(self) -> Value:
        """Read the value as it was written, with its type."""
        value: Value = self._whole()
        self._position += 1
        return value

    def read_bytes(self, length: int | None = None) -> bytes | None:
        """Read a field of bytes, or up to ``length`` bytes of it.

        A result that is shorter than ``length`` ends the field. A field that fits exactly needs one more call (S174).

        Args:
            length: the most bytes to read; ``None`` = the rest of the field.

        Returns:
            The bytes; ``None``, where JMS returns -1, for a field that is ``None`` and at the end of a field whose
            last bytes filled ``length`` exactly.
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
        """Append a boolean."""
        self._write("boolean", value)

    def write_byte(self, value: int) -> None:
        """Append a byte, 8 bits signed."""
        self._write("byte", value)

    def write_short(self, value: int) -> None:
        """Append a short, 16 bits signed."""
        self._write("short", value)

    def write_char(self, value: str) -> None:
        """Append a char, one UTF-16 code unit."""
        self._write("char", value)

    def write_int(self, value: int) -> None:
        """Append an int, 32 bits signed."""
        self._write("int", value)

    def write_long(self, value: int) -> None:
        """Append a long, 64 bits signed."""
        self._write("long", value)

    def write_float(self, value: float) -> None:
        """Append a float, 32 bits."""
        self._write("float", value)

    def write_double(self, value: float) -> None:
        """Append a double, 64 bits."""
        self._write("double", value)

    def write_string(self, value: str | None) -> None:
        """Append a string."""
        self._write("string", value)

    def write_bytes(self, value: bytes | bytearray | memoryview | None) -> None:
        """Append a copy of bytes, as one field."""
        self._write("bytes", value)

    def write_object(self, value: Value) -> None:
        """Append a value by its type: a bare ``int`` as an int if it fits in 32 bits, otherwise as a long; ``float`` as
        double.
        """
        self._check_body_writeable()
        self._body.append(check_field(len(self._body), value))
