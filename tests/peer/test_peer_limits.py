"""What a broker cannot take, and what it may not do to us: frames, sizes, credit, time (docs/security.md)."""

from __future__ import annotations

import resource
import struct
from pathlib import Path
from typing import Any

import proton
import pytest
from failover_support import Events
from peer import PATIENCE, Peer, PeerLink, text
from peer_faces import Face, SyncFace, Told
from peer_frames import described, transfer
from polling import wait_until
from proton import Condition, Link, uint, ushort

from pyjmsack import (
    ConnectionLostException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Queue,
    ResourceAllocationException,
)
from pyjmsack.providers.amqp import opening
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import EngineOptions
from pyjmsack.providers.amqp.name_sizes import ATTACH_BESIDES
from pyjmsack.providers.failover.blame import MOST_LOSSES, MOST_SILENT_LOSSES

GUILTY = Queue("guilty")


def to_guilty(link: Link) -> bool:
    return GUILTY.name in (link.remote_source.address, link.remote_target.address)


def deadly(link: Link) -> Condition | None:
    """An attach to the guilty queue ends the connection, as one that is too large does at Artemis and Classic."""
    return Condition("amqp:connection:framing-error", "frame too large") if to_guilty(link) else None


def test_an_attach_that_ends_each_connection_is_given_up_and_the_neighbour_goes_on(face: Face) -> None:
    """S104, S109: after the third time, and not 1,650 times."""
    peer = face.peer()
    peer.script.fatal_attach = deadly
    connection = face.failover(peer)
    events = Events(connection)
    session = connection.create_session()
    neighbour = session.create_producer(Queue("good"))
    with pytest.raises(ResourceAllocationException, match="3 connections"):
        session.create_producer(GUILTY)
    neighbour.send("after")
    assert events.names.count("interrupted") == 3
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]


def test_a_rebuilt_link_that_ends_each_connection_is_closed_and_the_neighbour_goes_on(face: Face) -> None:
    """S104: the next broker takes less than the first one did."""
    first, second = face.peer(), face.peer()
    second.script.fatal_attach = deadly
    connection = face.failover(first, second, options="failover.maxReconnectAttempts=20")
    session = connection.create_session()
    neighbour = session.create_producer(Queue("good"))
    guilty = session.create_consumer(GUILTY)
    first.stop_listening()
    first.drop()
    with pytest.raises(ResourceAllocationException, match="gave up this link"):
        guilty.receive(timeout=60)
    neighbour.send("after")
    assert [transfer.message.body for transfer in second.wait_transfers(1)] == ["after"]


def test_a_connection_that_is_cut_nine_times_while_one_link_is_rebuilt_alone_closes_nothing(face: Face) -> None:
    """S104: a bad network is nobody's fault. Three cuts meet the whole burst, and nine this link alone."""
    peer = face.peer()
    connection = face.failover(peer, options="failover.maxReconnectDelay=20")
    events = Events(connection)
    session = connection.create_session()
    producer = session.create_producer(Queue("good"))
    consumer = session.create_consumer(GUILTY)
    cuts = iter(range(MOST_LOSSES + MOST_SILENT_LOSSES - 1))

    def cut(link: PeerLink) -> None:
        if to_guilty(link.link) and next(cuts, None) is not None:
            link.connection.drop()

    peer.script.after_attach = cut
    peer.drop()
    events.wait("established", "interrupted", "restored")
    assert next(cuts, None) is None
    assert consumer.receive(timeout=0) is None
    producer.send("after")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]


def test_what_does_not_fit_the_frames_of_this_broker_is_refused_with_its_size(face: Face) -> None:
    """AMQP 1.0 2.3.1, 2.7.1: the broker says what it takes."""
    peer = face.peer(max_frame_size=4096)
    session = face.session(peer)
    before = len(peer.all("attach"))
    with pytest.raises(InvalidDestinationException, match=r"about 4,\d+ bytes, and this broker accepts 4,096"):
        session.create_producer(Queue("q" * 4000))
    with pytest.raises(JMSException, match=r"about 4,\d+ bytes"):
        session.create_consumer(Queue("q"), "a = '" + "x" * 4000 + "'")
    session.create_producer(Queue("q" * 3500)).send("fits")
    assert len(peer.all("attach")) == before + 1


def test_a_broker_with_tiny_frames_is_refused_because_cutting_messages_for_it_would_hold_up_others(face: Face) -> None:
    """AMQP 1.0 2.4.1 allows 512."""
    peer = face.peer(max_frame_size=512)
    with pytest.raises(
        ConnectionLostException, match=r"frames of 512 bytes \(max-frame-size\); expected at least 4,096"
    ):
        face.session(peer)


