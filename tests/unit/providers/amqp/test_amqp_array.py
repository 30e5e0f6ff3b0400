"""What values cost: the elements of an AMQP array share one type, which a hostile peer writes only once (1.6.24)."""

from __future__ import annotations

import inspect
import struct
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.foreign import as_jms
from pyjmsack.providers.amqp.wire import MAX_DEPTH, decode_value, has_more_values
from pyjmsack.providers.amqp.wire_encode import encode_value


def described_array(descriptors: bytes, element: bytes, count: int) -> bytes:
    """Return an array whose elements are ubytes, or other elements without a head, with descriptors."""
    raw = struct.pack(">I", count) + descriptors + element
    return struct.pack(">BI", 0xF0, len(raw)) + raw


@pytest.mark.parametrize("descriptor", ["44", "5301", "800000000000000001", "a30161"])
def test_the_elements_of_an_array_may_have_a_descriptor(descriptor: str) -> None:
    raw = described_array(b"\x00" + bytes.fromhex(descriptor), b"\x50\x01\x02", 2)
    values, position = decode_value(raw, 0)
    assert [value.value for value in values] == [1, 2]
    assert len({value.descriptor for value in values}) == 1
    assert position == len(raw)


@pytest.mark.parametrize(
    ("descriptors", "why"),
    [
        (b"\x00\x53\x01" * 58, "more than one descriptor"),
        (b"\x00\x53\x01" * 2, "more than one descriptor"),
        (b"\x00\xb3\x00\x00\x00\x01a", "neither a ulong nor a short symbol"),
        (b"\x00\xc0\x02\x01\x40", "neither a ulong nor a short symbol"),
        (b"\x00", "neither a ulong nor a short symbol"),
    ],
    ids=["58 descriptors", "2 descriptors", "a long symbol", "a list", "a boolean"],
)
def test_the_elements_of_an_array_cost_no_more_than_their_bytes(descriptors: bytes, why: str) -> None:
    """S166: with 58 descriptors an element of one byte cost 3,700 bytes of memory."""
    raw = described_array(descriptors, b"\x50" + b"\x01" * 20_000, 20_000)
    tracemalloc.start()
    try:
        with pytest.raises(MessageFormatException, match=why):
            decode_value(raw, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("levels", [20, MAX_DEPTH - 2, 1000])
def test_arrays_in_arrays_with_descriptors_are_not_deeper_than_pythons_stack(levels: int) -> None:
    """S166: 1.6 KB of them raised ``RecursionError``, and no message behind them came."""
    raw = described_array(b"\x00\x53\x01", b"\x50\x01", 1)
    for _ in range(levels - 1):
        raw = described_array(b"\x00\x53\x01", b"\xf0" + raw[1:], 1)
    usual = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 400)
        if levels < MAX_DEPTH // 2:
            as_jms(decode_value(raw, 0)[0])
        else:
            with pytest.raises(MessageFormatException, match="nested"):
                decode_value(raw, 0)
    finally:
        sys.setrecursionlimit(usual)


SIMPLE = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**31), 2**31 - 1), st.text(max_size=300), st.binary(max_size=300)
)
VALUES = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def _count(value: object) -> int:
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    if isinstance(value, dict):
        return 1 + sum(_count(part) for pair in value.items() for part in pair)
    return 1


@given(VALUES)
def test_values_are_counted_without_decoding_them(value: object) -> None:
    raw, count = encode_value(value), _count(value)
    assert has_more_values(count - 1, raw, 0, len(raw))
    assert not has_more_values(count, raw, 0, len(raw))


@pytest.mark.parametrize(
    ("wire", "count"),
    [
        ("e0 06 05 50 01010101 01", 6),
        ("f0 0000000a 00000005 50 0101010101", 6),
        ("00 53 25 c0 03 02 40 41", 5),
    ],
    ids=["short array", "long array", "description"],
)
def test_the_elements_of_an_array_count_too(wire: str, count: int) -> None:
    raw = bytes.fromhex(wire.replace(" ", ""))
    assert has_more_values(count - 1, raw, 0, len(raw))
    assert not has_more_values(count, raw, 0, len(raw))


def test_an_array_of_lists_counts_as_many_values_as_it_may_have() -> None:
    raw = bytes.fromhex("f00000000c" + "00000001" + "c0" + "0504" + "40404040" + "40")
    assert has_more_values(4, raw, 0, len(raw))
