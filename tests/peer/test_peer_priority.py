"""A preferred broker (A.3 ``priorityBackup``) that accepts connections and does not work."""

from __future__ import annotations

from typing import Any

import pytest
from failover_support import Events
from peer import Condition, Peer
from peer_faces import Face
from stomp_peer import Received, StompPeer, start

from pyjmsack import Queue
from pyjmsack.providers.failover import returns

ENGINES = pytest.mark.parametrize("engine", ["python", "proton"])
FULL = Condition("amqp:resource-limit-exceeded", "full")
MOVED = ("established", "interrupted", "restored")


def at_the_backup(face: Face, engine: str, timeout: int = 15_000) -> tuple[Peer, Peer, Any]:
    """Start two brokers, of which the preferred one answers no Open, and connect to the other one.

    Returns:
        the preferred broker, the other one, and the connection.
    """
    preferred, other = face.peer(), face.peer()
    preferred.script.silent.add("open")
    options = f"failover.priorityBackup=true&nested.amqp.engine={engine}&jms.connectTimeout={timeout}"
    connecting = face.background(lambda: face.failover(preferred, other, options=options))
    preferred.wait_frames("open")
    preferred.drop()
    return preferred, other, connecting.result(60)


def answer_open(peer: Peer) -> None:
    """From now on answer each Open. The connections that wait for an answer end, in the same turn of the peer."""

    def act() -> None:
        peer.script.silent.discard("open")
        for connection in peer.connections:
            if connection.alive:
                connection.drop()

    peer.do(act)


@ENGINES
def test_a_broker_that_dies_before_it_answers_the_close_of_the_test_is_not_there(face: Face, engine: str) -> None:
    """S109: the good connection was left for the dead broker."""
    preferred, other, connection = at_the_backup(face, engine)
    events = Events(connection)
    preferred.script.silent.add("close")
    answer_open(preferred)
    preferred.wait_frames("close")
    preferred.drop()
    preferred.wait_frames("close", 2)
    connection.create_session().create_producer(Queue("q")).send("x")
    other.wait_transfers(1)
    assert events.names == ["established"]


@ENGINES
def test_a_broker_that_never_answers_the_close_of_the_test_is_tried_again(face: Face, engine: str) -> None:
    """S109: heart-beats kept the test alive, so the connection never moved back."""
    preferred, _, connection = at_the_backup(face, engine, timeout=1000)
    events = Events(connection)
    preferred.script.silent.add("close")
    answer_open(preferred)
    preferred.wait_frames("close", 2)
    assert events.names == ["established"]
    preferred.script.silent.discard("close")
    events.wait(*MOVED)
    assert events.calls[-1][1] == preferred.url


def test_over_stomp_a_broker_that_dies_before_it_answers_the_disconnect_of_the_test_is_not_there(face: Face) -> None:
    """S109."""
    fatal = ["CONNECT"]

    def die(peer: StompPeer, frame: Received) -> bool:
        dies = frame.command in fatal
        if dies:
            peer.drop()
        return dies

    preferred, other = start(face, rule=die), start(face)
    events = Events(face.failover(preferred.url, other.url, options="failover.priorityBackup=true"))
    fatal[:] = ["DISCONNECT"]
    preferred.wait("DISCONNECT", 3)
    assert events.names == ["established"]
    fatal.clear()
    events.wait(*MOVED)


@ENGINES
@pytest.mark.parametrize("kind", ["session", "link"])
def test_a_broker_that_refuses_what_is_open_is_left_alone_for_a_while(
    face: Face, engine: str, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """S109: the good connection was left for it many times in a second."""
    monkeypatch.setattr(returns, "_FIRST_PAUSE", 0.1)
    preferred, other, connection = at_the_backup(face, engine)
    producer = connection.create_session().create_producer(Queue("q"))
    events = Events(connection)
    if kind == "session":
        preferred.script.refuse_begin = lambda number: FULL if number else None
    else:
        preferred.script.refuse_attach = lambda link: FULL
    answer_open(preferred)
    face.until(lambda: "is tried again after" in caplog.text)
    producer.send("at the other one")
    other.wait_transfers(1)
    preferred.script.refuse_begin = preferred.script.refuse_attach = lambda _: None
    face.until(lambda: events.calls[-1][:2] == ("restored", preferred.url))
    producer.send("at home")
    preferred.wait_transfers(1)
