"""Large messages that arrive in pieces and are kept in files: order, loss, limits, a disk that fails (S168)."""

from __future__ import annotations

import struct
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import proton
import pytest
from peer import PATIENCE, text
from peer_faces import AioFace, Face, Told
from peer_frames import described, transfer
from proton import uint
from test_peer_ack import ACCEPTED, MODIFIED, UNDELIVERABLE, each

from pyjmsack import AckMode, JMSException, Queue
from pyjmsack.io.driver import Driver
from pyjmsack.io.spooling import SpoolFile

Q = Queue("q")
OVER = "amqp.spoolOver=100000"
BODY = bytes(range(256)) * 4096


def large(body: bytes = BODY, **fields: Any) -> bytes:
    fields = {"id": "ID:large", "durable": True, **fields}
    return bytes(proton.Message(body, inferred=True, **fields).encode())


def saved(message: Any, target: Any) -> int:
    """Save, in either face."""
    result = message.save_to(target)
    size: int = result.result(PATIENCE) if isinstance(result, Future) else result
    return size


class Disk:
    """Stands for the disk: writes wait until the test lets them go, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: OSError | None = None) -> None:
        self.go_on = threading.Event()
        self.began = threading.Event()
        write = SpoolFile.write

        def held(file: SpoolFile, position: int, data: bytes) -> None:
            self.began.set()
            assert self.go_on.wait(PATIENCE)
            if error is not None:
                raise error
            write(file, position, data)

        monkeypatch.setattr(SpoolFile, "write", held)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Any:
    held = Disk(monkeypatch)
    yield held
    held.go_on.set()


def in_file(message: Any) -> bool:
    return type(getattr(message, "_target", message)).__name__ == "SpooledBytesMessage"


@pytest.mark.option("amqp.spoolOver", "amqp")
def test_a_large_body_is_saved_read_in_chunks_and_loaded(face: Face, tmp_path: Path) -> None:
    """S168: and it is still there when the message was settled and the connection is gone."""
    peer = face.peer(messages=[text("before"), large(properties={"n": 1}), text("behind")])
    connection = face.connect(peer, OVER)
    consumer = connection.create_session().create_consumer(Q)
    before, message, behind = (consumer.receive(timeout=PATIENCE) for _ in range(3))
    assert (before.text, behind.text, message.properties["n"]) == ("before", "behind", 1)
    assert in_file(message)
    assert message.body_length == len(BODY)
    connection.close()
    path = tmp_path / "body"
    path.write_bytes(b"older")
    assert saved(message, path) == len(BODY)
    assert path.read_bytes() == BODY
    assert [one.name for one in tmp_path.iterdir()] == ["body"]
    with (tmp_path / "open").open("wb") as file:
        file.write(b">")
        saved(message, file)
    assert (tmp_path / "open").read_bytes() == b">" + BODY
    chunks = message.chunks()
    assert b"".join(chunks) == BODY
    assert max(map(len, chunks)) == 1 << 18
    assert message.data == BODY
    assert message.read_int() == 0x00010203
    assert saved(message, path) == len(BODY)


def test_async_for_reads_a_large_body_in_chunks(aio: AioFace) -> None:
    """S168: on a thread, so that the loop does not wait for the disk."""
    peer = aio.peer(messages=[large(), b"\x00\x53\x75\xa0\x03abc"])
    consumer = aio.session(peer, OVER).create_consumer(Q)
    spooled, small = (consumer.receive(timeout=PATIENCE)._target for _ in range(2))

    async def gather(message: Any) -> bytes:
        return b"".join([chunk async for chunk in message.chunks()])

    assert aio.call(gather, spooled) == BODY
    assert aio.call(gather, small) == b"abc"


@pytest.mark.parametrize("option", ["amqp.spoolOver=-1", "amqp.spoolOver=2000000"])
def test_a_body_that_is_not_over_the_threshold_stays_in_memory(face: Face, option: str, tmp_path: Path) -> None:
    """S168: with the same methods."""
    peer = face.peer(messages=[large()])
    message = face.session(peer, option).create_consumer(Q).receive(timeout=PATIENCE)
    assert not in_file(message)
    assert saved(message, tmp_path / "body") == len(BODY)
    assert (tmp_path / "body").read_bytes() == BODY
    assert b"".join(message.chunks()) == BODY


@pytest.mark.parametrize("body", ["x" * 300_000, {"k": "x" * 300_000}], ids=["text", "map"])
def test_another_body_than_bytes_is_gathered_in_memory(face: Face, body: Any) -> None:
    """S168: it is decoded as a whole."""
    peer = face.peer(messages=[text(body), text("behind")])
    consumer = face.session(peer, OVER).create_consumer(Q)
    assert consumer.receive(timeout=PATIENCE).body == body
    assert consumer.receive(timeout=PATIENCE).body == "behind"


def test_messages_behind_a_large_one_wait_for_the_disk_and_the_neighbour_does_not(face: Face, disk: Disk) -> None:
    """S168: the order of a link stays; another consumer of the session gets its messages."""
    peer = face.peer()
    session = face.session(peer, OVER)
    consumer, neighbour = session.create_consumer(Q), session.create_consumer(Queue("other"))
    peer.wait_frames("flow", 2)
    peer.deliver(large(), text("behind"))
    assert disk.began.wait(PATIENCE)
    peer.deliver(text("for the neighbour"), consumer=1)
    assert neighbour.receive(timeout=PATIENCE).text == "for the neighbour"
    assert consumer.stats.buffered == 0
    disk.go_on.set()
    assert consumer.receive(timeout=PATIENCE).body_length == len(BODY)
    assert consumer.receive(timeout=PATIENCE).text == "behind"


def test_nothing_is_read_while_much_waits_for_the_disk(face: Face, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """S168: the memory stays bounded, and the rest arrives when the disk goes on."""
    told, pause = Told(), Driver.pause

    def paused(driver: Driver) -> None:
        pause(driver)
        told(driver._deaf)

    monkeypatch.setattr(Driver, "pause", paused)
    peer = face.peer()
    consumer = face.session(peer, OVER).create_consumer(Q)
    peer.wait_frames("flow")
    peer.deliver(large(BODY * 20), text("behind"))
    assert told.first()
    assert consumer.stats.buffered == 0
    disk.go_on.set()
    assert consumer.receive(timeout=PATIENCE).body_length == 20 * len(BODY)
    assert consumer.receive(timeout=PATIENCE).text == "behind"


def test_a_drain_waits_for_a_message_that_is_not_on_the_disk_yet(face: Face, disk: Disk) -> None:
    """S50, S168: a receive that asks the broker finds the message that its last credit brought."""
    peer = face.peer()
    consumer = face.session(peer, OVER, "jms.prefetchPolicy.all=1").create_consumer(Q)
    peer.wait_frames("flow")
    peer.deliver(large())
    assert disk.began.wait(PATIENCE)
    asking = face.background(consumer.receive_nowait)
    disk.go_on.set()
    assert asking.result(PATIENCE).body_length == len(BODY)


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
def test_a_full_disk_closes_the_consumer_and_the_broker_keeps_the_message(
    face: Face, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """S168: nothing is acknowledged, and another consumer goes on."""
    disk = Disk(monkeypatch, OSError(28, "No space left on device"))
    disk.go_on.set()
    peer = face.peer()
    session = face.session(peer, OVER, mode=mode)
    consumer, neighbour = session.create_consumer(Q), session.create_consumer(Queue("other"))
    peer.wait_frames("flow", 2)
    peer.deliver(large(), text("behind"))
    peer.wait_frames("detach")
    with pytest.raises(JMSException, match=r"No space left.*amqp\.spoolDirectory") as caught:
        consumer.receive(timeout=PATIENCE)
    assert isinstance(caught.value.__cause__, (OSError, JMSException))
    assert peer.all("disposition") == []
    peer.deliver(text("for the neighbour"), consumer=1)
    assert neighbour.receive(timeout=PATIENCE).text == "for the neighbour"


@pytest.mark.option("amqp.spoolDirectory", "amqp")
def test_the_directory_can_be_chosen(face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S168: amqp.spoolDirectory; one that does not exist closes the consumer."""
    asked = []
    make = tempfile.TemporaryFile

    def note(*arguments: Any, **named: Any) -> Any:
        asked.append(named["dir"])
        return make(*arguments, **named)

    monkeypatch.setattr(tempfile, "TemporaryFile", note)
    peer = face.peer(messages=[large()])
    message = face.session(peer, OVER, f"amqp.spoolDirectory={tmp_path}").create_consumer(Q).receive(timeout=PATIENCE)
    assert message.data == BODY
    assert asked == [str(tmp_path)]
    gone = face.session(face.peer(messages=[large()]), OVER, f"amqp.spoolDirectory={tmp_path}/none")
    with pytest.raises(JMSException, match=r"cannot be kept in a temporary file.*none"):
        gone.create_consumer(Q).receive(timeout=PATIENCE)


