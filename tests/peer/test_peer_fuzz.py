"""A peer that sends nonsense: an error, soon, and no more memory than a few frames (S127, S129)."""

from __future__ import annotations

import random
import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from peer import Peer
from peer_faces import SyncFace, Told
from peer_frames import described
from proton import symbol, uint, ulong

from pyjmsack import ConnectionLostException, JMSException, JMSSecurityException, Queue

SEEDS = range(25)
SASL = b"AMQP\x03\x01\x00\x00"


def frame(body: bytes, kind: int = 0, channel: int = 0) -> bytes:
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


def some_value(dice: random.Random, depth: int = 0) -> Any:
    kinds: list[Any] = [
        None,
        True,
        uint(dice.choice([0, 1, 7, 2**32 - 1])),
        ulong(dice.getrandbits(64)),
        symbol(dice.choice(["amqp:not-found", "x", ""])),
        "text",
        dice.randbytes(dice.randrange(20)),
    ]
    if depth < 2:
        kinds.append([some_value(dice, depth + 1) for _ in range(dice.randrange(4))])
        kinds.append({symbol("k"): some_value(dice, depth + 1)})
    return dice.choice(kinds)


def garbage_frame(dice: random.Random, kind: int) -> bytes:
    """Return a well-formed frame of random performative, fields and payload."""
    code = dice.choice(range(0x40, 0x46)) if kind else dice.choice([*range(0x10, 0x1A), 0x24, 0x75])
    body = described(code, [some_value(dice) for _ in range(dice.randrange(12))])
    return frame(body + (b"" if kind else dice.randbytes(dice.randrange(30))), kind, dice.choice([0, 0, 1, 2, 65535]))


# -- during the login -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_random_bytes_instead_of_a_login_end_in_an_error(sync: SyncFace, seed: int) -> None:
    dice = random.Random(seed)
    greeting = dice.choice([b"", SASL]) + dice.randbytes(dice.randrange(8, 300))
    with pytest.raises(JMSException):
        sync.connect(sync.peer(greeting=greeting), "jms.connectTimeout=150")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_sasl_frames_end_in_an_error(sync: SyncFace, seed: int) -> None:
    dice = random.Random(seed)
    greeting = SASL + b"".join(garbage_frame(dice, 1) for _ in range(5))
    with pytest.raises((ConnectionLostException, JMSSecurityException, TimeoutError)):
        sync.connect(sync.peer(greeting=greeting), "jms.connectTimeout=150")


def test_a_sasl_frame_that_never_ends_is_cut_off(sync: SyncFace) -> None:
    """Bounded memory: its size is known from the first four bytes."""
    greeting = SASL + struct.pack(">IBBH", 2**31, 2, 1, 0) + bytes(1000)
    with pytest.raises(ConnectionLostException, match="malformed"):
        sync.connect(sync.peer(greeting=greeting))


def test_a_body_nested_without_end_is_an_error_and_not_a_recursion(sync: SyncFace) -> None:
    body = b"\x00" * 20_000
    with pytest.raises((ConnectionLostException, JMSSecurityException)):
        sync.connect(sync.peer(greeting=SASL + frame(body, 1)))


# -- on an open connection --------------------------------------------------------------------------------------


def upset(sync: SyncFace, data: bytes) -> tuple[Peer, Told]:
    """Open everything, then let the peer write something."""
    peer = sync.peer()
    connection = sync.connect(peer)
    connection.exception_listener = heard = Told()
    session = connection.create_session(0)
    session.create_producer(Queue("q"))
    session.create_consumer(Queue("q?consumer.prefetchSize=10"))
    peer.wait_frames("flow")
    peer.do(lambda: peer.connections[0].write_raw(data))
    return peer, heard


@pytest.mark.parametrize("seed", SEEDS)
def test_random_bytes_end_the_connection_with_an_error(sync: SyncFace, seed: int) -> None:
    """S128: told once."""
    dice = random.Random(seed)
    peer, heard = upset(sync, struct.pack(">I", dice.randrange(0, 8)) + dice.randbytes(dice.randrange(100, 400)))
    assert isinstance(heard.first(), ConnectionLostException)
    peer.wait_closed()
    assert len(heard.calls) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_random_frames_end_in_an_error_or_are_survived(sync: SyncFace, seed: int) -> None:
    """Whatever they did, the next calls return, and closing does."""
    dice = random.Random(seed)
    peer, heard = upset(sync, b"".join(garbage_frame(dice, 0) for _ in range(8)))
    peer.do(lambda: peer.connections[0].write_raw(frame(described(0x18, []))))
    assert isinstance(heard.first(), JMSException)
    assert len(heard.calls) == 1


@pytest.mark.parametrize(
    "body",
    [
        described(0x14, [uint(77), uint(0), b"t", uint(0)]),
        described(0x14, [uint(0), uint(0), b"t" * 33, uint(0)]),
        described(0x15, [True, uint(0), uint(2**32 - 1), True]),
        described(0x15, [False, uint(0), uint(2**32 - 1), True, None]),
        described(0x13, [uint(0), uint(0), uint(0), uint(0), uint(55), uint(0), uint(10)]),
        described(0x12, ["nobody asked", uint(3), True]),
        described(0x16, [uint(99), True]),
        described(0x11, [None, uint(0), uint(1), uint(1)]),
        described(0x10, ["again"]),
    ],
    ids=["handle", "tag", "huge-range", "huge-range-of-ours", "flow", "attach", "detach", "begin", "open"],
)
def test_a_frame_that_fits_nothing_is_survived_or_ends_the_connection(sync: SyncFace, body: bytes) -> None:
    peer, heard = upset(sync, frame(body, channel=1))
    peer.do(lambda: peer.connections[0].write_raw(frame(described(0x18, []))))
    heard.first()
    assert len(heard.calls) == 1


def test_a_frame_larger_than_the_limit_is_refused_before_it_is_read(sync: SyncFace) -> None:
    """amqp.maxFrameSize: memory stays bounded although the peer announces 2 GB and starts to send them."""
    tracemalloc.start()
    try:
        peer, heard = upset(sync, struct.pack(">IBBH", 2**31 - 1, 2, 0, 0))
        chunk = bytes(1 << 20)
        for _ in range(20):
            if heard.calls:
                break
            peer.do(lambda: peer.connections[0].alive and peer.connections[0].write_raw(chunk))
        assert isinstance(heard.first(), ConnectionLostException)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 << 20


@pytest.mark.parametrize("answer", [None, [], [b"short", 1, 2], "text", 5])
def test_a_declare_answered_with_nonsense_fails_the_session(sync: SyncFace, answer: Any) -> None:
    """S76a: an error, not a hang."""

    def nonsense(transfer: Any) -> None:
        transfer.delivery.local.data = answer if isinstance(answer, list) else None
        transfer.answer(0x33 if isinstance(answer, list) else 0x24)

    peer = sync.peer(on_declare=nonsense)
    connection = sync.connect(peer, "jms.requestTimeout=3000")
    if answer == [b"short", 1, 2]:  # it names an id; an engine may overlook the rest or end the connection
        with suppress(ConnectionLostException):
            connection.create_session(0)
        return
    with pytest.raises(JMSException):
        connection.create_session(0)