def test_an_attach_whose_answer_would_not_fit_is_refused_alone(face: Face) -> None:
    """amqp.maxFrameSize: the answer of each broker repeats the texts, and it ended the connection."""
    peer = face.peer()
    session = face.session(peer, "amqp.maxFrameSize=2000")
    before = len(peer.all("attach"))
    why = r"answer would have about 2,\d+ bytes, and amqp\.maxFrameSize allows 2,000; the {} alone has 1,9\d\d bytes"
    with pytest.raises(InvalidDestinationException, match=why.format("address")):
        session.create_producer(Queue("q" * 1900))
    with pytest.raises(InvalidSelectorException, match=why.format("selector")):
        session.create_consumer(Queue("q"), "a = '" + "x" * 1900 + "'")
    session.create_producer(Queue("q" * 1500)).send("fits")
    assert len(peer.all("attach")) == before + 1


@pytest.mark.parametrize("length", [10, 100, 255, 256, 1000, 5000])
def test_the_size_of_an_attach_is_never_larger_than_it_is_taken_for(sync: SyncFace, length: int) -> None:
    """Else one could slip through that the broker does not take."""
    peer = sync.peer()
    connection = sync.connect(peer, "amqp.vhost=")
    session = connection.create_session()
    name, selector = "q" * length, "a = '" + "x" * length + "'"
    session.create_consumer(Queue(name), selector, no_local=False)
    session.create_producer(Queue(name))
    session.create_temporary_queue()
    frames = peer.wait_frames("attach", 3)
    for frame, texts in zip(frames, (length + len(selector), length, 0), strict=True):
        assert len(frame.raw) <= texts + len(frame["name"]) + ATTACH_BESIDES


# -- what arrives -----------------------------------------------------------------------------------------------


def test_a_message_over_the_limit_is_refused_alone(face: Face) -> None:
    """S166, jms.maxMessageSize: those before and behind it arrive, and it is refused as undeliverable here."""
    peer = face.peer(messages=[text("before"), text("x" * 5000), text("y" * 200_000), text("behind")])
    consumer = face.session(peer, "jms.maxMessageSize=2048", mode=2).create_consumer(Queue("q"))
    assert [consumer.receive(timeout=60).text for _ in range(2)] == ["before", "behind"]

    def refused() -> set[int]:
        frames = peer.all("disposition")
        assert all(frame.state[0] == 0x27 and frame.state[1][:2] == [True, True] for frame in frames)
        return {n for frame in frames for n in range(frame["first"], (frame["last"] or frame["first"]) + 1)}

    peer.wait(lambda: refused() == {1, 2}, "both refused")


@pytest.mark.parametrize(("persistent", "outcome"), [(True, ["disposition"]), (False, [])])
def test_classic_gets_none_back_that_it_would_discard(face: Face, persistent: bool, outcome: list[str]) -> None:
    """S118, trap 8: what is not persistent cannot be rejected there, and too large to be copied waits for the end."""
    big = bytes(proton.Message("x" * 5000, durable=persistent).encode())
    peer = face.peer(messages=[big, text("behind")], properties={"product": "ActiveMQ", "version": "6.3.1"})
    session = face.session(peer, "jms.maxMessageSize=2048", mode=2)
    assert session.create_consumer(Queue("q")).receive(timeout=60).text == "behind"
    face.barrier(peer, session)
    assert [frame.name for frame in peer.all("disposition")] == outcome
    assert [frame.state[0] for frame in peer.all("disposition")] == [0x25] * len(outcome)


def test_a_transfer_without_end_takes_no_memory_without_end(sync: SyncFace) -> None:
    peer = sync.peer()
    consumer = sync.session(peer, "jms.maxMessageSize=1048576").create_consumer(Queue("q"))
    peer.wait_frames("flow")
    connection, piece = peer.connections[0], bytes(60_000)
    before = resident()
    for number in range(1000):
        peer.do(lambda: connection.write_raw(transfer(0, piece, more=True)))
        if number % 50 == 49:
            wait_until(lambda: connection._socket.get_write_buffer_size() == 0, PATIENCE)
    peer.do(lambda: connection.write_raw(transfer(0, b"", more=False) + transfer(1, text("next"))))
    assert consumer.receive(timeout=60).text == "next"
    assert resident() - before < 30 << 20
    assert peer.wait_frames("disposition")[0].state[0] == 0x27


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_messages_without_credit_end_the_link_and_not_its_neighbour(face: Face) -> None:
    """AMQP 1.0 2.6.7: the peer sends as many as it may; credit is what bounds the memory."""
    peer = face.peer()
    connection = face.connect(peer, "jms.prefetchPolicy.all=1")
    consumer = connection.create_session().create_consumer(Queue("flood"))
    neighbour = connection.create_session().create_consumer(Queue("good"))
    peer.wait_frames("flow", 2)
    flood = b"".join(transfer(number, text("x")) for number in range(3000))
    peer.do(lambda: peer.connections[0].write_raw(flood))
    ends_alone(peer, consumer, neighbour)