def test_a_large_message_over_the_limit_is_refused_alone(face: Face) -> None:
    """S166, S168: as a small limit does."""
    peer = face.peer(messages=[text("before"), large(), text("behind")])
    consumer = face.session(peer, OVER, "jms.maxMessageSize=500000").create_consumer(Q)
    assert [consumer.receive(timeout=PATIENCE).text for _ in range(2)] == ["before", "behind"]
    peer.wait(lambda: (1, UNDELIVERABLE) in each(peer), "the refusal")


def torn(kind: str) -> bytes:
    whole = large()
    return {
        "cut": whole[:-10],
        "with another behind it": whole + text("other"),
        "with bytes behind it": whole + b"\x01garbage",
        "of 70,000 sections": large(b"x" * 1_200_000) + b"\x00\x53\x75\xa0\x01x" * 70_000,
    }[kind]


@pytest.mark.parametrize("kind", ["cut", "with another behind it", "with bytes behind it", "of 70,000 sections"])
def test_a_damaged_large_message_harms_no_other(face: Face, kind: str) -> None:
    """S166: it is refused, or given back as failed if the transfer was torn."""
    peer = face.peer(messages=[torn(kind), text("behind")])
    consumer = face.session(peer, OVER).create_consumer(Q)
    assert consumer.receive(timeout=PATIENCE).text == "behind"
    state = MODIFIED if kind == "with another behind it" else UNDELIVERABLE
    peer.wait(lambda: (0, state) in each(peer), "the refusal")


