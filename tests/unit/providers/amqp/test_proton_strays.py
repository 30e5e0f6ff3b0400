"""The frames that proton must not read: a Flow without a session, and a second Begin for one session (AMQP 1.0 2.5.1).

proton 0.40 frees a session with two Begin frames twice, which ends the process with a segmentation fault.
"""

from __future__ import annotations

import struct

import pytest

from pyjmsack.providers.amqp.engine.performatives import Begin, End, Flow, encode
from pyjmsack.providers.amqp.proton_strays import Strays

HEADER = b"AMQP\x00\x01\x00\x00"
BEGIN = encode(Begin(remote_channel=3, next_outgoing_id=0, incoming_window=5, outgoing_window=5))
UNASKED = encode(Begin(next_outgoing_id=0, incoming_window=5, outgoing_window=5))
FLOW = encode(Flow(incoming_window=5, next_outgoing_id=0, outgoing_window=5))
LONG = b"\x00\x80" + struct.pack(">Q", 0x11) + BEGIN[3:]
"""The same frame with another legal spelling of its descriptor."""
SECOND = "that answers no Begin frame, or answers one twice"


def frame(channel: int, body: bytes) -> bytes:
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body


def begun(*channels: int) -> Strays:
    """Return the object to test, after this client has begun sessions on these channels."""
    strays = Strays(channel_max=10)
    strays.sent(HEADER + b"".join(frame(channel, UNASKED) for channel in channels))
    return strays


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (frame(0, BEGIN), frame(9, BEGIN), SECOND),
        (frame(0, BEGIN), frame(0, BEGIN), SECOND),
        (frame(0, BEGIN), frame(9, LONG), SECOND),
        (frame(0, UNASKED), frame(0, UNASKED), SECOND),
        (
            b"",
            frame(0, encode(Begin(remote_channel=4, next_outgoing_id=0, incoming_window=5, outgoing_window=5))),
            SECOND,
        ),
        (frame(0, BEGIN), frame(9, BEGIN[:3] + b"\xc0\x02\x01\x00"), "cannot be decoded"),
        (frame(0, BEGIN), frame(9, BEGIN + bytes(5000)), f"a Begin frame of {len(BEGIN) + 5008} bytes"),
    ],
)
def test_proton_does_not_read_a_begin_that_violates_the_protocol(
    first: bytes, second: bytes, expected: str, size: int
) -> None:
    """All bytes before the frame are read, and none of the frame or behind it."""
    strays = begun(3)
    data = HEADER + first + second + frame(0, FLOW)
    read = b"".join(strays.without(data[begin : begin + size]) for begin in range(0, len(data), size))
    assert read == HEADER + first
    assert strays.violation is not None
    assert expected in strays.violation


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_channel_may_be_used_again_after_its_end(size: int) -> None:
    """A Flow on a channel that cannot exist is removed."""
    strays = begun(3, 4)
    kept = [frame(0, BEGIN), frame(1, UNASKED), frame(0, encode(End())), frame(0, UNASKED), frame(0, FLOW)]
    data = HEADER + b"".join(kept) + frame(65535, FLOW) + frame(2, FLOW)
    read = b"".join(strays.without(data[begin : begin + size]) for begin in range(0, len(data), size))
    assert read == HEADER + b"".join(kept) + frame(2, FLOW)
    assert strays.violation is None


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_answer_to_a_new_session_may_come_before_the_end_of_the_old_one(size: int) -> None:
    """AMQP 1.0 2.7.7. Artemis 2.56 does so if several threads begin and end sessions."""
    strays = begun(3)
    strays.without(HEADER + frame(0, BEGIN))
    data = frame(3, encode(End())) + frame(3, b"") + frame(3, UNASKED)
    for begin in range(0, len(data), size):
        strays.sent(data[begin : begin + size])
    assert strays.without(frame(9, BEGIN)) == frame(9, BEGIN)
    assert strays.violation is None
    strays.without(frame(8, BEGIN))
    assert SECOND in (strays.violation or "")