def test_messages_without_credit_on_a_link_without_a_source_fail_the_call_that_asked_for_the_link(face: Face) -> None:
    """AMQP 1.0 2.6.3, 2.6.7: the link is given up before the broker says why it refuses the link."""
    peer = face.peer(silent={"attach"})
    session = face.connect(peer).create_session()
    creating = face.background(session.create_consumer, Queue("flood"))
    attach = peer.wait_frames("attach")[0]
    body = described(0x12, [attach["name"], uint(7), False, None, None, None, None, None, None, uint(0)])
    flood = [struct.pack(">IBBH", len(body) + 8, 2, 0, 1) + body]
    flood += [transfer(number, text("x"), handle=7) for number in range(3000)]
    peer.do(lambda: peer.connections[0].write_raw(b"".join(flood)))
    with pytest.raises(JMSException, match="without credit"):
        creating.result(60)


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_sender_that_counts_backwards_gives_itself_no_credit(face: Face, engine: str) -> None:
    """AMQP 1.0 2.6.7: one Flow gave credit for 2^30 messages, so the limit of the test above never came."""
    peer = face.peer()
    connection = face.connect(peer, "jms.prefetchPolicy.all=1", f"amqp.engine={engine}")
    consumer = connection.create_session().create_consumer(Queue("flood"))
    neighbour = connection.create_session().create_consumer(Queue("good"))
    peer.wait_frames("flow", 2)
    back = described(0x13, [uint(0), uint(1000), uint(0), uint(1000), uint(0), uint(2**32 - 2**30), uint(1)])
    flood = [struct.pack(">IBBH", len(back) + 8, 2, 0, 1) + back]
    flood += [transfer(number, text("x")) for number in range(3000)]
    peer.do(lambda: peer.connections[0].write_raw(b"".join(flood)))
    ends_alone(peer, consumer, neighbour)


@pytest.mark.parametrize("timeout", [0, 60])
def test_a_sender_that_counts_very_far_ends_the_connection_with_proton(face: Face, timeout: int) -> None:
    """AMQP 1.0 2.6.7: proton takes over the count, and could not hold the credit that was due then. ``receive`` raised
    ``OverflowError`` or got nothing any more."""
    peer = face.peer()
    connection = face.connect(peer, "jms.prefetchPolicy.all=0", "amqp.engine=proton")
    session = connection.create_session()
    consumer = session.create_consumer(Queue("far"))
    far = described(0x13, [uint(0), uint(1000), uint(0), uint(1000), uint(0), uint(2**31), uint(0)])
    frame = struct.pack(">IBBH", len(far) + 8, 2, 0, 1) + far
    peer.do(lambda: peer.connections[0].write_raw(frame))
    session.create_consumer(Queue("next"))  # its answer comes behind the count
    with pytest.raises(ConnectionLostException, match="impossible count"):
        consumer.receive(timeout=timeout)


def ends_alone(peer: Peer, consumer: Any, neighbour: Any) -> None:
    """Check that a consumer with too many messages ended, and that its neighbour goes on."""
    detach = peer.wait_frames("detach")[0]
    assert str(detach["error"][1][0]) == "amqp:link:transfer-limit-exceeded"
    peer.deliver(text("for the neighbour"), consumer=1)
    assert neighbour.receive(timeout=60).text == "for the neighbour"
    with pytest.raises(JMSException, match="without credit"):
        take_all(consumer)


def take_all(consumer: Any) -> None:
    while consumer.receive(timeout=10):
        pass


@pytest.mark.parametrize("chosen_by", ["peer", "url"])
@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_session_more_than_the_peer_allows_is_refused_alone(face: Face, engine: str, chosen_by: str) -> None:
    """AMQP 1.0 2.7.1: for such a session, proton wrote nothing more on the connection, without an error."""
    peer = face.peer(channel_max=2 if chosen_by == "peer" else None)
    connection = face.connect(peer, f"amqp.engine={engine}", *(["amqp.channelMax=2"] if chosen_by == "url" else []))
    sessions = [connection.create_session() for _ in range(2)]  # one more is that of the connection
    neighbour = sessions[0].create_producer(Queue("good"))
    for _ in range(2):
        with pytest.raises(ResourceAllocationException, match="all 3 channels of the connection are in use"):
            connection.create_session()
    neighbour.send("after")
    sessions[1].close()
    connection.create_session().create_producer(Queue("good")).send("in place of the closed one")
    assert [transfer.message.body for transfer in peer.wait_transfers(2)] == ["after", "in place of the closed one"]


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_link_more_than_the_peer_allows_is_refused_alone(face: Face, engine: str) -> None:
    """AMQP 1.0 2.7.2, as for a session."""
    peer = face.peer(handle_max=2)
    session = face.connect(peer, f"amqp.engine={engine}").create_session()
    neighbour, other = session.create_producer(Queue("good")), session.create_producer(Queue("other"))
    session.create_consumer(Queue("good"))
    for create in (session.create_consumer, session.create_producer):
        with pytest.raises(ResourceAllocationException, match="no free handle, because the peer allows only 3"):
            create(GUILTY)
    neighbour.send("after")
    other.close()
    session.create_producer(Queue("third")).send("in place of the closed one")
    assert [transfer.message.body for transfer in peer.wait_transfers(2)] == ["after", "in place of the closed one"]


