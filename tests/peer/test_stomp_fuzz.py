"""A STOMP broker that sends nonsense: an error, soon, and no more memory than a few frames (S127-S129)."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from peer_faces import SyncFace, Told
from stomp_peer import CLASSIC, Received, StompPeer, start

from pyjmsack import AckMode, ConnectionLostException, JMSException, Queue, TextMessage

SEEDS = range(25)
QUEUE = Queue("q")
COMMANDS = ["MESSAGE", "RECEIPT", "ERROR", "CONNECTED", "message", "HELLO", ""]
HEADERS = ["subscription", "message-id", "ack", "receipt-id", "content-length", "message", "heart-beat", "expires"]
VALUES = ["", "s1", "1", "-1", "99999999999", "a\\b", "a\\", "\\\\", "x" * 70_000, "1,1", "\u00e4", "true", "NaN"]


def garbage_frame(dice: random.Random) -> bytes:
    """Return a frame, or nearly one, of random command, header lines and body."""
    lines = [f"{dice.choice(HEADERS)}{dice.choice(':::=')}{dice.choice(VALUES)}" for _ in range(dice.randrange(6))]
    end = dice.choice(["\n", "\r\n"])
    head = end.join([dice.choice(COMMANDS), *lines, "", ""])
    return head.encode() + dice.randbytes(dice.randrange(40)) + dice.choice([b"\0", b"\0\n\n", b""])


def upset(sync: SyncFace, data: bytes, *options: str) -> tuple[StompPeer, Told]:
    """Open everything, then let the broker write something, and end the connection."""
    peer = start(sync, messages=["a"])
    connection = sync.connect(peer, *options)
    connection.exception_listener = heard = Told()
    session = connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
    assert session.create_consumer(QUEUE).receive(timeout=60).text == "a"
    peer.write(data)
    return peer, heard


@pytest.mark.parametrize("seed", SEEDS)
def test_random_bytes_instead_of_an_answer_to_the_login_end_in_an_error(sync: SyncFace, seed: int) -> None:
    dice = random.Random(seed)

    def rule(peer: StompPeer, frame: Received) -> bool:
        peer.write(dice.randbytes(dice.randrange(8, 300)) + b"\n\n\0")
        return True

    with pytest.raises(JMSException):
        sync.connect(start(sync, rule=rule), "jms.connectTimeout=150")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_frames_end_in_an_error_or_are_survived(sync: SyncFace, seed: int) -> None:
    """Whatever they did, the connection ends when the broker does, it is told once, and closing returns."""
    dice = random.Random(seed)
    peer, heard = upset(sync, b"".join(garbage_frame(dice) for _ in range(8)))
    peer.drop()
    assert isinstance(heard.first(), JMSException)
    assert len(heard.calls) == 1


HOSTILE = {
    "a body of 2 GB": b"ERROR\nreceipt-id:1\ncontent-length:2147483647\n\n",
    "a length that is none": b"RECEIPT\nreceipt-id:1\ncontent-length:many\n\n\0",
    "a second CONNECTED": b"CONNECTED\nversion:1.2\n\n\0",
    "another protocol": b"AMQP\0\1\0\0\n\n\0",
    "an error for nobody": b"ERROR\nreceipt-id:77\nmessage:why\n\n\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_frame_ends_the_connection(sync: SyncFace, name: str) -> None:
    _, heard = upset(sync, HOSTILE[name])
    assert isinstance(heard.first(), ConnectionLostException)


@pytest.mark.parametrize(
    "data",
    [b"RECEIPT\nreceipt-id:77\n\n\0", b"RECEIPT\n\n\0", b"MESSAGE\nsubscription:s99\nack:1\n\nx\0", b"MESSAGE\n\nx\0"],
    ids=["receipt", "receipt-without-id", "subscription", "no-subscription"],
)
def test_a_frame_for_nobody_is_survived(sync: SyncFace, data: bytes) -> None:
    peer = start(sync, messages=["a"])
    consumer = sync.session(peer).create_consumer(QUEUE)
    assert consumer.receive(timeout=60).text == "a"
    peer.write(data)
    peer.deliver("s1", "1", "b")
    assert consumer.receive(timeout=60).text == "b"


@pytest.mark.option("stomp.maxFrameSize", "stomp")
@pytest.mark.option("stomp.maxHeaderLength", "stomp")
@pytest.mark.parametrize("start_of_frame", [b"MESSAGE\n", b"MESSAGE\nsubscription:", b"MESSAGE\nsubscription:s1\n\n"])
def test_a_message_of_any_size_is_skipped_with_memory_bounded_and_the_next_one_delivered(
    sync: SyncFace, start_of_frame: bytes
) -> None:
    """S166, stomp.maxHeaderLength, stomp.maxFrameSize: only a producer chose its size."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            peer.write(start_of_frame)
            for _ in range(200):
                peer.write(b"x" * 100_000)
            peer.write(b"\n\n\0")
            peer.deliver("s1", "1", "good")
        return frame.command == "SUBSCRIBE"

    tracemalloc.start()
    try:
        peer = start(sync, rule=rule)
        limits = "stomp.maxHeaderLength=1024", "stomp.maxFrameSize=1000000"
        session = sync.session(peer, *limits, "jms.prefetchPolicy.all=5000")  # a window with room for the 20 MB
        assert session.create_consumer(QUEUE).receive(timeout=60).text == "good"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 15 << 20
    assert peer.log("SEND", "NACK") == []


