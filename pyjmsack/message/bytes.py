"""``BytesMessage``: a body of raw bytes, which can be written and read as a stream of Java primitives."""

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

    A new message is write-only, and its ``write_`` methods append bytes. ``reset()`` makes the message read-only and
    puts the cursor at the start. A sent message and a received message are also read-only. ``clear_body()`` makes the
    message empty and write-only again. ``data`` is the whole body, in both states. Numbers are big-endian.

    A failed read leaves the cursor where it was.

    Args:
        data: the first bytes of the body.

    Raises:
        MessageFormatException: ``data`` is not ``bytes``, a ``bytearray`` or a ``memoryview``.
        MessageNotReadableException: a ``read_`` method was called, and the message is write-only.
        MessageEOFException: a ``read_`` method was called, and the body ends before the value.
        MessageNotWriteableException: a ``write_`` method was called, and the message is read-only.
    """

    __slots__ = ("_away", "_buffer", "_position")

    wire_type: ClassVar[int] = 3
    _body_is: ClassVar[str] = "bytes; read `data`"

    def __init__(self, data: bytes | bytearray | memoryview | None = None) -> None:
        super().__init__()
        self._body = b"" if data is None else _as_bytes(data)
        self._buffer: bytearray | None = None
        self._position: int = 0
        self._away: Callable[[Callable[[], int]], Any] | None = None
        """Runs a function that may take long on another thread, if ``pyjmsack.aio`` received the message. If this is
        ``None``, the calling thread runs the function."""

    @property
    def data(self) -> bytes:
        """The whole body. The position of the cursor does not matter. A new value replaces the whole body.

        Raises (on setting):
            MessageFormatException: the value is not bytes.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._flush()
        return self._body

    @data.setter
    def data(self, value: bytes | bytearray | memoryview) -> None:
        self._check_body_writeable()
        self._body = _as_bytes(value)
        self._buffer = None

    @property
    def body(self) -> bytes:
        """The whole body, as in ``data``."""
        return self.data

    @property
    def body_length(self) -> int:
        """The number of bytes in the body."""
        return len(self._body if self._buffer is None else self._buffer)

    def reset(self) -> None:
        """Make the body read-only and put the cursor at its start."""
        self._flush()
        self._body_readonly = True
        self._position = 0

    def save_to(self, target: os.PathLike[Any] | IO[bytes]) -> Any:
        """Write the whole body to a file (S168). The call works even if the message was acknowledged, or its connection
        was closed.

        Args:
            target: a ``pathlib.Path``, or a binary file that is open for writing. If it is a path, the new file appears
                there when the whole body is written, and replaces an older file. If the write fails, the older file
                stays as it was.

        Returns:
            The number of bytes. For a message that ``pyjmsack.aio`` received, an awaitable of this number, because a
            thread writes the file.

        Raises:
            MessageFormatException: ``target`` is neither a path nor a binary file.
            OSError: the file cannot be written.
        """
        check_target(target)
        work = partial(save, self._content(), target)
        return work() if self._away is None else self._away(work)

    def chunks(self) -> Chunks:
        """Return the body in pieces of at most 256 KiB, for ``for`` or ``async for`` (S168). A body that is in a
        temporary file is read piece by piece, and the whole body is not loaded into memory.
        """
        return Chunks(self._content(), self._away)

    def _content(self) -> Any:
        """Return the bytes of the body, or the source from which the body is read."""
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
        if isinstance(value, bool):  # struct would take a bool for a number
            raise MessageFormatException(f"write_{name}: expected a Java {name}, not {value!r}")
        try:
            self._append(form.pack(value))
        except (ArithmeticError, TypeError, ValueError, StructError) as error:
            raise MessageFormatException(f"write_{name}: expected a Java {name}, not {value!r}") from error

    def _check_readable(self) -> None:
        if not self._body_readonly:
            raise MessageNotReadableException("the body is write-only; reset() makes it readable")

    def _advance(self, size: int) -> int:
        """Move the cursor by ``size`` bytes, and return its position before the move."""
        self._check_readable()
        start = self._position
        if start + size > len(self._body):
            left = len(self._body) - start
            raise MessageEOFException(f"expected {size} bytes at position {start}, but only {left} bytes are left")
        self._position = start + size
        return start

    def _unpack(self, form: Struct) -> Any:
        start = self._advance(form.size)
        return form.unpack_from(self._body, start)[0]

    def read_boolean(self) -> bool:
        """Read one byte as a boolean. The byte 0 is ``False``, and each other byte is ``True``.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_BOOLEAN)

    def read_byte(self) -> int:
        """Read a signed number of 8 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_BYTE)

    def read_unsigned_byte(self) -> int:
        """Read an unsigned number of 8 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_UNSIGNED_BYTE)

    def read_short(self) -> int:
        """Read a signed number of 16 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_SHORT)

    def read_unsigned_short(self) -> int:
        """Read an unsigned number of 16 bits.

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
        """Read a signed number of 32 bits.

        Raises:
            MessageEOFException: the body ends before the value. The cursor stays where it was.
            MessageNotReadableException: the message is write-only.
        """
        return self._unpack(_INT)

    def read_long(self) -> int:
        """Read a signed number of 64 bits.

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
        """Read a text that Java's ``writeUTF`` wrote: two bytes with the length, and then the text in modified UTF-8.

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
            length: the largest number of bytes to read, at least 0. ``None`` reads the rest of the body.

        Returns:
            The bytes. ``b""`` at the end of the body, where JMS returns -1.

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
        """Append a boolean as one byte, which is 1 for ``True`` and 0 for ``False``.

        Args:
            value: ``True`` or ``False``.

        Raises:
            MessageFormatException: the value is not a ``bool``.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        if not isinstance(value, bool):
            raise MessageFormatException(f"write_boolean: expected a Java boolean, not {value!r}")
        self._append(b"\x01" if value else b"\x00")

    def write_byte(self, value: int) -> None:
        """Append a signed number of 8 bits.

        Args:
            value: a whole number from -128 to 127.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_BYTE, "byte", value)

    def write_unsigned_byte(self, value: int) -> None:
        """Append an unsigned number of 8 bits.

        Args:
            value: a whole number from 0 to 255.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_UNSIGNED_BYTE, "unsigned_byte", value)

    def write_short(self, value: int) -> None:
        """Append a signed number of 16 bits.

        Args:
            value: a whole number from -32,768 to 32,767.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_SHORT, "short", value)

    def write_unsigned_short(self, value: int) -> None:
        """Append an unsigned number of 16 bits.

        Args:
            value: a whole number from 0 to 65,535.

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
            MessageFormatException: the value is not one character up to U+FFFF.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        if not isinstance(value, str):
            raise MessageFormatException(f"write_char: expected a Java char, not {value!r}")
        self._append(_UNSIGNED_SHORT.pack(ord(Char(value))))

    def write_int(self, value: int) -> None:
        """Append a signed number of 32 bits.

        Args:
            value: a whole number from -2,147,483,648 to 2,147,483,647.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_INT, "int", value)

    def write_long(self, value: int) -> None:
        """Append a signed number of 64 bits.

        Args:
            value: a whole number from -2**63 to 2**63 - 1.

        Raises:
            MessageFormatException: the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._pack(_LONG, "long", value)

    def write_float(self, value: float) -> None:
        """Append an IEEE 754 number of 32 bits.

        Args:
            value: a number, which is rounded to 32 bits.

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
        """Append a text as Java's ``writeUTF`` does: two bytes with the length, and then the text in modified UTF-8.

        Args:
            value: the text. It may have at most 65,535 bytes in modified UTF-8.

        Raises:
            MessageFormatException: the value is not a ``str``, or is too long.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        data = encode_utf(value)
        if len(data) > 0xFFFF:
            raise MessageFormatException(
                f"write_utf: expected at most 65535 bytes, not {len(data)}; write a longer text with write_bytes()"
            )
        self._append(_UNSIGNED_SHORT.pack(len(data)) + data)

    def write_bytes(self, value: bytes | bytearray | memoryview) -> None:
        """Append bytes as they are. No length is written before the bytes.

        Args:
            value: the bytes.

        Raises:
            MessageFormatException: the value is not bytes.
            MessageNotWriteableException: the message is read-only, or is being sent with a completion listener (S73).
        """
        self._append(_as_bytes(value))

    def write_object(self, value: Any) -> None:
        """Append a value with the ``write_`` method for its type. A ``str`` is written with ``write_utf``.

        An ``int`` becomes an int of Java if it fits in 32 bits, and otherwise a long. A ``float`` becomes a double. A
        wrapper keeps its own type.

        Args:
            value: a ``bool``, ``int``, ``float``, ``str``, ``bytes`` or a wrapper such as ``Short`` or ``Char``.

        Raises:
            MessageFormatException: no ``write_`` method takes a value of this type.
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
