"""The idle time-outs of both sides (AMQP 1.0 2.4.5)."""

from __future__ import annotations

import pytest
from peer_faces import Face, Told

from pyjmsack import ConnectionLostException, Queue


@pytest.mark.option("amqp.idleTimeout", "amqp")
def test_our_idle_time_out_is_announced_at_half_its_value(face: Face) -> None:
    """AMQP 1.0 2.4.5: so that the peer's frames come well in time."""
    peer = face.peer()
    face.connect(peer, "amqp.idleTimeout=5000")
    assert peer.wait_frames("open")[0]["idle-time-out"] == 2500


@pytest.mark.parametrize("value", [0, -1])
def test_an_idle_time_out_that_is_off_is_not_announced(face: Face, value: int) -> None:
    peer = face.peer()
    face.connect(peer, f"amqp.idleTimeout={value}")
    assert peer.wait_frames("open")[0]["idle-time-out"] in (None, 0)


def test_an_idle_client_sends_empty_frames_in_time(face: Face) -> None:
    """The peer would close the connection after 0.4 s without a frame."""
    peer = face.peer(idle_timeout=0.4)
    session = face.session(peer)
    peer.wait_frames("empty", 3)
    session.create_producer(Queue("q")).send("still here")
    assert peer.connections[0].alive


def test_a_blocked_receive_keeps_the_connection_alive(face: Face) -> None:
    """Nothing that waits may hold up the empty frames."""
    peer = face.peer(idle_timeout=0.4)
    consumer = face.session(peer).create_consumer(Queue("q"))
    assert consumer.receive(0.8) is None
    assert len(peer.wait_frames("empty", 2)) >= 2


def test_a_peer_that_sends_nothing_is_declared_dead(face: Face) -> None:
    """S128: the exception listener hears it, and a blocked receive raises."""
    peer = face.peer(silent={"heartbeat"})
    connection = face.connect(peer, "amqp.idleTimeout=300")
    connection.exception_listener = heard = Told()
    consumer = connection.create_session().create_consumer(Queue("q"))
    with pytest.raises(ConnectionLostException):
        consumer.receive(60)
    assert isinstance(heard.first(), ConnectionLostException)
    peer.wait_closed()


def test_a_peer_that_sends_empty_frames_is_not_declared_dead(face: Face) -> None:
    """The time-out is long enough for a peer on a busy machine."""
    peer = face.peer()
    connection = face.connect(peer, "amqp.idleTimeout=1500")
    connection.exception_listener = heard = Told()
    consumer = connection.create_session().create_consumer(Queue("q"))
    assert consumer.receive(2) is None
    assert heard.calls == []


def test_a_peer_that_falls_silent_before_its_begin_is_given_up(face: Face) -> None:
    """The idle time-out runs while the connection is being opened as well."""
    peer = face.peer(silent={"begin", "heartbeat"})
    with pytest.raises(ConnectionLostException):
        face.connect(peer, "amqp.idleTimeout=200", "jms.connectTimeout=9000")


def test_artemis_is_made_to_look_when_it_does_not_answer_an_end(face: Face) -> None:
    """Broker facts, 13: it keeps every second answer to itself until another frame comes. S123."""
    peer = face.peer(silent={"end"}, properties={"product": "apache-activemq-artemis", "version": "2.56.0"})
    closing = face.background(face.session(peer).close)
    peer.wait_frames("end")
    peer.wait_frames("empty")
    assert not closing.done()
    peer.drop()
    closing.result(60)
