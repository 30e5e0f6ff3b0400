"""Frames and performatives of our AMQP engine: cut, encoded and decoded, beside proton's codec."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from engine_support import Wire, condition_of
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.providers.amqp.engine import performatives as p
from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.engine.fastpath import TransferHeads, disposition_frame, read_disposition, read_transfer
from pyjmsack.providers.amqp.engine.frames import PROTOCOL_HEADER, FrameReader, frame

SAMPLES: list[p.Composite] = [
    p.Open(
        container_id="me", hostname="h", max_frame_size=4096, channel_max=7, idle_time_out=1000, properties={"a": "b"}
    ),
    p.Open(container_id="", desired_capabilities=("one", "two"), offered_capabilities=("only",)),
    p.Begin(remote_channel=3, next_outgoing_id=2**32 - 1, incoming_window=0, outgoing_window=1, handle_max=9),
    p.Attach(
        link_name="l",
        handle=5,
        role=True,
        snd_settle_mode=1,
        source=p.Source(address="a", durable=2, expiry_policy="never", distribution_mode="copy", capabilities=("q",)),
        target=p.Target(dynamic=True, capabilities=("x", "y")),
        initial_delivery_count=0,
        max_message_size=2**40,
    ),
    p.Attach(link_name="tx", handle=0, role=False, target=p.Coordinator(capabilities=("amqp:local-transactions",))),
    p.Flow(
        incoming_window=1, next_outgoing_id=2, outgoing_window=3, handle=0, delivery_count=4, link_credit=5, drain=True
    ),
    p.Transfer(handle=0, delivery_id=1, delivery_tag=b"t", message_format=0, settled=True, more=True),
    p.Transfer(handle=300, state=p.Transactional(txn_id=b"x"), aborted=True),
    p.Disposition(role=True, first=1, last=2, settled=True, state=p.ACCEPTED),
    p.Disposition(role=False, first=2**32 - 1, state=p.Rejected(error=p.Error(condition="c", description="d"))),
    p.Detach(handle=1, closed=True, error=p.Error(condition="c", info={"k": 1})),
    p.End(),
    p.Close(error=p.Error(condition="amqp:connection:forced")),
    p.Received(section_number=1, section_offset=2),
    p.Modified(delivery_failed=True, undeliverable_here=True, message_annotations={"x": "y"}),
    p.Declared(txn_id=b"id"),
    p.Transactional(txn_id=b"id", outcome=p.RELEASED),
]


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_performative_is_decoded_as_what_was_encoded(value: p.Composite) -> None:
    encoded = p.encode(value)
    assert p.decode(b"--" + encoded + b"payload", 2, len(encoded) + 9) == (value, 2 + len(encoded))


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_proton_reads_a_performative_as_a_list_with_our_descriptor(value: p.Composite) -> None:
    proton = pytest.importorskip("proton", reason="the extra [proton] is not installed")
    data = proton.Data()
    assert data.decode(p.encode(value)) == len(p.encode(value))
    data.rewind()
    data.next()
    found = data.get_object()
    assert found.descriptor == value.code
    assert isinstance(found.value, list)


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_descriptor_may_be_a_symbol(value: p.Composite) -> None:
    """1.4, 2.8: both forms name the same type."""
    name = value.name.encode()
    encoded = b"\x00\xa3" + bytes((len(name),)) + name + p.encode(value)[3:]
    assert p.decode(encoded, 0, len(encoded))[0] == value


@pytest.mark.parametrize("wide", [False, True], ids=["list8", "list32"])
def test_a_transfer_is_read_the_same_by_the_fast_path_and_by_the_table(wide: bool) -> None:
    head = TransferHeads(1, 300)
    for data in (head.whole(7, True, 0), head.whole(2**32 - 1, False, 0), head.following(True, 0)):
        start, end = 8, len(data)
        value, after = p.decode(data, start, end)
        assert isinstance(value, p.Transfer)
        encoded = p.encode(value) if not wide else _widened(p.encode(value))
        found = read_transfer(encoded + b"rest", 0, len(encoded) + 4)
        assert found == (value.handle, value.delivery_id, value.settled, value.more, value.aborted, len(encoded))
        assert after == end


def _widened(encoded: bytes) -> bytes:
    content = encoded[6:]
    return encoded[:3] + struct.pack(">BII", 0xD0, len(content) + 4, encoded[5]) + content


@given(
    first=st.integers(0, 2**32 - 1),
    last=st.integers(0, 2**32 - 1),
    role=st.booleans(),
    state=st.sampled_from([None, p.ACCEPTED, p.Rejected(error=p.Error(condition="c", description="d" * 300))]),
)
def test_a_disposition_is_read_as_it_was_written(first: int, last: int, role: bool, state: Any) -> None:
    encoded = b"" if state is None else p.encode(state)
    data = disposition_frame(3, role, first, last, encoded)
    assert struct.unpack_from(">IBBH", data) == (len(data), 2, 0, 3)
    assert read_disposition(data, 8, len(data)) == (role, first, last, True, encoded)
    assert p.decode(data, 8, len(data))[0] == p.Disposition(
        role=role, first=first, last=last, settled=True, state=state
    )


STREAM = PROTOCOL_HEADER + b"".join(frame(channel, p.encode(value)) for channel, value in enumerate(SAMPLES))


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_frames_are_found_however_the_bytes_are_cut(cuts: list[int]) -> None:
    """2.3: a stream has no boundaries of its own."""
    places = sorted({0, *cuts, len(STREAM)})
    assert _cut([STREAM[a:b] for a, b in pairwise(places)]) == list(enumerate(SAMPLES))


def test_frames_are_found_byte_by_byte() -> None:
    assert _cut([STREAM[index : index + 1] for index in range(len(STREAM))]) == list(enumerate(SAMPLES))


def _cut(pieces: list[bytes]) -> list[tuple[int, p.Composite]]:
    reader = FrameReader(512)
    return [(c, p.decode(data, a, b)[0]) for piece in pieces for c, data, a, b in reader.cut(piece)]


def test_a_frame_of_a_megabyte_in_small_pieces_is_joined_once() -> None:
    """Bytes kept for an incomplete frame are not copied again with each piece."""
    reader = FrameReader(1 << 20)
    data = PROTOCOL_HEADER + frame(0, p.encode(SAMPLES[6]) + bytes((1 << 20) - 100))
    found = [end - start for at in range(0, len(data), 100) for _, _, start, end in reader.cut(data[at : at + 100])]
    assert found == [len(data) - 16]


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x03\x01\x00\x00",
        PROTOCOL_HEADER + struct.pack(">IBBH", 7, 2, 0, 0),
        PROTOCOL_HEADER + struct.pack(">IBBH", 513, 2, 0, 0),
        PROTOCOL_HEADER + struct.pack(">I", 2**31),
        PROTOCOL_HEADER + struct.pack(">IBBH", 8, 1, 0, 0),
        PROTOCOL_HEADER + struct.pack(">IBBH", 8, 3, 0, 0),
        PROTOCOL_HEADER + struct.pack(">IBBH", 8, 2, 1, 0),
    ],
    ids=["http", "0-9-1", "sasl", "too small", "too large", "size alone", "offset 1", "offset beyond", "sasl frame"],
)
def test_what_is_no_frame_ends_the_connection(data: bytes) -> None:
    """2.3.1; the condition is that of 2.8.16."""
    wire = Wire(max_frame_size=512)
    assert condition_of(wire.bytes(data)) == "amqp:connection:framing-error"
    assert wire.one(p.Close).error.condition == "amqp:connection:framing-error"
    assert wire.bytes(STREAM) == []


@pytest.mark.parametrize(
    "body",
    [
        b"\x40",
        b"\x00\x53\x99\x45",
        b"\x00\x53\x10\x45",
        b"\x00\x53\x10\xc0\x03\x01\x52\x01",
        b"\x00\x53\x14\xc0\x01\x00",
        b"\x00\x53\x14\xc0\xff\x05",
        b"\x00\x53\x15\xd0",
        b"\x00\x53\x10" + b"\xc0\x0c\x0b\xa1\x00" + b"\x40" * 10,
        b"\x00" * 100,
        b"\xd0" + struct.pack(">II", 2**31, 2**31),
    ],
    ids=[
        "null",
        "unknown",
        "missing field",
        "wrong type",
        "empty transfer",
        "cut transfer",
        "cut disposition",
        "too many",
        "nested",
        "huge count",
    ],
)
def test_what_cannot_be_decoded_is_a_violation_and_nothing_else(body: bytes) -> None:
    """1.6; the condition is that of 2.8.15."""
    wire = Wire()
    wire.session()
    assert condition_of(wire.bytes(frame(0, body))) == "amqp:decode-error"


@pytest.mark.parametrize("count", [4000, 5000, 1_000_000])
def test_many_values_in_a_frame_are_a_violation_before_they_are_decoded(count: int) -> None:
    """1 MB of them, in an outcome with annotations, held up all connections of a process for 4 seconds."""
    many = b"\xf0" + struct.pack(">II", count + 5, count) + b"\x53" + b"\x01" * count
    annotations = b"\xd1" + struct.pack(">II", len(many) + 7, 2) + b"\xa3\x01k" + many
    state = b"\x00\x53\x27\xd0" + struct.pack(">II", len(annotations) + 6, 3) + b"\x40\x40" + annotations
    body = b"\x00\x53\x15\xd0" + struct.pack(">II", len(state) + 8, 5) + b"\x41\x43\x40\x41" + state
    if count < 4096:
        assert read_disposition(body, 0, len(body))[:3] == (True, 0, 0)
    else:
        with pytest.raises(ViolationError, match="more than 4,096 values"):
            read_disposition(body, 0, len(body))


def test_a_tag_of_more_than_32_bytes_is_a_violation() -> None:
    """2.8.7"""
    encoded = p.encode(p.Transfer(handle=0, delivery_id=0, delivery_tag=b"t" * 33))
    with pytest.raises(ViolationError, match="tag"):
        read_transfer(encoded, 0, len(encoded))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_violation_or_a_value(body: bytes) -> None:
    for head, read in ((b"", p.decode), (b"\x00\x53\x14", read_transfer), (b"\x00\x53\x15", read_disposition)):
        with suppress(ViolationError):
            read(head + body, 0, len(head + body))  # type: ignore[operator]  # all three take the same