def test_a_message_without_a_name_is_left_to_the_broker_and_the_next_one_delivered(sync: SyncFace) -> None:
    """S166: no subscription in the frame says whose it is, so nobody can refuse it; it stays unacknowledged. On Classic
    such a frame is a part of a text or of a name, and ends the connection."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            peer.write(b"MESSAGE\n" + b"a:b\n" * 1001 + b"\nbad\0")
            peer.deliver("s1", "1", "good")
        return frame.command == "SUBSCRIBE"

    peer = start(sync, rule=rule)
    assert sync.session(peer).create_consumer(QUEUE).receive(timeout=60).text == "good"
    assert [frame.headers["id"] for frame in peer.wait("ACK")] == ["s1,1"]
    assert peer.log("SEND", "NACK") == []


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE])
def test_what_the_broker_would_not_take_back_as_a_copy_waits_and_takes_no_room(sync: SyncFace, mode: AckMode) -> None:
    """S118, S166: on Artemis a copy with such a head ends the connection; another subscription gets what follows."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            if frame.headers["id"] == "s1":
                peer.write(b"MESSAGE\nsubscription:s1\nmessage-id:m\na:" + b"x" * 250_000 + b"\n\nbad\0")
            else:
                peer.deliver(frame.headers["id"], "1", "good")
        return frame.command == "SUBSCRIBE"

    peer = start(sync, rule=rule)
    queue = Queue("q?consumer.prefetchSize=1")
    session = sync.connect(peer).create_session(mode)
    assert session.create_consumer(queue).receive(timeout=60).text == "good"
    assert [frame.headers["id"] for frame in peer.wait("ACK")] == ["s2,1"]
    assert peer.log("SEND", "NACK") == []


@pytest.mark.parametrize("head", ["color:a\\tb", "color:a\\"])
def test_a_message_that_cannot_be_read_is_dead_lettered_and_the_next_one_delivered(sync: SyncFace, head: str) -> None:
    """S166, S118: it is the message that is bad, not the connection."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            peer.write(f"MESSAGE\nsubscription:s1\nmessage-id:m\nack:m\npersistent:true\n{head}\n\nbad\0".encode())
            peer.deliver("s1", "1", "good")
        return frame.command == "SUBSCRIBE"

    peer = start(sync, CLASSIC, rule=rule)
    message = sync.session(peer).create_consumer(QUEUE).receive(timeout=60)
    assert isinstance(message, TextMessage)
    assert message.text == "good"
    peer.wait("NACK")
