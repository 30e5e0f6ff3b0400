"""AMQP 1.0 values to bytes and back (AMQP 1.0 1.6), with proton as the judge."""

from __future__ import annotations

import math
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.wire import MAX_DEPTH, decode_value, skip
from pyjmsack.providers.amqp.wire_encode import encode_value
from pyjmsack.providers.amqp.wire_types import (
    Described,
    OpaqueDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from pyjmsack.types import Byte, Char, Float, Int, Long, Short


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Fail when more than ``size`` bytes were taken at a time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size


def whole(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    whole(8).map(Byte),
    whole(16).map(Short),
    whole(32),
    whole(64).map(Long),
    whole(8, False).map(UByte),
    whole(16, False).map(UShort),
    whole(32, False).map(UInt),
    whole(64, False).map(ULong),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False),
    whole(64).map(Timestamp),
    st.uuids(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    st.binary(max_size=300),
    st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol),
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(Char),
)
KEYS = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), whole(32), whole(64, False).map(ULong))
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=20,
)

PROTON: dict[type, Any] = {
    Byte: proton.byte,
    Short: proton.short,
    int: proton.int32,
    Long: int,
    UByte: proton.ubyte,
    UShort: proton.ushort,
    UInt: proton.uint,
    ULong: proton.ulong,
    Float: proton.float32,
    Timestamp: proton.timestamp,
    Symbol: proton.symbol,
    Char: proton.char,
}


def to_proton(value: Any) -> Any:
    """Return the value in proton's classes."""
    if isinstance(value, list):
        return [to_proton(item) for item in value]
    if isinstance(value, dict):
        return {to_proton(key): to_proton(item) for key, item in value.items()}
    convert = PROTON.get(type(value))
    return value if convert is None else convert(value)


def typed(value: Any) -> Any:
    """Return the value with the type of each part, so that 1, True and Long(1) differ."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {typed(key): typed(item) for key, item in value.items()}
    if isinstance(value, memoryview):
        return bytes, bytes(value)
    return type(value), value


def proton_bytes(value: Any) -> bytes:
    data = proton.Data()
    data.put_object(value)
    return bytes(data.encode())


def read_by_proton(raw: bytes) -> Any:
    """Return ``typed`` of the value; proton's binaries are views that die with their ``Data``."""
    data = proton.Data()
    assert data.decode(raw) == len(raw)
    data.rewind()
    data.next()
    return typed(data.get_object())


@settings(deadline=None)
@given(VALUES)
def test_every_value_comes_back_with_its_type(value: Any) -> None:
    raw = encode_value(value)
    assert typed(decode_value(raw, 0)) == typed((value, len(raw)))
    assert skip(raw, 0, len(raw)) == len(raw)


@settings(deadline=None)
@given(VALUES)
def test_proton_reads_what_we_write(value: Any) -> None:
    assert read_by_proton(encode_value(value)) == typed(to_proton(value))


@settings(deadline=None)
@given(VALUES)
def test_we_read_what_proton_writes(value: Any) -> None:
    raw = proton_bytes(to_proton(value))
    assert typed(decode_value(raw, 0)) == typed((value, len(raw)))
    assert skip(raw, 0, len(raw)) == len(raw)


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        ("40", None),
        ("41", True),
        ("42", False),
        ("5600", False),
        ("5601", True),
        ("43", UInt(0)),
        ("44", ULong(0)),
        ("45", []),
        ("5205", UInt(5)),
        ("5305", ULong(5)),
        ("54ff", -1),
        ("55ff", Long(-1)),
        ("73 0001f600", "\U0001f600"),
        ("74 00000001", OpaqueDecimal(b"\0\0\0\1")),
        ("84 0000000000000001", OpaqueDecimal(bytes(7) + b"\1")),
        ("94" + "00" * 15 + "01", OpaqueDecimal(bytes(15) + b"\1")),
        ("98" + "11" * 16, UUID("11" * 16)),
        ("b0 00000001 61", b"a"),
        ("b1 00000001 61", "a"),
        ("b3 00000001 61", Symbol("a")),
        ("d0 00000005 00000001 40", [None]),
        ("d1 00000004 00000000", {}),
        ("e0 04 02 54 05 06", [5, 6]),
        ("f0 00000007 00000002 54 05 06", [5, 6]),
        ("e0 06 02 a1 01 61 01 62", ["a", "b"]),
        ("e0 02 03 41", [True, True, True]),
        ("e0 05 01 00 5324 45", [Described(ULong(0x24), [])]),
        ("00 5324 45", Described(ULong(0x24), [])),
        ("00 a30161 00 5301 40", Described(Symbol("a"), Described(ULong(1), None))),
    ],
)
def test_every_encoding_of_the_standard_is_read(wire: str, value: Any) -> None:
    raw = bytes.fromhex(wire.replace(" ", ""))
    assert decode_value(raw, 0) == (value, len(raw))
    assert skip(raw, 0, len(raw)) == len(raw)
    for cut in range(len(raw)):
        with pytest.raises(MessageFormatException, match="at byte"):
            decode_value(raw[:cut], 0)


def test_described_values_and_decimals_are_written() -> None:
    value = Described(Symbol("a:b"), [OpaqueDecimal(bytes(4)), OpaqueDecimal(bytes(8)), OpaqueDecimal(bytes(16))])
    assert decode_value(encode_value(value), 0)[0] == value


