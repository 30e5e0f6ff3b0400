"""Dead letters that ActiveMQ Classic would discard over AMQP: copied first, and nothing is lost when that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proton
import pytest
from peer import accepted, dropped, modified, rejected, text, unanswered
from peer_faces import Face, Told
from proton import Condition, Link
from test_peer_ack import ACCEPTED, MODIFIED, REJECTED, each

from pyjmsack import AckMode, Queue

INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE
CLASSIC = "broker=classic-6"
Q = Queue("q")


def volatile(body: str, **fields: Any) -> bytes:
    """Encode a message that is not persistent."""
    return bytes(proton.Message(body, **fields).encode())


def test_a_copy_is_confirmed_before_the_original_is_accepted_and_all_is_closed(face: Face) -> None:
    """S118: without its expiry, with its properties."""
    expiring = {"ttl": 60, "expiry_time": 2_000_000_000, "properties": {"color": "red"}, "priority": 7}
    peer = face.peer(messages=[volatile("bad", **expiring)], on_transfer=unanswered)
    connection = face.connect(peer, CLASSIC)
    connection.create_session(INDIVIDUAL).create_consumer(Q).receive(60).reject()
    (copy,) = peer.wait_transfers(1)
    closing = face.background(connection.close)
    assert (copy.link.link.remote_target.address, copy.body) == ("queue://ActiveMQ.DLQ", "bad")
    message = copy.message
    assert (message.ttl, message.expiry_time, message.priority, message.properties) == (0, 0, 7, {"color": "red"})
    assert each(peer) == []
    peer.answer(0, accepted)
    closing.result(timeout=60)
    assert each(peer) == [(0, ACCEPTED)]


@pytest.mark.parametrize("answer", [rejected("amqp:unauthorized-access"), modified], ids=["rejected", "modified"])
def test_a_message_whose_copy_is_refused_comes_again(face: Face, answer: Any) -> None:
    """S118."""
    peer = face.peer(messages=[volatile("bad")], on_transfer=answer)
    face.session(peer, CLASSIC, mode=INDIVIDUAL).create_consumer(Q).receive(60).reject()
    peer.wait_frames("disposition")
    assert each(peer) == [(0, MODIFIED)]


def test_a_message_whose_copies_are_refused_waits_after_ten_deliveries(face: Face) -> None:
    """S118: Classic may refuse a copy and keep it, so the queue of the dead letters would fill up. Other messages whose
    copies are refused come again."""
    peer = face.peer(
        messages=[volatile("a", delivery_count=9), volatile("b", delivery_count=10), volatile("c")],
        on_transfer=modified,
    )
    consumer = face.session(peer, CLASSIC, mode=INDIVIDUAL).create_consumer(Q)
    for number in range(3):
        consumer.receive(60).reject()
        peer.wait_transfers(number + 1)
    face.until(lambda: len(each(peer)) == 2)
    consumer.close()
    assert each(peer) == [(0, MODIFIED), (2, MODIFIED)]


@pytest.mark.option("amqp.deadLetterQueue", "amqp")
def test_a_message_comes_again_where_nobody_may_write_dead_letters(face: Face) -> None:
    """S118."""

    def refuse(link: Link) -> Condition | None:
        return Condition("amqp:unauthorized-access") if link.remote_target.address == "queue://dead" else None

    peer = face.peer(messages=[volatile("bad")], refuse_attach=refuse)
    session = face.session(peer, CLASSIC, "amqp.deadLetterQueue=dead", mode=INDIVIDUAL)
    session.create_consumer(Q).receive(60).reject()
    peer.wait_frames("disposition")
    assert each(peer) == [(0, MODIFIED)]


def test_a_message_is_not_accepted_when_the_connection_is_lost_before_its_copy_is_confirmed(face: Face) -> None:
    """S118, S128."""
    lost = Told()
    peer = face.peer(messages=[volatile("bad")], on_transfer=dropped)
    connection = face.connect(peer, CLASSIC)
    connection.exception_listener = lost
    connection.create_session(INDIVIDUAL).create_consumer(Q).receive(60).reject()
    lost.first()
    assert each(peer) == []


@pytest.mark.parametrize(("broker", "payload"), [("classic-6", text("bad")), ("artemis", volatile("bad"))])
def test_what_the_broker_dead_letters_itself_is_not_copied(face: Face, broker: str, payload: bytes) -> None:
    """S118."""
    peer = face.peer(messages=[payload])
    face.session(peer, f"broker={broker}", mode=INDIVIDUAL).create_consumer(Q).receive(60).reject()
    peer.wait_frames("disposition")
    assert each(peer) == [(0, REJECTED)]
    assert peer.all("transfer") == []


@pytest.mark.parametrize(
    ("broker", "queue"), [("classic-6", "ActiveMQ.DLQ"), ("artemis", "DLQ"), ("artemis", "DLQ::DLQ")]
)
@pytest.mark.parametrize("payload", [text("bad"), volatile("bad")])
def test_a_message_that_is_rejected_out_of_the_dead_letter_queue_stays_there(
    face: Face, broker: str, queue: str, payload: bytes
) -> None:
    """S118: it came again at once, on Classic as a copy of itself, without end."""
    peer = face.peer(messages=[payload, text("good")])
    consumer = face.session(peer, f"broker={broker}", mode=INDIVIDUAL).create_consumer(Queue(queue))
    consumer.receive(60).reject()
    consumer.receive(60).accept()
    peer.wait_frames("disposition")
    assert each(peer) == [(1, ACCEPTED)]
    assert peer.all("transfer") == []


@pytest.mark.parametrize("encode", [text, volatile])
@pytest.mark.parametrize(
    "message_id",
    ["x" * 65_536, "\u00e4" * 32_768, "\U0001f600" * 10_923, b"x" * 32_767],
    ids=["ascii", "two-bytes", "six-bytes", "binary"],
)
def test_a_rejected_message_whose_id_classic_cannot_write_waits_and_the_next_one_comes_s118(
    face: Face, encode: Callable[..., bytes], message_id: str | bytes
) -> None:
    """Classic closed the consumer and delivered the message again, so a listener got almost nothing else."""
    peer = face.peer(messages=[encode("bad", id=message_id), text("good")])
    consumer = face.session(peer, CLASSIC, mode=INDIVIDUAL).create_consumer(Q)
    consumer.receive(60).reject()
    consumer.receive(60).accept()
    peer.wait_frames("disposition")
    assert each(peer) == [(1, ACCEPTED)]
    assert peer.all("transfer") == []


@pytest.mark.parametrize(("broker", "size"), [("classic-6", 65_535), ("artemis", 65_536)])
def test_a_rejected_message_whose_id_the_broker_can_write_is_refused(face: Face, broker: str, size: int) -> None:
    """S118."""
    peer = face.peer(messages=[text("bad", id="x" * size)])
    face.session(peer, f"broker={broker}", mode=INDIVIDUAL).create_consumer(Q).receive(60).reject()
    peer.wait_frames("disposition")
    assert each(peer) == [(0, REJECTED)]


@pytest.mark.option("amqp.deadLetterQueue", "amqp")
def test_a_message_stays_in_a_dead_letter_queue_with_a_name_of_its_own(face: Face) -> None:
    """S118."""
    peer = face.peer(messages=[text("bad"), text("good")])
    session = face.session(peer, "broker=artemis", "amqp.deadLetterQueue=orders.dead", mode=INDIVIDUAL)
    consumer = session.create_consumer(Queue("orders.dead"))
    consumer.receive(60).reject()
    consumer.receive(60).accept()
    peer.wait_frames("disposition")
    assert each(peer) == [(1, ACCEPTED)]


def test_what_nobody_can_read_in_the_dead_letter_queue_is_not_copied_again_and_again(face: Face) -> None:
    """S118, S166: it stays there, and what is behind it arrives."""
    unreadable = b"\x00\x53\x77\xa1\x09bad"
    peer = face.peer(messages=[unreadable, text("good")])
    consumer = face.session(peer, CLASSIC, mode=INDIVIDUAL).create_consumer(Queue("ActiveMQ.DLQ"))
    consumer.receive(60).accept()
    peer.wait_frames("disposition")
    assert each(peer) == [(1, ACCEPTED)]
    assert peer.all("transfer") == []