def test_a_body_of_several_sections_and_a_footer_is_one_body(face: Face, tmp_path: Path) -> None:
    """S168: AMQP 1.0 3.2.6."""
    more = b"\x00\x53\x75\xa0\x03abc" + b"\x00\x80" + bytes(7) + b"\x75\xb0\x00\x00\x00\x02de"
    footer = b"\x00\x53\x78\xc1\x06\x02\xa3\x01k\x54\x01"
    peer = face.peer(messages=[large() + more + footer, text("behind")])
    consumer = face.session(peer, OVER).create_consumer(Q)
    message = consumer.receive(timeout=PATIENCE)
    assert in_file(message)
    saved(message, tmp_path / "body")
    assert (tmp_path / "body").read_bytes() == BODY + b"abcde"
    assert consumer.receive(timeout=PATIENCE).text == "behind"


def test_a_connection_that_is_lost_in_the_middle_brings_the_message_again(face: Face, tmp_path: Path) -> None:
    """S95, S168: whole, once, and not counted as a delivery of the part."""
    first, second = face.peer(), face.peer(messages=[large()])
    session = face.failover(first, second, options=f"nested.{OVER}").create_session()
    consumer = session.create_consumer(Q)
    first.wait_frames("flow")
    half = large()[: len(BODY) // 2]
    first.do(lambda: first.connections[0].write_raw(transfer(0, half[:60_000], more=True)))
    for start in range(60_000, len(half), 60_000):
        piece = half[start : start + 60_000]
        first.do(lambda piece=piece: first.connections[0].write_raw(transfer(0, piece, more=True)))
    first.stop_listening()
    first.drop()
    message = consumer.receive(timeout=PATIENCE)
    assert in_file(message)
    saved(message, tmp_path / "body")
    assert (tmp_path / "body").read_bytes() == BODY
    assert consumer.receive(timeout=0.01) is None


def test_without_failover_a_loss_in_the_middle_ends_the_receive(face: Face) -> None:
    """S128, S168."""
    peer = face.peer()
    consumer = face.session(peer, OVER).create_consumer(Q)
    peer.wait_frames("flow")
    receiving = face.background(consumer.receive, PATIENCE)
    for start in (0, 60_000, 120_000):
        piece = large()[start : start + 60_000]
        peer.do(lambda piece=piece: peer.connections[0].write_raw(transfer(0, piece, more=True)))
    peer.drop()
    with pytest.raises(JMSException, match=r"lost|closed"):
        receiving.result(PATIENCE)


def test_a_large_message_that_the_broker_takes_back_in_its_middle_is_no_message(face: Face) -> None:
    """AMQP 1.0 2.6.14."""
    peer = face.peer()
    consumer = face.session(peer, OVER).create_consumer(Q)
    peer.wait_frames("flow")
    pieces = [large()[start : start + 60_000] for start in range(0, 240_000, 60_000)]
    frames = [transfer(0, piece, more=True) for piece in pieces]
    peer.do(lambda: peer.connections[0].write_raw(b"".join(frames) + aborting(0) + transfer(1, text("next"))))
    assert consumer.receive(timeout=PATIENCE).text == "next"


def aborting(number: int) -> bytes:
    """Return a transfer that takes a message back."""
    fields = [uint(0), uint(number), b"%d" % number, uint(0), False, False, None, None, None, True]
    body = described(0x14, fields)
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 1) + body