@pytest.mark.parametrize("size", [254, 255, 256, 65536])
def test_sizes_around_one_byte(size: int) -> None:
    for value in ("x" * size, b"x" * size, Symbol("x" * size), [None] * size, {str(i): None for i in range(size // 8)}):
        raw = encode_value(value)
        assert decode_value(raw, 0) == (value, len(raw))
        if not isinstance(value, list) or size < 65536:  # proton's Data holds fewer elements
            assert read_by_proton(raw) == typed(to_proton(value))


def test_float_infinity_and_nan_survive() -> None:
    assert decode_value(encode_value(Float(-math.inf)), 0)[0] == -math.inf
    assert math.isnan(decode_value(encode_value(math.nan), 0)[0])


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        2**63,
        -(2**63) - 1,
        Float(1e300),
        Timestamp(2**63),
        "\ud800",
        Symbol("ä"),
        OpaqueDecimal(b"1"),
        1j,
    ],
)
def test_what_amqp_cannot_carry_is_a_format_error(value: Any) -> None:
    with pytest.raises(MessageFormatException):
        encode_value([value])


@pytest.mark.parametrize(("kind", "value"), [(UByte, 256), (UShort, 65536), (UInt, 2**32), (ULong, 2**64), (UInt, -1)])
def test_unsigned_wrappers_check_their_range(kind: Any, value: int) -> None:
    with pytest.raises(MessageFormatException, match="unsigned"):
        kind(value)


def test_nesting_is_bounded_on_writing() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(MessageFormatException, match="nested"):
        encode_value(loop)


def nested(code: int, levels: int) -> bytes:
    """Return a value inside so many lists (code D0), maps (D1), arrays (F0) or descriptions (00)."""
    raw = b"\x40"
    for _ in range(levels):
        if code == 0:
            raw = b"\x00\x44" + raw
        elif code == 0xF0:
            raw = struct.pack(">BII", code, len(raw) + 4, 1) + raw
        else:
            prefix, count = (b"\x40", 2) if code == 0xD1 else (b"", 1)
            raw = struct.pack(">BII", code, len(prefix + raw) + 4, count) + prefix + raw
    return raw


@pytest.mark.parametrize("code", [0x00, 0xD0, 0xD1, 0xF0])
def test_nesting_is_bounded_on_reading(code: int) -> None:
    if code != 0xF0:
        decode_value(nested(code, MAX_DEPTH - 1), 0)
    for levels in (MAX_DEPTH + 1, 50_000):
        with pytest.raises(MessageFormatException):
            decode_value(nested(code, levels), 0)


def test_descriptors_of_descriptors_are_bounded() -> None:
    for raw in (
        b"\x00" * 100_000,
        b"\xe0\xff\x01" + b"\x00" * 300,
        b"\xf0\x00\x01\x86\xa0\x00\x00\x00\x01" + b"\x00" * 100_000,
    ):
        with pytest.raises(MessageFormatException):
            decode_value(raw, 0)
    with pytest.raises(MessageFormatException):
        skip(b"\x00" * 100_000, 0, 100_000)


@pytest.mark.parametrize(
    "wire",
    [
        "d0 00000005 ffffffff 40",  # list that claims 2**32 elements
        "d1 00000006 fffffffe 4040",
        "f0 00000005 ffffffff 40",  # array of 2**32 nulls: no byte for any of them
        "f0 00000005 ffffffff 41",
        "f0 00000005 ffffffff 43",
        "f0 00000005 ffffffff 45",
        "f0 00000008 ffffffff 00 a300 45",
        "f0 00000008 ffffffff 00 a300 40",
        "e0 02 ff 40",
        "c0 ff 01 40",
        "c1 03 01 4040",  # odd map
        "c1 04 02 4540",  # list as key
        "c0 03 01 4040",  # bytes behind the last element
        "e0 04 01 5400 00",
        "a1 01 ff",  # no UTF-8
        "a3 01 ff",
        "73 00110000",
        "56 02",
        "3f",
        "e0 02 01 3f",
        "99 00",
    ],
)
def test_hostile_values_are_refused_before_memory_is_taken_for_what_they_claim(wire: str) -> None:
    raw = bytes.fromhex(wire.split("#")[0].replace(" ", ""))
    with memory_limit(100_000), pytest.raises(MessageFormatException, match="at byte"):
        decode_value(raw, 0)


def test_many_empty_arrays_cannot_inflate() -> None:
    inner = bytes((0xE0, 2, 8, 0x45))
    raw = struct.pack(">BII", 0xD0, len(inner) * 10_000 + 4, 10_000) + inner * 10_000
    with memory_limit(250 * len(raw)):
        decode_value(raw, 0)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_random_bytes_are_a_value_or_a_format_error(raw: bytes) -> None:
    for read in (decode_value, lambda data, position: skip(data, position, len(data))):
        try:
            read(raw, 0)
        except MessageFormatException:
            continue


@pytest.mark.parametrize("value", [Int(5), Int(-(2**31)), 2**31 - 1])
def test_int_wrapper_and_bare_int_are_the_same_on_the_wire(value: int) -> None:
    assert encode_value(value) == encode_value(int(value))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\xed\xa0\xbd\xed\xb8\x80b", "a\U0001f600b"),
        (b"a\xc0\x80b", "a\0b"),
        (b"\xed\xa0\xbd", None),
        (b"a\xffb", None),
        (b"\xc0\x81", None),
    ],
)
def test_the_modified_utf_8_of_java_is_read_where_a_broker_writes_it(raw: bytes, text: str | None) -> None:
    """ActiveMQ Classic does so in a map that it converts. Other bytes that are no UTF-8 are refused as before."""
    encoded = bytes((0xA1, len(raw))) + raw
    if text is None:
        with pytest.raises(MessageFormatException, match="not UTF-8"):
            decode_value(encoded, 0, len(encoded))
    else:
        assert decode_value(encoded, 0, len(encoded)) == (text, len(encoded))
