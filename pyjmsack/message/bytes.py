"""``BytesMessage``: raw bytes, written and read as a stream of Java primitives."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812 - the name "error" alone says too little
from typing import IO, Any, ClassVar

from pyjmsack.errors import (
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
)
from pyjmsack.message.base import Message
from pyjmsack.message.convert import kind_of
from pyjmsack.message.saving import Chunks, check_target, save
from pyjmsack.message.utf import decode_utf, encode_utf
from pyjmsack.types import Char

__all__ = ["BytesMessage"]

_BOOLEAN = Struct(">?")
_BYTE = Struct(">b")
_UNSIGNED_BYTE = Struct(">B")
_SHORT = Struct(">h")
_UNSIGNED_SHORT = Struct(">H")
_INT = Struct(">i")
_LONG = Struct(">q")
_FLOAT = Struct(">f")
_DOUBLE = Struct(">d")


class BytesMessage(Message):
    """A message with bytes (S171).

    A new message is write-only: the ``write_`` methods append. ``reset()`` makes the message read-only and puts the
    cursor at the start. Sending and receiving do the same. ``clear_body()`` makes the message empty and write-only
    again. ``data`` is the whole body in either state. Numbers are big-endian.

    Args:
        data: the first bytes of the body.

    Raises:
        MessageFormatException: ``data`` is not bytes-like.
        MessageNotReadableException: (``read_`` methods) the message is write-only.
        MessageEOFException: (``read_`` methods) the body ends before the value; the cursor stays where it was.
        MessageNotWriteableException: (``write_`` methods) the message is read-only.
    """

    __slots__ = ("_away", "_buffer", "_position")

    wire_type: ClassVar[int] = 3

    def __init__(self, data: bytes | bytearray | memoryview | None = None) -> None:
        super().__init__()
        self._body = b"" if data is None else _as_bytes(data)
        self._buffer: bytearray | None = None
        self._position: int = 0
        self._away: Callable[[Callable[[], int]], Any] | None = None
        """How the face that received the message lets work take its time; ``None``: on the spot."""

    @property
    def data(self) -> bytes:
        """The whole body, wherever the cursor is. Setting it replaces the body."""
        self._flush()
        return self._body

    @data.setter
    def data(self, value: bytes | bytearray | memoryview) -> None:
        self._check_body_writeable()
        self._body = _as_bytes(value)
        self._buffer = None

    @property
    def body(self) -> bytes:
        """The same as ``data``."""
        return self.data

    @property
    def body_length(self) -> int:
        """Number of bytes in the body."""
        return len(self._body if self._buffer is None else self._buffer)

    def reset(self) -> None:
        """Make the body read-only and put the cursor at its start."""
        self._flush()
        self._body_readonly = True
        self._position = 0

    def save_to(self, target: os.PathLike[Any] | IO[bytes]) -> Any:
        """Write the whole body to a file (S168). The message may have been acknowledged before, and its connection may
        be closed.

        Args:
            target: a ``pathlib.Path``, or a binary file that is open for writing. The file at a path appears, and
                replaces another one, when all of the body is written. A failure leaves nothing at the path.

        Returns:
            The number of bytes. For a message that ``pyjmsack.aio`` received, an awaitable of this number, because a
            thread writes.

        Raises:
            MessageFormatException: ``target`` is neither a path nor a binary file.
            OSError: the file cannot be written.
        """
        check_target(target)
        work = partial(save, self._content(), target)
        return work() if self._away is None else self._away(work)

    def chunks(self) -> Chunks:
        """Return the body in pieces of at most 256 KiB, to iterate over with ``for``, or with ``async for`` (S168).
        Meanwhile a large body over AMQP is read from its temporary file, and not loaded into memory.
        """
        return Chunks(self._content(), self._away)

    def _content(self) -> Any:
        """Return the body, or the source that it is read from."""
        if self._buffer is not None:
            self._flush()
        return self._body

    def clear_body(self) -> None:
        """Make the body empty and write-only."""
        super().clear_body()
        self._body = b""
        self._buffer = None
        self._position = 0

    def _flush(self) -> None:
        if self._buffer is not None:
            self._body = bytes(self._buffer)
            self._buffer = None

    def _append(self, data: bytes) -> None:
        self._check_body_writeable()
        if self._buffer is None:
            self._buffer = bytearray(self._body)
        self._buffer += data

    def _pack(self, form: Struct, name: str, value: Any) -> None:
        if isinstance(value, bool):  # struct takes it for a number
            raise MessageFormatException(f"write_{name}: expected a Java {name}, not {value!r}")
        try:
            self._append(form.pack(value))
        except (ArithmeticError, TypeError, ValueError, StructError) as error:
            raise MessageFormatException(f"write_{name}: expected a Java {name}, not {value!r}") from error

    def _check_readable(self) -> None:
        if not self._body_readonly:
            raise MessageNotReadableException("the body is write-only until reset()")

    def _advance(self, size: int) -> int:
        """Return the cursor and move it by ``size`` bytes."""
        self._check_readable()
        start = self._position
        if start + size > len(self._body):
            left = len(self._body) - start
            raise MessageEOFException(f"expected {size} bytes at position {start}, but the body has {left} more")
        self._position = start + size
        return start

    def _unpack(self, form: Struct) -> Any:
        start = self._advance(form.size)
        return form.unpack_from(self._body, start)[0]

    def read_boolean(self) -> bool:
        """Read one byte as a boolean. Each value but 0 is true.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_BOOLEAN)

    def read_byte(self) -> int:
        """Read a number of 8 bits, signed.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_BYTE)

    def read_unsigned_byte(self) -> int:
        """Read a number of 8 bits, unsigned.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_UNSIGNED_BYTE)

    def read_short(self) -> int:
        """Read a number of 16 bits, signed.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_SHORT)

    def read_unsigned_short(self) -> int:
        """Read a number of 16 bits, unsigned.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_UNSIGNED_SHORT)

    def read_char(self) -> Char:
        """Read one UTF-16 code unit, which is two bytes.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return Char(chr(self._unpack(_UNSIGNED_SHORT)))

    def read_int(self) -> int:
        """Read a number of 32 bits, signed.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_INT)

    def read_long(self) -> int:
        """Read a number of 64 bits, signed.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_LONG)

    def read_float(self) -> float:
        """Read an IEEE 754 number of 32 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_FLOAT)

    def read_double(self) -> float:
        """Read an IEEE 754 number of 64 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_DOUBLE)

    def read_utf(self) -> str:
        """Read a text that Java's ``writeUTF`` wrote: two bytes with the length, then modified UTF-8.

        Raises:
            MessageFormatException: the bytes are not valid modified UTF-8. The cursor stays where it was.
            MessageEOFException: the body ends before the text. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        begin = self._position
        size = self._unpack(_UNSIGNED_SHORT)
        try:
            start = self._advance(size)
            return decode_utf(self._body[start : start + size])
        except (MessageEOFException, MessageFormatException):
            self._position = begin
            raise

    def read_bytes(self, length: int | None = None) -> bytes:
        """Read up to ``length`` bytes.

        Args:
            length: the most bytes to read, at least 0; ``None`` = the rest of the body.

        Returns:
            The bytes; ``b""`` at the end of the body, where JMS returns -1.

        Raises:
            MessageFormatException: ``length`` is negative.
            MessageNotReadableException: the message is write-only.
        """
        self._check_readable()
        if length is not None and length < 0:
            raise MessageFormatException(f"read_bytes: expected a length of 0 or more, not {length}")
        left = len(self._body) - self._position
        size = left if length is None else min(length, left)
        start = self._advance(size)
        return self._body[start : start + size]

    def write_boolean(self, value: bool) -> None:
        """Append one byte, 1 or 0.

        Args:
            value: ``True`` or ``False``.

        Raises:
            MessageFormatException: the value is no ``bool``.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        if not isinstance(value, bool):
            raise MessageFormatException(f"write_boolean: expected a Java boolean, not {value!r}")
        self._append(b"\x01" if value else b"\x00")

    def write_byte(self, value: int) -> None:
        """Append a number of 8 bits, signed.

        Args:
            value: -128 to 127.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_BYTE, "byte", value)

    def write_unsigned_byte(self, value: int) -> None:
        """Append a number of 8 bits, unsigned.

        Args:
            value: 0 to 255.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_UNSIGNED_BYTE, "unsigned_byte", value)

    def write_short(self, value: int) -> None:
        """Append a number of 16 bits, signed.

        Args:
            value: -32,768 to 32,767.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_SHORT, "short", value)

    def write_unsigned_short(self, value: int) -> None:
        """Append a number of 16 bits, unsigned.

        Args:
            value: 0 to 65,535.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_UNSIGNED_SHORT, "unsigned_short", value)

    def write_char(self, value: str) -> None:
        """Append one UTF-16 code unit, which is two bytes.

        Args:
            value: a ``str`` of one character up to U+FFFF.

        Raises:
            MessageFormatException: the value is not such a text.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        if not isinstance(value, str):
            raise MessageFormatException(f"write_char: expected a Java char, not {value!r}")
        self._append(_UNSIGNED_SHORT.pack(ord(Char(value))))

    def write_int(self, value: int) -> None:
        """Append a number of 32 bits, signed.

        Args:
            value: -2,147,483,648 to 2,147,483,647.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_INT, "int", value)

    def write_long(self, value: int) -> None:
        """Append a number of 64 bits, signed.

        Args:
            value: -2**63 to 2**63 - 1.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_LONG, "long", value)

    def write_float(self, value: float) -> None:
        """Append an IEEE 754 number of 32 bits.

        Args:
            value: a number; it is rounded to 32 bits.

        Raises:
            MessageFormatException: the value is not a number, or is too large.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_FLOAT, "float", value)

    def write_double(self, value: float) -> None:
        """Append an IEEE 754 number of 64 bits.

        Args:
            value: a number.

        Raises:
            MessageFormatException: the value is not a number.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_DOUBLE, "double", value)

    def write_utf(self, value: str) -> None:
        """Append a text as Java's ``writeUTF`` does: two bytes with the length, then modified UTF-8.

        Args:
            value: the text, at most 65,535 bytes of modified UTF-8.

        Raises:
            MessageFormatException: the value is no ``str``, or too long.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        data = encode_utf(value)
        if len(data) > 0xFFFF:
            raise MessageFormatException(
                f"write_utf: expected at most 65535 bytes, not {len(data)}; write a longer text with write_bytes()"
            )
        self._append(_UNSIGNED_SHORT.pack(len(data)) + data)

    def write_bytes(self, value: bytes | bytearray | memoryview) -> None:
        """Append bytes unchanged, without a length before them.

        Args:
            value: bytes of any kind.

        Raises:
            MessageFormatException: the value is not bytes.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._append(_as_bytes(value))

    def write_object(self, value: Any) -> None:
        """Append a value by its type, with the ``write_`` method of that type; ``str`` with ``write_utf``.

        A bare ``int`` is an int if 32 bits hold it, otherwise a long. A bare ``float`` is a double.

        Args:
            value: a ``bool``, ``int``, ``float``, ``str``, ``bytes`` or a wrapper such as ``Short`` or ``Char``.

        Raises:
            MessageFormatException: no ``write_`` method takes the type.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        if isinstance(value, Char):
            self.write_char(value)
            return
        kind = kind_of(value)
        if kind == "bytes" or kind in ("bytearray", "memoryview"):
            self.write_bytes(value)
        elif kind == "string":
            self.write_utf(value)
        elif kind in _OBJECT_KINDS:
            getattr(self, f"write_{kind}")(value)
        else:
            raise MessageFormatException(
                f"write_object: expected bool, int, float, str, bytes or a wrapper of pyjmsack.types, not {kind}"
            )


_OBJECT_KINDS = frozenset(("boolean", "byte", "short", "int", "long", "float", "double"))


def _as_bytes(data: object) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise MessageFormatException(f"data: expected bytes, bytearray or memoryview, not {type(data).__name__}")
    return bytes(data)