def test_a_receive_does_not_wait_for_ever_for_a_disk(face: Face, disk: Disk) -> None:
    """S50, S168: amqp.drainTimeout is the limit; the broker has the message still."""
    peer = face.peer()
    consumer = face.session(peer, OVER, "amqp.drainTimeout=100").create_consumer(Q)
    peer.wait_frames("flow")
    peer.deliver(large())
    assert disk.began.wait(PATIENCE)
    with pytest.raises(JMSException, match=r"amqp\.drainTimeout"):
        consumer.receive_nowait()
    assert peer.all("disposition") == []


def test_a_large_message_is_forwarded_from_its_file(face: Face) -> None:
    """S168: a received body is the source of the message that is sent."""
    peer = face.peer(messages=[large()])
    session = face.session(peer, OVER)
    message = session.create_consumer(Q).receive(timeout=PATIENCE)
    session.create_producer(Queue("next")).send(message)
    (sent,) = peer.wait_transfers(1)
    assert bytes(sent.body) == BODY


def test_a_rejected_large_message_is_copied_with_its_body_at_classic(face: Face) -> None:
    """S118: a dead letter that Classic would discard."""
    peer = face.peer(messages=[large(durable=False, ttl=60_000)])
    session = face.session(peer, OVER, "broker=classic-6", mode=AckMode.INDIVIDUAL_ACKNOWLEDGE)
    session.create_consumer(Q).receive(timeout=PATIENCE).reject()
    (copy,) = peer.wait_transfers(1)
    assert (bytes(copy.body), copy.message.ttl) == (BODY, 0)
    peer.wait(lambda: each(peer) == [(0, ACCEPTED)], "the original is accepted")


def test_a_target_must_be_a_path_or_a_binary_file(face: Face, tmp_path: Path) -> None:
    """S168: a text never names a file, and a failure leaves nothing behind."""
    peer = face.peer(messages=[large()])
    message = face.session(peer, OVER).create_consumer(Q).receive(timeout=PATIENCE)
    with pytest.raises(JMSException, match=r"pathlib\.Path or a binary file, not str"):
        saved(message, str(tmp_path / "body"))
    with pytest.raises(OSError, match="none"):
        saved(message, tmp_path / "none" / "body")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        saved(message, tmp_path / "folder")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]
