"""What a broker cannot take, and what it may not do to us: frames, sizes, credit, time (docs/security.md)."""

from __future__ import annotations

from typing import Any

import pytest
from failover_support import Events
from peer import Peer, PeerLink
from peer_faces import Face, SyncFace

from pyjmsack import InvalidDestinationException, JMSException, Queue, ResourceAllocationException

GUILTY = Queue("guilty")


def deadly(peer: Peer) -> Any:
    """Return a rule: an attach to the guilty queue ends the connection, as one that is too large does."""

    def attached(link: PeerLink) -> None:
        if GUILTY.name in (link.link.remote_source.address, link.link.remote_target.address):
            link.connection.drop()

    return attached


def test_an_attach_that_ends_each_connection_is_given_up_and_the_neighbour_goes_on(face: Face) -> None:
    """S104, S109: after the third time, and not 1,650 times."""
    peer = face.peer()
    peer.script.after_attach = deadly(peer)
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
    second.script.after_attach = deadly(second)
    connection = face.failover(first, second, options="failover.maxReconnectAttempts=20")
    session = connection.create_session()
    neighbour = session.create_producer(Queue("good"))
    guilty = session.create_consumer(GUILTY)
    first.stop_listening()
    first.drop()
    with pytest.raises(ResourceAllocationException, match="this link is given up"):
        guilty.receive(timeout=10)
    neighbour.send("after")
    assert [transfer.message.body for transfer in second.wait_transfers(1)] == ["after"]


def test_what_does_not_fit_the_frames_of_this_broker_is_refused_with_its_size(face: Face) -> None:
    """AMQP 1.0 2.3.1, 2.7.1: the broker says what it takes."""
    peer = face.peer(max_frame_size=2000)
    session = face.session(peer)
    before = len(peer.all("attach"))
    with pytest.raises(InvalidDestinationException, match=r"about 2,\d+ bytes, and this broker takes 2,000"):
        session.create_producer(Queue("q" * 1900))
    with pytest.raises(JMSException, match=r"about 2,\d+ bytes"):
        session.create_consumer(Queue("q"), "a = '" + "x" * 1900 + "'")
    session.create_producer(Queue("q" * 1500)).send("fits")
    assert len(peer.all("attach")) == before + 1


@pytest.mark.parametrize("length", [10, 100, 255, 256, 1000, 5000])
def test_the_size_of_an_attach_is_never_larger_than_it_is_taken_for(sync: SyncFace, length: int) -> None:
    """Else one could slip through that the broker does not take."""
    from pyjmsack.providers.amqp.sizes import ATTACH_BESIDES

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
