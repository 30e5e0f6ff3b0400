"""The states and the Java formats of a bytes message (S171)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjmsack.errors import (
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
)
from pyjmsack.message import BytesMessage, utf
from pyjmsack.message.utf import decode_utf, encode_utf
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

CELLS = [
    ("boolean", True, "01"),
    ("boolean", False, "00"),
    ("byte", -2, "fe"),
    ("unsigned_byte", 254, "fe"),
    ("short", -2, "fffe"),
    ("unsigned_short", 65534, "fffe"),
    ("char", "é", "00e9"),
    ("int", -2, "fffffffe"),
    ("long", 1, "0000000000000001"),
    ("float", 1.5, "3fc00000"),
    ("double", -0.5, "bfe0000000000000"),
    ("utf", "aé\0", "000561c3a9c080"),
    ("utf", "\U0001f600", "0006eda0bdedb880"),
    ("utf", "", "0000"),
]
READERS = [*dict.fromkeys(cell[0] for cell in CELLS), "bytes"]


def readable(data: bytes) -> BytesMessage:
    message = BytesMessage(data)
    message.reset()
    return message


@pytest.mark.parametrize(("name", "value", "wire"), CELLS)
def test_primitives_have_the_big_endian_format_of_java_s171(name: str, value: Any, wire: str) -> None:
    message = BytesMessage()
    getattr(message, f"write_{name}")(value)
    assert message.data.hex() == wire
    message.reset()
    assert getattr(message, f"read_{name}")() == value


@pytest.mark.parametrize("name", READERS)
def test_a_new_message_is_write_only_until_reset_s171(name: str) -> None:
    message = BytesMessage(b"0123456789")
    with pytest.raises(MessageNotReadableException):
        getattr(message, f"read_{name}")()
    message.reset()
    message.read_byte()


@pytest.mark.parametrize(
    ("name", "value"), [*((name, value) for name, value, _ in CELLS), ("bytes", b"x"), ("object", 1)]
)
def test_after_reset_it_is_read_only_until_clear_body_s171(name: str, value: Any) -> None:
    message = readable(b"x")
    write = getattr(message, f"write_{name}")
    with pytest.raises(MessageNotWriteableException):
        write(value)
    with pytest.raises(MessageNotWriteableException):
        message.data = b"y"
    message.clear_body()
    assert message.data == b""
    write(value)
    with pytest.raises(MessageNotReadableException):
        message.read_byte()


@pytest.mark.parametrize(
    "name", [name for name in READERS if name not in ("bytes", "boolean", "byte", "unsigned_byte")]
)
def test_past_the_end_the_position_is_unchanged_s171(name: str) -> None:
    message = readable(b"ab\x00")
    assert message.read_bytes(2) == b"ab"
    with pytest.raises(MessageEOFException):
        getattr(message, f"read_{name}")()
    assert message.read_byte() == 0
    with pytest.raises(EOFError):
        message.read_byte()


def test_utf_that_is_cut_short_or_malformed_leaves_the_position_s171() -> None:
    message = readable(b"\x00\x05abc")
    with pytest.raises(MessageEOFException):
        message.read_utf()
    assert message.read_bytes() == b"\x00\x05abc"
    message = readable(b"\x00\x01\xff")
    with pytest.raises(MessageFormatException):
        message.read_utf()
    assert message.read_short() == 1


def test_read_bytes_gives_what_is_left_and_nothing_at_the_end_s171() -> None:
    message = readable(b"abcde")
    assert message.read_bytes(2) == b"ab"
    assert message.read_bytes(10) == b"cde"
    assert message.read_bytes(10) == b""
    assert message.read_bytes() == b""
    message.reset()
    assert message.read_bytes() == b"abcde"
    with pytest.raises(MessageFormatException, match="-1"):
        message.read_bytes(-1)


def test_data_is_the_whole_body_in_every_state() -> None:
    message = BytesMessage(b"ab")
    message.write_bytes(bytearray(b"cd"))
    assert (message.data, message.body, message.body_length) == (b"abcd", b"abcd", 4)
    message.write_byte(1)
    assert message.body_length == 5
    message.reset()
    message.read_int()
    assert message.data == b"abcd\x01"
    message.clear_body()
    message.data = memoryview(b"new")
    message.write_bytes(b"er")
    assert message.data == b"newer"


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (True, "01"),
        (Byte(1), "01"),
        (Short(1), "0001"),
        (Int(1), "00000001"),
        (1, "00000001"),
        (Long(1), "0000000000000001"),
        (2**40, "0000010000000000"),
        (Float(1.5), "3fc00000"),
        (1.5, "3ff8000000000000"),
        (Double(1.5), "3ff8000000000000"),
        (Char("a"), "0061"),
        ("a", "000161"),
        (b"a", "61"),
        (bytearray(b"a"), "61"),
        (memoryview(b"a"), "61"),
    ],
)
def test_write_object_goes_by_the_type_s171(value: Any, wire: str) -> None:
    message = BytesMessage()
    message.write_object(value)
    assert message.data.hex() == wire


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("byte", 128),
        ("unsigned_byte", -1),
        ("short", 2**15),
        ("unsigned_short", 2**16),
        ("int", 2**31),
        ("boolean", 1),
        ("boolean", "false"),
        ("boolean", None),
        ("int", "1"),
        ("int", True),
        ("int", 1.5),
        ("long", 2**63),
        ("float", 1e300),
        ("double", "x"),
        ("double", True),
        ("char", "ab"),
        ("char", 97),
        ("char", None),
        ("utf", "x" * 65536),
        ("utf", 5),
        ("bytes", "text"),
        ("object", None),
        ("object", [1]),
        ("object", 2**64),
    ],
)
def test_what_does_not_fit_is_a_format_error_and_writes_nothing(name: str, value: Any) -> None:
    message = BytesMessage()
    with pytest.raises(MessageFormatException):
        getattr(message, f"write_{name}")(value)
    assert message.data == b""


def test_only_bytes_make_a_bytes_message() -> None:
    for wrong in ("text", 5, [1]):
        with pytest.raises(MessageFormatException, match="data: expected"):
            BytesMessage(wrong)


def test_a_locked_message_refuses_writes_s73() -> None:
    message = BytesMessage(b"x")
    message._locked = True
    with pytest.raises(MessageNotWriteableException):
        message.write_byte(1)
    with pytest.raises(MessageNotWriteableException):
        message.data = b""


def test_float_special_values_survive() -> None:
    message = BytesMessage()
    message.write_double(math.inf)
    message.write_float(math.nan)
    message.reset()
    assert message.read_double() == math.inf
    assert math.isnan(message.read_float())


@settings(deadline=None)
@given(st.text(st.characters(), max_size=200))
def test_any_text_survives_modified_utf8_s171(text: str) -> None:
    message = BytesMessage()
    message.write_utf(text)
    assert b"\x00" not in message.data[2:]
    message.reset()
    # Java joins a pair of surrogates, so does Python when it reads them
    assert message.read_utf() == text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_read_as_utf_are_text_or_a_jms_error(data: bytes) -> None:
    message = readable(len(data).to_bytes(2, "big") + data)
    try:
        assert isinstance(message.read_utf(), str)
    except MessageFormatException:
        assert message.read_short() == len(data)


@pytest.mark.parametrize("shift", range(7))
def test_a_long_text_of_surrogates_is_decoded_in_pieces(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    """In one piece, 90 MB of them stopped all threads of the process for 30 to 45 s."""
    sizes: list[int] = []
    decode = utf._decode

    def noted(data: bytes, position: int) -> str:
        sizes.append(len(data))
        return decode(data, position)

    monkeypatch.setattr(utf, "_decode", noted)
    text = "x" * shift + "\U0001f600\0\u20acy" * 5_000
    data = encode_utf(text)
    assert decode_utf(data) == text
    assert sum(sizes) == len(data)
    assert max(sizes) <= 1 << 14
    with pytest.raises(MessageFormatException, match="is not valid modified UTF-8"):
        decode_utf(data + b"\xff")