def test_with_proton_a_link_more_than_the_peer_allows_after_a_loss_is_closed_alone(face: Face) -> None:
    """S104: with our own engine the broker refuses the link, because the attach leaves before the answer to Begin."""
    peer = face.peer()
    connection = face.failover(peer, options="nested.amqp.engine=proton&jms.closeLinksThatFailOnReconnect=true")
    session = connection.create_session()
    neighbour, lost = session.create_producer(Queue("good")), session.create_producer(Queue("other"))
    peer.script.handle_max = 0
    peer.drop()
    neighbour.send("after")
    with pytest.raises(ResourceAllocationException, match="no free handle"):
        lost.send("x")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]


def test_a_message_larger_than_the_broker_takes_is_not_sent(face: Face) -> None:
    """AMQP 1.0 2.7.3: for one the broker would close the link, which is everybody's who sends there."""
    peer = face.peer(max_message_size=5000)
    producer = face.session(peer).create_producer(Queue("q"))
    with pytest.raises(ResourceAllocationException, match=r"accepts 5,000"):
        producer.send("x" * 6000)
    producer.send("small")
    assert [one.message.body for one in peer.wait_transfers(1)] == ["small"]


@pytest.mark.parametrize("what", ["sessions", "links"])
def test_what_the_peer_begins_and_nobody_asked_for_is_bounded(face: Face, what: str) -> None:
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    connection.create_session()
    frames = []
    for number in range(10, 300):
        if what == "sessions":
            body, channel = described(0x11, [None, uint(0), uint(1), uint(1)]), number
        else:
            body, channel = described(0x12, [f"link {number}", uint(number), False]), 1
        frames.append(struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body)
    peer.do(lambda: peer.connections[0].write_raw(b"".join(frames)))
    assert "nobody asked for" in str(heard.first())


@pytest.mark.parametrize("name", ["proton", "python"])
def test_an_idle_time_out_of_a_millisecond_is_not_kept_at_any_price(name: str) -> None:
    """AMQP 1.0 2.4.5: 57,000 empty frames in two seconds were."""
    sent: list[bytes] = []

    class Quiet:
        encrypted = False

        def flush(self) -> None:
            while data := engine.data_to_send():
                sent.append(data)

        def retick(self) -> None: ...

        def close(self) -> None: ...

        def abort(self) -> None: ...

    class Listener:
        def on_ready(self) -> None:
            engine.open(Open(container_id="ours"))

        def on_remote_open(self) -> None: ...

        def on_burst_end(self) -> None: ...

        def on_failure(self, error: JMSException) -> None: ...

    kind = opening.engine_class(name)
    engine = kind(Listener(), None, EngineOptions(max_frame_size=65536, channel_max=9))
    engine.connection_made(Quiet())
    body = described(0x10, ["peer", None, None, None, uint(1)])
    engine.receive_data(b"AMQP\0\1\0\0" + struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)
    now: float | None = 1.0
    while now is not None and now < 3.0:
        now = engine.tick(now)
    assert 30 < sum(data.endswith(b"\0\0\0\x08\x02\0\0\0") for data in sent) <= 41


@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("channel", [1, 101])
def test_a_second_begin_for_a_session_ends_its_connection_alone(face: Face, engine: str, channel: int) -> None:
    """AMQP 1.0 2.5.1. With proton such a frame ended the process later, with a segmentation fault."""
    peer, honest = face.peer(), face.peer()
    neighbour = face.session(honest).create_producer(Queue("good"))
    session = face.session(peer, f"amqp.engine={engine}")
    begin = described(0x11, [ushort(1), uint(0), uint(5), uint(5)])
    peer.do(lambda: peer.connections[0].write_raw(struct.pack(">IBBH", len(begin) + 8, 2, 0, channel) + begin))
    with pytest.raises(JMSException):
        session.create_consumer(Queue("q")).receive(timeout=60)
    neighbour.send("after")
    assert [transfer.message.body for transfer in honest.wait_transfers(1)] == ["after"]
