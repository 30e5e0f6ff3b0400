"""Credit on the wire: rule S53, prefetch 1, pull, drain (S49-S53)."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from peer import Peer, text
from peer_faces import AioFace, Face, Told
from peer_frames import described, transfer
from proton import Message, uint

from pyjmsack import ConnectionLostException, IllegalStateException, JMSException, Queue, RequestTimedOutException

Q = Queue("q")


def prefetch(size: int) -> Queue:
    return Queue(f"q?consumer.prefetchSize={size}")


def credits(peer: Peer) -> list[tuple[int, int, bool]]:
    """Return delivery-count, link-credit and drain of every flow. A drain that was asked for again counts once, because
    a peer on a busy machine may answer late."""
    flows = [(f["delivery-count"], f["link-credit"], bool(f["drain"])) for f in peer.all("flow")]
    return [flow for flow, last in zip(flows, [None, *flows], strict=False) if flow != last or not flow[2]]


def buffered(consumer: Any, number: int, face: Face) -> None:
    """Wait until the consumer has that many messages in its buffer."""
    face.until(lambda: consumer.stats.buffered == number)


def numbered(number: int) -> list[bytes]:
    return [text(str(n)) for n in range(number)]


# -- push -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_a_started_consumer_opens_a_window_of_its_prefetch(face: Face, size: int) -> None:
    """S51."""
    peer = face.peer()
    face.session(peer).create_consumer(prefetch(size))
    peer.wait_frames("flow")
    assert credits(peer) == [(0, size, False)]


def test_no_credit_is_given_before_start(face: Face) -> None:
    """S120."""
    peer = face.peer(messages=numbered(1))
    connection = face.connect(peer, start=False)
    session = connection.create_session()
    consumer = session.create_consumer(Q)
    assert consumer.receive(0) is None
    assert consumer.receive(0.05) is None
    face.barrier(peer, session)
    assert peer.all("flow") == []
    connection.start()
    assert consumer.receive(60).text == "0"


def test_a_full_prefetch_is_topped_up_when_it_is_down_to_seven_tenths(face: Face) -> None:
    """S53: credit 0 <= 5, and 10 are buffered, so nothing until 7 are left."""
    peer = face.peer(messages=numbered(10))
    session = face.session(peer, mode=2)
    consumer = session.create_consumer(prefetch(10))
    buffered(consumer, 10, face)
    for _ in range(2):
        consumer.receive(60)
        face.barrier(peer, session)
    assert credits(peer) == [(0, 10, False)]
    consumer.receive(60)
    peer.wait_frames("flow", 2)
    assert credits(peer) == [(0, 10, False), (10, 3, False)]


def test_a_trickle_is_topped_up_when_credit_is_down_to_half(face: Face) -> None:
    """S53: nothing is buffered, so credit alone decides, at 5."""
    peer = face.peer()
    session = face.session(peer, mode=2)
    consumer = session.create_consumer(prefetch(10))
    for number in range(4):
        peer.deliver(text(str(number)))
        assert consumer.receive(60).text == str(number)
    face.barrier(peer, session)
    assert credits(peer) == [(0, 10, False)]
    peer.deliver(text("4"))
    assert consumer.receive(60).text == "4"
    peer.wait_frames("flow", 2)
    assert credits(peer) == [(0, 10, False), (5, 10, False)]


def test_delivered_messages_that_nobody_acknowledged_hold_no_credit(face: Face) -> None:
    """S53, S56: a CLIENT consumer never stalls by itself."""
    peer = face.peer(messages=numbered(50))
    consumer = face.session(peer, mode=2).create_consumer(prefetch(10))
    assert [consumer.receive(60).text for _ in range(50)] == [str(n) for n in range(50)]
    assert peer.all("disposition") == []


def test_the_buffer_never_exceeds_the_prefetch(face: Face) -> None:
    """S49, S53: credit and buffer together."""
    peer = face.peer(messages=numbered(200))
    consumer = face.session(peer).create_consumer(prefetch(10))
    for _ in range(100):
        consumer.receive(60)
        assert consumer.stats.buffered <= 10
    sent = 200 - len(peer.messages)
    assert sent <= 110
    assert all(credit <= 10 for _, credit, _ in credits(peer))


def test_prefetch_1_gets_one_and_the_next_after_it_was_handed_out(face: Face) -> None:
    """S53."""
    peer = face.peer(messages=numbered(2))
    session = face.session(peer, mode=2)
    consumer = session.create_consumer(prefetch(1))
    buffered(consumer, 1, face)
    face.barrier(peer, session)
    assert credits(peer) == [(0, 1, False)]
    consumer.receive(60)
    peer.wait_frames("flow", 2)
    assert credits(peer) == [(0, 1, False), (1, 1, False)]


def test_a_listener_is_fed_by_the_same_rule(face: Face) -> None:
    """S53."""
    peer = face.peer(messages=numbered(30))
    consumer = face.session(peer).create_consumer(prefetch(10))
    told = Told()
    consumer.message_listener = told
    assert [call[0].text for call in told.wait(30)] == [str(n) for n in range(30)]
    assert all(credit <= 10 for _, credit, _ in credits(peer))


def test_stop_keeps_what_is_buffered_and_start_gives_it_s120(face: Face) -> None:
    peer = face.peer(messages=numbered(3))
    connection = face.connect(peer)
    consumer = connection.create_session().create_consumer(prefetch(10))
    buffered(consumer, 3, face)
    connection.stop()
    assert consumer.receive(0) is None
    connection.start()
    assert [consumer.receive(60).text for _ in range(3)] == ["0", "1", "2"]


# -- an empty buffer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_an_empty_buffer_is_drained_once_before_none_is_returned(face: Face, timeout: float) -> None:
    """Catalogue 24; then the window is opened again."""
    peer = face.peer()
    consumer = face.session(peer).create_consumer(prefetch(10))
    peer.wait_frames("flow")
    assert consumer.receive(timeout) is None
    face.until(lambda: len(credits(peer)) == 3)
    drained = 10
    assert credits(peer) == [(0, 10, False), (0, 10, True), (drained, 10, False)]


def test_a_message_that_a_drain_brings_is_returned(face: Face) -> None:
    """Catalogue 24: the broker has it although it did not push it yet."""
    peer = face.peer()
    consumer = face.session(peer).create_consumer(prefetch(10))
    peer.wait_frames("flow")
    peer.do(lambda: peer.messages.append(text("there")))
    assert consumer.receive(0).text == "there"


@pytest.mark.parametrize(
    ("option", "timeout"), [("jms.receiveNoWaitLocalOnly", 0), ("jms.receiveLocalOnly", 0.05)], ids=["nowait", "timed"]
)
def test_local_only_does_not_ask_the_broker(face: Face, option: str, timeout: float) -> None:
    """Catalogue 25, A.1 `jms.drainTimeout`."""
    peer = face.peer()
    session = face.session(peer, f"{option}=true")
    consumer = session.create_consumer(prefetch(10))
    assert consumer.receive(timeout) is None
    face.barrier(peer, session)
    assert credits(peer) == [(0, 10, False)]


@pytest.mark.option("amqp.drainTimeout", "amqp")
@pytest.mark.parametrize("size", [10, 0])
@pytest.mark.parametrize("timeout", [0, 0.05])
def test_a_drain_that_is_never_answered_closes_the_consumer(face: Face, timeout: float, size: int) -> None:
    """Catalogue 25: a time-out error, the link is closed, and the consumer says so from then on."""
    peer = face.peer(silent={"drain"})
    connection = face.connect(peer, "amqp.drainTimeout=100")
    session = connection.create_session()
    consumer = session.create_consumer(prefetch(size))
    with pytest.raises(RequestTimedOutException, match=r"amqp\.drainTimeout"):
        consumer.receive(timeout)
    (detach,) = peer.wait_frames("detach")
    assert detach["closed"] is True
    with pytest.raises(JMSException):
        consumer.receive(0)
    session.create_producer(Q).send("the session lives")
    assert peer.connections[0].alive


# -- pull -------------------------------------------------------------------------------------------------------


def test_prefetch_0_gives_no_credit_before_a_receive(face: Face) -> None:
    """S50."""
    peer = face.peer(messages=numbered(1))
    session = face.session(peer)
    session.create_consumer(prefetch(0))
    face.barrier(peer, session)
    assert peer.all("flow") == []


def test_a_blocking_pull_asks_for_one_and_waits(face: Face) -> None:
    """S50."""
    peer = face.peer()
    session = face.session(peer)
    consumer = session.create_consumer(prefetch(0))
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    assert credits(peer) == [(0, 1, False)]
    peer.deliver(*numbered(2))
    assert receiving.result(60).text == "0"
    assert credits(peer) == [(0, 1, False)]
    assert consumer.stats.buffered == 0


def test_each_pull_asks_for_one(face: Face) -> None:
    """S50."""
    peer = face.peer(messages=numbered(3))
    consumer = face.session(peer).create_consumer(prefetch(0))
    assert [consumer.receive(60).text for _ in range(3)] == ["0", "1", "2"]
    assert credits(peer) == [(0, 1, False), (1, 1, False), (2, 1, False)]


def test_a_pull_without_wait_is_one_credit_with_drain(face: Face) -> None:
    """S50."""
    peer = face.peer()
    consumer = face.session(peer).create_consumer(prefetch(0))
    assert consumer.receive(0) is None
    assert credits(peer) == [(0, 1, True)]
    peer.do(lambda: peer.messages.append(text("x")))
    assert consumer.receive_nowait().text == "x"
    assert credits(peer) == [(0, 1, True), (1, 1, True)]


def test_a_timed_pull_drains_at_its_end_and_leaves_no_credit(face: Face) -> None:
    """S50: a message that came later would be lost to others in our buffer."""
    peer = face.peer()
    session = face.session(peer)
    consumer = session.create_consumer(prefetch(0))
    assert consumer.receive(0.05) is None
    assert credits(peer) == [(0, 1, False), (0, 1, True)]
    peer.do(lambda: peer.messages.append(text("x")))
    face.barrier(peer, session)
    assert len(peer.messages) == 1
    assert consumer.receive(60).text == "x"


def test_a_timed_pull_gets_a_message_that_comes_in_time(face: Face) -> None:
    peer = face.peer()
    consumer = face.session(peer).create_consumer(prefetch(0))
    receiving = face.background(consumer.receive, 10)
    peer.wait_frames("flow")
    peer.deliver(text("x"))
    assert receiving.result(60).text == "x"


def test_a_pull_consumer_refuses_a_listener_unless_allowed(face: Face) -> None:
    """S9."""
    peer = face.peer()
    session = face.session(peer)
    with pytest.raises(IllegalStateException, match="allowPullListener"):
        session.create_consumer(prefetch(0)).message_listener = Told()


def test_an_allowed_pull_listener_is_fed_one_by_one(face: Face) -> None:
    """S9."""
    peer = face.peer(messages=numbered(3))
    consumer = face.session(peer).create_consumer(Queue("q?consumer.prefetchSize=0&consumer.allowPullListener=true"))
    told = Told()
    consumer.message_listener = told
    assert [call[0].text for call in told.wait(3)] == ["0", "1", "2"]
    peer.wait_frames("flow", 4)
    assert {credit for _, credit, _ in credits(peer)} == {1}


def test_a_pull_on_a_stopped_connection_asks_nobody(face: Face) -> None:
    """S120."""
    peer = face.peer(messages=numbered(1))
    connection = face.connect(peer, start=False)
    session = connection.create_session()
    consumer = session.create_consumer(prefetch(0))
    assert consumer.receive(0.02) is None
    face.barrier(peer, session)
    assert peer.all("flow") == []


def test_a_pull_that_waits_on_a_stopped_connection_goes_out_at_start(face: Face) -> None:
    """S120."""
    peer = face.peer(messages=numbered(1))
    connection = face.connect(peer, start=False)
    consumer = connection.create_session().create_consumer(prefetch(0))
    receiving = face.background(consumer.receive, 10)
    connection.start()
    assert receiving.result(60).text == "0"


def test_a_drain_ends_with_the_connection(face: Face) -> None:
    """S128: an unanswered drain does not outlive it."""
    peer = face.peer(silent={"drain"})
    consumer = face.session(peer).create_consumer(prefetch(10))
    peer.wait_frames("flow")
    receiving = face.background(consumer.receive, 0)
    peer.wait_frames("flow", 2)
    peer.drop()
    with pytest.raises(ConnectionLostException):
        receiving.result(60)


@pytest.mark.parametrize("destination", [prefetch(10), prefetch(0)], ids=["push", "pull"])
def test_a_cancelled_receive_loses_no_message_and_acknowledges_none(aio: AioFace, destination: Queue) -> None:
    """Catalogue 98."""
    peer = aio.peer()
    session = aio.session(peer)
    consumer = session.create_consumer(destination)

    async def give_up() -> None:
        task = asyncio.ensure_future(consumer._target.receive())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    aio.call(give_up)
    peer.wait_frames("flow")
    peer.deliver(text("kept"))
    aio.barrier(peer, session)
    assert peer.all("disposition") == []
    assert consumer.receive(60).text == "kept"


def test_a_consumer_with_more_than_it_asked_for_closes_without_a_drain(face: Face) -> None:
    """Catalogue 24: its credit is below zero, nothing is on its way, and an answer would never bring it to zero."""
    peer = face.peer()
    consumer = face.session(peer, mode=2).create_consumer(prefetch(1))
    peer.wait_frames("flow")
    peer.do(lambda: peer.connections[0].write_raw(transfer(0, text("1")) + transfer(1, text("2"))))
    buffered(consumer, 2, face)
    consumer.close()
    assert not any(drain for _, _, drain in credits(peer))


# -- an answer between two frames of a message ------------------------------------------------------------------


def answer(count: int, handle: int = 0) -> bytes:
    """Return the Flow frame that answers a drain and gives all credit back."""
    fields = [uint(0), uint(1 << 20), uint(0), uint(1 << 20), uint(handle), uint(count), uint(0), None, True]
    body = described(0x13, fields)
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 1) + body


def wait_limit(peer: Peer, limit: int, *, drain: bool) -> None:
    """Wait until the client allows messages up to this count or a larger one. A drain may be repeated meanwhile."""
    peer.wait(lambda: any(count + credit >= limit and drains is drain for count, credit, drains in credits(peer)))


@pytest.mark.parametrize("options", ["amqp.engine=python", "amqp.engine=proton", "amqp.spoolOver=10"])
@pytest.mark.parametrize("answered", [True, False])
def test_the_rest_of_a_message_comes_although_an_answer_took_its_credit_s53(
    face: Face, options: str, answered: bool
) -> None:
    """Artemis may answer a drain between two frames of a message. It then counts the message after its last frame, and
    sends this frame only when it gets credit again."""
    peer = face.peer(silent={"drain"})
    consumer = face.session(peer, options).create_consumer(prefetch(10))
    connection, payload = peer.connections[0], bytes(Message(b"a body in three frames", inferred=True).encode())
    receiving = face.background(consumer.receive, 0)
    wait_limit(peer, 10, drain=True)
    peer.do(lambda: connection.write_raw(transfer(0, payload[:30], more=True) + answer(10)))
    wait_limit(peer, 11, drain=True)
    peer.do(lambda: connection.write_raw(transfer(0, payload[30:40], more=True) + answer(11)))
    wait_limit(peer, 12, drain=True)
    peer.do(lambda: connection.write_raw(transfer(0, payload[40:]) + (answer(12) if answered else b"")))
    assert receiving.result(60).data == b"a body in three frames"
    receiving = face.background(consumer.receive, 60)
    wait_limit(peer, 12 + 9, drain=False)  # the client may count the message that was not taken yet
    peer.do(lambda: connection.write_raw(transfer(1, text("next"))))
    assert receiving.result(60).text == "next"


@pytest.mark.parametrize("options", ["amqp.engine=python", "amqp.engine=proton"])
def test_the_rest_of_a_message_comes_although_a_late_answer_took_its_credit_s53(face: Face, options: str) -> None:
    """Two messages end the drain before its answer comes. The late answer takes the credit that was granted since."""
    peer = face.peer(silent={"drain"})
    consumer = face.session(peer, options).create_consumer(prefetch(2))
    connection, payload = peer.connections[0], text("in two frames")
    receiving = face.background(consumer.receive, 0)
    wait_limit(peer, 2, drain=True)
    peer.do(lambda: connection.write_raw(transfer(0, text("1")) + transfer(1, text("2"))))
    assert [receiving.result(60).text, consumer.receive(0).text] == ["1", "2"]
    receiving = face.background(consumer.receive, 60)
    wait_limit(peer, 4, drain=False)
    peer.do(lambda: connection.write_raw(transfer(2, payload[:20], more=True) + answer(4)))
    wait_limit(peer, 5, drain=False)
    peer.do(lambda: connection.write_raw(transfer(2, payload[20:])))
    assert receiving.result(60).text == "in two frames"
